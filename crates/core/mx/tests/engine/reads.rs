//! Large messages that are read where they lie.

use crate::support::{address, frame_type, frames, pattern, secs};
use base::time::{Duration, Instant};
use bytes::Bytes;
use mx::buffers::Sink;
use mx::config::Config;
use mx::endpoint::Endpoint;
use mx::ids::PeerId;
use mx::matching::Match;
use mx::outgoing::{BulkPath, BulkState, Reference};
use mx::status::{Event, RequestError};
use mx::wire::{self, FrameType};

struct ReadSink {
    bytes: Vec<u8>,
    is_in_one_piece: bool,
}

impl Sink for ReadSink {
    fn capacity(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn write(&mut self, offset: u64, from: &[u8]) {
        self.bytes.write(offset, from);
    }

    fn piece(&mut self, offset: u64, most: usize) -> &mut [u8] {
        if self.is_in_one_piece { self.bytes.piece(offset, most) } else { &mut [] }
    }
}

/// Two ends that read each other's messages.
struct Readers {
    now: Instant,
    ends: [Endpoint<Vec<Bytes>, ReadSink>; 2],
    referred: Vec<Bytes>,
    can_read: bool,
    pieces: Vec<usize>,
    frames: Vec<FrameType>,
}

impl Readers {
    fn new(config: Config) -> (Self, PeerId) {
        let now = Instant::from_micros(1);
        let ends =
            [0, 1].map(|number| Endpoint::new(config, address(number), number.into()).unwrap());
        let (referred, pieces, frames) = Default::default();
        let mut readers = Self { now, ends, referred, can_read: true, pieces, frames };
        for (number, end) in readers.ends.iter_mut().enumerate() {
            let path = BulkState { path: BulkPath::Open, min: Some(0), reads_memory: true };
            end.set_bulk_path(now, address(1 - number as u8), path);
        }
        let to = readers.ends[0].connect(now, address(1), config.key, secs(1)).unwrap();
        readers.exchange();
        readers.ends[0].poll_event();
        readers.frames.clear();
        (readers, to)
    }

    fn exchange(&mut self) {
        let mut out = vec![0; wire::BULK_FRAME];
        let mut any = true;
        while std::mem::take(&mut any) {
            for from in 0..2 {
                while let Some(outgoing) = self.ends[from].transmit(self.now, &mut out) {
                    any = true;
                    let data = self.ends[from].data();
                    let written = out[..outgoing.length - data.len()].to_vec();
                    let data = Bytes::copy_from_slice(data);
                    self.carry(from, &written, data);
                }
            }
        }
    }

    fn carry(&mut self, from: usize, written: &[u8], data: Bytes) {
        let (now, nic) = (self.now, address(from as u8).nic);
        let end = &mut self.ends[1 - from];
        let kind = frame_type(&[written, &data].concat());
        if !matches!(kind, FrameType::Ack | FrameType::Connect) {
            self.frames.push(kind);
        }
        if kind == FrameType::Rendezvous && !data.is_empty() {
            let record = [self.referred.len() as u64, 0];
            let reference = Reference { at: 0, length: data.len() as u64, record };
            self.referred.push(data);
            return end.handle_reference(now, nic, written, reference);
        }
        for frame in frames([written, &data].concat()) {
            end.handle_frame(now, nic, &frame);
        }
    }

    /// Reads what the second end wants, and hands over what both send in between.
    fn read(&mut self) {
        self.exchange();
        while let Some(read) = self.ends[1].next_read() {
            assert_eq!((read.from, read.place.len() as u64), (address(0), read.reference.length));
            let at = read.reference.at as usize;
            let data = &self.referred[read.reference.record[0] as usize];
            self.pieces.push(read.place.len());
            if self.can_read {
                let length = read.place.len();
                read.place.copy_from_slice(&data[at..at + length]);
            }
            self.now += Duration::from_micros(1);
            self.ends[1].handle_read(self.now, self.can_read);
            self.exchange();
        }
    }

