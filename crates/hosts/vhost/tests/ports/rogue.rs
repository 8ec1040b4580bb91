//! A frontend that does what a test asks, good or bad: messages byte by byte, and memory through
//! its file.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use vhost::transport::message::{
    F_PROTOCOL_FEATURES, FrontendRequest, PROTOCOL_F_CONFIG, PROTOCOL_F_REPLY_ACK, Region,
    VringAddress, parse_u64,
};

pub(crate) use super::frontend::descriptor;
use super::frontend::{self, event, memory};

/// Bytes of memory.
pub(crate) const MEMORY: u64 = 0x1_0000;

/// Where the device finds the memory in descriptors.
pub(crate) const GUEST: u64 = 0x10_0000;

/// Where the memory is, as messages about rings have it.
pub(crate) const USER: u64 = 0x7000_0000;

/// Buffers of each ring.
pub(crate) const RING: u16 = 8;

/// VERSION_1, EVENT_IDX, MRG_RXBUF, MAC.
pub(crate) const FEATURES: u64 = F_PROTOCOL_FEATURES | 1 << 32 | 1 << 29 | 1 << 15 | 1 << 5;

/// The receive ring, and the transmit ring.
pub(crate) const RECEIVE: u32 = 0;
pub(crate) const TRANSMIT: u32 = 1;

/// Flags of descriptors.
pub(crate) const NEXT: u16 = 1;
pub(crate) const WRITE: u16 = 2;
pub(crate) const INDIRECT: u16 = 4;

/// Where the parts of ring `index` are in memory.
fn place(index: u32) -> (u64, u64, u64) {
    let at = u64::from(index) * 0x400;
    (at, at + 0x100, at + 0x200)
}

/// The address of buffer `number`, of 2 KiB.
pub(crate) fn buffer(number: u64) -> u64 {
    GUEST + 0x4000 + 0x800 * number
}

/// Where ring `index` says that its parts are.
pub(crate) fn addresses(index: u32) -> VringAddress {
    let (descriptors, available, used) = place(index);
    let [descriptors, available, used] = [descriptors, available, used].map(|at| USER + at);
    VringAddress { index, flags: 0, descriptors, used, available, log: 0 }
}

/// The region that all memory is.
pub(crate) fn region() -> Region {
    Region { guest_address: GUEST, size: MEMORY, user_address: USER, file_offset: 0 }
}

pub(crate) struct Rogue {
    pub(crate) stream: UnixStream,
    pub(crate) memory: OwnedFd,
    pub(crate) kicks: [OwnedFd; 2],
    pub(crate) calls: [OwnedFd; 2],
}

impl Rogue {
    /// Connects and says nothing.
    pub(crate) fn connect(path: &Path) -> io::Result<Self> {
        Self::new(UnixStream::connect(path)?)
    }

    /// Says nothing over a socket that is connected.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let events = || [event(), event()];
        Ok(Self { stream, memory: memory(MEMORY), kicks: events(), calls: events() })
    }

    pub(crate) fn say(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        frontend::say(&self.stream, bytes, fds)
    }

    /// Sends a request: the number in its answer or acknowledgement.
    pub(crate) fn ask(
        &mut self,
        request: &FrontendRequest,
        fds: &[BorrowedFd<'_>],
    ) -> io::Result<u64> {
        self.say(&request.encode(true), fds)?;
        let answer = frontend::receive(&mut self.stream)?;
        let (header, payload) = answer.ok_or(io::ErrorKind::TimedOut)?;
        parse_u64(&header, &payload).map_err(io::Error::other)
    }

    pub(crate) fn negotiate(&mut self) -> io::Result<()> {
        let protocol = PROTOCOL_F_CONFIG | PROTOCOL_F_REPLY_ACK;
        self.say(&FrontendRequest::SetOwner.encode(false), &[])?;
        self.ask(&FrontendRequest::GetFeatures, &[])?;
        self.ask(&FrontendRequest::GetProtocolFeatures, &[])?;
        self.say(&FrontendRequest::SetProtocolFeatures(protocol).encode(false), &[])?;
        self.ask(&FrontendRequest::SetFeatures(FEATURES), &[])?;
        Ok(())
    }

    pub(crate) fn share(&mut self) -> io::Result<()> {
        let memory = self.memory.try_clone()?;
        self.ask(&FrontendRequest::SetMemTable(vec![region()]), &[memory.as_fd()])?;
        Ok(())
    }

    /// Starts a ring at `address`, of `size` buffers, whose available index is at `base`.
    pub(crate) fn start(&mut self, address: VringAddress, size: u32, base: u32) -> io::Result<()> {
        let events = (address.index & 1) as usize;
        let (call, kick) = (self.calls[events].try_clone()?, self.kicks[events].try_clone()?);
        for (request, fds) in frontend::start(address, (size, base), &call, &kick) {
            self.ask(&request, &fds)?;
        }
        Ok(())
    }

    /// Does all that a good driver does before its first frame.
    pub(crate) fn attach(&mut self) -> io::Result<()> {
        self.negotiate()?;
        self.share()?;
        self.start(addresses(RECEIVE), RING.into(), 0)?;
        self.start(addresses(TRANSMIT), RING.into(), 0)
    }

    pub(crate) fn describe(&self, index: u32, number: u16, descriptor: &[u8]) -> io::Result<()> {
        frontend::write(&self.memory, place(index).0 + 16 * u64::from(number), descriptor);
        Ok(())
    }

    /// Makes the chains that begin at `heads` available, the first of all, and kicks.
    pub(crate) fn offer(&self, index: u32, heads: &[u16]) -> io::Result<()> {
        let entries: Vec<u8> = heads.iter().flat_map(|head| head.to_le_bytes()).collect();
        frontend::write(&self.memory, place(index).1 + 4, &entries);
        self.advance(index, heads.len() as u16)
    }

    /// Sets the available index and kicks.
    pub(crate) fn advance(&self, index: u32, to: u16) -> io::Result<()> {
        frontend::write(&self.memory, place(index).1 + 2, &to.to_le_bytes());
        self.kick(index)
    }

    pub(crate) fn kick(&self, index: u32) -> io::Result<()> {
        rustix::io::write(&self.kicks[index as usize & 1], &1_u64.to_ne_bytes())?;
        Ok(())
    }

    pub(crate) fn is_cut_off(&mut self) -> bool {
        let mut rest = [0; 4096];
        loop {
            match self.stream.read(&mut rest) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::ConnectionReset,
            }
        }
    }
}
