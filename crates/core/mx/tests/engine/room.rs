//! What all peers share: one that takes all it can get leaves enough for the others.

use crate::support::guest::{Guest, nic, request};
use crate::support::{Engine, address};
use base::time::{Duration, Instant};
use bytes::Bytes;
use mx::address::NicId;
use mx::config::Config;
use mx::counters::DropReason;
use mx::matching::Match;
use mx::status::{Event, RequestError};
use mx::wire::{Body, FrameType, Pull};

const NOW: Instant = Instant::from_micros(1);
/// No receive takes messages with this match information.
const UNWANTED: u64 = 1 << 40;

fn end(config: Config) -> Engine {
    Engine::new(config, address(1), 3).unwrap()
}

/// Announces messages until it is asked not to; how many.
fn announces_all(end: &mut Engine, guest: &mut Guest) -> u32 {
    for count in 1..1 << 20 {
        guest.announces(end, NOW, UNWANTED | u64::from(count));
        guest.receives(end, NOW);
        // An acknowledgement is due after 250 us, or with the next probe.
        guest.sends(end, NOW, &Body::Probe);
        guest.receives(end, NOW);
        if guest.is_full {
            return count;
        }
    }
    panic!("one peer may send any number");
}

fn events(end: &mut Engine) -> Vec<Event<Vec<u8>>> {
    std::iter::from_fn(|| end.poll_event()).collect()
}

#[test]
fn one_peer_leaves_room_for_the_messages_of_others() {
    let mut end = end(Config { unexpected_messages: 1_000, ..Config::default() });
    let mut greedy = Guest::connected(&mut end, NOW, nic(1));
    assert_eq!(announces_all(&mut end, &mut greedy), 500);
    let mut other = Guest::connected(&mut end, NOW, nic(2));
    assert!(!other.is_full);
    events(&mut end);
    // Whether they are expected or not, short or long.
    for first in [true, false] {
        let receive = |end: &mut Engine| {
            end.irecv(NOW, None, Match::exact(1), vec![0; 9], 0).unwrap();
            end.irecv(NOW, None, Match::exact(2), vec![0; 9_000], 0).unwrap();
        };
        if first {
            receive(&mut end);
        }
        other.sends(&mut end, NOW, &Body::Small(1, b"something"));
        other.sends(
            &mut end,
            NOW,
            &Body::Rendezvous { match_info: 2, total: 9_000, region: 5, head: &[] },
        );
        if !first {
            receive(&mut end);
        }
        let ends = events(&mut end);
        let [Event::Received(_, status, data)] = &ends[..] else { panic!("{ends:?}") };
        assert_eq!((status.result, &data[..]), (Ok(()), &b"something"[..]));
        other.came.clear();
        other.receives(&mut end, NOW);
        assert!(!other.is_full && other.came.contains(&FrameType::Pull), "{:?}", other.came);
    }
    assert_eq!(announces_all(&mut end, &mut other), 250);
}

#[test]
fn the_last_of_many_peers_may_send_something_too() {
    let mut end = end(Config { unexpected_messages: 1_000, ..Config::default() });
    let counts: Vec<_> = (1..40)
        .map(|number| {
            let mut guest = Guest::connected(&mut end, NOW, nic(number));
            announces_all(&mut end, &mut guest)
        })
        .collect();
    assert_eq!(counts[..4], [500, 250, 125, 64]);
    assert!(counts[4..].iter().all(|count| *count == 64), "{counts:?}");
}

#[test]
fn one_who_has_no_room_and_goes_on_is_no_peer_any_more() {
    let config = Config { unexpected_messages: 1_000, ..Config::default() };
    for is_eager in [false, true] {
        let mut end = end(config);
        let mut greedy = Guest::connected(&mut end, NOW, nic(1));
        announces_all(&mut end, &mut greedy);
        events(&mut end);
        // What is under way until then is taken.
        for count in 0..2 * u32::from(config.window) {
            let waiting = end.usage().waiting;
            assert!(waiting <= 500 + u32::from(config.window));
            if is_eager {
                greedy.sends(&mut end, NOW, &Body::Small(UNWANTED, b""));
            } else {
                greedy.announces(&mut end, NOW, UNWANTED);
            }
            let is_lost = events(&mut end)
                .iter()
                .any(|it| matches!(it, Event::Lost(_, RequestError::Protocol)));
            if is_lost {
                assert_eq!(count, u32::from(config.window) - 1);
                break;
            }
        }
        assert_eq!(end.peers().count(), 0, "it goes on for ever");
        // What it has left is more than lost peers may leave.
        assert_eq!(end.usage().waiting, 0);
    }
}

