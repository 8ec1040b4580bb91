//! A whole device with a guest that does anything to its rings, and a NIC that has frames for it.
//!
//! ```text
//!   pairs, in-band, polled; features that are left out; a setting of the port    1 byte each
//!   each step: what is done, and what it takes                                   1 byte and more
//! ```
//!
//! The guest begins well: memory, and rings of [`SIZE`] descriptors. Then it offers buffers and
//! commands, or writes anything anywhere.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicU32, Ordering};

use base::time::{Duration, Instant};
use hostside::{Fetched, HostPort, HostSide};
use nic::port::{MAX_FRAME, PortSettings};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use vhost::Device;
use vhost::DeviceSettings;
use vhost::config::{CTRL_VQ, EVENT_IDX, MQ, MRG_RXBUF};
use vhost::message::{
    PROTOCOL_F_INBAND_NOTIFICATIONS, PROTOCOL_F_REPLY_ACK, Region, Request, VringAddress, VringFd,
    VringState,
};

use super::input::Input;

/// Steps that are done at most.
const STEPS: usize = 200;

/// The guest's memory: 16 bits lead anywhere in it, and to the byte after it.
const MEMORY: u64 = 0xFFFF;

/// Descriptors of each ring.
const SIZE: u16 = 8;

/// From one ring's memory to the next one's; in it, descriptors, then these.
const STRIDE: u64 = 0x400;
const AVAILABLE: u64 = 0x100;
const USED: u64 = 0x200;

/// Where commands are.
const COMMANDS: u64 = 0x8000;

/// Settings of the port.
const SETTINGS: [&str; 8] = [
    "disabled",
    "delay:75",
    "throttle:125",
    "periodic:100",
    "adaptive",
    "marked:75",
    "stream:75",
    "delay:75+frames:2",
];

/// The guest: its memory, its connection, and how many buffers each ring was offered.
struct Guest {
    file: OwnedFd,
    socket: UnixStream,
    offered: Vec<u16>,
}

/// The port, its device, and what has passed.
struct Bench {
    port: HostPort<Device>,
    pool: Vec<Vec<u8>>,
    now: Instant,
    arrived: usize,
    delivered: usize,
}

/// Plays the steps.
pub(crate) fn replay(bytes: &[u8]) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut input = Input::new(bytes);
    let (kind, missing, setting) = (input.u8(), input.u8(), input.u8());
    let pairs = u16::from(1 + kind % 3);
    let settings = DeviceSettings {
        mac: [2, 0, 0, 0, 0, 10],
        mtu: 1500,
        pairs,
        inband: kind & 0x80 != 0,
        counts_rings: false,
        interrupt_latency: Duration::from_micros(u64::from(kind >> 4 & 3)),
        costs: hostside::processor::Costs::default(),
        polled: kind & 0x40 != 0,
        speed_mbit: 0,
    };
    let optional = [MRG_RXBUF, EVENT_IDX, CTRL_VQ, MQ].into_iter().enumerate();
    let left_out = optional.filter(|(bit, _)| missing >> bit & 1 != 0);
    let features = left_out.fold(settings.features(), |all, (_, feature)| all & !feature);
    let inband = if settings.inband { PROTOCOL_F_INBAND_NOTIFICATIONS } else { 0 };

    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("earmark-device-{}-{count}", std::process::id());
    let address = SocketAddr::from_abstract_name(name).expect("a name");
    let listener = UnixListener::bind_addr(&address).expect("a listener");
    let mut guest = Guest {
        file: memory(),
        socket: UnixStream::connect_addr(&address).expect("a connection"),
        offered: vec![0; 2 * usize::from(pairs) + 1],
    };
    let moderation = SETTINGS[usize::from(setting) % SETTINGS.len()].parse().expect("a setting");
    let port = PortSettings { queues: pairs, ring: 16, moderation, ..PortSettings::default() };
    let device = Device::new(listener, settings).expect("a device");
    let mut bench = Bench {
        port: HostPort::new(Box::new(device), port, Instant::ZERO),
        pool: Vec::new(),
        now: Instant::ZERO,
        arrived: 0,
        delivered: 0,
    };
    guest.begin(features, inband);
    // In the first round it is let in, in the others it is listened to.
    (0..3).for_each(|_| bench.round());
    let device = &bench.port.host;
    assert!(device.is_connected(), "a good guest: {:?}", device.lost());
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        step(&mut guest, &mut bench, &mut input);
    }
    bench.round();
}

