//! Frames and runs over a connection of the loopback, whole and in pieces.

use std::io::Write;
use std::net::TcpListener;

use ::mx::seq::Seq;
use ::mx::wire::{self, BULK_PAYLOAD, Body, Header, RUN_FRAMES};

use super::super::super::Arrivals;
use super::*;
use sys::option::words;

const PEER: NicId = NicId([2, 0, 0, 0, 0, 1]);

fn connected() -> (Link, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (open(listener.accept().unwrap().0), other)
}

fn open(stream: TcpStream) -> Link {
    stream.set_nonblocking(true).unwrap();
    Link::new(stream)
}

fn record(length: u32, bytes: usize) -> Vec<u8> {
    [&length.to_be_bytes()[..], &vec![7; bytes]].concat()
}

/// The lengths of frames that come, until there are so many, or the error that ends them.
fn lengths(link: &mut Link, count: usize) -> Result<Vec<usize>, io::ErrorKind> {
    let mut came = Vec::new();
    while came.len() < count {
        let take = &mut |_, frame: &[u8]| came.push(frame.len());
        link.receive(PEER, take).map_err(|error| error.kind())?;
    }
    Ok(came)
}

#[test]
fn frames_come_whole_however_they_are_cut() {
    let (mut link, mut other) = connected();
    let frames = [RUN_HEAD, 1500, BULK_FRAME, 33, BULK_FRAME].repeat(20);
    let bytes: Vec<u8> = frames.iter().flat_map(|n| record(*n as u32, *n)).collect();
    let sender = std::thread::spawn(move || {
        for piece in bytes.chunks(7919) {
            other.write_all(piece).unwrap();
        }
        other
    });
    assert_eq!(lengths(&mut link, frames.len()), Ok(frames));
    drop(sender.join().unwrap());
    assert_eq!(lengths(&mut link, 1), Err(io::ErrorKind::UnexpectedEof));
}

#[test]
fn lengths_that_no_frame_has_end_the_connection() {
    for length in [0, RUN_HEAD as u32 - 1, BULK_FRAME as u32 + 1, RUN as u32 + 1, u32::MAX] {
        let (mut link, mut other) = connected();
        other.write_all(&record(length, 100)).unwrap();
        assert_eq!(lengths(&mut link, 1), Err(io::ErrorKind::InvalidData), "{length}");
    }
}

#[test]
fn message_that_comes_instead_of_data_takes_two_calls() {
    let (mut link, mut other) = connected();
    link.expect_run();
    let bytes = record(16_441, 16_441);
    other.write_all(&bytes).unwrap();
    while rustix::io::ioctl_fionread(&link).unwrap() < bytes.len() as u64 {
        std::thread::yield_now();
    }
    let mut came = Vec::new();
    let calls = link.receive(PEER, &mut |_, frame: &[u8]| came.push(frame.len()));
    assert_eq!((calls.unwrap(), came), (2, vec![16_441]));
}

fn run(data: usize) -> (Vec<u8>, Vec<u8>) {
    let header = Header { ask: true, to: 1, from: 2, token: 3, seq: Seq(4), ..Header::default() };
    let mut head = [0; PREFIX + RUN_HEAD];
    wire::write(&header, &Body::Reply { pull: 8, index: u32::MAX, data: &[] }, &mut head[PREFIX..]);
    head[..PREFIX].copy_from_slice(&((RUN_HEAD + data) as u32).to_be_bytes());
    (head.to_vec(), (0..data).map(|at| (at / 7 + at / 4096) as u8).collect())
}

#[test]
fn run_comes_as_frames() {
    let (mut link, other) = connected();
    let mut other = open(other);
    for data in [BULK_PAYLOAD + 1, BULK_PAYLOAD + 20, 3 * BULK_PAYLOAD, RUN - RUN_HEAD] {
        let (head, data) = run(data);
        let (mut came, mut asked) = (Vec::new(), Vec::new());
        other.send(&head, &data, false).unwrap();
        while came.len() < data.len() {
            let take = &mut |_, frame: &[u8]| {
                let (header, body) = wire::parse(frame).unwrap();
                let Body::Reply { pull: 8, index, data } = body else { panic!("{body:?}") };
                let number = (came.len() / BULK_PAYLOAD) as u32;
                assert_eq!((index, header.seq), (u32::MAX.wrapping_add(number), Seq(4)));
                came.extend_from_slice(data);
                asked.push(header.ask);
            };
            link.receive(PEER, take).unwrap();
            other.flush().unwrap();
        }
        assert!(came == data);
        // The flag is that of the last one.
        assert_eq!(asked.iter().position(|ask| *ask), Some(asked.len() - 1));
    }
}

