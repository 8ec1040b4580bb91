//! Frames longer than the MTU within a host, and data that are read from their sender's memory.

use std::net::Ipv4Addr;

use mx::address::Address;
use mx::seq::Seq;
use mx::wire::{self, BULK_FRAME, BULK_PAYLOAD, Body, Header, RUN, RUN_HEAD};
use mx_io::port::local::LocalPort;
use mx_io::port::shm::{ShmPort, ShmSettings};
use mx_io::port::udp::UdpSettings;
use mx_io::port::{Arrivals, BulkPath, Frames, NicId, Outgoing, Port, Transmitted};

use super::common::ok;
use super::frames::{To, send, take, until, wait_for_room};
use super::kinds::{A, B};

const NIC: NicId = NicId([2, 0, 0, 0, 0, 9]);

/// Two ports, the second of which reads memory or does not, and which have heard of each other.
fn pair(test: u32, reads_memory: bool) -> (ShmPort, ShmPort) {
    let scope = std::process::id() << 5 | test << 1 | u32::from(reads_memory);
    let settings = ShmSettings::new(scope, 1500);
    let mut a = ok(ShmPort::open(NIC, A, settings));
    let mut b = ok(ShmPort::open(NIC, B, ShmSettings { reads_memory, ..settings }));
    send(&mut a, To::port(&b), &[(1, 60)]);
    assert_eq!(take(&mut b, 1).len(), 1);
    // Each opens a path when the other one has a connection to it, too.
    let (mut has_a, mut has_b) = (false, false);
    until("both ports have a path", || {
        assert!(take_once(&mut a).is_empty() && take_once(&mut b).is_empty());
        has_a |= told(&mut a, &b) == [BulkPath::Open];
        has_b |= told(&mut b, &a) == [BulkPath::Open];
        has_a && has_b
    });
    (a, b)
}

fn take_once(port: &mut ShmPort) -> Vec<Vec<u8>> {
    let mut came = Vec::new();
    ok(port.receive(64, &mut |_, frame: &[u8]| came.push(frame.to_vec())));
    came
}

fn told(port: &mut ShmPort, of: &ShmPort) -> Vec<BulkPath> {
    let address = Address { nic: of.nic_id(), endpoint: of.endpoint() };
    let all = port.bulk_changes();
    all.into_iter().filter(|(peer, _)| *peer == address).map(|(_, state)| state.path).collect()
}

/// A reply of a large message: its head and the first bytes of its data, and the others.
struct Replies<'a> {
    lead: usize,
    data: &'a [u8],
    count: usize,
    is_data: bool,
}

/// What every head has.
const HEADER: Header = Header {
    marked: false,
    crc: false,
    full: false,
    ask: true,
    to: B,
    from: A,
    token: 3,
    seq: Seq(4),
    ack: Seq(5),
    credit: 6,
    window: 7,
};

impl Frames for Replies<'_> {
    fn next(&mut self, room: &mut [u8]) -> Option<Outgoing> {
        self.is_data = self.count > 0;
        self.count = self.count.checked_sub(1)?;
        let first = &self.data[..self.data.len().min(BULK_PAYLOAD)];
        wire::write(&HEADER, &Body::Reply { pull: 8, index: 0, data: first }, room);
        let length = RUN_HEAD + self.data.len();
        Some(Outgoing { to: NIC, endpoint: B, marked: false, length })
    }

    fn data(&self) -> &[u8] {
        if self.is_data { &self.data[self.lead..] } else { &[] }
    }
}

/// What comes, in frames or in its place.
#[derive(Default)]
struct Came {
    /// There is a place for it.
    has_place: bool,
    data: Vec<u8>,
    /// Bytes of `data` that came to their place, and those that were told of.
    placed: usize,
    told: usize,
    frames: usize,
}

impl Arrivals for Came {
    fn take(&mut self, from: NicId, frame: &[u8]) {
        let (_, body) = wire::parse(frame).unwrap();
        let Body::Reply { pull: 8, index, data } = body else { panic!("{body:?}") };
        assert_eq!((from, index as usize), (NIC, self.data.len() / BULK_PAYLOAD));
        self.data.extend_from_slice(data);
        self.frames += 1;
    }

    fn place(
        &mut self,
        from: NicId,
        _head: &[u8; RUN_HEAD],
        skip: usize,
        most: usize,
    ) -> Option<&mut [u8]> {
        if !self.has_place {
            return None;
        }
        assert_eq!((from, skip), (NIC, self.placed - self.told));
        // In several pieces.
        let most = most.min(100_000);
        self.placed += most;
        self.data.resize(self.placed, 0);
        Some(&mut self.data[self.placed - most..])
    }

    fn placed(&mut self, _from: NicId, _head: &[u8; RUN_HEAD], length: usize) {
        self.told += length;
        self.frames += length.div_ceil(BULK_PAYLOAD);
    }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at / 7 + at / 4096) as u8).collect()
}

