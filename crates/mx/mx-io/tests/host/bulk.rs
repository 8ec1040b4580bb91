//! Frames longer than the MTU within a host, and messages that are read in their sender's memory.

use mx::address::Address;
use mx::seq::Seq;
use mx::wire::{self, BULK_FRAME, BULK_PAYLOAD, Body, Header, RUN, RUN_HEAD};
use mx_io::port::local::LocalPort;
use mx_io::port::shm::{ShmPort, ShmSettings};
use mx_io::port::{
    Arrivals, BulkPath, BulkState, Frames, NicId, Outgoing, Port, Reference, Transmitted,
};

use super::common::ok;
use super::frames::{To, send, take, until, wait_for_room};
use super::kinds::{A, B, LOCALHOST};

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
        has_a |= changes(&mut a, &b) == [BulkPath::Open];
        has_b |= changes(&mut b, &a) == [BulkPath::Open];
        has_a && has_b
    });
    (a, b)
}

fn take_once(port: &mut ShmPort) -> Vec<Vec<u8>> {
    let mut came = Vec::new();
    ok(port.receive(64, &mut |_, frame: &[u8]| came.push(frame.to_vec())));
    came
}

fn changes(port: &mut ShmPort, of: &ShmPort) -> Vec<BulkPath> {
    let address = Address { nic: of.nic_id(), endpoint: of.endpoint() };
    let all = port.bulk_changes();
    all.into_iter().filter(|(peer, _)| *peer == address).map(|(_, state)| state.path).collect()
}

/// Frames of this body and these data, of which `data` has all but the `lead`.
struct Long<'a> {
    body: Body<'a>,
    lead: usize,
    data: &'a [u8],
    count: usize,
    is_data: bool,
}

fn replies(lead: usize, data: &[u8], count: usize) -> Long<'_> {
    let first = &data[..data.len().min(BULK_PAYLOAD)];
    let body = Body::Reply { pull: 8, index: 0, data: first };
    Long { body, lead, data, count, is_data: false }
}

fn announcements(lead: usize, data: &[u8], count: usize) -> Long<'_> {
    let total = data.len() as u64;
    let body = Body::Rendezvous { match_info: 5, total, region: 6, head: &data[..lead] };
    Long { body, lead, data, count, is_data: false }
}

fn header() -> Header {
    Header { ask: true, to: B, from: A, token: 3, seq: Seq(4), ..Header::default() }
}

impl Frames for Long<'_> {
    fn next(&mut self, room: &mut [u8]) -> Option<Outgoing> {
        self.is_data = self.count > 0;
        self.count = self.count.checked_sub(1)?;
        let written = wire::write(&header(), &self.body, room);
        let length = match self.body {
            Body::Reply { .. } => RUN_HEAD + self.data.len(),
            _ => written + self.data.len() - self.lead,
        };
        Some(Outgoing::new(NIC, B, length))
    }

    fn data(&self) -> &[u8] {
        if self.is_data { &self.data[self.lead..] } else { &[] }
    }
}

/// What comes: frames with data, and references.
#[derive(Default)]
struct ReceivedFrames {
    data: Vec<u8>,
    frames: usize,
    references: Vec<Reference>,
}

impl Arrivals for ReceivedFrames {
    fn take(&mut self, from: NicId, frame: &[u8]) {
        let (_, body) = wire::parse(frame).unwrap();
        let Body::Reply { pull: 8, index, data } = body else { panic!("{body:?}") };
        assert_eq!((from, index as usize), (NIC, self.data.len() / BULK_PAYLOAD));
        self.data.extend_from_slice(data);
        self.frames += 1;
    }

    fn take_reference(&mut self, from: NicId, frame: &[u8], reference: Reference) {
        let (_, body) = wire::parse(frame).unwrap();
        let Body::Rendezvous { match_info: 5, total, region: 6, head } = body else {
            panic!("{body:?}")
        };
        assert_eq!((from, total), (NIC, head.len() as u64 + reference.length));
        self.references.push(reference);
    }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at / 7 + at / 4096) as u8).collect()
}

