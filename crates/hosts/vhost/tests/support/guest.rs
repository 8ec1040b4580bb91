//! A frontend that begins well, and then does anything.

use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicU32, Ordering};

use vhost::transport::message::{
    FrontendRequest, PROTOCOL_F_REPLY_ACK, Region, VringAddress, VringState,
};

use super::frontend;

/// The guest's memory: 16 bits lead anywhere in it, and to the byte after it.
pub(crate) const MEMORY: u64 = 0xFFFF;

/// Descriptors of each ring.
pub(crate) const SIZE: u16 = 8;

/// From one ring's memory to the next one's; in it, descriptors, then these.
const STRIDE: u64 = 0x400;
const AVAILABLE: u64 = 0x100;
const USED: u64 = 0x200;

/// The guest: its memory, its connection, and how many buffers each ring was offered.
pub(crate) struct Guest {
    file: OwnedFd,
    socket: UnixStream,
    pub(crate) offered: Vec<u16>,
}

impl Guest {
    /// A guest of `rings` rings that has connected, and what it has connected to.
    pub(crate) fn connect(rings: usize) -> (UnixListener, Self) {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("earmark-device-{}-{count}", std::process::id());
        let address = SocketAddr::from_abstract_name(name).expect("a name");
        let listener = UnixListener::bind_addr(&address).expect("a listener");
        let socket = UnixStream::connect_addr(&address).expect("a connection");
        (listener, Self { file: frontend::memory(MEMORY), socket, offered: vec![0; rings] })
    }

    /// Sets everything up, as a frontend does.
    pub(crate) fn begin(&mut self, features: u64, inband: u64) {
        self.send(&FrontendRequest::SetOwner, &[]);
        self.send(&FrontendRequest::SetProtocolFeatures(PROTOCOL_F_REPLY_ACK | inband), &[]);
        self.send(&FrontendRequest::SetFeatures(features), &[]);
        let region = Region { size: MEMORY, ..Region::default() };
        self.send(&FrontendRequest::SetMemTable(vec![region]), &[&self.file]);
        let event = frontend::event();
        for index in 0..self.offered.len() as u32 {
            let base = u64::from(index) * STRIDE;
            let address = VringAddress {
                index,
                descriptors: base,
                available: base + AVAILABLE,
                used: base + USED,
                ..VringAddress::default()
            };
            for (request, fds) in frontend::start(address, (SIZE.into(), 0), &event, &event) {
                frontend::say(&self.socket, &request.encode(false), &fds).expect("it is there");
            }
        }
    }

    /// Sends a message, unless the device has closed the connection.
    fn send(&self, request: &FrontendRequest, fds: &[&OwnedFd]) {
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let _ = frontend::say(&self.socket, &request.encode(false), &fds);
    }

    /// Changes something while packets pass.
    pub(crate) fn change(&mut self, request: u8, state: VringState) {
        let fresh;
        let (request, fds): (_, &[&OwnedFd]) = match request % 8 {
            0 => (FrontendRequest::SetVringEnable(state), &[]),
            1 => (FrontendRequest::GetVringBase(state), &[]),
            2 => (FrontendRequest::SetVringBase(state), &[]),
            3 => (FrontendRequest::SetVringNum(state), &[]),
            4 => (FrontendRequest::VringKick(state), &[]),
            5 => (FrontendRequest::ResetDevice, &[]),
            6 => {
                // Other memory, in which all rings are empty.
                fresh = frontend::memory(MEMORY);
                let region = Region { size: MEMORY, ..Region::default() };
                (FrontendRequest::SetMemTable(vec![region]), &[&fresh])
            }
            _ => (FrontendRequest::SetFeatures(1 << (state.index % 64)), &[]),
        };
        self.send(&request, fds);
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) {
        let room = MEMORY.saturating_sub(at).min(bytes.len() as u64) as usize;
        rustix::io::pwrite(&self.file, &bytes[..room], at).expect("memory");
    }

    /// Offers a chain: address, length and flags of each descriptor. Those before are overwritten
    /// when the ring is full.
    pub(crate) fn offer(&mut self, ring: u8, chain: &[(u64, u32, u16)]) {
        let number = usize::from(ring) % self.offered.len();
        let base = number as u64 * STRIDE;
        let offered = self.offered[number];
        let head = offered.wrapping_mul(2) % SIZE;
        for ((address, length, flags), at) in chain.iter().zip(head..) {
            let (at, next) = (at % SIZE, (at + 1) % SIZE);
            let more = u16::from(usize::from(at.wrapping_sub(head)) + 1 < chain.len());
            let descriptor = frontend::descriptor(*address, *length, flags | more, next);
            self.write(base + 16 * u64::from(at), &descriptor);
        }
        let entry = base + AVAILABLE + 4 + 2 * u64::from(offered % SIZE);
        self.write(entry, &head.to_le_bytes());
        self.offered[number] = offered.wrapping_add(1);
        self.write(base + AVAILABLE + 2, &self.offered[number].to_le_bytes());
    }

    /// Has seen all that a ring has for it, and wants to be called for what follows.
    pub(crate) fn poll(&self, ring: u8) {
        let base = (usize::from(ring) % self.offered.len()) as u64 * STRIDE;
        let used = frontend::word(&self.file, base + USED + 2);
        self.write(base + AVAILABLE + 4 + 2 * u64::from(SIZE), &used.to_le_bytes());
    }
}