#[test]
fn runs_come_whole_however_they_travel() {
    for (test, reads, has_place) in [(0, true, true), (1, true, false), (2, false, false)] {
        let (mut a, mut b) = pair(test, reads);
        for length in [BULK_PAYLOAD + 1, BULK_PAYLOAD + 20, 3 * BULK_PAYLOAD, RUN - RUN_HEAD] {
            for lead in [0, 8, 64] {
                let data = bytes(length);
                let mut replies = Replies { lead, data: &data, count: 1, is_data: false };
                let before = b.counters();
                let mut outcome = ok(a.transmit(&mut replies));
                let mut came = Came { has_place, ..Came::default() };
                until("the run comes", || {
                    // First: what finds no room twice with a while between is lost.
                    ok(b.receive(64, &mut came));
                    if outcome != Transmitted::Drained {
                        outcome = ok(a.transmit(&mut replies));
                    }
                    came.frames == length.div_ceil(BULK_PAYLOAD)
                });
                assert!(came.data == data, "{length} bytes, {lead} of them with the head");
                assert_eq!(came.told, if has_place { length } else { 0 });
                let counted = b.counters().frames_in - before.frames_in;
                assert_eq!(counted, came.frames as u64);
            }
        }
        assert_eq!(b.counters().strange, 0);
    }
}

#[test]
fn single_frames_of_any_length_come_whole() {
    for reads in [true, false] {
        let (mut a, mut b) = pair(3, reads);
        for length in [1, 1477, 5000, 20_000, BULK_PAYLOAD] {
            let data = bytes(length);
            let lead = if length > 9000 { 8 } else { length };
            let mut replies = Replies { lead, data: &data, count: 3, is_data: false };
            assert_eq!(ok(a.transmit(&mut replies)), Transmitted::Drained);
            for _ in 0..3 {
                let mut came = Came::default();
                until("a frame comes", || ok(b.receive(1, &mut came)) == 1);
                assert!(came.data == data, "{length}");
            }
        }
    }
}

#[test]
fn data_that_change_their_use_are_not_taken_for_what_they_were() {
    let (mut a, mut b) = pair(4, true);
    let data = bytes(RUN - RUN_HEAD);
    let mut replies = Replies { lead: 0, data: &data, count: 2, is_data: false };
    assert_eq!(ok(a.transmit(&mut replies)), Transmitted::Drained);
    // The peer is lost, say.
    a.close_bulk_path(Address { nic: NIC, endpoint: B });
    drop(data);
    send(&mut a, To::port(&b), &[(7, 60)]);
    // What was voided is counted, and what follows comes.
    assert_eq!(take(&mut b, 1).len(), 1);
    assert_eq!(b.counters().strange, 2);
}

#[test]
fn path_is_there_as_long_as_the_connection_and_closes_when_something_is_lost() {
    let (mut a, b) = pair(5, false);
    // Nobody takes these, until they are lost.
    let data = bytes(BULK_FRAME / 2);
    let mut replies = Replies { lead: 0, data: &data, count: 50, is_data: false };
    while let Transmitted::Full(room) = ok(a.transmit(&mut replies)) {
        wait_for_room(&mut a, room);
    }
    let lost = told(&mut a, &b);
    assert!(
        !lost.is_empty() && lost.chunks(2).all(|two| two == [BulkPath::Closed, BulkPath::Open])
    );
    let of_b = Address { nic: NIC, endpoint: B };
    drop(b);
    until("the connection is over", || {
        ok(a.receive(1, &mut |_, _: &[u8]| {}));
        a.bulk_changes().iter().any(|(peer, state)| *peer == of_b && state.path == BulkPath::Closed)
    });
}

#[test]
fn there_is_room_for_long_frames_until_the_engine_knows_that_the_path_is_closed() {
    let open = |number| ok(LocalPort::over_udp(number, &UdpSettings::new(Ipv4Addr::LOCALHOST)));
    let (mut a, mut b) = (open(A), open(B));
    send(&mut a, To::port(&b), &[(1, 60)]);
    let mut is_open = false;
    until("a path", || {
        for port in [&mut a, &mut b] {
            ok(port.receive(64, &mut |_, _: &[u8]| {}));
        }
        is_open |= a.bulk_changes().iter().any(|(_, state)| state.path == BulkPath::Open);
        is_open
    });
    drop(b);
    for _ in 0..1000 {
        ok(a.receive(64, &mut |_, _: &[u8]| {}));
        let mut room = 0;
        ok(a.transmit(&mut |place: &mut [u8]| {
            room = place.len();
            None
        }));
        assert!(room >= BULK_FRAME, "{room}");
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
    let changes = a.bulk_changes();
    assert!(changes.iter().any(|(_, state)| state.path == BulkPath::Closed), "{changes:?}");
}