#[test]
fn ends_of_transfers_that_a_peer_does_not_take_are_room_that_it_takes() {
    let mut end = end(Config { unexpected_messages: 1_000, ..Config::default() });
    let mut greedy = Guest::connected(&mut end, NOW, nic(1));
    greedy.ignores_frames = true;
    let mut count = 0;
    while !greedy.is_full {
        count += 1;
        assert!(count < 2_000, "ends of transfers become more and more");
        end.irecv(NOW, None, Match::ANY, vec![], 0).unwrap();
        greedy.announces(&mut end, NOW, 1);
        greedy.sends(&mut end, NOW, &Body::Probe);
        greedy.receives(&mut end, NOW);
    }
    assert_eq!(end.peers().count(), 1);
}

fn with_announced(count: u32) -> (Engine, Guest) {
    let mut end = end(Config::default());
    let mut greedy = Guest::connected(&mut end, NOW, nic(1));
    for number in 0..count {
        greedy.announces(&mut end, NOW, UNWANTED | u64::from(number));
        if number % 64 == 0 {
            greedy.receives(&mut end, NOW);
        }
    }
    (end, greedy)
}

#[test]
fn messages_of_one_peer_do_not_slow_down_those_of_others() {
    let (mut end, _) = with_announced(20_000);
    let mut other = Guest::connected(&mut end, NOW, nic(2));
    let source = end.peers().last();
    let masked = Match { info: 1, mask: u64::MAX ^ 0xff00 };
    for (source, wanted) in
        [(source, Match::exact(1)), (None, Match::exact(1)), (source, masked), (None, masked)]
    {
        for is_expected in [true, false] {
            let before = end.counters().compared;
            for _ in 0..1_000 {
                let sends = |end: &mut Engine, other: &mut Guest| {
                    other.sends(end, NOW, &Body::Small(1, b"something"));
                };
                if !is_expected {
                    sends(&mut end, &mut other);
                }
                end.irecv(NOW, source, wanted, vec![0; 9], 0).unwrap();
                if is_expected {
                    sends(&mut end, &mut other);
                }
            }
            assert_eq!(
                events(&mut end).iter().filter(|it| matches!(it, Event::Received(..))).count(),
                1_000
            );
            // Once all of them, perhaps; and then some each time.
            let compared = end.counters().compared - before;
            assert!(compared < 20_000 + 300 * 1_000, "{source:?} {wanted:?}: {compared}");
        }
    }
}

#[test]
fn the_end_of_a_peer_costs_what_it_has_sent() {
    let (mut end, mut greedy) = with_announced(20_000);
    let mut other = Guest::connected(&mut end, NOW, nic(2));
    let before = end.counters().compared;
    other.sends(&mut end, NOW, &Body::Close);
    let short = end.counters().compared - before;
    assert!(short < 300, "{short}");
    greedy.sends(&mut end, NOW, &Body::Close);
    let long = end.counters().compared - before - short;
    assert!(long < 20_300, "{long}");
    assert_eq!((end.usage().waiting, end.peers().count()), (0, 0));
}

#[test]
fn closing_costs_what_there_is_to_refuse() {
    let count = 100_000;
    let (mut end, mut greedy) = with_announced(count);
    let before = end.counters().compared;
    end.close(NOW);
    let compared = end.counters().compared - before;
    assert!(compared <= u64::from(count), "{compared}");
    assert_eq!(end.usage().waiting, 0);
    // It gets a refusal for each, and then the end.
    let mut rounds = 0;
    greedy.came.clear();
    while !end.is_closed() {
        rounds += 1;
        assert!(rounds < 2 * count, "it does not end");
        greedy.receives(&mut end, NOW);
        greedy.sends(&mut end, NOW, &Body::Ack(&[]));
    }
    let refusals = greedy.came.iter().filter(|it| **it == FrameType::Notify).count();
    assert_eq!((refusals, greedy.came.last()), (count as usize, Some(&FrameType::Close)));
}

