//! The types of the header.

use std::ffi::c_void;

use crate::codes::earmark_mx_status_code_t;

/// The version of this interface: the upper 16 bits change when programs have to be compiled anew.
pub const EARMARK_MX_API: u32 = 0x0001_0000;

/// A timeout that is never over.
pub const EARMARK_MX_INFINITE: u32 = 0xffff_ffff;

/// The first number of an endpoint that is free.
pub const EARMARK_MX_ANY_ENDPOINT: u32 = 0xffff_ffff;

/// As match information and mask together: any message, any request.
pub const EARMARK_MX_MATCH_ALL: u64 = 0;

/// A mask in which all bits count.
pub const EARMARK_MX_MASK_ALL: u64 = 0xffff_ffff_ffff_ffff;

/// The most segments that a message may have.
pub const EARMARK_MX_MAX_SEGMENTS: u32 = 256;

/// A thread of the endpoint's own acknowledges, resends and pulls.
pub const EARMARK_MX_PROGRESS_THREAD: u32 = 0;
/// No thread does while no call is made; the program calls earmark_mx_progress() often enough.
pub const EARMARK_MX_PROGRESS_MANUAL: u32 = 1;

/// A thread that waits sleeps.
pub const EARMARK_MX_WAIT_SLEEP: u32 = 0;
/// A thread that waits looks again and again.
pub const EARMARK_MX_WAIT_SPIN: u32 = 1;
/// A thread that waits looks for spin_us microseconds, and then sleeps.
pub const EARMARK_MX_WAIT_HYBRID: u32 = 2;

/// What an endpoint handle points to; never followed.
pub struct earmark_mx_endpoint(());

/// What a request handle points to; never followed.
pub struct earmark_mx_request(());

/// An endpoint that is open; NULL is none.
pub type earmark_mx_endpoint_t = *mut earmark_mx_endpoint;

/// A request whose end has not been reported; NULL is none.
pub type earmark_mx_request_t = *mut earmark_mx_request;

/// An endpoint, as another one knows it. Its content is private; copy it as you like.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct earmark_mx_endpoint_addr_t {
    /// Private to the library.
    pub stuff: [u64; 2],
}

/// A part of the memory of a message.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct earmark_mx_segment_t {
    /// Where it begins; NULL if it is empty.
    pub segment_ptr: *mut c_void,
    /// Its length in bytes.
    pub segment_length: usize,
}

/// How a request ended, or what a probe has found.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct earmark_mx_status_t {
    /// Whether it did what was asked.
    pub code: earmark_mx_status_code_t,
    /// Reserved; always 0.
    pub flags: u32,
    /// The sender of a message that came, the receiver of one that was sent.
    pub source: earmark_mx_endpoint_addr_t,
    /// The match information of the message; of the request, if there is no message.
    pub match_info: u64,
    /// Bytes of the message.
    pub msg_length: u64,
    /// Bytes of it that were delivered; for an eager send, that were accepted.
    pub xfer_length: u64,
    /// What the request was given.
    pub context: *mut c_void,
    /// Room for more; 0.
    pub reserved: [u64; 4],
}

/// How an endpoint lives. earmark_mx_settings_init() fills it in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct earmark_mx_settings_t {
    /// Bytes of this structure, as the program knows it.
    pub size: usize,
    /// Who makes progress: EARMARK_MX_PROGRESS_THREAD or EARMARK_MX_PROGRESS_MANUAL.
    pub progress: u32,
    /// How threads wait: EARMARK_MX_WAIT_SLEEP, EARMARK_MX_WAIT_SPIN or EARMARK_MX_WAIT_HYBRID.
    pub waiting: u32,
    /// For EARMARK_MX_WAIT_HYBRID: how long to spin, in microseconds.
    pub spin_us: u32,
    /// How long a peer may owe an answer before it counts as gone, in milliseconds.
    pub peer_timeout_ms: u32,
    /// How long closing waits for peers to have everything, in milliseconds.
    pub close_timeout_ms: u32,
    /// So many bits of the match information name a context with queues of its own, up to 16.
    pub context_bits: u32,
    /// The lowest of these bits.
    pub context_shift: u32,
    /// 1: frames bear a CRC32C from end to end.
    pub crc: u32,
}

/// What only has to be true on machines that this library is for.
const _: () = assert!(size_of::<usize>() == size_of::<u64>(), "handles take 64 bits");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_that_programs_were_compiled_with() {
        assert_eq!(size_of::<earmark_mx_endpoint_addr_t>(), 16);
        assert_eq!(size_of::<earmark_mx_segment_t>(), 16);
        assert_eq!(size_of::<earmark_mx_status_t>(), 88);
        assert_eq!(size_of::<earmark_mx_settings_t>(), 40);
    }
}
