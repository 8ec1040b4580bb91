//! A peer that lies, among honest ones: nothing of what it says reaches their messages.

use crate::lies::{POISON, any_body, frame, header};
use base::prng::Prng;
use base::time::Duration;
use bytes::Bytes;
use mx::config::Config;
use mx::ids::PeerId;
use mx::matching::Match;
use mx::status::{Event, RequestError};
use mx::wire::{self, Header};
use sim::model::BLANK;
use sim::network::Wires;
use sim::world::{Occurrence, SimEndpoint, World, address};

const HONEST: [usize; 2] = [0, 1];
const LIAR: usize = 2;
/// One receive in a round, of each size, at each end.
const SIZES: [usize; 5] = [5, 120, 3_000, 30_000, 90_000];

/// What an honest message of this size is; no byte of it is the liar's.
fn contents(size: usize, from: usize) -> Bytes {
    (0..size).map(|at| ((at * 7 + at / 251 + from) % 160) as u8).collect::<Vec<_>>().into()
}

fn connect(world: &mut World, from: usize, to: usize) -> PeerId {
    let timeout = Duration::from_millis(1_000);
    world.with(from, |end, now| end.connect(now, address(to), 0, timeout)).unwrap()
}

/// Goes on for a while; the events of the honest hosts.
fn quiesce(world: &mut World, span: Duration) -> Vec<(usize, Event<Vec<u8>>)> {
    let until = world.now() + span;
    let mut events = Vec::new();
    while let Some(occurrence) = world.next(until) {
        if let Occurrence::Event(host, event) = occurrence
            && HONEST.contains(&host)
        {
            events.push((host, event));
        }
    }
    events
}

/// What the liar's frames to this host have to say to be heard: it is a peer like any other.
fn insider(world: &mut World, to: usize) -> Header {
    let peer = connect(world, LIAR, to);
    quiesce(world, Duration::from_millis(5));
    world.with(LIAR, |end, now| {
        end.isend(now, peer, 99, Bytes::from_static(&[POISON; 9]), 0).unwrap();
        let mut out = [0; 1500];
        let outgoing = end.transmit(now, &mut out).unwrap();
        wire::parse(&out[..outgoing.length]).unwrap().0
    })
}

/// Frames to a host: from the liar's address as a peer, and as a stranger from the others'.
fn lie(world: &mut World, random: &mut Prng, to: usize, known: &mut Header) {
    let poison = [POISON; 1_400];
    for _ in 0..20 {
        let body = any_body(random, &poison);
        let ahead = random.below(3) as u32;
        let from = [LIAR, HONEST[0] + HONEST[1] - to][random.below(2) as usize];
        let guess = random.next_u64() as u32;
        let token = if from == LIAR && random.below(8) > 0 { known.token } else { guess };
        let said = header(token, known.seq.0.wrapping_add(ahead), known.ack.0);
        let ends = Header { to: address(to).endpoint, from: address(from).endpoint, ..said };
        let bytes = frame(ends, &body);
        world.with(to, |end, now| end.handle_frame(now, address(from).nic, &bytes));
        if token == known.token && body.frame_type().is_sequenced() && ahead == 0 {
            known.seq = known.seq.plus(1);
        }
    }
}

#[test]
fn nothing_of_a_liar_reaches_honest_messages() {
    for seed in 0..60 {
        let mut random = Prng::new(seed);
        let latency = Duration::from_micros(20);
        let wires = Wires { rate_mbit: 10_000, latency, queue: 256, ..Wires::default() };
        let mut world = World::new(wires, 3, seed);
        let config = Config { peer_credit: 200_000, ..Config::default() };
        for host in 0..3 {
            world.start(host, config, seed * 8 + host as u64);
        }
        let there = connect(&mut world, 0, 1);
        quiesce(&mut world, Duration::from_millis(5));
        let back = world.end(1).unwrap().peer_at(address(0)).unwrap();
        let mut received = [0; 2];
        let mut heard = 0;
        for round in 0..20 {
            // One who was thrown out comes back as another.
            world.start(LIAR, config, seed * 1_000 + 100 + round);
            let mut known = HONEST.map(|to| insider(&mut world, to));
            for (host, peer) in [(0, there), (1, back)] {
                for size in SIZES {
                    let post = |end: &mut SimEndpoint, now| {
                        end.irecv(now, Some(peer), Match::exact(size as u64), vec![BLANK; size], 0)
                    };
                    world.with(host, post).unwrap();
                }
                for to in HONEST {
                    lie(&mut world, &mut random, to, &mut known[to]);
                }
                for size in SIZES {
                    let message = contents(size, host);
                    let send =
                        if round % 2 == 0 { SimEndpoint::isend } else { SimEndpoint::issend };
                    let info = size as u64;
                    world.with(host, |end, now| send(end, now, peer, info, message, 0)).unwrap();
                    lie(&mut world, &mut random, 1 - host, &mut known[1 - host]);
                }
            }
            let events = quiesce(&mut world, Duration::from_millis(10));
            check(events, &mut received);
            heard +=
                HONEST.map(|host| world.end(host).unwrap().usage().waiting).iter().sum::<u32>();
        }
        assert!(heard > 0, "seed {seed}: the liar was never believed");
        check(quiesce(&mut world, Duration::from_millis(500)), &mut received);
        assert_eq!(received, [20 * SIZES.len(); 2], "seed {seed}");
    }
}

/// Every receive that has ended has what its honest peer sent.
fn check(events: Vec<(usize, Event<Vec<u8>>)>, received: &mut [usize; 2]) {
    for (host, event) in events {
        match event {
            Event::Received(_, status, data) => {
                assert_eq!(status.result, Ok(()));
                assert!(data[..] == contents(status.length as usize, 1 - host)[..], "other bytes");
                received[host] += 1;
            }
            Event::Sent(_, status) => assert_eq!(status.result, Ok(())),
            // The liar is found out sooner or later.
            Event::Lost(
                _,
                RequestError::Protocol | RequestError::Closed | RequestError::Restarted,
            ) => {}
            Event::Connected(_, Ok(())) => {}
            other => panic!("{other:?}"),
        }
    }
}
