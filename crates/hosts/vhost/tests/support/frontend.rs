//! What frontends of tests have in common: a socket, messages with descriptors, memory in a file.

use std::io::{self, ErrorKind, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use vhost::transport::message::{
    FrontendRequest, HEADER, Header, VringAddress, VringFd, VringState,
};

/// A file of `bytes` of memory.
pub(crate) fn memory(bytes: u64) -> OwnedFd {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).expect("a file");
    ftruncate(&file, bytes).expect("room");
    file
}

pub(crate) fn event() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an event descriptor")
}

pub(crate) fn say(socket: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The next message; none if there is none yet, where the socket does not wait for it.
pub(crate) fn receive(socket: &mut UnixStream) -> io::Result<Option<(Header, Vec<u8>)>> {
    let mut header = [0; HEADER];
    match socket.read_exact(&mut header) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
        outcome => outcome?,
    }
    let header = Header::parse(&header).map_err(io::Error::other)?;
    let mut payload = vec![0; header.size as usize];
    socket.read_exact(&mut payload)?;
    Ok(Some((header, payload)))
}

/// The messages that start a ring of `size` buffers, whose available index is at `base`, and the
/// descriptors that come with them.
pub(crate) fn start<'a>(
    address: VringAddress,
    (size, base): (u32, u32),
    call: &'a OwnedFd,
    kick: &'a OwnedFd,
) -> Vec<(FrontendRequest, Vec<BorrowedFd<'a>>)> {
    let index = address.index;
    let state = |number| VringState { index, number };
    let fd = VringFd { index: index as u8, none: false };
    vec![
        (FrontendRequest::SetVringNum(state(size)), vec![]),
        (FrontendRequest::SetVringBase(state(base)), vec![]),
        (FrontendRequest::SetVringAddr(address), vec![]),
        (FrontendRequest::SetVringCall(fd), vec![call.as_fd()]),
        (FrontendRequest::SetVringKick(fd), vec![kick.as_fd()]),
        (FrontendRequest::SetVringEnable(state(1)), vec![]),
    ]
}

pub(crate) fn descriptor(address: u64, length: u32, flags: u16, next: u16) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&address.to_le_bytes());
    bytes[8..12].copy_from_slice(&length.to_le_bytes());
    bytes[12..14].copy_from_slice(&flags.to_le_bytes());
    bytes[14..].copy_from_slice(&next.to_le_bytes());
    bytes
}

pub(crate) fn write(memory: &OwnedFd, at: u64, bytes: &[u8]) {
    assert_eq!(rustix::io::pwrite(memory, bytes, at).expect("memory"), bytes.len());
}

pub(crate) fn word(memory: &OwnedFd, at: u64) -> u16 {
    let mut bytes = [0; 2];
    rustix::io::pread(memory, &mut bytes, at).expect("memory");
    u16::from_le_bytes(bytes)
}
