//! What goes to a peer, frame by frame.

use super::*;

fn header(ack: Seq, credit: u32, window: u16) -> Header {
    Header { ack, credit, window, ..Header::default() }
}

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

const FIRST: Seq = Seq(u32::MAX - 5);

fn outbound(config: &Config) -> Outbound {
    let mut outbound = Outbound::new(FIRST, config);
    outbound.meet(&header(FIRST, u32::MAX - 10, 256));
    outbound
}

#[test]
fn credit_wraps() {
    let mut outbound = outbound(&Config::default());
    // As after four gigabytes: what is used and what is permitted are close to each other.
    outbound.used = Seq(u32::MAX - 100);
    assert_eq!(outbound.credit(), 90);
    outbound.use_credit(90);
    assert_eq!(outbound.credit(), 0);
    outbound.permit(&header(FIRST, 50, 256));
    assert_eq!(outbound.credit(), 61);
    outbound.use_credit(60);
    // One that was late permits less, which changes nothing.
    outbound.permit(&header(FIRST, u32::MAX - 3, 256));
    assert_eq!(outbound.credit(), 1);
}

#[test]
fn what_later_frames_overtake_is_lost() {
    let config = Config::default();
    let mut outbound = outbound(&config);
    for _ in 0..6 {
        outbound.send(at(0), Segment::Close, &config);
    }
    let hear = |outbound: &mut Outbound, now, bitmap: &[u8]| {
        outbound.on_ack(at(now), FIRST, bitmap, &config, |_| ()).unwrap()
    };
    // The second and the third have come, which explains itself by reordering; then the fourth.
    assert_eq!(hear(&mut outbound, 40, &[0b011]).lost, 0);
    assert!(!outbound.may_resend(false));
    assert_eq!(hear(&mut outbound, 41, &[0b111]).lost, 1);
    assert_eq!(outbound.resend(at(41), &config), Some((FIRST, Segment::Close, Resent::Last)));
    // It was only late: too early for an answer to the second transmission.
    let mut done = 0;
    let progress = outbound.on_ack(at(42), FIRST.plus(4), &[], &config, |_| done += 1).unwrap();
    assert_eq!((progress.needless, done, outbound.packet_threshold), (1, 4, 2 * PACKET_THRESHOLD));
}

#[test]
fn a_frame_that_was_lost_twice_is_found_again() {
    let config = Config::default();
    let mut outbound = outbound(&config);
    for _ in 0..4 {
        outbound.send(at(0), Segment::Close, &config);
    }
    outbound.on_ack(at(40), FIRST, &[0b111], &config, |_| ()).unwrap();
    assert!(outbound.resend(at(40), &config).is_some());
    for _ in 0..3 {
        outbound.send(at(41), Segment::Close, &config);
    }
    assert_eq!(outbound.on_ack(at(81), FIRST, &[0b11_1111], &config, |_| ()).unwrap().lost, 1);
}

#[test]
fn silence_asks_with_one_frame_then_with_all() {
    let config = Config::default();
    let mut outbound = outbound(&config);
    for _ in 0..10 {
        outbound.send(at(0), Segment::Close, &config);
    }
    let first = outbound.deadline().unwrap();
    assert_eq!(outbound.on_pto(first, &config), 1);
    assert!(outbound.resend(first, &config).is_some() && !outbound.may_resend(false));
    let second = outbound.deadline().unwrap();
    assert_eq!(outbound.on_pto(second, &config), 10);
    // The window is closed to one frame.
    assert!(outbound.resend(second, &config).is_some() && !outbound.may_resend(false));
    let third = outbound.deadline().unwrap();
    assert!(third.since(second) > second.since(first), "it waits longer each time");
}

#[test]
fn acknowledging_what_was_never_sent_is_refused() {
    let config = Config::default();
    let mut outbound = outbound(&config);
    outbound.send(at(0), Segment::Close, &config);
    assert_eq!(outbound.on_ack(at(1), FIRST.plus(2), &[], &config, |_| ()), None);
    // An old one, with a list that means other frames now.
    assert_eq!(
        outbound.on_ack(at(1), Seq(FIRST.0.wrapping_sub(3)), &[0xff][..], &config, |_| ()),
        Some(AckProgress::default())
    );
    assert!(outbound.is_waiting());
}
