//! A whole device with a guest that does anything to its rings, and a NIC that has frames for it.
//!
//! ```text
//!   pairs, in-band, polled; features that are left out; a setting of the port    1 byte each
//!   each step: what is done, and what it takes                                   1 byte and more
//! ```
//!
//! The guest begins well: memory, and rings of [`SIZE`] descriptors. Then it offers buffers and
//! commands, or writes anything anywhere.

use base::time::Duration;
use nic::port::PortSettings;
use vhost::Device;
use vhost::DeviceSettings;
use vhost::net::{CTRL_VQ, MQ, MRG_RXBUF};
use vhost::transport::message::{PROTOCOL_F_INBAND_NOTIFICATIONS, VringState};
use vhost::transport::session::EVENT_IDX;

use super::bench::Bench;
use super::guest::{Guest, SIZE};
use super::input::Input;

/// Steps that are done at most.
const STEPS: usize = 200;

/// As many frames as all rings have descriptors.
const FRAMES: usize = 3 * SIZE as usize;

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

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (kind, missing, setting) = (input.u8(), input.u8(), input.u8());
    let pairs = u16::from(1 + kind % 3);
    let settings = DeviceSettings {
        rss: true,
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

    let (listener, mut guest) = Guest::connect(2 * usize::from(pairs) + 1);
    let moderation = SETTINGS[usize::from(setting) % SETTINGS.len()].parse().expect("a setting");
    let port = PortSettings { queues: pairs, ring: 16, moderation, ..PortSettings::default() };
    let device = Device::new(listener, settings).expect("a device");
    let mut bench = Bench::new(device, port, FRAMES + 1);
    guest.begin(features, inband);
    // In the first round it is let in, in the others it is listened to.
    (0..3).for_each(|_| fits(bench.round()));
    let device = &bench.port.host;
    assert!(device.is_connected(), "a good guest: {:?}", device.lost());
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        step(&mut guest, &mut bench, &mut input);
    }
    fits(bench.round());
}

fn step(guest: &mut Guest, bench: &mut Bench<Device>, input: &mut Input<'_>) {
    match input.u8() % 8 {
        0 => fits(bench.pass(u64::from(input.u16()))),
        1 => bench.arrive(&[], input.u16().into()),
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

/// In a round the guest cannot have sent more than its rings hold.
fn fits(taken: usize) {
    assert!(taken <= FRAMES, "more frames than descriptors");
}
