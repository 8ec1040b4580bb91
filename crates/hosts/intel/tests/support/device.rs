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

use intel::{Adapter, Model};

use super::bus::{BUFFERS, Rig};
use super::guest::Guest;
use super::input::Input;

/// Where its driver has descriptors.
const RECEIVE_RING: u32 = 0x1000;
const TRANSMIT_RING: u32 = 0x2000;

/// Registers that do something, by their places behind the first base address register.
const REGISTERS: [u32; 40] = [
    0x0000, 0x0008, 0x0010, 0x0014, 0x0018, 0x0020, 0x0038, 0x00C0, 0x00C4, 0x00C8, 0x00D0, 0x00D8,
    0x00DC, 0x00E0, 0x00E4, 0x00E8, 0x00EC, 0x0100, 0x0400, 0x2170, 0x2800, 0x2804, 0x2808, 0x2810,
    0x2818, 0x2820, 0x282C, 0x3800, 0x3804, 0x3808, 0x3810, 0x3818, 0x3820, 0x382C, 0x4010, 0x5000,
    0x5008, 0x5400, 0x5404, 0x5600,
];

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (kind, setting) = (input.u8(), input.u8());
    let model = if kind & 1 == 0 { Model::E82574 } else { Model::E82545 };
    let mut rig = Rig::new(Adapter::Card(model), 1, kind, setting);
    start(&mut rig, kind >> 1);
    rig.play(&mut input, 12, step);
}

/// What a driver does until it receives and sends; `format` is that of its receive descriptors.
pub(crate) fn start(rig: &mut Rig, format: u8) {
    for number in 0..32_u64 {
        let address = (BUFFERS + 0x100 * number).to_le_bytes();
        rig.guest.write(u64::from(RECEIVE_RING) + 8 * number, &address);
    }
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
        (0x00E4, 0x800A_0908),
        (0x0018, 1 << 24),
        (0x00D0, u32::MAX),
        (0x0400, 2),
        (0x0100, 0x0400_803A | split << 10),
    ] {
        rig.set(register, value);
    }
}

/// Does what a driver of a card does; whether it is that.
fn step(guest: &mut Guest, kind: u8, input: &mut Input<'_>) -> bool {
    match kind {
        2 => guest.set_any(&REGISTERS, input),
        3 => guest.get_any(&REGISTERS, input),
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
        _ => return false,
    }
    true
}
