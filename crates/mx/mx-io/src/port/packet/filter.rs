//! Which frames the kernel queues for an endpoint: a program for its packet filter (classic BPF).
//!
//! Endpoints of one interface have a socket each, and the kernel offers every frame to every one.
//! What the filter refuses costs neither room in a ring nor the sleep of its owner.
//!
//! An endpoint has two sockets, whose filters divide its frames: see [`Class`].
//!
//! The kernel strips a VLAN tag before it looks for sockets, so frames with and without one look
//! alike. The filter knows tags all the same: a driver may leave them in.

use std::io;
use std::os::fd::BorrowedFd;

use ::mx::wire::{ETHER_TYPE, FLAG_ASK, FLAG_MARK, FrameType};
use sys::option;

use crate::port::{ALL_ENDPOINTS, ENDPOINT_AT, NicId, QUERY};

const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_SET: u16 = 0x45;
const RETURN: u16 = 0x06;

/// The tag protocol of IEEE 802.1Q.
const TAG: u32 = 0x8100;

/// More than any frame has.
const WHOLE_FRAME: u32 = 0x4_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// All that a host may wait for. Of frames of large messages these are the last ones that
    /// were asked for, which their sender shows by a mark or by asking.
    Prompt,
    /// All frames of large messages, in their order.
    Replies,
}

/// Where the program looks what kind of frame it is, where it refuses it, and where it takes it.
const KIND: usize = 29;
const REFUSE: usize = 33;
const TAKE: usize = 34;

/// Frames of MX to this address and endpoint, and questions to all endpoints; a load beyond the end
/// of a frame refuses it.
fn program(nic: NicId, endpoint: u8, class: Class) -> [libc::sock_filter; 35] {
    let [a, b, c, d, e, f] = nic.0;
    let (high, low) = (u32::from_be_bytes([a, b, c, d]), u32::from(u16::from_be_bytes([e, f])));
    let (mx, endpoint) = (u32::from(ETHER_TYPE), u32::from(endpoint));
    let (question, all_endpoints) = (u32::from(QUERY), u32::from(ALL_ENDPOINTS));
    let load = |code, at: usize| step(code, at as u32, 0, 0);
    // Goes to one of two steps, both after this one, which is step `at`.
    let equal = |at: usize, value, yes: usize, no: usize| {
        step(JUMP_IF_EQUAL, value, (yes - at - 1) as u8, (no - at - 1) as u8)
    };
    // A frame with a tag is no reply here, so that its kind is read in one place.
    let (prompt, reply) = match class {
        Class::Prompt => (TAKE, REFUSE),
        Class::Replies => (REFUSE, TAKE),
    };
    let last = u32::from(FLAG_MARK | FLAG_ASK);
    [
        load(LOAD_WORD, 0),
        equal(1, high, 2, 13),
        load(LOAD_HALF, 4),
        equal(3, low, 4, REFUSE),
        load(LOAD_HALF, 12),
        equal(5, mx, 6, 8),
        load(LOAD_BYTE, 14 + ENDPOINT_AT),
        equal(7, endpoint, KIND, REFUSE),
        equal(8, TAG, 9, REFUSE),
        load(LOAD_HALF, 16),
        equal(10, mx, 11, REFUSE),
        load(LOAD_BYTE, 18 + ENDPOINT_AT),
        equal(12, endpoint, prompt, REFUSE),
        // A broadcast.
        equal(13, 0xffff_ffff, 14, REFUSE),
        load(LOAD_HALF, 4),
        equal(15, 0xffff, 16, REFUSE),
        load(LOAD_HALF, 12),
        equal(17, mx, 18, 22),
        load(LOAD_BYTE, 14),
        equal(19, question, 20, REFUSE),
        load(LOAD_BYTE, 14 + ENDPOINT_AT),
        equal(21, all_endpoints, prompt, REFUSE),
        equal(22, TAG, 23, REFUSE),
        load(LOAD_HALF, 16),
        equal(24, mx, 25, REFUSE),
        load(LOAD_BYTE, 18),
        equal(26, question, 27, REFUSE),
        load(LOAD_BYTE, 18 + ENDPOINT_AT),
        equal(28, all_endpoints, prompt, REFUSE),
        load(LOAD_BYTE, 14),
        equal(30, FrameType::Reply as u32, 31, prompt),
        load(LOAD_BYTE, 15),
        step(JUMP_IF_SET, last, (TAKE - 33) as u8, (reply - 33) as u8),
        step(RETURN, 0, 0, 0),
        step(RETURN, WHOLE_FRAME, 0, 0),
    ]
}

fn step(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// Lets a socket have only these frames of an endpoint from now on.
pub(super) fn attach(
    socket: BorrowedFd<'_>,
    nic: NicId,
    endpoint: u8,
    class: Class,
) -> io::Result<()> {
    let mut steps = program(nic, endpoint, class);
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the option takes a `sock_fprog`, which points to as many steps as it says, and the
    // kernel copies them.
    // JUSTIFICATION: there is no safe call for it.
    unsafe { option::set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program) }
}