    fn post(&mut self, length: usize, is_in_one_piece: bool) {
        let place = ReadSink { bytes: vec![0; length], is_in_one_piece };
        self.ends[1].irecv(self.now, None, Match::ANY, place, 0).unwrap();
    }

    fn send(&mut self, to: PeerId, lengths: &[usize]) -> Bytes {
        let message = pattern(lengths.iter().sum());
        let mut rest = message.clone();
        let parts = lengths.iter().map(|length| rest.split_to(*length)).collect();
        self.ends[0].isend(self.now, to, 1, parts, 0).unwrap();
        message
    }

    fn received(&mut self) -> Option<(Result<(), RequestError>, u64, Vec<u8>)> {
        let Some(Event::Received(_, status, place)) = self.ends[1].poll_event() else {
            return None;
        };
        Some((status.result, status.transferred, place.bytes))
    }

    fn sent(&mut self) -> Option<(Result<(), RequestError>, u64)> {
        let Some(Event::Sent(_, status)) = self.ends[0].poll_event() else { return None };
        Some((status.result, status.transferred))
    }
}

const MIB: usize = 1 << 20;

#[test]
fn message_in_one_place_is_read_and_not_asked_for() {
    use FrameType::{Notify, Rendezvous};
    for (lengths, is_in_one_piece, pieces) in [
        (vec![100_000], true, vec![100_000]),
        (vec![9, 99_991], true, vec![99_991]),
        (vec![2 * MIB + 5], true, vec![MIB, MIB, 5]),
        (vec![16, 50_000], false, vec![32 << 10, 50_000 - (32 << 10)]),
    ] {
        for is_posted in [true, false] {
            let (mut readers, to) = Readers::new(Config { head: 16, ..Config::default() });
            let total = lengths.iter().sum();
            if is_posted {
                readers.post(total, is_in_one_piece);
            }
            let message = readers.send(to, &lengths);
            readers.exchange();
            assert!(readers.sent().is_none() && readers.received().is_none());
            assert_eq!(readers.ends[1].deadline() == Some(Instant::ZERO), is_posted);
            if !is_posted {
                readers.post(total, is_in_one_piece);
            }
            readers.read();
            let received = readers.received();
            let expected = (Ok(()), total as u64, message.to_vec());
            assert!(received == Some(expected), "{lengths:?}");
            assert_eq!(readers.sent(), Some((Ok(()), total as u64)));
            assert_eq!(
                (&readers.pieces, &readers.frames[..]),
                (&pieces, &[Rendezvous, Notify][..])
            );
            assert_ne!(readers.ends[1].deadline(), Some(Instant::ZERO));
        }
    }
}

#[test]
fn message_that_cannot_be_read_at_once_goes_as_others_do() {
    for (lengths, config) in [
        // In one place, but not after the bytes that the announcement takes along.
        (vec![17, 50_000], Config { head: 16, ..Config::default() }),
        (vec![9, 50_000], Config::default()),
        (vec![30_000, 30_000], Config::default()),
        // With checksums.
        (vec![50_000], Config { crc: true, ..Config::default() }),
        // Eager.
        (vec![20_000], Config::default()),
    ] {
        let (mut readers, to) = Readers::new(config);
        readers.post(lengths.iter().sum(), true);
        let message = readers.send(to, &lengths);
        readers.read();
        assert!(readers.received().unwrap().2 == message, "{lengths:?}");
        assert_eq!(readers.referred.len(), 0, "{lengths:?}");
    }
}

#[test]
fn what_does_not_fit_is_not_read() {
    for (room, pieces) in [(40_000, vec![40_000 - 9]), (10, vec![1]), (9, vec![]), (0, vec![])] {
        let (mut readers, to) = Readers::new(Config { head: 9, ..Config::default() });
        readers.post(room, true);
        let message = readers.send(to, &[9, 100_000]);
        readers.read();
        let expected = (Err(RequestError::Truncated), room as u64, message[..room].to_vec());
        assert!(readers.received() == Some(expected), "{room}");
        assert_eq!(readers.sent(), Some((Err(RequestError::Truncated), room as u64)));
        assert_eq!(readers.pieces, pieces, "{room}");
    }
}

#[test]
fn what_cannot_be_read_is_asked_for() {
    for is_in_one_piece in [true, false] {
        let (mut readers, to) = Readers::new(Config::default());
        readers.can_read = false;
        for _ in 0..3 {
            readers.post(100_000, is_in_one_piece);
        }
        let messages = [0; 3].map(|_| readers.send(to, &[100_000]));
        readers.read();
        for message in messages {
            assert!(readers.received().unwrap().2 == message);
        }
        let asked = readers.frames.iter().filter(|kind| **kind == FrameType::Pull).count();
        assert_eq!((asked, readers.pieces.len()), (3, 3));
    }
}

#[test]
fn messages_are_read_in_turn_and_others_come_meanwhile() {
    let (mut readers, to) = Readers::new(Config::default());
    readers.post(2 * MIB, true);
    let long = readers.send(to, &[2 * MIB]);
    readers.exchange();
    let read = readers.ends[1].next_read().unwrap();
    read.place.copy_from_slice(&long[..MIB]);
    readers.ends[1].handle_read(readers.now, true);
    readers.post(5, true);
    let short = readers.send(to, &[5]);
    readers.exchange();
    assert!(readers.received().unwrap().2 == short);
    readers.read();
    assert!(readers.received().unwrap().2 == long);
}

#[test]
fn nothing_is_read_of_a_lost_peer() {
    let (mut readers, to) = Readers::new(Config::default());
    readers.post(100_000, true);
    readers.send(to, &[100_000]);
    readers.exchange();
    assert!(readers.ends[1].next_read().is_some());
    // It comes again with another instance.
    readers.ends[0] = Endpoint::new(Config::default(), address(0), 99).unwrap();
    readers.ends[0].connect(readers.now, address(1), 0, secs(1)).unwrap();
    readers.exchange();
    assert!(readers.ends[1].next_read().is_none());
    let events = std::iter::from_fn(|| readers.ends[1].poll_event());
    let results = events.filter_map(|event| match event {
        Event::Received(_, status, _) => Some(status.result),
        _ => None,
    });
    assert!(results.eq([Err(RequestError::Restarted)]));
    assert_eq!(readers.ends[1].poll_lost_path(), Some(address(0)));
}

#[test]
fn one_who_closes_reads_what_it_has_begun_to() {
    let (mut readers, to) = Readers::new(Config::default());
    readers.post(100_000, true);
    let message = readers.send(to, &[100_000]);
    readers.exchange();
    for end in &mut readers.ends {
        end.close(readers.now);
    }
    readers.exchange();
    assert!(!readers.ends[1].is_closed());
    readers.read();
    let received = readers.received();
    assert!(received == Some((Ok(()), 100_000, message.to_vec())));
    assert_eq!(readers.sent(), Some((Ok(()), 100_000)));
    assert!(readers.ends.iter().all(Endpoint::is_closed));
}

#[test]
fn reference_that_is_none_of_the_message_is_not_followed() {
    let (mut readers, to) = Readers::new(Config { head: 9, ..Config::default() });
    readers.post(100_000, true);
    let message = readers.send(to, &[100_000]);
    let mut out = vec![0; wire::BULK_FRAME];
    let outgoing = readers.ends[0].transmit(readers.now, &mut out).unwrap();
    let written = &out[..outgoing.length - readers.ends[0].data().len()];
    // It leaves out more than the announcement has, or is longer than the message.
    for length in [99_990, 100_001] {
        let reference = Reference { at: 0, length, record: [0; 2] };
        let now = readers.now;
        readers.ends[1].handle_reference(now, address(0).nic, written, reference);
        assert!(readers.ends[1].next_read().is_none());
    }
    readers.read();
    assert!(readers.received().unwrap().2 == message);
}
