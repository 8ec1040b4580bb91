//! A guest for tests: a frontend that sets up rings, and a driver that polls as Linux does.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use hostside::HostPort;
use nic::observer::Delivered;
use nic::port::PortSettings;
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::*;
use crate::config::{CTRL_VQ, EVENT_IDX, VERSION_1};
use crate::connection::Connection;
use crate::connection::Incoming;
use crate::memory::Memory;
use crate::memory::tests::{file, mapped};
use crate::message::Request;
use crate::message::{
    F_PROTOCOL_FEATURES, PROTOCOL_F_BACKEND_REQ, PROTOCOL_F_REPLY_ACK, Region, VringAddress,
    VringFd, VringState,
};
use crate::reaper::tests::foreign;

pub(super) const SIZE: u16 = 16;
pub(super) const FEATURES: u64 = F_PROTOCOL_FEATURES | VERSION_1 | EVENT_IDX | CTRL_VQ;
pub(super) const MEMORY: u64 = 0x10_0000;

/// Each ring has this much memory: three tables, then a page for each buffer.
const STRIDE: u64 = 0x4_0000;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
const BUFFERS: u64 = 0x4000;

/// A port, its device, and frames on both sides.
pub(super) struct Plane {
    pub(super) port: HostPort<Device>,
    pub(super) address: SocketAddr,
    pub(super) sent: Vec<Vec<u8>>,
    pub(super) delivered: Vec<Delivered>,
    pool: Vec<Vec<u8>>,
}

pub(super) fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

impl Plane {
    pub(super) fn new(name: &str, setting: &str, inband: bool) -> Self {
        let moderation = setting.parse().unwrap();
        Self::with_port(name, PortSettings { moderation, ..PortSettings::default() }, inband)
    }

    pub(super) fn with_port(name: &str, port: PortSettings, inband: bool) -> Self {
        let name = format!("earmark-test-{}-{name}", std::process::id());
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let settings = DeviceSettings { mac: [2; 6], inband, ..DeviceSettings::default() };
        Self {
            port: HostPort::new(Box::new(Device::new(listener, settings).unwrap()), port, at(0)),
            address,
            sent: Vec::new(),
            delivered: Vec::new(),
            pool: Vec::new(),
        }
    }

    /// One round of the data plane; `frames` arrive in it.
    pub(super) fn round(&mut self, now: Instant, frames: &[&[u8]]) {
        self.port.sync(now, true);
        let mut frame = Vec::new();
        while self.port.transmit(now, 0, &mut frame).unwrap() == Fetched::Frame {
            self.sent.push(std::mem::take(&mut frame));
        }
        for frame in frames {
            let _ = self.port.receive(now, frame.to_vec());
        }
        self.port.advance(now);
        let mut delivered = |packet: &Delivered, _: &[u8]| self.delivered.push(*packet);
        self.port.serve(now, &mut self.pool, &mut delivered).unwrap();
        self.port.host.frontend.answer_kick();
    }
}

/// The driver's side of a ring. A buffer is one descriptor.
pub(super) struct Virtqueue {
    index: u64,
    pub(super) memory: Memory,
    events: bool,
    free: VecDeque<u16>,
    offered: u16,
    pub(super) taken: u16,
    disabled: bool,
    kick: OwnedFd,
    call: OwnedFd,
}

impl Virtqueue {
    fn base(&self) -> u64 {
        self.index * STRIDE
    }

    fn load(&self, at: u64) -> u16 {
        let mut bytes = [0; 2];
        self.memory.read(self.base() + at, &mut bytes).unwrap();
        u16::from_le_bytes(bytes)
    }

    fn store(&self, at: u64, value: u16) {
        self.memory.write(self.base() + at, &value.to_le_bytes()).unwrap();
    }

    pub(super) fn buffer(&self, head: u16) -> u64 {
        self.base() + BUFFERS + 0x1000 * u64::from(head)
    }

    /// Offers one free buffer: `out` bytes to read, or `room` to write.
    pub(super) fn offer(&mut self, out: &[u8], room: u32) -> bool {
        let Some(head) = self.free.pop_front() else { return false };
        let address = self.buffer(head);
        self.memory.write(address, out).unwrap();
        let both = !out.is_empty() && room > 0;
        // A command is two descriptors: heads have even numbers, answers odd ones.
        self.describe(head, address, if out.is_empty() { room } else { out.len() as u32 }, both);
        if out.is_empty() {
            self.store(16 * u64::from(head) + 12, 2);
        }
        if both {
            self.describe(head + 1, self.buffer(head + 1), room, false);
            self.store(16 * u64::from(head + 1) + 12, 2);
        }
        self.publish(head);
        true
    }

    /// Offers a frame each of whose bytes has a descriptor of its own, in an indirect table.
    pub(super) fn offer_bytes(&mut self, count: u16) {
        let head = self.free.pop_front().unwrap();
        let table = self.buffer(head);
        for index in 0..count {
            self.describe_in(table, index, table, 1, index + 1 < count);
        }
        self.describe(head, table, 16 * u32::from(count), false);
        self.store(16 * u64::from(head) + 12, 4);
        self.publish(head);
    }

    fn publish(&mut self, head: u16) {
        self.store(AVAILABLE + 4 + 2 * u64::from(self.offered % SIZE), head);
        self.offered = self.offered.wrapping_add(1);
        self.store(AVAILABLE + 2, self.offered);
    }

    fn describe(&self, index: u16, address: u64, length: u32, next: bool) {
        self.describe_in(self.base(), index, address, length, next);
    }

