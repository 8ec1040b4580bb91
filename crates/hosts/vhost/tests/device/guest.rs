//! A port in time that the tests make, and a guest whose driver polls as Linux's does.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use base::time::Instant;
use hostside::{Fetched, HostPort, HostSide as _, VirtualHost};
use nic::observer::Delivered;
use nic::port::PortSettings;
use vhost::net::CTRL_VQ;
use vhost::transport::message::{
    F_PROTOCOL_FEATURES, FrontendRequest, Header, PROTOCOL_F_BACKEND_REQ, PROTOCOL_F_REPLY_ACK,
    Region, VringAddress,
};
use vhost::transport::session::{EVENT_IDX, VERSION_1};
use vhost::{Device, DeviceSettings};

use super::frontend;

pub(crate) const SIZE: u16 = 16;
pub(crate) const FEATURES: u64 = F_PROTOCOL_FEATURES | VERSION_1 | EVENT_IDX | CTRL_VQ;
const MEMORY: u64 = 0x10_0000;

/// Each ring has this much memory: three tables, then a page for each buffer.
const STRIDE: u64 = 0x4_0000;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
const BUFFERS: u64 = 0x4000;

pub(crate) fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

/// A port, its device, and frames on both sides.
pub(crate) struct Plane {
    pub(crate) port: HostPort<Device>,
    pub(crate) address: SocketAddr,
    pub(crate) sent: Vec<Vec<u8>>,
    pub(crate) delivered: Vec<Delivered>,
    pool: Vec<Vec<u8>>,
}

impl Plane {
    pub(crate) fn new(name: &str, setting: &str) -> Self {
        let moderation = setting.parse().unwrap();
        let port = PortSettings { moderation, ..PortSettings::default() };
        Self::with(name, port, DeviceSettings::default())
    }

    pub(crate) fn with(name: &str, port: PortSettings, device: DeviceSettings) -> Self {
        let name = format!("earmark-test-{}-{name}", std::process::id());
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        Self {
            port: HostPort::new(Box::new(Device::new(listener, device).unwrap()), port, at(0)),
            address,
            sent: Vec::new(),
            delivered: Vec::new(),
            pool: Vec::new(),
        }
    }

    pub(crate) fn connect(&self) -> UnixStream {
        let socket = UnixStream::connect_addr(&self.address).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    /// One round of the data plane; `frames` arrive in it.
    pub(crate) fn round(&mut self, now: Instant, frames: &[&[u8]]) {
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
        if let Some(host) = self.port.host.virtual_time() {
            host.answer_kick();
        }
    }

    /// The interrupts of a device whose notifications are messages.
    pub(crate) fn irqs(&mut self) -> &mut dyn VirtualHost {
        self.port.host.virtual_time().expect("notifications are messages")
    }
}

/// The driver's side of a ring. A buffer is one descriptor.
pub(crate) struct Virtqueue {
    base: u64,
    memory: OwnedFd,
    events: bool,
    free: VecDeque<u16>,
    offered: u16,
    pub(crate) taken: u16,
    disabled: bool,
    kick: OwnedFd,
    call: OwnedFd,
}

impl Virtqueue {
    fn store(&self, at: u64, value: u16) {
        frontend::write(&self.memory, self.base + at, &value.to_le_bytes());
    }

    fn load(&self, at: u64) -> u16 {
        frontend::word(&self.memory, self.base + at)
    }

    fn buffer(&self, head: u16) -> u64 {
        self.base + BUFFERS + 0x1000 * u64::from(head)
    }

    /// Offers one free buffer: `out` bytes to read, or `room` to write; both are a command.
    pub(crate) fn offer(&mut self, out: &[u8], room: u32) -> bool {
        let Some(head) = self.free.pop_front() else { return false };
        frontend::write(&self.memory, self.buffer(head), out);
        let (has_out, has_room) = (!out.is_empty(), room > 0);
        let length = if has_out { out.len() as u32 } else { room };
        let flags = if has_out { u16::from(has_room) } else { 2 };
        self.describe(self.base, head, self.buffer(head), length, flags);
        if has_out && has_room {
            // Heads of commands have even numbers, their answers odd ones.
            self.describe(self.base, head + 1, self.buffer(head + 1), room, 2);
        }
        self.publish(head);
        true
    }

    /// Offers a frame each of whose bytes has a descriptor of its own, in an indirect table.
    pub(crate) fn offer_bytes(&mut self, count: u16) {
        let head = self.free.pop_front().unwrap();
        let table = self.buffer(head);
        for index in 0..count {
            self.describe(table, index, table, 1, u16::from(index + 1 < count));
        }
        self.describe(self.base, head, table, 16 * u32::from(count), 4);
        self.publish(head);
    }

    fn publish(&mut self, head: u16) {
        self.store(AVAILABLE + 4 + 2 * u64::from(self.offered % SIZE), head);
        self.offered = self.offered.wrapping_add(1);
        self.store(AVAILABLE + 2, self.offered);
    }

