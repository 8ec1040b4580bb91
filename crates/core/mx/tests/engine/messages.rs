//! Messages of all kinds between two endpoints, on a wire without faults.

use crate::support::{EnginePair, pattern, secs};
use mx::config::Config;
use mx::counters::DropReason;
use mx::matching::Match;
use mx::status::Event;

const SIZES: [usize; 14] =
    [0, 1, 31, 128, 129, 1_460, 1_461, 32_768, 32_769, 46_976, 46_977, 234_880, 1 << 20, 5_000_001];

#[test]
fn messages_of_every_size_arrive_whole() {
    for mtu in [576, 1500, 9216] {
        for crc in [false, true] {
            let (mut pair, [to, from]) =
                EnginePair::connected(Config { mtu, crc, ..Config::default() });
            for early in [true, false] {
                for size in SIZES {
                    let post = |pair: &mut EnginePair| {
                        let place = vec![0; size + 3];
                        pair.ends[1].irecv(pair.now, Some(from), Match::exact(5), place, 9).unwrap()
                    };
                    let posted = early.then(|| post(&mut pair));
                    let message = pattern(size);
                    pair.ends[0].isend(pair.now, to, 5, message.clone(), 8).unwrap();
                    pair.run(secs(0));
                    let receive = posted.unwrap_or_else(|| post(&mut pair));
                    pair.run(secs(0));
                    let [Event::Received(id, status, place)] = &pair.take(1)[..] else { panic!() };
                    assert_eq!((*id, status.result, status.context), (receive, Ok(()), 9));
                    assert_eq!((status.length, status.transferred), (size as u64, size as u64));
                    assert!(place[..size] == message && place[size..] == [0; 3], "{size}");
                    let [Event::Sent(_, status)] = &pair.take(0)[..] else { panic!("{size}") };
                    assert_eq!((status.result, status.context), (Ok(()), 8));
                    assert_eq!(status.transferred, size as u64);
                }
            }
            for end in &pair.ends {
                assert_eq!(end.counters().resent, 0);
                assert_eq!(end.counters().dropped, [0; DropReason::ALL.len()]);
                assert_eq!(end.open_requests(), (vec![], vec![]));
            }
        }
    }
}
