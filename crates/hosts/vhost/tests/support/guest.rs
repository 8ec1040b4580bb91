//! A frontend that begins well, and then does anything.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use vhost::message::{PROTOCOL_F_REPLY_ACK, Region, Request, VringAddress, VringFd, VringState};

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

fn memory() -> OwnedFd {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).expect("a file");
    ftruncate(&file, MEMORY).expect("room");
    file
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
        (listener, Self { file: memory(), socket, offered: vec![0; rings] })
    }

    /// Sets everything up, as a frontend does.
    pub(crate) fn begin(&mut self, features: u64, inband: u64) {
        self.send(&Request::SetOwner, &[]);
        self.send(&Request::SetProtocolFeatures(PROTOCOL_F_REPLY_ACK | inband), &[]);
        self.send(&Request::SetFeatures(features), &[]);
        let region = Region { size: MEMORY, ..Region::default() };
        self.send(&Request::SetMemTable(vec![region]), &[&self.file]);
        let event = eventfd(0, EventfdFlags::NONBLOCK).expect("an event descriptor");
        for index in 0..self.offered.len() as u8 {
            let base = u64::from(index) * STRIDE;
            let number = |number| VringState { index: index.into(), number };
            let address = VringAddress {
                index: index.into(),
                descriptors: base,
                available: base + AVAILABLE,
                used: base + USED,
                ..VringAddress::default()
            };
            let fd = VringFd { index, none: false };
            self.send(&Request::SetVringNum(number(SIZE.into())), &[]);
            self.send(&Request::SetVringAddr(address), &[]);
            self.send(&Request::SetVringCall(fd), &[&event]);
            self.send(&Request::SetVringKick(fd), &[&event]);
            self.send(&Request::SetVringEnable(number(1)), &[]);
        }
    }

    /// Whether it arrives is the device's affair: it may have closed the connection.
    fn send(&self, request: &Request, fds: &[&OwnedFd]) {
        let message = request.encode(false);
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = sendmsg(&self.socket, &[IoSlice::new(&message)], &mut control, flags);
    }

    /// Changes something while packets pass.
    pub(crate) fn change(&mut self, request: u8, state: VringState) {
        let fresh;
        let (request, fds): (_, &[&OwnedFd]) = match request % 8 {
            0 => (Request::SetVringEnable(state), &[]),
            1 => (Request::GetVringBase(state), &[]),
            2 => (Request::SetVringBase(state), &[]),
            3 => (Request::SetVringNum(state), &[]),
            4 => (Request::VringKick(state), &[]),
            5 => (Request::ResetDevice, &[]),
            6 => {
                // Other memory, in which all rings are empty.
                fresh = memory();
                let region = Region { size: MEMORY, ..Region::default() };
                (Request::SetMemTable(vec![region]), &[&fresh])
            }
            _ => (Request::SetFeatures(1 << (state.index % 64)), &[]),
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
            let mut descriptor = [0; 16];
            descriptor[..8].copy_from_slice(&address.to_le_bytes());
            descriptor[8..12].copy_from_slice(&length.to_le_bytes());
            descriptor[12..14].copy_from_slice(&(flags | more).to_le_bytes());
            descriptor[14..].copy_from_slice(&next.to_le_bytes());
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
        let mut used = [0; 2];
        rustix::io::pread(&self.file, &mut used, base + USED + 2).expect("memory");
        self.write(base + AVAILABLE + 4 + 2 * u64::from(SIZE), &used);
    }
}
