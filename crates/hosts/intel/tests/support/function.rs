//! A virtual function with a guest that sends any message of virtchnl, and does anything to its
//! bus, registers and rings, and frames for it.
//!
//! ```text
//!   queue pairs, in-band, costs, latency; a setting of the port   1 byte each
//!   each step: what is done, and what it takes                    1 byte and more
//! ```
//!
//! The guest begins well, with memory, the rings of its bus, admin queues, and queue pairs that
//! receive and send. Then it configures queues, filters, rules and hashes as it likes.

use hostside::HostSide;
use intel::Adapter;

use super::bus::{BUFFERS, Rig};
use super::guest::Guest;
use super::input::Input;

/// Where the driver has its admin queues, of this many descriptors, and their buffers.
const SENT: u32 = 0x1000;
const RECEIVED: u32 = 0x1100;
const LENGTH: u32 = 8;
const MESSAGES: u32 = 0x2000;
const ANSWERS: u32 = 0x3000;

/// Where the first pair has its descriptors, and how far the next pair's are from there.
const RECEIVE_RING: u64 = 0x4000;
const TRANSMIT_RING: u64 = 0x4400;
const STRIDE: u64 = 0x800;

/// Registers, by their places behind the first base address register, as `iavf_register.h` has
/// them.
const ATQT: u32 = 0x8400;
const ARQT: u32 = 0x7000;
const QTX_TAIL: u32 = 0x0000;
const QRX_TAIL: u32 = 0x2000;
const DYN_CTLN: u32 = 0x3800;
const REGISTERS: [u32; 32] = [
    QTX_TAIL, 0x0004, 0x003C, QRX_TAIL, 0x2004, 0x203C, 0x2800, 0x2804, 0x2840, 0x2844, 0x2880,
    DYN_CTLN, 0x3804, 0x383C, 0x4800, 0x5000, 0x5C00, 0x6000, 0x6400, 0x6800, 0x6C00, ARQT, 0x7400,
    0x7800, 0x7C00, 0x8000, ATQT, 0x8800, 0x2044, 0x28C0, 0x3840, 0x000C,
];

/// Operations of virtchnl that a driver starts with.
const VERSION: u32 = 1;
const RESOURCES: u32 = 3;
const CONFIGURE_QUEUES: u32 = 6;
const MAP_VECTORS: u32 = 7;
const ENABLE_QUEUES: u32 = 8;
const ADD_ADDRESS: u32 = 10;

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (kind, setting) = (input.u8(), input.u8());
    let pairs = u16::from(kind & 3) + 1;
    let mut rig = Rig::new(Adapter::Virtual, pairs, kind, setting);
    start(&mut rig, pairs as u8);
    let mut tail = 6;
    let used = rig.bench.port.host.attachment().map(|attachment| attachment.pairs_used);
    assert_eq!(used, Some(pairs), "a good driver");
    rig.play(&mut input, 16, |guest, kind, input| step(guest, &mut tail, kind, input));
}

/// What a driver does until it receives and sends, with six messages.
fn start(rig: &mut Rig, pairs: u8) {
    post_answers(&rig.guest);
    for (register, value) in [
        (0x7C00, SENT),
        (0x6800, LENGTH | 1 << 31),
        (0x6C00, RECEIVED),
        (0x8000, LENGTH | 1 << 31),
        (ARQT, LENGTH - 1),
        (0x5C00, 1 | 3 << 3),
        (0x5000, 1 << 30),
    ] {
        rig.set(register, value);
    }
    let (mut queues, mut maps) = (vec![1, 0, pairs, 0, 0, 0, 0, 0], vec![pairs, 0]);
    for pair in 0..pairs {
        let at = STRIDE * u64::from(pair);
        queues.extend([1, 0, pair, 0, 32, 0, 0, 0]);
        queues.extend((TRANSMIT_RING + at).to_le_bytes());
        queues.extend([0; 8]);
        queues.extend([1, 0, pair, 0, 32, 0, 0, 0, 0, 0, 0, 0]);
        queues.extend([1_024_u32.to_le_bytes(), 9_728_u32.to_le_bytes(), [0; 4]].concat());
        queues.extend((RECEIVE_RING + at).to_le_bytes());
        queues.extend([0; 8]);
        maps.extend([1, 0, pair + 1, 0, 1 << pair, 0, 1 << pair, 0, 0, 0, 1, 0]);
        for number in 0..32 {
            let buffer = (BUFFERS + 0x100 * number).to_le_bytes();
            rig.guest.write(RECEIVE_RING + at + 32 * number, &buffer);
        }
        rig.set(QRX_TAIL + 4 * u32::from(pair), 31);
    }
    let all = (1 << pairs) - 1;
    let messages: [(u32, &[u8]); 6] = [
        (VERSION, &[1, 0, 0, 0, 1, 0, 0, 0]),
        (RESOURCES, &[0xFF; 4]),
        (ADD_ADDRESS, &[1, 0, 1, 0, 2, 0, 0, 0, 0, 10, 1, 0]),
        (CONFIGURE_QUEUES, &queues),
        (MAP_VECTORS, &maps),
        (ENABLE_QUEUES, &[1, 0, 0, 0, all, 0, 0, 0, all, 0, 0, 0]),
    ];
    for ((operation, data), tail) in messages.into_iter().zip(0..) {
        send(&mut rig.guest, tail, operation, data);
        rig.bench.round();
    }
    for pair in 0..u32::from(pairs) {
        rig.set(DYN_CTLN + 4 * pair, 1 | 3 << 3);
    }
}

