//! A card with a guest that does anything to its bus, registers and rings, and frames for it.
//!
//! ```text
//!   which card, in-band, costs, latency; a setting of the port   1 byte each
//!   each step: what is done, and what it takes                   1 byte and more
//! ```
//!
//! The guest begins well, with memory, the rings of its bus, and a driver that receives and sends.
//! Then it reads and writes registers, its configuration space, the table of MSI-X, descriptors and
//! any memory.

use base::time::Duration;
use hostside::HostSide;
use hostside::processor::Costs;
use intel::{Adapter, Device, DeviceSettings, Model};
use nic::port::PortSettings;
use vhost::config::VERSION_1;
use vhost::message::{F_PROTOCOL_FEATURES, PROTOCOL_F_INBAND_NOTIFICATIONS, VringState};

use super::bench::Bench;
use super::guest::{Guest, SIZE};
use super::input::Input;

/// Steps that are done at most.
const STEPS: usize = 200;

/// Frames that are taken in a round: a ring may be as long as memory, and each packet in it of as
/// many segments as there may be.
const MAX_TAKEN: usize = 20_000;

/// Where the guest has what its bus asks for, and what it is told.
const COMMANDS: u64 = 0x8000;
const SIGNALS: u64 = 0x8800;

/// Where its driver has descriptors and buffers.
const RECEIVE_RING: u32 = 0x1000;
const TRANSMIT_RING: u32 = 0x2000;
const BUFFERS: u64 = 0xA000;

/// Settings of the port.
const SETTINGS: [&str; 5] = ["driver", "marked+driver", "disabled", "delay:75", "marked:75"];

/// What the guest's processor takes, if it takes any time.
const COSTS: Costs = Costs {
    interrupt: Duration::from_micros(1),
    packet: Duration::from_micros(2),
    send: Duration::from_micros(1),
    wakeup: Duration::from_micros(3),
    idle_after: Duration::from_micros(10),
};

/// Registers that do something, by their places behind the first base address register.
const REGISTERS: [u32; 40] = [
    0x0000, 0x0008, 0x0010, 0x0014, 0x0018, 0x0020, 0x0038, 0x00C0, 0x00C4, 0x00C8, 0x00D0, 0x00D8,
    0x00DC, 0x00E0, 0x00E4, 0x00E8, 0x00EC, 0x0100, 0x0400, 0x2170, 0x2800, 0x2804, 0x2808, 0x2810,
    0x2818, 0x2820, 0x282C, 0x3800, 0x3804, 0x3808, 0x3810, 0x3818, 0x3820, 0x382C, 0x4010, 0x5000,
    0x5008, 0x5400, 0x5404, 0x5600,
];

/// Operations of the bus.
const CFG_WRITE: u8 = 2;
const MMIO_READ: u8 = 3;
const MMIO_WRITE: u8 = 4;

/// Plays the steps.
pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (kind, setting) = (input.u8(), input.u8());
    let settings = DeviceSettings {
        adapter: Adapter::Card(if kind & 1 == 0 { Model::E82574 } else { Model::E82545 }),
        mac: [2, 0, 0, 0, 0, 10],
        pairs: 1,
        speed_mbit: 1_000,
        inband: kind & 0x80 != 0,
        interrupt_latency: Duration::from_micros(u64::from(kind >> 4 & 3)),
        costs: if kind & 0x40 == 0 { Costs::default() } else { COSTS },
    };
    let inband = if settings.inband { PROTOCOL_F_INBAND_NOTIFICATIONS } else { 0 };
    let (listener, mut guest) = Guest::connect(2);
    let moderation = SETTINGS[usize::from(setting) % SETTINGS.len()].parse().expect("a setting");
    let port = PortSettings { queues: 1, ring: 16, moderation, ..PortSettings::default() };
    let device = Device::new(listener, settings).expect("a device");
    let mut bench = Bench::new(device, port, MAX_TAKEN);
    guest.begin(F_PROTOCOL_FEATURES | VERSION_1, inband);
    // In the first round it is let in, in the others it is listened to.
    for _ in 0..3 {
        bench.round();
    }
    let attachment = bench.port.host.attachment().expect("guests connect to it");
    assert!(attachment.connected, "a good guest: {:?}", attachment.lost);
    start(&mut guest, &mut bench, kind >> 1);
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        step(&mut guest, &mut bench, &mut input);
    }
    bench.round();
}

