//! From bytes to frames. Nothing here trusts the bytes.

use core::fmt;

use zerocopy::FromBytes;

use super::layout::{
    ConnectLayout, HeaderLayout, MediumLayout, NackLayout, NotifyLayout, PullLayout,
    RendezvousLayout, ReplyLayout, SmallLayout,
};
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
    let (layout, rest) = HeaderLayout::read_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
    let length = usize::from(layout.length.get());
    let body = rest.get(..length).ok_or(Malformed::Truncated)?;
    let header = header(&layout);
    if header.crc {
        let sum = rest[length..].first_chunk::<CHECKSUM>().ok_or(Malformed::Truncated)?;
        if crc32c(&bytes[..HEADER + length]) != u32::from_be_bytes(*sum) {
            return Err(Malformed::BadChecksum);
        }
    }
    let frame_type = FrameType::from_number(layout.frame_type).ok_or(Malformed::UnknownType)?;
    Ok((header, parse_body(frame_type, body)?))
}

/// Reads what comes before the data of a reply without a checksum: its header, the name of the
/// transfer, and the number of the frame.
pub(crate) fn parse_reply_head(head: &[u8; RUN_HEAD]) -> Option<(Header, u32, u32)> {
    let (layout, rest) = HeaderLayout::read_from_prefix(head).ok()?;
    let reply = ReplyLayout::read_from_bytes(rest).ok()?;
    let header = header(&layout);
    let is_reply = layout.frame_type == FrameType::Reply as u8 && !header.crc;
    is_reply.then_some((header, reply.pull.get(), reply.index.get()))
}

fn header(layout: &HeaderLayout) -> Header {
    Header {
        marked: layout.flags & FLAG_MARK != 0,
        crc: layout.flags & FLAG_CRC != 0,
        full: layout.flags & FLAG_FULL != 0,
        ask: layout.flags & FLAG_ASK != 0,
        to: layout.to,
        from: layout.from,
        token: layout.token.get(),
        seq: Seq(layout.seq.get()),
        ack: Seq(layout.ack.get()),
        credit: layout.credit.get(),
        window: layout.window.get(),
    }
}

fn parse_body(frame_type: FrameType, body: &[u8]) -> Result<Body<'_>, Malformed> {
    Ok(match frame_type {
        FrameType::Ack => {
            Body::Ack(if body.len() <= BITMAP { body } else { return Err(Malformed::BadField) })
        }
        FrameType::Connect => Body::Connect(connect(&fixed(body)?.0)?),
        FrameType::Small => {
            let (layout, data): (SmallLayout, _) = fixed(body)?;
            Body::Small(layout.match_info.get(), data)
        }
        FrameType::Medium => medium(body)?,
        FrameType::Rendezvous => {
            let (layout, rest): (RendezvousLayout, _) = fixed(body)?;
            Body::Rendezvous {
                match_info: layout.match_info.get(),
                total: layout.total.get(),
                region: layout.region.get(),
                head: &rest[..rest.len().min(HEAD)],
            }
        }
        FrameType::Pull => {
            let layout: PullLayout = fixed(body)?.0;
            Body::Pull(Pull {
                region: layout.region.get(),
                pull: layout.pull.get(),
                offset: layout.offset.get(),
                wanted: layout.wanted.get(),
                first: layout.first.get(),
                payload: layout.payload.get(),
            })
        }
        FrameType::Reply => {
            let (layout, data): (ReplyLayout, _) = fixed(body)?;
            Body::Reply { pull: layout.pull.get(), index: layout.index.get(), data }
        }
        FrameType::Notify => {
            let layout: NotifyLayout = fixed(body)?.0;
            let (region, delivered) = (layout.region.get(), layout.delivered.get());
            Body::Notify(Notify { region, delivered })
        }
        FrameType::Nack => {
            let layout: NackLayout = fixed(body)?.0;
            let reason = match layout.reason {
                1 => NackReason::NoEndpoint,
                2 => NackReason::BadToken,
                _ => return Err(Malformed::BadField),
            };
            Body::Nack(Nack { token: layout.token.get(), reason })
        }
        FrameType::Probe => Body::Probe,
        FrameType::Close => Body::Close,
    })
}

/// The part of fixed length, and what follows it.
fn fixed<T: FromBytes>(body: &[u8]) -> Result<(T, &[u8]), Malformed> {
    T::read_from_prefix(body).map_err(|_| Malformed::Truncated)
}

/// A piece lies within its message, and only an empty message has an empty piece.
fn medium(body: &[u8]) -> Result<Body<'_>, Malformed> {
    let (layout, data): (MediumLayout, _) = fixed(body)?;
    let (total, offset) = (layout.total.get(), layout.offset.get());
    let end = u64::from(offset) + data.len() as u64;
    if end > total.into() || (data.is_empty() && total > 0) {
        return Err(Malformed::BadField);
    }
    Ok(Body::Medium { match_info: layout.match_info.get(), total, offset, data })
}

fn connect(layout: &ConnectLayout) -> Result<Connect, Malformed> {
    Ok(Connect {
        instance: layout.instance.get(),
        token: layout.token.get(),
        key: layout.key.get(),
        version: layout.version.get(),
        mtu: layout.mtu.get(),
        status: match layout.status {
            0 => ConnectStatus::Request,
            1 => ConnectStatus::Accepted,
            2 => ConnectStatus::BadKey,
            3 => ConnectStatus::BadVersion,
            4 => ConnectStatus::Busy,
            _ => return Err(Malformed::BadField),
        },
        crc: match layout.crc {
            0 => false,
            1 => true,
            _ => return Err(Malformed::BadField),
        },
    })
}