#[test]
fn runs_come_whole_as_frames() {
    for reads in [true, false] {
        let (mut a, mut b) = pair(0, reads);
        for length in [BULK_PAYLOAD + 1, BULK_PAYLOAD + 20, 3 * BULK_PAYLOAD, RUN - RUN_HEAD] {
            for lead in [0, 8, 64] {
                let data = bytes(length);
                let mut replies = replies(lead, &data, 1);
                let before = b.counters();
                let mut outcome = ok(a.transmit(&mut replies));
                let mut came = ReceivedFrames::default();
                until("the run comes", || {
                    // First: what finds no room twice with a while between is lost.
                    ok(b.receive(64, &mut came));
                    if outcome != Transmitted::Drained {
                        outcome = ok(a.transmit(&mut replies));
                    }
                    came.frames == length.div_ceil(BULK_PAYLOAD)
                });
                assert!(came.data == data, "{length} bytes, {lead} of them with the head");
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
        let (mut a, mut b) = pair(1, reads);
        for length in [1, 1477, 5000, 20_000, BULK_PAYLOAD] {
            let data = bytes(length);
            let mut replies = replies(if length > 9000 { 8 } else { length }, &data, 3);
            assert_eq!(ok(a.transmit(&mut replies)), Transmitted::Drained);
            for _ in 0..3 {
                let mut came = ReceivedFrames::default();
                until("a frame comes", || ok(b.receive(1, &mut came)) == 1);
                assert!(came.data == data, "{length}");
            }
        }
    }
}

fn announce(a: &mut ShmPort, b: &mut ShmPort, mut announcements: Long<'_>) -> Vec<Reference> {
    let count = announcements.count;
    assert_eq!(ok(a.transmit(&mut announcements)), Transmitted::Drained);
    let mut came = ReceivedFrames::default();
    until("announcements come", || {
        ok(b.receive(64, &mut came));
        came.references.len() == count
    });
    came.references
}

const SENDER: Address = Address { nic: NIC, endpoint: A };

#[test]
fn what_is_announced_is_read_where_it_lies_in_any_order() {
    let (mut a, mut b) = pair(2, true);
    for (length, lead) in [(9300, 0), (20_000, 9), (3 << 20, 16)] {
        let data = bytes(length);
        let references = announce(&mut a, &mut b, announcements(lead, &data, 3));
        for reference in references.into_iter().rev() {
            let mut place = vec![0; length - lead];
            assert!(b.read(SENDER, reference, &mut place));
            assert!(place == data[lead..], "{length}");
            // A part of it.
            let part = Reference { at: reference.at + 1000, length: 50, ..reference };
            assert!(b.read(SENDER, part, &mut place[..50]));
            assert!(place[..50] == data[lead + 1000..][..50], "{length}");
        }
    }
    assert_eq!((b.counters().strange, a.counters().bulk_out), (0, 9));
}

#[test]
fn data_that_change_their_use_are_not_taken_for_what_they_were() {
    let (mut a, mut b) = pair(3, true);
    let data = bytes(50_000);
    let mut place = vec![0; data.len()];
    let references = announce(&mut a, &mut b, announcements(0, &data, 2));
    assert!(b.read(SENDER, references[0], &mut place));
    // Another endpoint's, or another connection's.
    let stranger = Address { endpoint: 77, ..SENDER };
    assert!(!b.read(stranger, references[0], &mut place));
    let [connection, end] = references[0].record;
    let other = Reference { record: [connection + 1, end], ..references[0] };
    assert!(!b.read(SENDER, other, &mut place));
    // The peer is lost, say.
    a.close_bulk_path(Address { nic: NIC, endpoint: B });
    assert!(references.iter().all(|reference| !b.read(SENDER, *reference, &mut place)));
    // What follows comes, and what is announced later is there until the connection ends.
    send(&mut a, To::port(&b), &[(7, 60)]);
    assert_eq!(take(&mut b, 1).len(), 1);
    let later = announce(&mut a, &mut b, announcements(0, &data, 1));
    assert!(b.read(SENDER, later[0], &mut place) && place == data);
    drop(a);
    assert!(!b.read(SENDER, later[0], &mut place));
    assert_eq!(b.counters().strange, 5);
}

#[test]
fn sender_hears_that_its_memory_cannot_be_read_and_keeps_its_path() {
    let (mut a, mut b) = pair(4, true);
    let data = bytes(50_000);
    let reference = announce(&mut a, &mut b, announcements(0, &data, 1))[0];
    // Where nothing is.
    let nowhere = Reference { at: 8, ..reference };
    assert!(!b.read(SENDER, nowhere, &mut [0; 100]));
    let of_b = Address { nic: NIC, endpoint: B };
    let mut states = Vec::new();
    until("the sender hears of it", || {
        assert!(take_once(&mut a).is_empty());
        states.extend(a.bulk_changes());
        !states.is_empty()
    });
    let expected = BulkState { path: BulkPath::Open, min: Some(0), reads_memory: false };
    assert_eq!(states, [(of_b, expected)]);
}

#[test]
fn path_is_there_as_long_as_the_connection_and_closes_when_something_is_lost() {
    let (mut a, b) = pair(5, false);
    // The receiver does not take these, until they are lost.
    let data = bytes(BULK_FRAME / 2);
    let mut replies = replies(0, &data, 50);
    while let Transmitted::Full(room) = ok(a.transmit(&mut replies)) {
        wait_for_room(&mut a, room);
    }
    let lost = changes(&mut a, &b);
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
    let open = |number| ok(LocalPort::over_udp(number, LOCALHOST));
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