    fn describe(&self, table: u64, index: u16, address: u64, length: u32, flags: u16) {
        let bytes = frontend::descriptor(address, length, flags, index + 1);
        frontend::write(&self.memory, table + 16 * u64::from(index), &bytes);
    }

    /// The next used buffer: its number and length.
    pub(crate) fn take(&mut self) -> Option<(u16, u32)> {
        if !self.has_more() {
            return None;
        }
        let at = USED + 4 + 8 * u64::from(self.taken % SIZE);
        let (head, length) = (self.load(at), self.load(at + 4));
        self.free.push_back(head);
        self.taken = self.taken.wrapping_add(1);
        if !self.disabled && self.events {
            self.want_call_at(self.taken);
        }
        Some((head, length.into()))
    }

    pub(crate) fn bytes(&self, head: u16, length: u32) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        rustix::io::pread(&self.memory, &mut bytes, self.buffer(head)).unwrap();
        bytes
    }

    fn want_call_at(&self, index: u16) {
        self.store(AVAILABLE + 4 + 2 * u64::from(SIZE), index);
    }

    /// Linux's `virtqueue_disable_cb`: suppresses calls.
    pub(crate) fn disable(&mut self) {
        self.disabled = true;
        if self.events { self.want_call_at(0) } else { self.store(AVAILABLE, 1) }
    }

    /// Linux's `virtqueue_enable_cb_prepare`: wants calls again.
    pub(crate) fn enable(&mut self) {
        self.disabled = false;
        if self.events { self.want_call_at(self.taken) } else { self.store(AVAILABLE, 0) }
    }

    /// `virtqueue_poll`: whether something came before the device could see that.
    pub(crate) fn has_more(&self) -> bool {
        self.load(USED + 2) != self.taken
    }

    pub(crate) fn kick(&self) {
        rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).unwrap();
    }

    pub(crate) fn calls(&self) -> u64 {
        let mut count = [0; 8];
        rustix::io::read(&self.call, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
    }

    /// Breaks the ring: a head that is no descriptor.
    pub(crate) fn offer_nonsense(&mut self) {
        self.publish(SIZE);
    }
}

pub(crate) struct Guest {
    pub(crate) socket: UnixStream,
    pub(crate) memory: OwnedFd,
    pub(crate) rings: Vec<Virtqueue>,
}

impl Guest {
    /// Connects and sets everything up, as UML does.
    pub(crate) fn connect(plane: &mut Plane, features: u64, protocol: u64) -> Self {
        let (socket, memory) = (plane.connect(), frontend::memory(MEMORY));
        let mut guest = Self { socket, memory, rings: Vec::new() };
        let protocol = protocol | PROTOCOL_F_REPLY_ACK | PROTOCOL_F_BACKEND_REQ;
        guest.send(&FrontendRequest::SetOwner, &[]);
        guest.send(&FrontendRequest::SetProtocolFeatures(protocol), &[]);
        guest.send(&FrontendRequest::SetFeatures(features), &[]);
        let region = Region { size: MEMORY, ..Region::default() };
        let memory = guest.memory.try_clone().unwrap();
        guest.send(&FrontendRequest::SetMemTable(vec![region]), &[&memory]);
        for index in 0..3 {
            guest.add_ring(index, features & EVENT_IDX != 0);
        }
        // In the first it is let in, in the others it is listened to.
        (0..3).for_each(|_| plane.round(at(0), &[]));
        while guest.receive().is_some() {}
        guest
    }

    fn add_ring(&mut self, index: u32, events: bool) {
        let base = u64::from(index) * STRIDE;
        let address = VringAddress {
            index,
            descriptors: base,
            available: base + AVAILABLE,
            used: base + USED,
            ..VringAddress::default()
        };
        let (kick, call) = (frontend::event(), frontend::event());
        for (request, fds) in frontend::start(address, (SIZE.into(), 0), &call, &kick) {
            frontend::say(&self.socket, &request.encode(true), &fds).unwrap();
        }
        let step = if index == 2 { 2 } else { 1 };
        self.rings.push(Virtqueue {
            base,
            memory: self.memory.try_clone().unwrap(),
            events,
            free: (0..SIZE).step_by(step).collect(),
            offered: 0,
            taken: 0,
            disabled: false,
            kick,
            call,
        });
    }

    pub(crate) fn send(&self, request: &FrontendRequest, fds: &[&OwnedFd]) {
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        frontend::say(&self.socket, &request.encode(true), &fds).unwrap();
    }

    pub(crate) fn receive(&mut self) -> Option<(Header, Vec<u8>)> {
        frontend::receive(&mut self.socket).unwrap()
    }

    pub(crate) fn refill(&mut self, room: u32) {
        while self.rings[0].offer(&[], room) {}
    }
}
