//! The beginning of messages that no receive has taken.

use crate::support::{EnginePair, pattern, secs};
use mx::config::Config;
use mx::matching::Match;

#[test]
fn beginning_of_a_message_is_known_before_it_is_received() {
    for (head, known) in [(0, 0), (9, 9), (16, 16)] {
        let (mut pair, [to, _]) = EnginePair::connected(Config { head, ..Config::default() });
        for size in [0, 5, 100, 20_000, 100_000] {
            let message = pattern(size);
            pair.ends[0].isend(pair.now, to, 5, message.clone(), 0).unwrap();
            pair.run(secs(0));
            let found = pair.ends[1].probe(None, Match::exact(5)).unwrap().unwrap();
            let mut beginning = [0xee; 20];
            let length = pair.ends[1].look(found.message, &mut beginning).unwrap();
            // Of what is announced only the head is there.
            let expected = if size > 32_768 { known } else { size.min(beginning.len()) };
            assert_eq!(length, expected, "{size} bytes, head {head}");
            assert_eq!(beginning[..length], message[..length]);

            pair.ends[1].irecv(pair.now, None, Match::exact(5), vec![0; size], 7).unwrap();
            assert_eq!(pair.ends[1].look(found.message, &mut beginning), None);
            pair.run(secs(0));
            pair.take(0);
            pair.take(1);
        }
    }
}

#[test]
fn receive_is_found_by_its_context() {
    let (mut pair, _) = EnginePair::connected(Config::default());
    let end = &mut pair.ends[1];
    let receive = end.irecv(pair.now, None, Match::exact(5), vec![0; 8], 42).unwrap();
    assert_eq!((end.receive_with(42), end.receive_with(43)), (Some(receive), None));
    assert!(end.cancel(receive));
    assert_eq!(end.receive_with(42), None);
}
