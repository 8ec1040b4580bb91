//! Records of a ring, taken apart. Pure.
//!
//! A record begins with a header of eight bytes: kind, flags, and its whole length. A sample then
//! has what [`SAMPLE`] asks for, in the order of the kernel; every other kind ends with the same
//! without the raw bytes (`sample_id_all`). Source: `include/uapi/linux/perf_event.h`, and
//! `perf_output_sample` in `kernel/events/core.c`.

/// What each sample tells: thread, time, processor, raw bytes (`PERF_SAMPLE_*`).
pub const SAMPLE: u64 = TID | TIME | CPU | RAW;

const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const CPU: u64 = 1 << 7;
const RAW: u64 = 1 << 10;

const HEADER: usize = 8;
const STAMP: usize = 24;

const KIND_LOST: u32 = 2;
const KIND_SAMPLE: u32 = 9;
const KIND_LOST_SAMPLES: u32 = 13;
const KIND_SWITCH: u32 = 14;

/// The thread left the processor (`PERF_RECORD_MISC_SWITCH_OUT`).
const LEFT: u16 = 1 << 13;

/// Who, when and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The process, as numbered where the event was opened; 0 for none, or one of elsewhere.
    pub pid: u32,
    /// The thread that ran, in the same way.
    pub tid: u32,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub at: u64,
    /// The number of the processor.
    pub cpu: u32,
}

/// A record of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A tracepoint was passed.
    Sample {
        /// The thread that passed it, and when.
        stamp: Stamp,
        /// Its data, laid out as its [`Format`](super::format::Format) says.
        raw: &'a [u8],
    },
    /// A traced thread got a processor, or left it.
    Switch {
        /// The thread, and when it was switched.
        stamp: Stamp,
        /// It left the processor.
        left: bool,
    },
    /// Records found no room before this one.
    Lost {
        /// The number of lost records.
        count: u64,
        /// When that was noticed, in nanoseconds of `CLOCK_MONOTONIC`.
        at: u64,
    },
    /// A record of a kind that is not read here.
    Other,
}

impl Record<'_> {
    /// When, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn at(&self) -> Option<u64> {
        match self {
            Self::Sample { stamp, .. } | Self::Switch { stamp, .. } => Some(stamp.at),
            Self::Lost { at, .. } => Some(*at),
            Self::Other => None,
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn stamp(bytes: &[u8]) -> Option<Stamp> {
    let here = |number: u32| if number == u32::MAX { 0 } else { number };
    Some(Stamp {
        pid: here(word(bytes, 0)?),
        tid: here(word(bytes, 4)?),
        at: long(bytes, 8)?,
        cpu: word(bytes, 16)?,
    })
}

/// The first record in `bytes`, and how many bytes it has; `None` if there is none, or no whole
/// one.
pub fn first(bytes: &[u8]) -> Option<(Record<'_>, usize)> {
    let kind = word(bytes, 0)?;
    let rest = word(bytes, 4)?;
    let (flags, length) = (rest as u16, (rest >> 16) as usize);
    if cfg!(target_endian = "big") {
        // The two halves of a word are the other way round there, and so is this.
        return None;
    }
    if length < HEADER {
        return None;
    }
    let body = bytes.get(HEADER..length)?;
    let trailer = || body.len().checked_sub(STAMP).and_then(|at| stamp(&body[at..]));
    let record = match kind {
        KIND_SAMPLE => sample(body),
        KIND_SWITCH => trailer().map(|stamp| Record::Switch { stamp, left: flags & LEFT != 0 }),
        KIND_LOST => long(body, 8).zip(trailer()).map(lost),
        KIND_LOST_SAMPLES => long(body, 0).zip(trailer()).map(lost),
        _ => None,
    };
    Some((record.unwrap_or(Record::Other), length))
}

fn lost((count, stamp): (u64, Stamp)) -> Record<'static> {
    Record::Lost { count, at: stamp.at }
}

