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

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(steps: &[libc::sock_filter], frame: &[u8]) -> bool {
        let (mut at, mut accumulator) = (0, 0_u32);
        loop {
            let libc::sock_filter { code, jt, jf, k } = steps[at];
            at += 1;
            let bytes = |count: usize| {
                let part = frame.get(k as usize..k as usize + count)?;
                Some(part.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)))
            };
            match code {
                RETURN => return k > 0,
                JUMP_IF_SET => at += usize::from(if accumulator & k != 0 { jt } else { jf }),
                JUMP_IF_EQUAL => at += usize::from(if accumulator == k { jt } else { jf }),
                load => {
                    let count = [(LOAD_WORD, 4), (LOAD_HALF, 2), (LOAD_BYTE, 1)]
                        .into_iter()
                        .find(|(code, _)| *code == load);
                    let Some(word) = bytes(count.unwrap().1) else { return false };
                    accumulator = word;
                }
            }
        }
    }

    #[test]
    fn only_frames_of_the_endpoint_pass() {
        let nic = NicId([2, 0, 0, 0, 1, 0xfe]);
        let program = program(nic, 7, Class::Prompt);
        let plain = |nic: NicId, ether_type: u16, endpoint| {
            let header = [&nic.0[..], &[4; 6], &ether_type.to_be_bytes()].concat();
            [&header[..], &[38, 0, endpoint, 1, 0, 0]].concat()
        };
        let tagged = |frame: &[u8]| [&frame[..12], &[0x81, 0, 0x60, 5], &frame[12..]].concat();
        let own = plain(nic, ETHER_TYPE, 7);
        assert!(accepts(&program, &own) && accepts(&program, &tagged(&own)));
        for stranger in [
            plain(NicId([2, 0, 0, 0, 1, 0xff]), ETHER_TYPE, 7),
            plain(NicId([3, 0, 0, 0, 1, 0xfe]), ETHER_TYPE, 7),
            plain(nic, 0x0800, 7),
            plain(nic, ETHER_TYPE, 8),
        ] {
            assert!(!accepts(&program, &stranger) && !accepts(&program, &tagged(&stranger)));
        }
        assert!(!accepts(&program, &tagged(&tagged(&own))), "one tag only");
        for length in 0..17 {
            assert!(!accepts(&program, &own[..length]), "{length} bytes");
        }
    }

    #[test]
    fn questions_to_all_endpoints_pass() {
        let program = program(NicId([2, 0, 0, 0, 1, 0xfe]), 7, Class::Prompt);
        let frame = |to: u8, last: u8, tag: &[u8], body: [u8; 4]| {
            [&[to; 5][..], &[last], &[4; 6], tag, &[0x86, 0xdf], &body, &[0; 20]].concat()
        };
        for tag in [&[][..], &[0x81, 0, 0, 5]] {
            assert!(accepts(&program, &frame(0xff, 0xff, tag, [3, 0, 255, 9])));
            assert!(!accepts(&program, &frame(0xff, 0xfe, tag, [3, 0, 255, 9])), "another address");
            assert!(!accepts(&program, &frame(0xff, 0xff, tag, [3, 0, 7, 9])), "one endpoint");
            assert!(!accepts(&program, &frame(0xff, 0xff, tag, [38, 0, 255, 9])), "no question");
            assert!(!accepts(&program, &frame(0xff, 0xff, tag, [4, 0, 255, 9])), "an answer");
        }
    }

    #[test]
    fn frames_are_for_those_who_wait_or_for_the_large() {
        let nic = NicId([2, 0, 0, 0, 1, 0xfe]);
        let [prompt, replies] = [Class::Prompt, Class::Replies].map(|class| program(nic, 7, class));
        for frame_type in FrameType::ALL {
            for flags in [0, FLAG_MARK, FLAG_ASK, FLAG_MARK | FLAG_ASK, 0x03] {
                let body = [frame_type as u8, flags, 7, 9, 0, 0];
                let frame = [&nic.0[..], &[4; 6], &[0x86, 0xdf], &body].concat();
                let is_reply = frame_type == FrameType::Reply;
                let wakes = !is_reply || flags & (FLAG_MARK | FLAG_ASK) != 0;
                assert_eq!(accepts(&replies, &frame), is_reply, "{frame_type:?}, {flags:#x}");
                assert_eq!(accepts(&prompt, &frame), wakes, "{frame_type:?}, {flags:#x}");
            }
        }
        let question = [&[0xff; 6][..], &[4; 6], &[0x86, 0xdf, 3, 0, 255, 9]].concat();
        assert!(accepts(&prompt, &question) && !accepts(&replies, &question));
    }
}
