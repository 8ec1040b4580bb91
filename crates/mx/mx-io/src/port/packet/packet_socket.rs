//! A packet socket that no thread waits for when it is closed.
//!
//! For a packet socket with a ring the kernel waits several times until no processor can be in it
//! any more (`packet_release` in `net/packet/af_packet.c`), some ten milliseconds each time. A
//! program that closes its ports one after the other would wait for all of them; threads that wait
//! at the same time wait together.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

/// The socket, until it is dropped.
pub(super) struct PacketSocket(Option<OwnedFd>);

impl PacketSocket {
    pub(super) const fn new(socket: OwnedFd) -> Self {
        Self(Some(socket))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_ref().expect("there until it is dropped").as_fd()
    }
}

impl Drop for PacketSocket {
    fn drop(&mut self) {
        let socket = self.0.take();
        // Without a thread it is closed here.
        let _ = thread::Builder::new().name("mx-close".to_owned()).spawn(move || drop(socket));
    }
}
