//! Drivers on vhost-user ports, and the data plane between them.

mod attacks;
#[path = "../support/frontend.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod frontend;
mod hostile;
mod interrupts;
mod nic;
mod rogue;
mod traffic;

use nic::{Nic, NicSettings};
use traffic::{carry, datagram, frame};
use vhost::driver::DriverSettings;

#[test]
fn frames_of_all_sizes_arrive_intact_both_ways() {
    let nic = Nic::start(NicSettings::default());
    let (mut a, mut b) = (nic.driver(0), nic.driver(1));
    assert_ne!(a.mac(), b.mac());
    assert_eq!([a.mtu(), b.mtu()], [1500; 2]);
    let frames: Vec<_> = (14..=1514).map(|length| frame(length as u32, length)).collect();
    assert_eq!(carry(&mut a, &mut b, &frames), frames);
    assert_eq!(carry(&mut b, &mut a, &frames), frames);
    a.disconnect().unwrap();
    b.disconnect().unwrap();
}

#[test]
fn jumbo_frames_are_spread_over_buffers_and_arrive_whole() {
    let nic = Nic::start(NicSettings { mtu: 9000, ..NicSettings::default() });
    let (mut a, mut b) = (nic.driver(0), nic.driver(1));
    assert_eq!([a.mtu(), b.mtu()], [9000; 2]);
    let lengths = (14..=9014).step_by(61).chain([1514, 1515, 1518, 1519, 3048, 3049, 9013, 9014]);
    let frames: Vec<_> = lengths.map(|length| frame(length as u32, length)).collect();
    assert_eq!(carry(&mut a, &mut b, &frames), frames);
    assert_eq!(carry(&mut b, &mut a, &frames), frames);
}

#[test]
fn driver_with_one_pair_gets_all_flows_there() {
    let nic = Nic::start(NicSettings { queues: 4, ..NicSettings::default() });
    let (mut a, mut b) = (nic.driver(0), nic.driver(1));
    let frames: Vec<_> = (0..256).map(|flow| datagram(flow, 1)).collect();
    assert_eq!(carry(&mut a, &mut b, &frames), frames);
}

#[test]
fn ports_can_be_taken_again_and_again() {
    let nic = Nic::start(NicSettings::default());
    let mut b = nic.driver(1);
    for round in 0..50 {
        let mut a = nic.driver(0);
        let frames = [frame(round, 60), frame(round, 1514)];
        assert_eq!(carry(&mut a, &mut b, &frames), frames, "round {round}");
        assert_eq!(carry(&mut b, &mut a, &frames), frames, "round {round}");
        if round % 2 == 0 {
            a.disconnect().unwrap();
        }
    }
}

#[test]
fn rings_of_two_do() {
    let nic = Nic::start(NicSettings::default());
    let settings = DriverSettings { ring_size: 2, ..DriverSettings::default() };
    let (mut a, mut b) = (nic.driver_with(0, settings), nic.driver_with(1, settings));
    for number in 0..1000 {
        let frames = [frame(number, 60 + number as usize)];
        assert_eq!(carry(&mut a, &mut b, &frames), frames);
    }
}