#[test]
fn what_the_kernel_does_not_take_goes_later() {
    let (mut link, other) = connected();
    let mut other = open(other);
    let (head, data) = run(RUN - RUN_HEAD);
    let frame = record(BULK_FRAME as u32, BULK_FRAME);
    for (head, data, frames) in [(&frame, &Vec::new(), 1), (&head, &data, RUN_FRAMES)] {
        let (mut sent, mut came) = (0, 0);
        while !link.is_full() {
            link.send(head, data, true).unwrap();
            sent += frames;
        }
        while came < sent {
            other.receive(PEER, &mut |_, _: &[u8]| came += 1).unwrap();
            link.flush().unwrap();
        }
        assert!(!link.is_full());
    }
}

/// Memory that a run belongs to, until so many bytes of it have come.
struct Memory {
    bytes: Vec<u8>,
    until: usize,
    placed: Vec<u32>,
    frames: Vec<u32>,
}

impl Arrivals for Memory {
    fn take(&mut self, _: NicId, frame: &[u8]) {
        let Ok((_, Body::Reply { index, data, .. })) = wire::parse(frame) else { panic!() };
        let at = index as usize * BULK_PAYLOAD;
        self.bytes[at..at + data.len()].copy_from_slice(data);
        self.frames.push(index);
    }

    fn place(
        &mut self,
        _: NicId,
        head: &[u8; RUN_HEAD],
        skip: usize,
        most: usize,
    ) -> Option<&mut [u8]> {
        let index = u32::from_be_bytes(*head.last_chunk().unwrap());
        let at = index as usize * BULK_PAYLOAD + skip;
        let end = self.until.min(at + most);
        self.bytes.get_mut(at..end).filter(|place| !place.is_empty())
    }

    fn placed(&mut self, _: NicId, head: &[u8; RUN_HEAD], length: usize) {
        let index = u32::from_be_bytes(*head.last_chunk().unwrap());
        self.placed.extend(index..index + length.div_ceil(BULK_PAYLOAD) as u32);
    }
}

#[test]
fn data_go_to_their_place_while_they_have_one() {
    // In the middle of a frame, at its end, and for all.
    for (until, placed, dropped) in [
        (0, 0, false),
        (100_000, 3, true),
        (4 * BULK_PAYLOAD, 4, false),
        (usize::MAX, RUN_FRAMES, false),
    ] {
        for expects_run in [false, true] {
            let (mut link, other) = connected();
            let mut other = open(other);
            if expects_run {
                link.expect_run();
            }
            let (mut head, data) = run(RUN - RUN_HEAD);
            let index = head.len() - 4;
            head[index..].fill(0);
            let bytes = vec![0; data.len()];
            let mut memory = Memory { bytes, until, placed: Vec::new(), frames: Vec::new() };
            other.send(&head, &data, false).unwrap();
            let frames = RUN_FRAMES - u32::from(dropped);
            while ((memory.placed.len() + memory.frames.len()) as u32) < frames {
                link.receive(PEER, &mut memory).unwrap();
                other.flush().unwrap();
            }
            let rest: Vec<u32> = (placed + u32::from(dropped)..RUN_FRAMES).collect();
            assert_eq!((memory.placed, memory.frames), ((0..placed).collect(), rest));
            if dropped {
                // The rest of the frame that has lost its place is not known.
                memory.bytes[until..4 * BULK_PAYLOAD]
                    .copy_from_slice(&data[until..4 * BULK_PAYLOAD]);
            }
            assert!(memory.bytes == data, "{until}");
            assert!(link.run.is_none() && link.start == link.end);
        }
    }
}

/// Bytes that the kernel has taken of a connection and not sent.
fn unsent(link: &Link) -> u32 {
    // `tcpi_notsent_bytes` of `struct tcp_info` in linux/tcp.h.
    const AT: usize = 144 / size_of::<u32>();
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    words::<{ AT + 1 }>(link.as_fd(), level, option).unwrap()[AT]
}

#[test]
fn what_is_kept_back_leaves_when_nothing_follows() {
    let (link, other) = connected();
    let mut other = open(other);
    other.send(&record(100, 100), &[], true).unwrap();
    assert_eq!(unsent(&other), 104);
    other.push();
    assert_eq!(unsent(&other), 0);
    drop(link);
}
