//! Netlink messages: what a datagram from the kernel says.
//!
//! Layout: `struct nlmsghdr` and `struct nlmsgerr` of Linux, `include/uapi/linux/netlink.h`. A
//! request asks for an acknowledgement: the kernel sends the messages asked for, if any, then the
//! acknowledgement or an error; a dump ends with a message of its own instead. With
//! `NETLINK_EXT_ACK` any of these ends may carry a sentence.

use super::tlv::{Malformed, Tlvs};

const HEADER: usize = 16;
/// The type of an error, or an acknowledgement (`NLMSG_ERROR`).
const ERROR: u16 = 2;
/// The type of the end of a dump (`NLMSG_DONE`).
const DONE: u16 = 3;
/// Types below this are netlink's own (`NLMSG_MIN_TYPE`).
const FIRST_OF_FAMILIES: u16 = 0x10;
/// The error does not hold the request, only its header (`NLM_F_CAPPED`).
const CAPPED: u16 = 0x100;
/// Attributes follow the error (`NLM_F_ACK_TLVS`).
const ATTRIBUTES: u16 = 0x200;
/// The attribute with a sentence (`NLMSGERR_ATTR_MSG`).
const SENTENCE: u16 = 1;

/// A request is this (`NLM_F_REQUEST`).
const REQUEST: u16 = 1;
/// It wants to know how it ended (`NLM_F_ACK`).
const ACKNOWLEDGE: u16 = 4;
/// It wants all objects there are (`NLM_F_DUMP`).
pub const DUMP: u16 = 0x300;
/// It makes an object that is not there yet (`NLM_F_CREATE`, `NLM_F_EXCL`).
pub const CREATE: u16 = 0x600;

/// A message from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// What was asked for: the bytes after the header.
    Answer(&'a [u8]),
    /// The request is done with.
    End {
        /// The error number, positive; 0: it succeeded.
        code: i32,
        /// What the kernel says besides: why it refused, or what it warns of.
        said: Option<String>,
    },
}

/// The messages of a datagram that belong to request `sequence`.
pub fn read(datagram: &[u8], sequence: u32) -> Result<Vec<Message<'_>>, Malformed> {
    let mut messages = Vec::new();
    let mut rest = datagram;
    while !rest.is_empty() {
        let claimed = u32_at(rest, 0).map_or(HEADER, |length| length as usize);
        let malformed = Malformed::Length { claimed, left: rest.len() };
        let payload = rest.get(HEADER..claimed).ok_or(malformed)?;
        let (kind, flags) = (u16_at(rest, 4), u16_at(rest, 6));
        if u32_at(rest, 8) == Some(sequence) {
            messages.extend(one(kind, flags, payload)?);
        }
        rest = rest.get(claimed.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(messages)
}

fn one(kind: u16, flags: u16, payload: &[u8]) -> Result<Option<Message<'_>>, Malformed> {
    if kind >= FIRST_OF_FAMILIES {
        return Ok(Some(Message::Answer(payload)));
    }
    if kind != ERROR && kind != DONE {
        return Ok(None);
    }
    let short = Malformed::Length { claimed: 4, left: payload.len() };
    let code = match u32_at(payload, 0) {
        Some(code) => code.cast_signed().saturating_neg(),
        // A dump may end without a word.
        None if kind == DONE => 0,
        None => return Err(short),
    };
    // An error quotes the request, or its header alone.
    let quoted = match u32_at(payload, 4) {
        _ if kind == DONE => 0,
        Some(length) if flags & CAPPED == 0 => (length as usize).next_multiple_of(4),
        _ => HEADER,
    };
    let attributes = payload.get(4_usize.saturating_add(quoted)..).unwrap_or_default();
    let said = (flags & ATTRIBUTES != 0).then(|| sentence(attributes)).flatten();
    Ok(Some(Message::End { code, said }))
}

/// What the kernel says; a sentence that cannot be read hides no error.
fn sentence(attributes: &[u8]) -> Option<String> {
    let text = Tlvs::new(attributes).flatten().find(|tlv| tlv.kind == SENTENCE)?.text();
    (!text.is_empty()).then_some(text)
}

/// A request with an acknowledgement, and with further flags.
///
/// `kind` is the family's number, `payload` what follows the header.
pub fn write(kind: u16, sequence: u32, flags: u16, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + payload.len()).unwrap_or(u32::MAX);
    let flags = REQUEST | ACKNOWLEDGE | flags;
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    // The kernel fills in who we are.
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(payload);
    bytes
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// 0 where there is none: no type and no flag.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let bytes = bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u16::from_ne_bytes)
}
