//! The conversation with the device: vhost-user messages over a socket, from the frontend's side.
//!
//! Every request that has no answer of its own is acknowledged if the device can do that, so a
//! refusal is known at once and by name. The device is waited for, but not for ever.

use std::io::{ErrorKind, IoSlice, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};

use super::error::DriverError;
use crate::transport::message::{self, FrontendRequest, HEADER, Header, VringState};

/// How long the device may take to answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });

pub(super) struct Frontend {
    stream: UnixStream,
    acknowledged: bool,
}

impl Frontend {
    pub(super) fn connect(path: &Path) -> Result<Self, DriverError> {
        let stream = UnixStream::connect(path)
            .map_err(|cause| DriverError::Connect(path.to_owned(), cause))?;
        Self::new(stream)
    }

    /// Speaks over a socket that is connected already.
    pub(super) fn new(stream: UnixStream) -> Result<Self, DriverError> {
        let fail = |cause| DriverError::System("set up the NIC's socket", cause);
        stream.set_nonblocking(false).map_err(fail)?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(fail)?;
        stream.set_write_timeout(Some(TIMEOUT)).map_err(fail)?;
        Ok(Self { stream, acknowledged: false })
    }

    pub(super) fn expect_acknowledgements(&mut self) {
        self.acknowledged = true;
    }

    /// Sends a request that has no answer of its own, with file descriptors.
    pub(super) fn request(
        &mut self,
        operation: &'static str,
        request: &FrontendRequest,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), DriverError> {
        self.send(operation, &request.encode(self.acknowledged), fds)?;
        if !self.acknowledged {
            return Ok(());
        }
        match self.number(operation, request)? {
            0 => Ok(()),
            status => Err(DriverError::Refused(operation, status)),
        }
    }

    pub(super) fn ask(
        &mut self,
        operation: &'static str,
        request: &FrontendRequest,
    ) -> Result<u64, DriverError> {
        self.send(operation, &request.encode(false), &[])?;
        self.number(operation, request)
    }

    pub(super) fn configuration(&mut self, length: usize) -> Result<Vec<u8>, DriverError> {
        let operation = "read the NIC's configuration";
        let question = message::Config { offset: 0, flags: 0, bytes: vec![0; length] };
        let request = FrontendRequest::GetConfig(question);
        self.send(operation, &request.encode(false), &[])?;
        let (header, payload) = self.reply(operation, &request)?;
        let answer = message::Config::parse(&header, &payload)
            .map_err(|error| DriverError::Answer(operation, error.to_string()))?;
        if answer.offset != 0 || answer.bytes.len() < length {
            let what = format!("{} of {length} bytes", answer.bytes.len());
            return Err(DriverError::Answer(operation, what));
        }
        Ok(answer.bytes)
    }

    /// Stops a ring: how far the device came.
    pub(super) fn stop(&mut self, index: u32) -> Result<u32, DriverError> {
        let operation = "stop a ring";
        let request = FrontendRequest::GetVringBase(VringState { index, number: 0 });
        self.send(operation, &request.encode(false), &[])?;
        let (header, payload) = self.reply(operation, &request)?;
        let answer = VringState::parse(&header, &payload)
            .map_err(|error| DriverError::Answer(operation, error.to_string()))?;
        if answer.index != index {
            let what = format!("ring {}, not {index}", answer.index);
            return Err(DriverError::Answer(operation, what));
        }
        Ok(answer.number)
    }

    fn send(
        &self,
        operation: &'static str,
        mut bytes: &[u8],
        mut fds: &[BorrowedFd<'_>],
    ) -> Result<(), DriverError> {
        while !bytes.is_empty() {
            let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !fds.is_empty() {
                control.push(SendAncillaryMessage::ScmRights(fds));
            }
            match sendmsg(&self.stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(cut_off(operation, &errno.into())),
            }
            // The descriptors travel with the first byte.
            fds = &[];
        }
        Ok(())
    }

    fn number(
        &mut self,
        operation: &'static str,
        request: &FrontendRequest,
    ) -> Result<u64, DriverError> {
        let (header, payload) = self.reply(operation, request)?;
        message::parse_u64(&header, &payload)
            .map_err(|error| DriverError::Answer(operation, error.to_string()))
    }

    fn reply(
        &mut self,
        operation: &'static str,
        request: &FrontendRequest,
    ) -> Result<(Header, Vec<u8>), DriverError> {
        let nonsense = |what| DriverError::Answer(operation, what);
        let mut bytes = [0; HEADER];
        self.stream.read_exact(&mut bytes).map_err(|cause| cut_off(operation, &cause))?;
        let header = Header::parse(&bytes).map_err(|error| nonsense(error.to_string()))?;
        if !header.is_reply() || header.request != request.number() {
            return Err(nonsense(format!("message {} to {request}", header.request)));
        }
        let mut payload = vec![0; header.size as usize];
        self.stream.read_exact(&mut payload).map_err(|cause| cut_off(operation, &cause))?;
        Ok((header, payload))
    }

    /// The connection, over which the device says nothing by itself until it hangs up.
    pub(super) fn connection(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Fails if the device has hung up.
    pub(super) fn check(&self, operation: &'static str) -> Result<(), DriverError> {
        let mut byte = [0; 1];
        match recv(&self.stream, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Ok((1.., _)) => {
                let what = "a message that was not asked for".into();
                Err(DriverError::Answer(operation, what))
            }
            Ok(_) | Err(_) => Err(DriverError::Gone(operation)),
        }
    }

    /// Waits until `interrupt` can be read, and clears it; `false` if it was not within `timeout`.
    pub(super) fn wait(
        &self,
        operation: &'static str,
        interrupt: BorrowedFd<'_>,
        timeout: Duration,
    ) -> Result<bool, DriverError> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = left.try_into().map_err(|_| {
                DriverError::Setting(format!("a timeout of {left:?}"), "years at most".into())
            })?;
            let mut fds = [
                PollFd::from_borrowed_fd(interrupt, PollFlags::IN),
                PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN | PollFlags::RDHUP),
            ];
            match poll(&mut fds, Some(&left)) {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(DriverError::system(operation)(errno)),
            }
            // An interrupt first: what came before the end is still to be taken.
            if !fds[0].revents().is_empty() {
                clear(interrupt);
                return Ok(true);
            }
            self.check(operation)?;
        }
    }
}

/// What remains readable until it is cleared, cleared.
pub(super) fn clear(interrupt: BorrowedFd<'_>) {
    // Nothing to read means that nothing is to be cleared.
    let _ = rustix::io::read(interrupt, &mut [0_u8; 8]);
}

/// What a failed read or write means.
fn cut_off(operation: &'static str, cause: &std::io::Error) -> DriverError {
    match cause.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            DriverError::Silent(operation, TIMEOUT.as_secs())
        }
        _ => DriverError::Gone(operation),
    }
}
