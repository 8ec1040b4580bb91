//! Processes that connect to an endpoint and do not behave.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use mx::address::Address;
use mx_io::port::shm::{ShmPort, ShmSettings};
use mx_io::port::{Arrivals, NicId, Port, Reference};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, sendmsg, socket_with,
};

use super::common::ok;
use super::frames::{To, drain, number, send, take, until};
use super::kinds::{A, B};

const NIC: NicId = NicId([2, 0, 0, 0, 0, 8]);

fn open(scope: u32, endpoint: u8) -> ShmPort {
    ok(ShmPort::open(NIC, endpoint, ShmSettings::new(scope, 1500)))
}

fn scope(test: u32) -> u32 {
    std::process::id() << 4 | 8 | test
}

fn call(scope: u32) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None));
    let name = format!("earmark-mx/shm/{scope}/{NIC}/{A}");
    ok(connect(&socket, &ok(SocketAddrUnix::new_abstract_name(name.as_bytes()))));
    socket
}

fn say(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    // It may have hung up already.
    let _ = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL);
}

const LINES: u32 = 2048;

fn greeting(lines: u32) -> Vec<u8> {
    // With a number at an address where there is nothing.
    [&b"earmark\x03"[..], &[1; 16], &lines.to_ne_bytes(), &NIC.0, &[77, 0]].concat()
}

fn memory(bytes: u64, seals: SealFlags) -> OwnedFd {
    let file = ok(memfd_create(c"hostile", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING));
    ok(ftruncate(&file, bytes));
    ok(fcntl_add_seals(&file, seals));
    file
}

/// What comes: numbers of frames, and references.
#[derive(Default)]
struct ReceivedFrames {
    numbers: Vec<u32>,
    references: Vec<Reference>,
}

impl Arrivals for ReceivedFrames {
    fn take(&mut self, _from: NicId, frame: &[u8]) {
        self.numbers.push(number(frame));
    }

    fn take_reference(&mut self, _from: NicId, _frame: &[u8], reference: Reference) {
        self.references.push(reference);
    }
}

#[test]
fn garbage_does_no_harm() {
    let scope = scope(1);
    let (mut a, mut b) = (open(scope, A), open(scope, B));
    let bytes = (192 + u64::from(LINES) * 64).next_multiple_of(4096);
    let (plain, shrinks) = (memory(bytes, SealFlags::SHRINK), memory(bytes, SealFlags::empty()));
    // A ring full of nonsense: words of all kinds, lengths beyond the end.
    let page: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    ok(rustix::io::pwrite(&plain, &page, 0));
    let wild = memory(bytes, SealFlags::SHRINK);
    ok(rustix::io::pwrite(&wild, &(1_u64 << 32 | 0xffff).to_ne_bytes(), 192));
    // Records that refer to memory: of nobody, of nothing, without an end, and none at all.
    let refers = memory(bytes, SealFlags::SHRINK);
    let mut line = 0_u64;
    for (at, length) in [(8, 100), (0, 1), (u64::MAX, 1 << 20), (8, 1 << 20), (8, u64::MAX)] {
        let head = [42, 0, A, 77];
        let record = [&at.to_ne_bytes()[..], &length.to_ne_bytes(), &head, &[0; 28]].concat();
        let word = (line + 1) << 32 | 1 << 30 | record.len() as u64;
        ok(rustix::io::pwrite(&refers, &word.to_ne_bytes(), 192 + line * 64));
        ok(rustix::io::pwrite(&refers, &record, 192 + line * 64 + 8));
        line += 1;
    }
    let word = (line + 1) << 32 | 1 << 30 | 3;
    ok(rustix::io::pwrite(&refers, &word.to_ne_bytes(), 192 + line * 64));
    let pipe = ok(rustix::pipe::pipe());
    let good = greeting(LINES);
    let (mut calls, mut came) = (Vec::new(), ReceivedFrames::default());
    for (bytes, fds) in [
        (&[0; 1][..], &[][..]),
        (&[7; 500], &[plain.as_fd()]),
        (&good, &[]),
        (&good, &[pipe.0.as_fd()]),
        (&good, &[shrinks.as_fd()]),
        (&good, &[plain.as_fd(), plain.as_fd(), plain.as_fd()]),
        (&good, &[plain.as_fd()]),
        (&good, &[wild.as_fd()]),
        (&good, &[refers.as_fd()]),
        (&greeting(2 * LINES), &[plain.as_fd()]),
        (&greeting(u32::MAX), &[plain.as_fd()]),
    ] {
        let socket = call(scope);
        say(&socket, bytes, fds);
        // Bells that nobody asked for.
        (0..100).for_each(|_| say(&socket, &[1], &[pipe.1.as_fd()]));
        calls.push(socket);
        send(&mut b, To::port(&a), &[(calls.len() as u32, 60)]);
        until("what a friend sends", || {
            ok(a.receive(64, &mut came));
            came.numbers.last() == Some(&(calls.len() as u32))
        });
    }
    // One ring has a frame that cannot be one. Of six references three are some, and lead nowhere.
    until("what is no frame", || {
        ok(a.receive(64, &mut came));
        a.counters().strange >= 4 && came.references.len() >= 3
    });
    for reference in &came.references {
        let mut place = vec![0; reference.length as usize];
        let hostile = Address { nic: NIC, endpoint: 77 };
        assert!(!a.read(hostile, *reference, &mut place), "{reference:?}");
    }
    assert!(came.numbers.iter().copied().eq(1..=calls.len() as u32), "{:?}", came.numbers);
    assert_eq!((a.counters().strange, came.references.len()), (7, 3));
}

#[test]
fn many_who_say_nothing_keep_nobody_out() {
    let scope = scope(2);
    let (mut a, mut b) = (open(scope, A), open(scope, B));
    let silent: Vec<_> = (0..100).map(|_| call(scope)).collect();
    send(&mut b, To::port(&a), &[(7, 60)]);
    assert_eq!(take(&mut a, 1).len(), 1);
    drop(silent);
    assert!(drain(&mut a).is_empty());
}

#[test]
fn other_users_are_strangers() {
    let scope = scope(3);
    let mut a = open(scope, A);
    let stranger = std::thread::spawn(move || {
        // Of this thread alone.
        let nobody = rustix::process::Uid::from_raw(65534);
        ok(rustix::thread::set_thread_res_uid(nobody, nobody, nobody));
        let mut b = open(scope, B);
        send(&mut b, To { nic: NIC, endpoint: A }, &[(1, 60)]);
        b
    });
    let mut b = stranger.join().unwrap();
    assert!(drain(&mut a).is_empty(), "who is not root sends to root");
    send(&mut a, To::port(&b), &[(2, 60)]);
    assert_eq!(a.counters().refused, 1, "root sends to who is not root");
    assert!(drain(&mut b).is_empty());
}