/// Posts buffers for answers. They are not read, so that they have one place.
fn post_answers(guest: &Guest) {
    for number in 0..u64::from(LENGTH) {
        let at = u64::from(RECEIVED) + 32 * number;
        guest.write(at + 4, &4_096_u16.to_le_bytes());
        guest.write(at + 28, &ANSWERS.to_le_bytes());
    }
}

/// Sends a message by the descriptor at `tail`.
fn send(guest: &mut Guest, tail: u32, operation: u32, data: &[u8]) {
    let at = u64::from(SENT) + 32 * u64::from(tail);
    let mut descriptor = [0; 32];
    descriptor[..4].copy_from_slice(&[0, 0x10, 0x01, 0x08]);
    descriptor[4..6].copy_from_slice(&(data.len() as u16).to_le_bytes());
    descriptor[8..12].copy_from_slice(&operation.to_le_bytes());
    descriptor[28..].copy_from_slice(&MESSAGES.to_le_bytes());
    guest.write(at, &descriptor);
    guest.write(MESSAGES.into(), data);
    guest.set(ATQT, (tail + 1) % LENGTH);
}

/// Does what a driver of a function does; whether it is that.
fn step(guest: &mut Guest, tail: &mut u32, kind: u8, input: &mut Input<'_>) -> bool {
    match kind {
        2 => guest.set_any(&REGISTERS, input),
        3 => guest.get_any(&REGISTERS, input),
        7 => {
            // A descriptor of what it sends: a pair, a place in its ring, and what is in it.
            let (pair, number) = (u64::from(input.u8() % 4), u64::from(input.u8() % 32));
            let at = TRANSMIT_RING + STRIDE * pair + 16 * number;
            guest.write(at, &u64::from(input.u16()).to_le_bytes());
            guest.write(at + 8, input.bytes(8));
        }
        8 => guest.set(QTX_TAIL + 4 * u32::from(input.u8() % 4), (input.u8() % 32).into()),
        9 => guest.set(QRX_TAIL + 4 * u32::from(input.u8() % 4), (input.u8() % 32).into()),
        12 | 13 => {
            let operation = input.u8().into();
            send(guest, *tail, operation, &message(input));
            *tail = (*tail + 1) % LENGTH;
        }
        14 => {
            post_answers(guest);
            guest.set(ARQT, (input.u8() % 9).into());
        }
        15 => guest.set(DYN_CTLN + 4 * u32::from(input.u8() % 4), 1 | 3 << 3),
        _ => return false,
    }
    true
}

/// A message of any length: bytes at its start, bytes at some place in it, zeros elsewhere.
fn message(input: &mut Input<'_>) -> Vec<u8> {
    let (length, first) = (input.u16() % 5_000, input.u8());
    let mut message = input.bytes(first.into()).to_vec();
    let (at, more) = (usize::from(input.u16()), input.u8() % 32);
    let more = input.bytes(more.into());
    message.resize(length.into(), 0);
    if let Some(place) = message.get_mut(at..at + more.len()) {
        place.copy_from_slice(more);
    }
    message
}