/// What a driver does until it receives and sends; `format` is that of its receive descriptors.
fn start(guest: &mut Guest, bench: &mut Bench<Device>, format: u8) {
    for at in 0..u64::from(SIZE) {
        guest.offer(1, &[(SIGNALS + 32 * at, 32, 2)]);
    }
    guest.command(CFG_WRITE, 0, 0xA2, &[0, 0x80, 0, 0, 0, 0, 0, 0], 2);
    for vector in 0..3_u8 {
        let entry = [0, 0, 10, 0, 0, 0, 0, 0, vector, 0, 0, 0, 0, 0, 0, 0];
        guest.command(MMIO_WRITE, 3, u64::from(vector) * 16, &entry, 16);
    }
    for number in 0..32_u64 {
        let address = (BUFFERS + 0x100 * number).to_le_bytes();
        guest.write(u64::from(RECEIVE_RING) + 8 * number, &address);
    }
    bench.round();
    let (split, extended) = (u32::from(format & 1), u32::from(format >> 1 & 1));
    for (register, value) in [
        (0x2170, 0x0101_0101),
        (0x5000, 0x300),
        (0x5008, extended << 15),
        (0x2800, RECEIVE_RING),
        (0x2808, 128),
        (0x2818, 7),
        (0x3800, TRANSMIT_RING),
        (0x3808, 128),
    ] {
        guest.set(register, value);
    }
    bench.round();
    for (register, value) in [
        (0x00E4, 0x800A_0908),
        (0x0018, 1 << 24),
        (0x00D0, u32::MAX),
        (0x0400, 2),
        (0x0100, 0x0400_803A | split << 10),
    ] {
        guest.set(register, value);
    }
    bench.round();
}

/// Does the next thing.
fn step(guest: &mut Guest, bench: &mut Bench<Device>, input: &mut Input<'_>) {
    match input.u8() % 12 {
        0 => {
            bench.pass(u64::from(input.u16()));
        }
        1 => {
            let (length, kind) = (input.u16(), input.u8());
            bench.arrive(&head(kind, input.bytes(40)), length.into());
        }
        2 => {
            let register = REGISTERS[usize::from(input.u8()) % REGISTERS.len()];
            let value = u32::from(input.u16()) << (input.u8() % 32);
            guest.set(register, value);
        }
        3 => {
            let register = REGISTERS[usize::from(input.u8()) % REGISTERS.len()];
            guest.command(MMIO_READ, 0, register.into(), &[], 4);
        }
        4 => {
            // Whatever it asks of its bus.
            let (operation, bar, offset) = (input.u8() % 9, input.u8() % 5, input.u16());
            let (length, size) = (input.u8() % 32, input.u16());
            let data = input.bytes(length.into());
            guest.command(operation, bar, u64::from(offset) << (bar % 3), data, size.into());
        }
        5 => {
            let (at, value) = (input.u16(), input.u16());
            guest.write(at.into(), &value.to_le_bytes());
        }
        6 => (0..SIZE).for_each(|at| guest.offer(1, &[(SIGNALS + 32 * u64::from(at), 32, 2)])),
        7 => {
            // A descriptor of what it sends: a place in the ring, and what is in it.
            let at = u64::from(TRANSMIT_RING) + 16 * u64::from(input.u8() % 8);
            let (address, length) = (u64::from(input.u16()), u32::from(input.u16()));
            let (command, last) = (u32::from(input.u16()), input.bytes(4));
            guest.write(at, &address.to_le_bytes());
            guest.write(at + 8, &(length | command << 16).to_le_bytes());
            guest.write(at + 12, last);
        }
        8 => guest.set(0x3818, u32::from(input.u8() % 8)),
        9 => guest.set(0x2818, u32::from(input.u8() % 8)),
        10 => assert!(bench.port.host.set_link(input.u8() & 1 != 0)),
        _ => {
            let (request, index, number) = (input.u8(), input.u8().into(), input.u8().into());
            guest.change(request, VringState { index, number });
        }
    }
    bench.round();
}

impl Guest {
    /// Asks something of the bus: operation, base address register, offset, data and size.
    fn command(&mut self, operation: u8, bar: u8, offset: u64, data: &[u8], size: u32) {
        // A place of its own for each of the ring's entries.
        let at = COMMANDS + 0x80 * u64::from(self.offered[0] % SIZE);
        let mut message = vec![operation, bar, 0, 0];
        message.extend(size.to_le_bytes());
        message.extend(offset.to_le_bytes());
        message.extend(data);
        self.write(at, &message);
        let answer = (at + 0x40, 0x40, 2);
        self.offer(0, &[(at, message.len() as u32, 0), answer]);
    }

    fn set(&mut self, register: u32, value: u32) {
        self.command(MMIO_WRITE, 0, register.into(), &value.to_le_bytes(), 4);
    }
}

/// A frame's first bytes: for everybody or for the card, tagged, of IP.
fn head(kind: u8, content: &[u8]) -> Vec<u8> {
    let to = if kind & 1 == 0 { [2, 0, 0, 0, 0, 10] } else { [0xFF; 6] };
    let tag = if kind & 2 == 0 { &[][..] } else { &[0x81, 0, 0, 5] };
    let ether_type = [[8, 0], [0x86, 0xDD], [9, 9]][usize::from(kind >> 2) % 3];
    [&to[..], &[2, 0, 0, 0, 0, 11], tag, &ether_type, content].concat()
}