#[test]
fn a_flood_of_forged_requests_keeps_no_others_out() {
    let mut end = end(Config::default());
    let flood = |end: &mut Engine, from: u32, count: u32| {
        for number in from..from + count {
            end.handle_frame(NOW, nic(number), &request(number));
        }
    };
    flood(&mut end, 10_000, 5_000);
    let mut other = Guest::asks(&mut end, NOW, nic(1));
    assert!(other.is_known());
    flood(&mut end, 20_000, 1_000);
    let before = end.usage().reserved_bytes;
    other.sends(&mut end, NOW, &Body::Probe);
    assert!(events(&mut end).is_empty());
    assert!(end.peers().count() <= 1_025);
    // It is connected, and has its whole share of memory.
    let gained = end.usage().reserved_bytes - before;
    assert_eq!(gained, u64::from(end.config().peer_credit) - (32 << 10));
    assert!(end.has_peer(end.peer_at(mx::address::Address { nic: nic(1), endpoint: 0 }).unwrap()));
}

#[test]
fn one_host_leaves_places_for_the_peers_of_others() {
    let mut end = end(Config { guests: 100, host_bytes: 4, ..Config::default() });
    let fill = |end: &mut Engine, host: u8| {
        let of_host = |port| NicId([10, 0, 0, host, 0, port]);
        (0..200).take_while(|port| Guest::asks(end, NOW, of_host(*port)).is_known()).count()
    };
    assert_eq!([1, 2, 3, 4].map(|host| fill(&mut end, host)), [50, 25, 13, 6]);
    assert!(end.counters().dropped[DropReason::TooManyPeers as usize] >= 4);
    // A peer that is known may be restarted all the same.
    end.handle_frame(NOW, NicId([10, 0, 0, 1, 0, 1]), &request(77));
    let mut frame = [0; 1500];
    assert!(end.transmit(NOW, &mut frame).is_some());
}

/// Runs the timers of an endpoint for so long, while some guests answer.
fn pass(end: &mut Engine, from: Instant, span: Duration, alive: &mut [Guest]) -> Instant {
    let mut now = from;
    while now < from + span {
        now += Duration::from_millis(10);
        end.handle_timeout(now);
        for guest in &mut *alive {
            guest.came.clear();
            // Frames for the dead are taken off with those for the first one.
            guest.receives(end, now);
            guest.sends(end, now, &Body::Ack(&[]));
        }
    }
    now
}

#[test]
fn guests_that_are_gone_make_place_for_others() {
    let mut end = end(Config { guests: 4, ..Config::default() });
    let mut alive = vec![Guest::connected(&mut end, NOW, nic(1))];
    for number in 2..5 {
        Guest::connected(&mut end, NOW, nic(number));
    }
    let now = pass(&mut end, NOW, Duration::from_millis(20_000), &mut alive);
    assert_eq!(end.peers().count(), 4, "nothing is expected of them");
    assert!(!Guest::asks(&mut end, now, nic(5)).is_known());
    let now = pass(&mut end, now, Duration::from_millis(10_000), &mut alive);
    assert_eq!(end.peers().count(), 1, "those that are gone are lost");
    assert!(Guest::asks(&mut end, now, nic(5)).is_known());
}

#[test]
fn a_host_that_wants_more_places_has_only_its_own_guests_doubted() {
    let mut end = end(Config { guests: 8, host_bytes: 4, ..Config::default() });
    let of_host = |host, port| NicId([10, 0, 0, host, 0, port]);
    Guest::connected(&mut end, NOW, of_host(1, 1));
    Guest::connected(&mut end, NOW, of_host(9, 1));
    for port in 0..3 {
        Guest::connected(&mut end, NOW, of_host(5, port));
    }
    assert!(!Guest::asks(&mut end, NOW, of_host(5, 9)).is_known());
    let now = pass(&mut end, NOW, Duration::from_millis(10_000), &mut []);
    assert_eq!(end.peers().count(), 2, "the others were not asked");
    // One that this endpoint has asked for itself takes no place.
    for host in [1, 9] {
        let address = mx::address::Address { nic: of_host(host, 1), endpoint: 0 };
        end.connect(now, address, 0, Duration::from_millis(1)).unwrap();
    }
    let came = (0..9).filter(|port| Guest::asks(&mut end, now, of_host(5, *port)).is_known());
    assert_eq!(came.count(), 4);
}

