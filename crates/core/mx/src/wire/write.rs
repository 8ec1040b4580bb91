//! From frames to bytes.

use crc::{CRC_32_ISCSI, Crc, Table};
use zerocopy::IntoBytes;

use super::layout::{
    ConnectLayout, HeaderLayout, MediumLayout, NackLayout, NotifyLayout, PullLayout,
    RendezvousLayout, ReplyLayout, SmallLayout,
};
use super::{Body, CHECKSUM, FLAG_ASK, FLAG_CRC, FLAG_FULL, FLAG_MARK, FrameType, HEADER, Header};

/// CRC32C, of the kind that takes sixteen bytes a step.
static CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

pub(crate) const REFUSAL: usize = overhead(FrameType::Nack, true);

pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    CRC32C.checksum(bytes)
}

/// Writes a whole frame, and says how long it is.
///
/// # Panics
/// If `out` is shorter than the frame: the caller knows the MTU.
pub fn write(header: &Header, body: &Body<'_>, out: &mut [u8]) -> usize {
    let data: &[u8] = match body {
        Body::Ack(bitmap) => bitmap,
        Body::Small(_, data) | Body::Medium { data, .. } | Body::Reply { data, .. } => data,
        Body::Rendezvous { head, .. } => head,
        _ => &[],
    };
    write_data(header, body, data.len(), out, |place| place.copy_from_slice(data))
}

/// Writes a frame whose data, `length` bytes, are filled in by `fill` and not taken from `body`.
///
/// # Panics
/// If `out` is shorter than the frame: the caller knows the MTU.
pub(crate) fn write_data(
    header: &Header,
    body: &Body<'_>,
    length: usize,
    out: &mut [u8],
    fill: impl FnOnce(&mut [u8]),
) -> usize {
    let fixed = write_head(header, body, length, out);
    let mut end = fixed + length;
    fill(&mut out[fixed..end]);
    if header.crc {
        let sum = crc32c(&out[..end]);
        end += put(&sum.to_be_bytes(), &mut out[end..]);
    }
    if end >= REFUSAL || !body.frame_type().is_refused() {
        return end;
    }
    out[end..REFUSAL].fill(0);
    REFUSAL
}

/// Writes what comes before the data of a frame, `length` bytes, and says how long that is.
///
/// # Panics
/// If `out` is shorter.
pub(crate) fn write_head(header: &Header, body: &Body<'_>, length: usize, out: &mut [u8]) -> usize {
    let fixed = write_fixed(body, &mut out[HEADER..]);
    let flags = [
        (header.marked, FLAG_MARK),
        (header.crc, FLAG_CRC),
        (header.full, FLAG_FULL),
        (header.ask, FLAG_ASK),
    ];
    let flags = flags.into_iter().fold(0, |flags, (set, bit)| flags | (u8::from(set) * bit));
    let layout = HeaderLayout {
        frame_type: body.frame_type() as u8,
        flags,
        to: header.to,
        from: header.from,
        token: header.token.into(),
        seq: header.seq.0.into(),
        ack: header.ack.0.into(),
        credit: header.credit.into(),
        window: header.window.into(),
        // A frame is at most `BULK_FRAME` bytes long.
        length: ((fixed + length) as u16).into(),
    };
    put(&layout, out);
    HEADER + fixed
}

pub(crate) const fn overhead(frame_type: FrameType, crc: bool) -> usize {
    let fixed = match frame_type {
        FrameType::Connect => size_of::<ConnectLayout>(),
        FrameType::Small => size_of::<SmallLayout>(),
        FrameType::Medium => size_of::<MediumLayout>(),
        FrameType::Rendezvous => size_of::<RendezvousLayout>(),
        FrameType::Pull => size_of::<PullLayout>(),
        FrameType::Reply => size_of::<ReplyLayout>(),
        FrameType::Notify => size_of::<NotifyLayout>(),
        FrameType::Nack => size_of::<NackLayout>(),
        FrameType::Ack | FrameType::Probe | FrameType::Close => 0,
    };
    HEADER + fixed + if crc { CHECKSUM } else { 0 }
}

/// Writes what stands before the data, and says how long that is.
fn write_fixed(body: &Body<'_>, out: &mut [u8]) -> usize {
    match *body {
        Body::Ack(_) | Body::Probe | Body::Close => 0,
        Body::Connect(connect) => put(
            &ConnectLayout {
                instance: connect.instance.into(),
                token: connect.token.into(),
                key: connect.key.into(),
                version: connect.version.into(),
                mtu: connect.mtu.into(),
                status: connect.status as u8,
                crc: connect.crc.into(),
                reserved: 0.into(),
            },
            out,
        ),
        Body::Small(match_info, _) => put(&SmallLayout { match_info: match_info.into() }, out),
        Body::Medium { match_info, total, offset, .. } => {
            let (match_info, total, offset) = (match_info.into(), total.into(), offset.into());
            put(&MediumLayout { match_info, total, offset }, out)
        }
        Body::Rendezvous { match_info, total, region, .. } => {
            let (match_info, total, region) = (match_info.into(), total.into(), region.into());
            put(&RendezvousLayout { match_info, total, region }, out)
        }
        Body::Pull(pull) => put(
            &PullLayout {
                region: pull.region.into(),
                pull: pull.pull.into(),
                offset: pull.offset.into(),
                wanted: pull.wanted.into(),
                first: pull.first.into(),
                payload: pull.payload.into(),
            },
            out,
        ),
        Body::Reply { pull, index, .. } => {
            put(&ReplyLayout { pull: pull.into(), index: index.into() }, out)
        }
        Body::Notify(notify) => {
            let (region, delivered) = (notify.region.into(), notify.delivered.into());
            put(&NotifyLayout { region, delivered }, out)
        }
        Body::Nack(nack) => {
            let (token, reason) = (nack.token.into(), nack.reason as u8);
            put(&NackLayout { token, reason, reserved: [0; 3] }, out)
        }
    }
}

fn put<T: IntoBytes + zerocopy::Immutable>(layout: &T, out: &mut [u8]) -> usize {
    let bytes = layout.as_bytes();
    out[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}
