//! Peers that are silent for a while, and one that cannot be accepted at first.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;
use crate::port::Outgoing;

const NIC: NicId = NicId([2, 0, 0, 0, 0, 6]);

fn open(endpoint: u8) -> ShmPort {
    open_in(77, endpoint)
}

fn open_in(scope: u32, endpoint: u8) -> ShmPort {
    let scope = std::process::id() << 8 | scope;
    ShmPort::open(NIC, endpoint, ShmSettings::new(scope, 1500)).unwrap()
}

/// Sends a frame to endpoint 1.
fn send(port: &mut ShmPort) {
    let mut left = 1;
    let outcome = port.transmit(&mut |frame: &mut [u8]| {
        left -= 1;
        frame[..60].fill(0);
        frame[super::super::ENDPOINT_AT] = 1;
        (left == 0).then_some(Outgoing::new(NIC, 1, 60))
    });
    assert_eq!(outcome.unwrap(), Transmitted::Drained);
}

fn receive(port: &mut ShmPort) -> usize {
    port.receive(64, &mut |from, frame: &[u8]| assert_eq!((from, frame.len()), (NIC, 60))).unwrap()
}

fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 300, "still not so");
    }
}

#[test]
fn silent_peers_are_not_looked_at_and_are_heard_when_they_call() {
    let (mut port, mut peers) = (open(1), [2, 3, 4].map(open));
    let mut came = 0;
    for peer in &mut peers {
        send(peer);
    }
    until(|| {
        came += receive(&mut port);
        // They hear how to call.
        peers.iter_mut().for_each(|peer| assert_eq!(receive(peer), 0));
        came == 3
    });
    for sleeps in [false, true, false] {
        until(|| {
            assert_eq!(receive(&mut port), 0);
            peers.iter_mut().for_each(|peer| assert_eq!(receive(peer), 0));
            port.busy == 0
        });
        if sleeps {
            assert!(!port.arm().unwrap());
        }
        send(&mut peers[1]);
        if sleeps {
            let mut fds = [PollFd::from_borrowed_fd(port.readiness(), PollFlags::IN)];
            let limit = Timespec { tv_sec: 300, tv_nsec: 0 };
            assert_eq!(poll(&mut fds, Some(&limit)).unwrap(), 1);
            port.clear().unwrap();
        } else {
            assert_eq!(peers[1].counters.calls_out, u64::from(came > 3), "it is awake");
        }
        assert_eq!((receive(&mut port), port.busy), (1, 1));
        came += usize::from(sleeps);
    }
    // A peer that goes leaves nothing.
    let [_, gone, _] = peers;
    drop(gone);
    until(|| {
        assert_eq!(receive(&mut port), 0);
        port.inbound.len() == 2 && port.busy == 0
    });
    assert_eq!(port.free.len(), MAX_INBOUND - 2);
}

#[test]
fn who_could_not_be_accepted_wakes_a_sleeper_until_it_is() {
    let (mut port, mut peer) = (open_in(78, 1), open_in(78, 2));
    let listener = port.listener.as_fd().try_clone_to_owned().unwrap();
    let place = port.listener.as_fd().as_raw_fd();
    let put = |fd: RawFd| {
        // SAFETY: both are open, and the port goes on with what it finds there.
        assert!(unsafe { libc::dup2(fd, place) } >= 0);
    };
    // No connection can be accepted from a connection, as if descriptors were lacking.
    let (connection, _far) = UnixStream::pair().unwrap();
    put(connection.as_raw_fd());
    send(&mut peer);
    port.poll_connections();
    assert!(port.inbound.is_empty());
    put(listener.as_raw_fd());
    let mut fds = [PollFd::from_borrowed_fd(port.readiness(), PollFlags::IN)];
    let limit = Timespec { tv_sec: 300, tv_nsec: 0 };
    assert_eq!(poll(&mut fds, Some(&limit)).unwrap(), 1);
    port.poll_connections();
    assert_eq!(port.inbound.len(), 1);
}
