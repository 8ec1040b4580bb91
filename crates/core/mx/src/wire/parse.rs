//! From bytes to frames. Nothing here trusts the bytes.

use core::fmt;

use super::write::crc32c;
use super::{
    BITMAP, Body, CHECKSUM, Connect, ConnectStatus, FLAG_ASK, FLAG_CRC, FLAG_FULL, FLAG_MARK,
    FrameType, HEAD, HEADER, Header, Nack, NackReason, Notify, Pull, RUN_HEAD,
};
use crate::seq::Seq;

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// They end before the header, the body or the checksum does.
    Truncated,
    /// The type is unknown.
    UnknownType,
    /// A field has a value that it cannot have.
    BadField,
    /// The checksum is wrong.
    BadChecksum,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "frame is shorter than it says",
            Self::UnknownType => "type of frame is unknown",
            Self::BadField => "field has a value that it cannot have",
            Self::BadChecksum => "checksum is wrong",
        })
    }
}

impl core::error::Error for Malformed {}

/// Reads what follows the EtherType.
///
/// # Errors
/// If it is no frame of this protocol; the checksum is looked at where there is one.
pub fn parse(bytes: &[u8]) -> Result<(Header, Body<'_>), Malformed> {
    let (head, rest) = bytes.split_first_chunk().ok_or(Malformed::Truncated)?;
    let (frame_type, header, length) = header(head);
    let body = rest.get(..length).ok_or(Malformed::Truncated)?;
    if header.crc {
        let sum = rest[length..].first_chunk::<CHECKSUM>().ok_or(Malformed::Truncated)?;
        if crc32c(&bytes[..HEADER + length]) != u32::from_be_bytes(*sum) {
            return Err(Malformed::BadChecksum);
        }
    }
    let frame_type = FrameType::from_number(frame_type).ok_or(Malformed::UnknownType)?;
    Ok((header, parse_body(frame_type, Reader(body))?))
}

/// Reads what comes before the data of a reply without a checksum: its header, the name of the
/// transfer, and the number of the frame.
pub(crate) fn parse_reply_head(head: &[u8; RUN_HEAD]) -> Option<(Header, u32, u32)> {
    let (first, rest) = head.split_first_chunk()?;
    let (frame_type, header, _) = header(first);
    let mut body = Reader(rest);
    let is_reply = frame_type == FrameType::Reply as u8 && !header.crc;
    is_reply.then_some((header, body.u32().ok()?, body.u32().ok()?))
}

/// The number of the type, what the header says, and how long the body is.
fn header(bytes: &[u8; HEADER]) -> (u8, Header, usize) {
    let u32_at = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
    let u16_at = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let flags = bytes[1];
    let header = Header {
        marked: flags & FLAG_MARK != 0,
        crc: flags & FLAG_CRC != 0,
        full: flags & FLAG_FULL != 0,
        ask: flags & FLAG_ASK != 0,
        to: bytes[2],
        from: bytes[3],
        token: u32_at(4),
        seq: Seq(u32_at(8)),
        ack: Seq(u32_at(12)),
        credit: u32_at(16),
        window: u16_at(20),
    };
    (bytes[0], header, u16_at(22).into())
}

/// What is left of a body.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_be_bytes)
    }
}

fn parse_body(frame_type: FrameType, mut body: Reader<'_>) -> Result<Body<'_>, Malformed> {
    Ok(match frame_type {
        FrameType::Ack if body.0.len() > BITMAP => return Err(Malformed::BadField),
        FrameType::Ack => Body::Ack(body.0),
        FrameType::Connect => Body::Connect(connect(&mut body)?),
        FrameType::Small => Body::Small(body.u64()?, body.0),
        FrameType::Medium => medium(body)?,
        FrameType::Rendezvous => {
            let (match_info, total, region) = (body.u64()?, body.u64()?, body.u32()?);
            let head = &body.0[..body.0.len().min(HEAD)];
            Body::Rendezvous { match_info, total, region, head }
        }
        FrameType::Pull => Body::Pull(Pull {
            region: body.u32()?,
            pull: body.u32()?,
            offset: body.u64()?,
            wanted: body.u32()?,
            first: body.u32()?,
            payload: body.u16()?,
        }),
        FrameType::Reply => Body::Reply { pull: body.u32()?, index: body.u32()?, data: body.0 },
        FrameType::Notify => Body::Notify(Notify { region: body.u32()?, delivered: body.u64()? }),
        FrameType::Nack => {
            let token = body.u32()?;
            let [reason, ..] = body.take::<4>()?;
            let reason = match reason {
                1 => NackReason::NoEndpoint,
                2 => NackReason::BadToken,
                _ => return Err(Malformed::BadField),
            };
            Body::Nack(Nack { token, reason })
        }
        FrameType::Probe => Body::Probe,
        FrameType::Close => Body::Close,
    })
}

/// A piece lies within its message, and only an empty message has an empty piece.
fn medium(mut body: Reader<'_>) -> Result<Body<'_>, Malformed> {
    let (match_info, total, offset) = (body.u64()?, body.u32()?, body.u32()?);
    let data = body.0;
    let end = u64::from(offset) + data.len() as u64;
    if end > total.into() || (data.is_empty() && total > 0) {
        return Err(Malformed::BadField);
    }
    Ok(Body::Medium { match_info, total, offset, data })
}

fn connect(body: &mut Reader<'_>) -> Result<Connect, Malformed> {
    let (instance, token, key) = (body.u64()?, body.u32()?, body.u32()?);
    let (version, mtu) = (body.u16()?, body.u16()?);
    let [status, crc, ..] = body.take::<4>()?;
    let status = match status {
        0 => ConnectStatus::Request,
        1 => ConnectStatus::Accepted,
        2 => ConnectStatus::BadKey,
        3 => ConnectStatus::BadVersion,
        4 => ConnectStatus::Busy,
        _ => return Err(Malformed::BadField),
    };
    if crc > 1 {
        return Err(Malformed::BadField);
    }
    Ok(Connect { instance, token, key, version, mtu, status, crc: crc == 1 })
}
