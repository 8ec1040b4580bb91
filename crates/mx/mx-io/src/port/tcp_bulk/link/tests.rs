//! Frames and runs over a connection of the loopback, whole and in pieces.

use std::io::Write;
use std::net::TcpListener;

use ::mx::seq::Seq;
use ::mx::wire::{self, Body, Header, RUN_FRAMES};

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

#[test]
fn padding_moves_what_follows_and_is_skipped() {
    let (mut link, mut other) = connected();
    for bytes in 0..2 * CACHE_LINE {
        for address in [0, 1, 16, 63, 64, 4111] {
            let mut room = [0; MAX_PADDING];
            let padding = pad(bytes, address, &mut room);
            assert_eq!((bytes + padding.len()) % CACHE_LINE, address % CACHE_LINE);
            other.write_all(padding).unwrap();
        }
    }
    other.write_all(&record(100, 100)).unwrap();
    let mut came = Vec::new();
    while came.is_empty() {
        link.receive(PEER, &mut |_, frame: &[u8]| came.push(frame.len())).unwrap();
    }
    assert_eq!(came, [100]);
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
    // With padding.
    assert_eq!(unsent(&other), 128);
    other.push();
    assert_eq!(unsent(&other), 0);
    drop(link);
}