fn sample(body: &[u8]) -> Option<Record<'_>> {
    let length = word(body, STAMP)? as usize;
    let start = STAMP + 4;
    let raw = body.get(start..start.checked_add(length)?)?;
    Some(Record::Sample { stamp: stamp(body)?, raw })
}

/// Shows all records in `bytes` to `look`, in order; the bytes that were not whole records.
pub fn each(bytes: &[u8], mut look: impl FnMut(Record<'_>)) -> usize {
    let mut rest = bytes;
    while let Some((record, length)) = first(rest) {
        look(record);
        rest = &rest[length..];
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u32, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut record = kind.to_ne_bytes().to_vec();
        record.extend(flags.to_ne_bytes());
        record.extend(((HEADER + body.len()) as u16).to_ne_bytes());
        record.extend(body);
        record
    }

    fn stamp_bytes(tid: u32, at: u64, cpu: u32) -> Vec<u8> {
        let mut bytes = 5_u32.to_ne_bytes().to_vec();
        bytes.extend(tid.to_ne_bytes());
        bytes.extend(at.to_ne_bytes());
        bytes.extend(cpu.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes
    }

    fn sample_bytes(at: u64, raw: &[u8]) -> Vec<u8> {
        let mut body = stamp_bytes(7, at, 1);
        body.extend((raw.len() as u32).to_ne_bytes());
        body.extend(raw);
        header(KIND_SAMPLE, 1, &body)
    }

    #[test]
    fn sample_has_who_when_where_and_what() {
        let bytes = sample_bytes(99, b"abcd");
        let stamp = Stamp { pid: 5, tid: 7, at: 99, cpu: 1 };
        let expected = Record::Sample { stamp, raw: b"abcd" };
        assert_eq!(first(&bytes), Some((expected, bytes.len())));
        assert_eq!(expected.at(), Some(99));
    }

    #[test]
    fn switches_and_losses_are_known_by_their_trailer() {
        let bytes = header(KIND_SWITCH, LEFT, &stamp_bytes(8, 5, 0));
        let stamp = Stamp { pid: 5, tid: 8, at: 5, cpu: 0 };
        assert_eq!(first(&bytes).unwrap().0, Record::Switch { stamp, left: true });
        let mut body = [1_u64.to_ne_bytes(), 42_u64.to_ne_bytes()].concat();
        body.extend(stamp_bytes(0, 6, 0));
        let bytes = header(KIND_LOST, 0, &body);
        assert_eq!(first(&bytes).unwrap().0, Record::Lost { count: 42, at: 6 });
        let mut body = 3_u64.to_ne_bytes().to_vec();
        body.extend(stamp_bytes(0, 7, 0));
        let bytes = header(KIND_LOST_SAMPLES, 0, &body);
        assert_eq!(first(&bytes).unwrap().0, Record::Lost { count: 3, at: 7 });
    }

    #[test]
    fn all_records_are_shown_in_order_and_a_torn_one_is_left() {
        let mut bytes = sample_bytes(1, b"12345678");
        bytes.extend(header(77, 0, &[0; 16]));
        bytes.extend(sample_bytes(2, b""));
        let torn = sample_bytes(3, b"torn");
        bytes.extend(&torn[..torn.len() - 1]);
        let mut seen = Vec::new();
        let left = each(&bytes, |record| seen.push(record.at()));
        assert_eq!(seen, [Some(1), None, Some(2)]);
        assert_eq!(left, torn.len() - 1);
    }

    #[test]
    fn lying_lengths_end_the_walk() {
        let mut bytes = sample_bytes(1, b"abcd");
        bytes[6..8].copy_from_slice(&4_u16.to_ne_bytes());
        assert_eq!(first(&bytes), None);
        let mut bytes = sample_bytes(1, b"abcd");
        bytes[HEADER + STAMP..HEADER + STAMP + 4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(first(&bytes).unwrap().0, Record::Other);
    }
}
