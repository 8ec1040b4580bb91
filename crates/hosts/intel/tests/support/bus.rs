//! A guest on the bus of one of Intel's NICs, and what it does whatever the NIC is: time, frames,
//! commands of any bytes, writes to any memory, messages of vhost-user.

use base::time::Duration;
use hostside::HostSide;
use hostside::processor::Costs;
use intel::{Adapter, Device, DeviceSettings};
use nic::port::PortSettings;
use vhost::transport::message::{F_PROTOCOL_FEATURES, PROTOCOL_F_INBAND_NOTIFICATIONS, VringState};
use vhost::transport::session::VERSION_1;

use super::bench::Bench;
use super::guest::{Guest, SIZE};
use super::input::Input;

/// Steps that are done at most.
const STEPS: usize = 200;

/// Frames that are taken in a round: a ring may be as long as memory, and each packet in it of as
/// many segments as there may be.
const MAX_TAKEN: usize = 20_000;

/// Where the guest has what its bus asks for, and what it gets back.
const COMMANDS: u64 = 0x8000;
const SIGNALS: u64 = 0x8800;

/// Where its driver has buffers.
pub(crate) const BUFFERS: u64 = 0xA000;

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

/// Operations of the bus.
const CFG_WRITE: u8 = 2;
const MMIO_READ: u8 = 3;
const MMIO_WRITE: u8 = 4;

/// A guest, and the port with the NIC that it finds.
pub(crate) struct Rig {
    pub(crate) guest: Guest,
    pub(crate) bench: Bench<Device>,
}

impl Rig {
    /// A guest with memory and the rings of its bus, its interrupts enabled. `kind` chooses
    /// notifications, costs and latency, `setting` that of the port.
    pub(crate) fn new(adapter: Adapter, pairs: u16, kind: u8, setting: u8) -> Self {
        let settings = DeviceSettings {
            adapter,
            mac: [2, 0, 0, 0, 0, 10],
            pairs,
            speed_mbit: 1_000,
            inband: kind & 0x80 != 0,
            interrupt_latency: Duration::from_micros(u64::from(kind >> 4 & 3)),
            costs: if kind & 0x40 == 0 { Costs::default() } else { COSTS },
        };
        let inband = if settings.inband { PROTOCOL_F_INBAND_NOTIFICATIONS } else { 0 };
        let (listener, guest) = Guest::connect(2);
        let moderation = SETTINGS[usize::from(setting) % SETTINGS.len()].parse();
        let moderation = moderation.expect("a setting");
        let port = PortSettings { queues: pairs, ring: 16, moderation, ..PortSettings::default() };
        let device = Device::new(listener, settings).expect("a device");
        let mut rig = Self { guest, bench: Bench::new(device, port, MAX_TAKEN) };
        rig.guest.begin(F_PROTOCOL_FEATURES | VERSION_1, inband);
        // In the first round it is let in, in the others it is listened to.
        for _ in 0..3 {
            rig.bench.round();
        }
        let attachment = rig.bench.port.host.attachment().expect("guests connect to it");
        assert!(attachment.connected, "a good guest: {:?}", attachment.lost);
        rig.guest.post_signals();
        rig.guest.command(CFG_WRITE, 0, 0xA2, &[0, 0x80, 0, 0, 0, 0, 0, 0], 2);
        rig.bench.round();
        for vector in 0..=pairs.max(2) as u8 {
            let entry = [0, 0, 10, 0, 0, 0, 0, 0, vector, 0, 0, 0, 0, 0, 0, 0];
            rig.guest.command(MMIO_WRITE, 3, u64::from(vector) * 16, &entry, 16);
            rig.bench.round();
        }
        rig
    }

    /// Writes a register, and goes on when that has been obeyed.
    pub(crate) fn set(&mut self, register: u32, value: u32) {
        self.guest.set(register, value);
        self.bench.round();
    }

    /// Plays steps, of which `own` does those that it knows, by their number below `kinds`.
    pub(crate) fn play(
        &mut self,
        input: &mut Input<'_>,
        kinds: u8,
        mut own: impl FnMut(&mut Guest, u8, &mut Input<'_>) -> bool,
    ) {
        for _ in 0..STEPS {
            if input.is_empty() {
                break;
            }
            let kind = input.u8() % kinds;
            if !own(&mut self.guest, kind, input) {
                self.step(kind, input);
            }
            self.bench.round();
        }
        self.bench.round();
    }

    /// Does what guest, wire and time do with any NIC.
    fn step(&mut self, kind: u8, input: &mut Input<'_>) {
        let Self { guest, bench } = self;
        match kind {
            0 => {
                bench.pass(u64::from(input.u16()));
            }
            1 => {
                let (length, kind) = (input.u16(), input.u8());
                bench.arrive(&head(kind, input.bytes(40)), length.into());
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
            6 => guest.post_signals(),
            10 => assert!(bench.port.host.set_link(input.u8() & 1 != 0)),
            _ => {
                let (request, index, number) = (input.u8(), input.u8().into(), input.u8().into());
                guest.change(request, VringState { index, number });
            }
        }
    }
}

impl Guest {
    /// Asks something of the bus: operation, base address register, offset, data and size. The
    /// ring holds four commands: more of them have to be obeyed in between.
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

    pub(crate) fn set(&mut self, register: u32, value: u32) {
        self.command(MMIO_WRITE, 0, register.into(), &value.to_le_bytes(), 4);
    }

    /// Writes one of `registers`, chosen by a byte.
    pub(crate) fn set_any(&mut self, registers: &[u32], input: &mut Input<'_>) {
        let register = registers[usize::from(input.u8()) % registers.len()];
        let value = u32::from(input.u16()) << (input.u8() % 32);
        self.set(register, value);
    }

    /// Reads one of `registers`, chosen by a byte.
    pub(crate) fn get_any(&mut self, registers: &[u32], input: &mut Input<'_>) {
        let register = registers[usize::from(input.u8()) % registers.len()];
        self.command(MMIO_READ, 0, register.into(), &[], 4);
    }

    /// Posts buffers for what it gets back.
    fn post_signals(&mut self) {
        (0..SIZE).for_each(|at| self.offer(1, &[(SIGNALS + 32 * u64::from(at), 32, 2)]));
    }
}

/// A frame's first bytes: broadcast or to the NIC, tagged, of IP.
fn head(kind: u8, content: &[u8]) -> Vec<u8> {
    let to = if kind & 1 == 0 { [2, 0, 0, 0, 0, 10] } else { [0xFF; 6] };
    let tag = if kind & 2 == 0 { &[][..] } else { &[0x81, 0, 0, 5] };
    let ether_type = [[8, 0], [0x86, 0xDD], [9, 9]][usize::from(kind >> 2) % 3];
    [&to[..], &[2, 0, 0, 0, 0, 11], tag, &ether_type, content].concat()
}
