//! `struct perf_event_attr`, as far as tracing needs it.
//!
//! Source: `include/uapi/linux/perf_event.h`; the size is that of `PERF_ATTR_SIZE_VER5` (Linux
//! 4.1), which every later kernel accepts.

use super::record;

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<Attributes>() == 112);

const KIND_SOFTWARE: u32 = 1;
const KIND_TRACEPOINT: u32 = 2;

/// Counts nothing, but carries records of other kinds (`PERF_COUNT_SW_DUMMY`).
const DUMMY: u64 = 9;

const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;

impl Attributes {
    fn new(kind: u32, config: u64, flags: u64) -> Self {
        Self {
            kind,
            size: size_of::<Self>() as u32,
            config,
            sample_period: 1,
            sample_type: record::SAMPLE,
            flags: DISABLED | SAMPLE_ID_ALL | USE_CLOCKID | WATERMARK | flags,
            // The reader comes by itself.
            wakeup_watermark: u32::MAX / 4,
            clockid: libc::CLOCK_MONOTONIC,
            ..Self::default()
        }
    }

    pub(super) fn tracepoint(id: u16) -> Self {
        Self::new(KIND_TRACEPOINT, id.into(), 0)
    }

    /// Nothing: what holds a ring that others write into.
    pub(super) fn holder() -> Self {
        Self::new(KIND_SOFTWARE, DUMMY, 0)
    }

    pub(super) fn switches() -> Self {
        Self::new(KIND_SOFTWARE, DUMMY, CONTEXT_SWITCH)
    }

    pub(super) fn inherited(mut self) -> Self {
        self.flags |= INHERIT;
        self
    }
}
