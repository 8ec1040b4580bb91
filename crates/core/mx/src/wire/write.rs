//! From frames to bytes.

use crc::{CRC_32_ISCSI, Crc, Table};

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
    let data = body.data();
    write_data(header, body, data.len(), out, |place| place.copy_from_slice(data))
}

/// As [`write()`], of a frame whose data, `length` bytes, `fill` fills in; they are not taken from
/// `body`.
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
        out[end..end + CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        end += CHECKSUM;
    }
    if end >= REFUSAL || !body.frame_type().is_refused() {
        return end;
    }
    out[end..REFUSAL].fill(0);
    REFUSAL
}

/// As [`write()`], of what comes before the data of a frame, `length` bytes.
pub(crate) fn write_head(header: &Header, body: &Body<'_>, length: usize, out: &mut [u8]) -> usize {
    let end = overhead(body.frame_type(), false);
    let flags = [
        (header.marked, FLAG_MARK),
        (header.crc, FLAG_CRC),
        (header.full, FLAG_FULL),
        (header.ask, FLAG_ASK),
    ];
    let flags = flags.into_iter().fold(0, |flags, (set, bit)| flags | (u8::from(set) * bit));
    let mut writer = Writer(&mut out[..end]);
    writer.put([body.frame_type() as u8, flags, header.to, header.from]);
    writer.put(header.token.to_be_bytes());
    writer.put(header.seq.0.to_be_bytes());
    writer.put(header.ack.0.to_be_bytes());
    writer.put(header.credit.to_be_bytes());
    writer.put(header.window.to_be_bytes());
    // A frame is at most `BULK_FRAME` bytes long.
    writer.put(((end - HEADER + length) as u16).to_be_bytes());
    write_fixed(body, &mut writer);
    debug_assert!(writer.0.is_empty(), "{body:?} is shorter than it says");
    end
}

pub(crate) const fn overhead(frame_type: FrameType, crc: bool) -> usize {
    let fixed = match frame_type {
        FrameType::Connect => 24,
        FrameType::Small | FrameType::Reply | FrameType::Nack => 8,
        FrameType::Medium => 16,
        FrameType::Rendezvous => 20,
        FrameType::Pull => 26,
        FrameType::Notify => 12,
        FrameType::Ack | FrameType::Probe | FrameType::Close => 0,
    };
    HEADER + fixed + if crc { CHECKSUM } else { 0 }
}

/// Room for what is still to be written.
struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        let (place, rest) = core::mem::take(&mut self.0).split_at_mut(N);
        place.copy_from_slice(&bytes);
        self.0 = rest;
    }
}

fn write_fixed(body: &Body<'_>, out: &mut Writer<'_>) {
    match *body {
        Body::Ack(_) | Body::Probe | Body::Close => {}
        Body::Connect(connect) => {
            out.put(connect.instance.to_be_bytes());
            out.put(connect.token.to_be_bytes());
            out.put(connect.key.to_be_bytes());
            out.put(connect.version.to_be_bytes());
            out.put(connect.mtu.to_be_bytes());
            out.put([connect.status as u8, connect.crc.into(), 0, 0]);
        }
        Body::Small(match_info, _) => out.put(match_info.to_be_bytes()),
        Body::Medium { match_info, total, offset, .. } => {
            out.put(match_info.to_be_bytes());
            out.put(total.to_be_bytes());
            out.put(offset.to_be_bytes());
        }
        Body::Rendezvous { match_info, total, region, .. } => {
            out.put(match_info.to_be_bytes());
            out.put(total.to_be_bytes());
            out.put(region.to_be_bytes());
        }
        Body::Pull(pull) => {
            out.put(pull.region.to_be_bytes());
            out.put(pull.pull.to_be_bytes());
            out.put(pull.offset.to_be_bytes());
            out.put(pull.wanted.to_be_bytes());
            out.put(pull.first.to_be_bytes());
            out.put(pull.payload.to_be_bytes());
        }
        Body::Reply { pull, index, .. } => {
            out.put(pull.to_be_bytes());
            out.put(index.to_be_bytes());
        }
        Body::Notify(notify) => {
            out.put(notify.region.to_be_bytes());
            out.put(notify.delivered.to_be_bytes());
        }
        Body::Nack(nack) => {
            out.put(nack.token.to_be_bytes());
            out.put([nack.reason as u8, 0, 0, 0]);
        }
    }
}
