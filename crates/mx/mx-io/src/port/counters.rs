//! What a port counts.

use mx::wire::{BULK_PAYLOAD, RUN_HEAD};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $field:ident $name:literal,)+) => {
        /// What happened to a port so far.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct PortCounters {
            $($(#[doc = $doc])+ pub $field: u64,)+
        }

        impl PortCounters {
            /// Every counter with its name, such as `frames-out`.
            pub fn each(&self, mut visit: impl FnMut(&'static str, u64)) {
                $(visit($name, self.$field);)+
            }

            pub(super) fn and(self, other: Self) -> Self {
                Self { $($field: self.$field + other.$field,)+ }
            }
        }
    };
}

counters! {
    /// Frames that were handed over to be sent.
    frames_out "frames-out",
    /// Bytes of these, without the Ethernet header.
    bytes_out "bytes-out",
    /// Frames that were received.
    frames_in "frames-in",
    /// Bytes of these, without the Ethernet header but with padding.
    bytes_in "bytes-in",
    /// System calls that sending took.
    calls_out "calls-out",
    /// System calls that receiving took, without those to sleep.
    calls_in "calls-in",
    /// How often there was no room to send.
    full "full",
    /// Frames that were given up because the kernel will never send them: too long by now, or to
    /// an address that it does not reach.
    refused "refused",
    /// Frames that came while there was no room for them.
    overrun "overrun",
    /// Frames that came and were longer than the MTU.
    too_long "too-long",
    /// Frames that came and were for another endpoint, of another kind, from no peer, or shorter
    /// than a header.
    strange "strange",
    /// Bulk frames that were sent, over the connections of [`tcp_bulk`](super::tcp_bulk) or within
    /// the host; they are among those that were handed over. A run counts as one.
    bulk_out "bulk-out",
    /// Bulk frames that came; they are among those that were received.
    bulk_in "bulk-in",
}

impl PortCounters {
    pub(super) fn came(&mut self, bytes: usize) {
        self.frames_in += 1;
        self.bytes_in += bytes as u64;
    }

    pub(super) fn came_bulk(&mut self, frames: usize, bytes: usize) {
        self.frames_in += frames as u64;
        self.bytes_in += bytes as u64;
        self.bulk_in += frames as u64;
    }

    /// Counts bulk frames whose data, so many bytes, have come to their place: how many they are.
    pub(super) fn placed(&mut self, data: usize) -> usize {
        let frames = data.div_ceil(BULK_PAYLOAD);
        self.came_bulk(frames, frames * RUN_HEAD + data);
        frames
    }

    pub(super) fn went(&mut self, frames: usize, bytes: usize) {
        self.frames_out += frames as u64;
        self.bytes_out += bytes as u64;
    }
}