fn memory() -> OwnedFd {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).expect("a file");
    ftruncate(&file, MEMORY).expect("room");
    file
}

/// Does the next thing.
fn step(guest: &mut Guest, bench: &mut Bench, input: &mut Input<'_>) {
    match input.u8() % 8 {
        0 => bench.pass(u64::from(input.u16())),
        1 => bench.arrive(input.u16().into()),
        2 => {
            let (ring, address, length) = (input.u8(), input.u16(), input.u16());
            guest.offer(ring, &[(address.into(), length.into(), input.u8().into())]);
        }
        3 => {
            let length = 2 + input.u8() % 32;
            let command = input.bytes(length.into());
            let control = guest.offered.len() as u8 - 1;
            guest.write(COMMANDS, command);
            let answer = COMMANDS + 0x100;
            guest.offer(control, &[(COMMANDS, command.len() as u32, 0), (answer, 16, 2)]);
        }
        4 => {
            let (at, value) = (input.u16(), input.u16());
            guest.write(at.into(), &value.to_le_bytes());
        }
        5 => guest.poll(input.u8()),
        6 => {
            // Many good receive buffers at once, of a size of its own.
            let (ring, length) = (input.u8(), input.u16());
            for at in 0..u64::from(SIZE) {
                guest.offer(ring, &[(0x9000 + at * 0x800, length.into(), 2)]);
            }
        }
        _ => {
            let (request, index, number) = (input.u8(), input.u8().into(), input.u8().into());
            guest.change(request, VringState { index, number });
        }
    }
}

impl Guest {
    /// Sets everything up, as a frontend does.
    fn begin(&mut self, features: u64, inband: u64) {
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
    fn change(&mut self, request: u8, state: VringState) {
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

    fn write(&self, at: u64, bytes: &[u8]) {
        let room = MEMORY.saturating_sub(at).min(bytes.len() as u64) as usize;
        rustix::io::pwrite(&self.file, &bytes[..room], at).expect("memory");
    }

    /// Offers a chain: address, length and flags of each descriptor. Those before are overwritten
    /// when the ring is full.
    fn offer(&mut self, ring: u8, chain: &[(u64, u32, u16)]) {
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
    fn poll(&self, ring: u8) {
        let base = (usize::from(ring) % self.offered.len()) as u64 * STRIDE;
        let mut used = [0; 2];
        rustix::io::pread(&self.file, &mut used, base + USED + 2).expect("memory");
        self.write(base + AVAILABLE + 4 + 2 * u64::from(SIZE), &used);
    }
}

impl Bench {
    /// Time passes, and the device has a round.
    fn pass(&mut self, micros: u64) {
        self.now += Duration::from_micros(micros);
        self.round();
    }

    fn arrive(&mut self, length: usize) {
        let mut frame = self.pool.pop().unwrap_or_default();
        frame.clear();
        frame.resize(length, 7);
        self.port.make_room();
        self.arrived += usize::from(self.port.receive(self.now, frame).is_ok());
    }

    /// What the data plane does at one moment.
    fn round(&mut self) {
        let Self { port, pool, now, delivered, .. } = self;
        port.sync(*now, true);
        let mut frame = Vec::new();
        let mut taken = 0;
        while port.transmit(*now, 0, &mut frame).expect("a port that is there") != Fetched::Nothing
        {
            assert!(frame.len() <= MAX_FRAME);
            taken += 1;
            assert!(taken <= 3 * usize::from(SIZE), "more frames than descriptors");
        }
        port.advance(*now);
        port.serve(*now, pool, &mut |_, _| *delivered += 1).expect("a port that is there");
        if let Some(host) = port.host.virtual_time() {
            host.answer_kick();
            if host.next_irq_at().is_some_and(|at| at <= *now) {
                host.raise_irqs(*now);
                host.send_irqs();
            }
            assert!(host.next_irq_at().is_none_or(|at| at > *now));
        }
        self.check();
    }

    fn check(&self) {
        let Self { delivered, arrived, .. } = self;
        assert!(delivered <= arrived, "{delivered} delivered of {arrived}");
        let due = self.port.deadline();
        assert!(
            due.is_none_or(|due| due > self.now),
            "{due:?} at {:?}: nobody would rest",
            self.now
        );
        let device = &self.port.host;
        let attachment = device.attachment().expect("guests connect to it");
        assert!(attachment.pairs_used <= attachment.pairs);
        assert_eq!(device.is_connected(), device.lost().is_none());
        assert!(device.lost().is_none_or(|why| !why.is_empty()));
    }
}