#[test]
fn peers_that_come_and_go_leave_no_more_than_their_part() {
    let config = Config { unexpected_messages: 4_000, ..Config::default() };
    let mut end = end(config);
    let data = [7; 1_000];
    for round in 0..1_000 {
        let mut guest = Guest::connected(&mut end, NOW, nic(1 + round));
        for _ in 0..100 {
            guest.sends(
                &mut end,
                NOW,
                &Body::Medium { match_info: UNWANTED, total: 1_000, offset: 0, data: &data },
            );
        }
        guest.sends(&mut end, NOW, &Body::Close);
        events(&mut end);
        let usage = end.usage();
        assert!(
            usage.waiting <= 1_000 && usage.reserved_bytes == usage.unexpected_bytes,
            "{usage:?}"
        );
        guest.receives(&mut end, NOW);
    }
    assert_eq!(end.counters().orphans_dropped, 99_000);
    // The last ones are there.
    for _ in 0..1_000 {
        end.irecv(NOW, None, Match::ANY, vec![0; 1_000], 0).unwrap();
    }
    assert_eq!((events(&mut end).len(), end.usage().reserved_bytes), (1_000, 0));
}

#[test]
fn early_frames_of_one_peer_leave_room_for_those_of_others() {
    let mut end = end(Config { early_bytes: 20_000, ..Config::default() });
    let mut guests = [1, 2].map(|number| Guest::connected(&mut end, NOW, nic(number)));
    let data = [7; 1_000];
    for (guest, kept) in guests.iter_mut().zip([10, 5]) {
        let before = end.usage().early_bytes;
        for ahead in 1..100 {
            guest.sends_early(&mut end, NOW, ahead, &Body::Small(1, &data));
        }
        assert_eq!((end.usage().early_bytes - before) / data.len() as u64, kept);
    }
}

#[test]
fn requests_of_one_peer_for_frames_do_not_delay_those_of_others() {
    let mut end = end(Config::default());
    let mut guests = [1, 2].map(|number| Guest::connected(&mut end, NOW, nic(number)));
    let peers: Vec<_> = end.peers().collect();
    let message = Bytes::from(vec![7; 100 << 20]);
    for peer in &peers {
        end.isend(NOW, *peer, 1, message.clone(), 0).unwrap();
    }
    let mut regions = [0; 2];
    let mut out = [0; 9216];
    while let Some(outgoing) = end.transmit(NOW, &mut out) {
        let (_, body) = mx::wire::parse(&out[..outgoing.length]).unwrap();
        if let Body::Rendezvous { region, .. } = body {
            regions[usize::from(outgoing.to == nic(2))] = region;
        }
    }
    let payload = 1500 - 32;
    let pull = |region: u32, block: u32| {
        let first = block * 32;
        let offset = u64::from(first) * u64::from(payload);
        Body::Pull(Pull { region, pull: 1, offset, wanted: u32::MAX, first, payload })
    };
    for block in 0..2_000 {
        guests[0].sends(&mut end, NOW, &pull(regions[0], block));
    }
    guests[1].sends(&mut end, NOW, &pull(regions[1], 0));
    assert_eq!(end.usage().jobs, 513);
    let mut to = Vec::new();
    while let Some(outgoing) = end.transmit(NOW, &mut out) {
        let reply = mx::wire::parse(&out[..outgoing.length]).unwrap().1.frame_type();
        to.extend((reply == FrameType::Reply).then_some(outgoing.to));
    }
    // The second has all that it has asked for after one answer to the first.
    assert_eq!(to.len(), 513 * 32);
    assert_eq!(to[32..64], [nic(2); 32]);
}
