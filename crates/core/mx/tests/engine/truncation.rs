//! Receives that are shorter than the message, at both ends.

use crate::support::{EnginePair, pattern, secs};
use mx::config::Config;
use mx::endpoint::Endpoint;
use mx::matching::Match;
use mx::status::{Event, RequestError};

#[test]
fn what_fits_is_delivered_and_both_ends_know() {
    let (mut pair, [to, from]) = EnginePair::connected(Config::default());
    for (size, room) in [
        (1, 0),
        (100, 99),
        (1_000, 10),
        (32_768, 5_000),
        (32_769, 0),
        (40_000, 1),
        (40_000, 39_999),
        (200_000, 46_976),
        (200_000, 100_001),
        (1 << 20, 5_000),
    ] {
        for synchronous in [false, true] {
            for early in [false, true] {
                let post = |pair: &mut EnginePair| {
                    pair.ends[1]
                        .irecv(pair.now, Some(from), Match { info: 1, mask: 1 }, vec![7; room], 0)
                        .unwrap();
                };
                if early {
                    post(&mut pair);
                }
                let send = if synchronous { Endpoint::issend } else { Endpoint::isend };
                send(&mut pair.ends[0], pair.now, to, 3, pattern(size), 0).unwrap();
                pair.run(secs(0));
                if !early {
                    post(&mut pair);
                }
                pair.run(secs(1));
                let [Event::Received(_, got, place)] = &pair.take(1)[..] else { panic!("{size}") };
                assert_eq!((got.result, got.match_info), (Err(RequestError::Truncated), 3));
                assert_eq!((got.length, got.transferred), (size as u64, room as u64));
                assert!(place[..] == pattern(size)[..room], "{size} {room}");
                let [Event::Sent(_, sent)] = &pair.take(0)[..] else { panic!("{size}") };
                let expected = match synchronous || size > 32_768 {
                    true => (Err(RequestError::Truncated), room as u64),
                    false => (Ok(()), size as u64),
                };
                assert_eq!((sent.result, sent.transferred), expected, "{size} {room}");
            }
        }
    }
}
