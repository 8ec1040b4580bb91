//! Drivers on vhost-user ports, and the data plane between them.

mod attacks;
mod hostile;
mod interrupts;
mod nic;
mod rogue;
mod traffic;

use nic::{Nic, NicSettings};
use traffic::{carry, datagram, frame, until};
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
fn flows_are_spread_over_queues() {
    const FLOWS: u16 = 64;
    let nic = Nic::start(NicSettings { queues: 4, ..NicSettings::default() });
    let settings = DriverSettings { pairs: 4, ..DriverSettings::default() };
    let mut a = nic.driver_with(0, settings);
    let mut b = nic.driver_with(1, settings);
    let mut came = vec![Vec::new(); 4];
    for number in 0..20 {
        for flow in 0..FLOWS {
            assert!(a.send(flow % 4, &datagram(flow, number)).unwrap());
        }
        (0..4).for_each(|queue| a.flush(queue).unwrap());
        until("all flows", || {
            for (queue, came) in (0..).zip(&mut came) {
                b.receive(queue, 64, |frame| came.push(frame.to_vec())).unwrap();
            }
            came.iter().map(Vec::len).sum::<usize>() == usize::from(FLOWS) * (number as usize + 1)
        });
    }
    let used = came.iter().filter(|came| !came.is_empty()).count();
    assert!(used > 1, "all {FLOWS} flows came on one queue");
    for flow in 0..FLOWS {
        let expected: Vec<_> = (0..20).map(|number| datagram(flow, number)).collect();
        let of_flow = |frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
            let is = |frame: &&Vec<u8>| frame[34..36] == flow.to_be_bytes();
            frames.iter().filter(is).cloned().collect()
        };
        let homes: Vec<_> = came.iter().filter(|came| !of_flow(came).is_empty()).collect();
        assert_eq!(homes.len(), 1, "flow {flow} came on several queues");
        assert_eq!(of_flow(homes[0]), expected, "flow {flow}: out of order, or not all");
    }
}

#[test]
fn driver_that_wants_one_pair_gets_all_flows_there() {
    let nic = Nic::start(NicSettings { queues: 4, ..NicSettings::default() });
    let (mut a, mut b) = (nic.driver(0), nic.driver(1));
    let frames: Vec<_> = (0..256).map(|flow| datagram(flow, 1)).collect();
    assert_eq!(carry(&mut a, &mut b, &frames), frames);
}

#[test]
fn driver_sets_the_moderation_of_the_nic() {
    let nic = Nic::start(NicSettings { queues: 2, ..NicSettings::default() });
    let settings = DriverSettings { pairs: 2, ..DriverSettings::default() };
    let mut driver = nic.driver_with(0, settings);
    assert_eq!(driver.coalesces(), [true; 2]);
    driver.set_coalescing(75, 32).unwrap();
    assert_eq!(nic.moderation(0), [(75, 32), (75, 32)]);
    driver.set_queue_coalescing(1, 8, 4).unwrap();
    assert_eq!(nic.moderation(0), [(75, 32), (8, 4)]);
    assert!(driver.set_queue_coalescing(2, 8, 4).is_err());
    assert_ne!(nic.moderation(1)[0], (75, 32), "the other port's setting is its own");
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

#[test]
fn driver_notices_that_the_nic_is_gone() {
    let nic = Nic::start(NicSettings::default());
    let driver = nic.driver(0);
    driver.check().unwrap();
    drop(nic);
    assert!(driver.check().is_err());
    assert!(driver.wait(0, std::time::Duration::from_secs(60)).is_err());
}