    fn describe_in(&self, table: u64, index: u16, address: u64, length: u32, next: bool) {
        let at = table + 16 * u64::from(index);
        self.memory.write(at, &address.to_le_bytes()).unwrap();
        self.memory.write(at + 8, &length.to_le_bytes()).unwrap();
        self.memory.write(at + 12, &u16::from(next).to_le_bytes()).unwrap();
        self.memory.write(at + 14, &(index + 1).to_le_bytes()).unwrap();
    }

    /// The next used buffer: its number and length.
    pub(super) fn take(&mut self) -> Option<(u16, u32)> {
        if self.load(USED + 2) == self.taken {
            return None;
        }
        let at = USED + 4 + 8 * u64::from(self.taken % SIZE);
        let (head, length) = (self.load(at), self.load(at + 4));
        self.free.push_back(head);
        self.taken = self.taken.wrapping_add(1);
        if !self.disabled && self.events {
            self.store(AVAILABLE + 4 + 2 * u64::from(SIZE), self.taken);
        }
        Some((head, length.into()))
    }

    pub(super) fn bytes(&self, head: u16, length: u32) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        self.memory.read(self.buffer(head), &mut bytes).unwrap();
        bytes
    }

    /// `virtqueue_disable_cb`.
    pub(super) fn disable(&mut self) {
        self.disabled = true;
        if self.events {
            self.store(AVAILABLE + 4 + 2 * u64::from(SIZE), 0);
        } else {
            self.store(AVAILABLE, 1);
        }
    }

    /// `virtqueue_enable_cb_prepare`.
    pub(super) fn enable(&mut self) {
        self.disabled = false;
        if self.events {
            self.store(AVAILABLE + 4 + 2 * u64::from(SIZE), self.taken);
        } else {
            self.store(AVAILABLE, 0);
        }
    }

    /// `virtqueue_poll`: whether something came before the device could see that.
    pub(super) fn has_more(&self) -> bool {
        self.load(USED + 2) != self.taken
    }

    pub(super) fn kick(&self) {
        rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).unwrap();
    }

    /// How many interrupts there have been since the last call.
    pub(super) fn calls(&self) -> u64 {
        let mut count = [0; 8];
        rustix::io::read(&self.call, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
    }

    /// Breaks the ring: a head that is no descriptor.
    pub(super) fn offer_nonsense(&mut self) {
        self.store(AVAILABLE + 4 + 2 * u64::from(self.offered % SIZE), SIZE);
        self.store(AVAILABLE + 2, self.offered.wrapping_add(1));
    }
}

pub(super) struct Guest {
    pub(super) connection: Connection,
    socket: UnixStream,
    pub(super) file: OwnedFd,
    pub(super) rings: Vec<Virtqueue>,
}

impl Guest {
    /// Connects and sets everything up, as UML does.
    pub(super) fn connect(plane: &mut Plane, features: u64, protocol: u64) -> Self {
        let socket = UnixStream::connect_addr(&plane.address).unwrap();
        let connection = Connection::new(foreign(socket.try_clone().unwrap()));
        let mut guest = Self { connection, socket, file: file(MEMORY), rings: Vec::new() };
        let protocol = protocol | PROTOCOL_F_REPLY_ACK | PROTOCOL_F_BACKEND_REQ;
        for request in [
            Request::SetOwner,
            Request::SetProtocolFeatures(protocol),
            Request::SetFeatures(features),
        ] {
            guest.send(&request, &[]);
        }
        let region = Region { size: MEMORY, ..Region::default() };
        let file = guest.file.try_clone().unwrap();
        guest.send(&Request::SetMemTable(vec![region]), &[&file]);
        for index in 0..3 {
            guest.add_ring(index, region, features & EVENT_IDX != 0);
        }
        // In the first it is let in, in the others it is listened to.
        for _ in 0..3 {
            plane.round(at(0), &[]);
        }
        while guest.receive().is_some() {}
        guest
    }

    fn add_ring(&mut self, index: u8, region: Region, events: bool) {
        let memory = mapped(&[region], [self.file.try_clone().unwrap()]).unwrap();
        let event = || eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let (kick, call) = (event(), event());
        let base = u64::from(index) * STRIDE;
        let number = u32::from(index);
        let state = |number| VringState { index: index.into(), number };
        let address = VringAddress {
            index: number,
            descriptors: base,
            available: base + AVAILABLE,
            used: base + USED,
            ..VringAddress::default()
        };
        let fd = VringFd { index, none: false };
        self.send(&Request::SetVringNum(state(SIZE.into())), &[]);
        self.send(&Request::SetVringBase(state(0)), &[]);
        self.send(&Request::SetVringAddr(address), &[]);
        self.send(&Request::SetVringCall(fd), &[&call]);
        self.send(&Request::SetVringKick(fd), &[&kick]);
        self.send(&Request::SetVringEnable(state(1)), &[]);
        let step = if index == 2 { 2 } else { 1 };
        self.rings.push(Virtqueue {
            index: index.into(),
            memory,
            events,
            free: (0..SIZE).step_by(step).collect(),
            offered: 0,
            taken: 0,
            disabled: false,
            kick,
            call,
        });
    }

    pub(super) fn send(&self, request: &Request, fds: &[&OwnedFd]) {
        let message = request.encode(true);
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        }
        let bytes = [io::IoSlice::new(&message)];
        sendmsg(&self.socket, &bytes, &mut control, SendFlags::NOSIGNAL).unwrap();
    }

    pub(super) fn receive(&mut self) -> Option<Incoming> {
        self.connection.receive().unwrap()
    }

    /// Offers every free receive buffer.
    pub(super) fn refill(&mut self, room: u32) {
        while self.rings[0].offer(&[], room) {}
    }
}
