//! Processes that connect to an endpoint and do not behave.

use std::os::fd::OwnedFd;

use mx_io::port::shm::{ShmPort, ShmSettings};
use mx_io::port::{NicId, Port};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::common::ok;
use super::frames::{To, drain, send, take};
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

#[test]
fn many_silent_connections_keep_no_peer_out() {
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
        let user = rustix::process::Uid::from_raw(65534);
        ok(rustix::thread::set_thread_res_uid(user, user, user));
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
