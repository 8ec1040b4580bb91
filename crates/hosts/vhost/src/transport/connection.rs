//! A vhost-user socket: whole messages, with their file descriptors, without ever waiting.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, Shutdown,
    recvmsg, send, shutdown,
};

use super::message::{HEADER, Header, MAX_PAYLOAD, MAX_REGIONS, MessageError};
use super::reaper::ForeignFd;

/// Why no more can be had from the peer.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    #[error("the guest has disconnected")]
    Closed,
    /// It sent what is no message.
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error("a vhost-user message came with more than {MAX_REGIONS} file descriptors")]
    TooManyDescriptors,
    #[error("the guest does not read its replies")]
    Full,
    #[error("vhost-user socket: {0}")]
    Io(#[from] io::Error),
}

impl From<rustix::io::Errno> for ConnectionError {
    fn from(errno: rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        match errno {
            Errno::AGAIN => Self::Full,
            Errno::PIPE | Errno::CONNRESET => Self::Closed,
            errno => Self::Io(errno.into()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Incoming {
    pub header: Header,
    pub payload: Vec<u8>,
    pub fds: Vec<ForeignFd>,
}

/// The most descriptors that the kernel passes at once (`SCM_MAX_FD`, include/net/scm.h). With less
/// room it would close the others itself, in this thread.
const MAX_PASSED: usize = 253;

/// A socket, and what of the next message has come.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Descriptors that were sent and not received are closed with it.
    socket: ForeignFd,
    buffer: Box<[u8; HEADER + MAX_PAYLOAD]>,
    filled: usize,
    fds: Vec<ForeignFd>,
}

impl Connection {
    pub(crate) fn new(socket: ForeignFd) -> Self {
        Self { socket, buffer: Box::new([0; HEADER + MAX_PAYLOAD]), filled: 0, fds: Vec::new() }
    }

    /// Whether descriptors have come with a message that is not complete.
    pub(crate) fn holds_descriptors(&self) -> bool {
        !self.fds.is_empty()
    }

    /// The next message, if it has come as a whole.
    pub(crate) fn receive(&mut self) -> Result<Option<Incoming>, ConnectionError> {
        loop {
            // Never beyond the end of a message: descriptors come with the bytes that they were
            // sent with.
            let (wanted, header) = match self.buffer.first_chunk() {
                Some(header) if self.filled >= HEADER => {
                    let header = Header::parse(header)?;
                    (HEADER + header.size as usize, Some(header))
                }
                _ => (HEADER, None),
            };
            if let Some(header) = header.filter(|_| self.filled == wanted) {
                let payload = self.buffer[HEADER..wanted].to_vec();
                self.filled = 0;
                return Ok(Some(Incoming { header, payload, fds: std::mem::take(&mut self.fds) }));
            }
            if !self.fill(wanted)? {
                return Ok(None);
            }
        }
    }

    /// Reads up to `wanted` bytes of a message; `false` if there are none now.
    fn fill(&mut self, wanted: usize) -> Result<bool, ConnectionError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PASSED))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [IoSliceMut::new(&mut self.buffer[self.filled..wanted])];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = match recvmsg(&self.socket, &mut bytes, &mut control, flags) {
            Ok(received) => received,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                let socket = &self.socket;
                self.fds.extend(fds.map(|fd| socket.beside(fd)));
            }
        }
        if received.flags.contains(ReturnFlags::CTRUNC) || self.fds.len() > MAX_REGIONS {
            return Err(ConnectionError::TooManyDescriptors);
        }
        if received.bytes == 0 {
            return Err(ConnectionError::Closed);
        }
        self.filled += received.bytes;
        Ok(true)
    }

    pub(crate) fn send(&self, message: &[u8]) -> Result<(), ConnectionError> {
        let sent = send(&self.socket, message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        if sent == message.len() { Ok(()) } else { Err(ConnectionError::Full) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The peer finds out now, even if the reaper has much to close before.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::message::FrontendRequest;
    use crate::transport::reaper::tests::foreign;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, sendmsg};
    use std::io::{IoSlice, Write};
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, Connection) {
        let (peer, socket) = UnixStream::pair().unwrap();
        (peer, Connection::new(foreign(socket)))
    }

    #[test]
    fn messages_come_in_any_pieces() {
        let (mut peer, mut connection) = pair();
        let bytes = [
            FrontendRequest::SetFeatures(7).encode(true),
            FrontendRequest::GetFeatures.encode(false),
        ];
        for byte in bytes.concat() {
            assert!(connection.receive().unwrap().is_none());
            peer.write_all(&[byte]).unwrap();
            if let Some(incoming) = connection.receive().unwrap() {
                let request = FrontendRequest::parse(&incoming.header, &incoming.payload).unwrap();
                assert!(matches!(
                    request,
                    FrontendRequest::SetFeatures(7) | FrontendRequest::GetFeatures
                ));
            }
        }
        assert!(connection.receive().unwrap().is_none());
        drop(peer);
        assert!(matches!(connection.receive(), Err(ConnectionError::Closed)));
    }

    #[test]
    fn descriptors_stay_with_their_message() {
        let (peer, mut connection) = pair();
        for count in [2, 0, 8] {
            let fds = vec![peer.as_fd(); count];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
            let message = FrontendRequest::SetOwner.encode(false);
            let bytes = [IoSlice::new(&message)];
            sendmsg(&peer, &bytes, &mut control, SendFlags::empty()).unwrap();
        }
        for count in [2, 0, 8] {
            assert_eq!(connection.receive().unwrap().unwrap().fds.len(), count);
        }
    }

    #[test]
    fn peer_that_does_not_read_is_noticed() {
        let (_peer, connection) = pair();
        let full = (0..100_000).find_map(|_| connection.send(&[0; 1_024]).err());
        assert!(matches!(full, Some(ConnectionError::Full)));
    }
}
