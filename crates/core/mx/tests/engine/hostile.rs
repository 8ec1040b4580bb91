//! Frames that no honest peer sends: they do no harm.

use crate::support::guest::request;
use crate::support::lies::{POISON, any_body, frame, header};
use crate::support::{EnginePair, address, pattern, secs};
use base::prng::Prng;
use mx::address::NicId;
use mx::config::Config;
use mx::counters::DropReason;
use mx::status::{Event, RequestError};
use mx::wire::{self, Body, FrameType, Header};

/// What the second end's peer has to put into its frames: token, next number, acknowledgement.
fn overheard(pair: &mut EnginePair) -> (u32, u32, u32) {
    let heard = std::rc::Rc::new(std::cell::Cell::new(None));
    let keep = heard.clone();
    pair.tap = Box::new(move |from, frame| {
        let (header, body) = wire::parse(frame).unwrap();
        if from == 0 && body.frame_type() == FrameType::Small {
            keep.set(Some((header.token, header.seq.0.wrapping_add(1), header.ack.0)));
        }
        true
    });
    let to = pair.ends[0].peers().next().unwrap();
    pair.ends[0].isend(pair.now, to, 99, pattern(3), 0).unwrap();
    pair.run(secs(0));
    pair.tap = Box::new(|from, _| from == 1);
    heard.get().unwrap()
}

#[test]
fn a_message_beyond_its_credit_ends_the_connection() {
    let config = Config { peer_credit: 1_000, ..Config::default() };
    let (mut pair, _) = EnginePair::connected(config);
    let (token, seq, ack) = overheard(&mut pair);
    let data = [0; 500];
    for (number, expected) in [(0, 0), (1, 0), (2, 1)] {
        let body = Body::Medium { match_info: 0, total: 450, offset: 0, data: &data[..450] };
        let forged = frame(header(token, seq.wrapping_add(number), ack), &body);
        pair.ends[1].handle_frame(pair.now, address(0).nic, &forged);
        pair.run(secs(0));
        let lost = |event: &&Event<_>| matches!(event, Event::Lost(_, RequestError::Protocol));
        assert_eq!(pair.take(1).iter().filter(lost).count(), expected);
    }
}

#[test]
fn a_forged_request_brings_one_frame_and_no_longer_one() {
    let mut pair = EnginePair::new(Config::default());
    let brought = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let keep = brought.clone();
    pair.tap = Box::new(move |from, frame| {
        if from == 1 {
            keep.borrow_mut().push(frame.len());
        }
        false
    });
    for number in 0..20 {
        let request = request(number % 7);
        brought.borrow_mut().clear();
        pair.ends[1].handle_frame(pair.now, address(0).nic, &request);
        pair.run(secs(if number % 2 == 0 { 0 } else { 30 }));
        assert_eq!(brought.borrow()[..], [request.len()], "{number}");
    }
}

#[test]
fn a_request_without_a_checksum_is_counted_and_brings_nothing() {
    let mut pair = EnginePair::new(Config::default());
    let (header, body) = (header(0, 1, 0), request(1));
    let (_, body) = wire::parse(&body).unwrap();
    pair.tap = Box::new(|from, _| panic!("a frame of {from}"));
    pair.ends[1].handle_frame(
        pair.now,
        address(0).nic,
        &frame(Header { crc: false, ..header }, &body),
    );
    pair.run(secs(10));
    let dropped = pair.ends[1].counters().dropped;
    assert_eq!((dropped[DropReason::NoChecksum as usize], dropped.iter().sum::<u64>()), (1, 1));
    assert_eq!(pair.ends[1].peers().count(), 0);
}

#[test]
fn a_forged_frame_brings_no_more_bytes_than_it_has() {
    let mut pair = EnginePair::new(Config::default());
    let brought = std::rc::Rc::new(std::cell::Cell::new(0));
    let sum = brought.clone();
    pair.tap = Box::new(move |_, frame| {
        sum.set(sum.get() + frame.len());
        false
    });
    let (mut random, data) = (Prng::new(5), vec![POISON; 16]);
    let mut refused = [0; FrameType::ALL.len()];
    for number in 0..20_000 {
        let body = any_body(&mut random, &data);
        let crc = number % 2 == 0;
        let whole = frame(Header { crc, ..header(number, number, 0) }, &body);
        let length = usize::from(u16::from_be_bytes([whole[22], whole[23]]));
        let least = wire::HEADER + length + if crc { 4 } else { 0 };
        // As an endpoint sends it, and without what it is padded with.
        for forged in [&whole[..], &whole[..least]] {
            brought.set(0);
            pair.ends[1].handle_frame(pair.now, address(0).nic, forged);
            pair.run(secs(0));
            assert!(brought.get() <= forged.len(), "{forged:?}: {} bytes", brought.get());
            let is_whole = forged.len() == whole.len();
            refused[body.frame_type().index()] += u32::from(is_whole && brought.get() > 0);
        }
    }
    // The shortest of those who wait for an answer get one.
    for waiting in [FrameType::Small, FrameType::Pull, FrameType::Probe, FrameType::Close] {
        assert!(refused[waiting.index()] > 0, "{}", waiting.name());
    }
}

#[test]
fn requests_of_strangers_take_up_little_and_not_for_long() {
    let (mut pair, [to, _]) = EnginePair::connected(Config::default());
    for number in 0..5_000_u32 {
        let [a, b, c, d] = number.to_be_bytes();
        pair.ends[1].handle_frame(pair.now, NicId([6, 6, a, b, c, d]), &request(number));
    }
    assert!(pair.ends[1].peers().count() <= 1_025);
    let config = pair.ends[1].config();
    assert!(pair.ends[1].usage().reserved_bytes <= config.unexpected_bytes);
    pair.run(secs(6));
    assert_eq!(pair.ends[1].peers().count(), 1);
    pair.ends[0].isend(pair.now, to, 1, pattern(10_000), 0).unwrap();
    pair.run(secs(1));
    assert_eq!(pair.ends[1].usage().unexpected_bytes, 10_000);
    assert!(pair.take(1).is_empty());
}
