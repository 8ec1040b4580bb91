//! What a port counts.

/// What happened to a port so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortCounters {
    /// Frames that were handed over to be sent.
    pub frames_out: u64,
    /// Bytes of these, without the Ethernet header.
    pub bytes_out: u64,
    /// Frames that were received.
    pub frames_in: u64,
    /// Bytes of these, without the Ethernet header but with padding.
    pub bytes_in: u64,
    /// System calls that sending took.
    pub calls_out: u64,
    /// System calls that receiving took, without those to sleep.
    pub calls_in: u64,
    /// How often there was no room to send.
    pub full: u64,
    /// Frames that were given up because the kernel will never send them: too long by now, or to
    /// an address that it does not reach.
    pub refused: u64,
    /// Frames that came while there was no room for them.
    pub overrun: u64,
    /// Frames that came and were longer than the MTU.
    pub too_long: u64,
    /// Frames that came and were for another endpoint, of another kind, from nobody, or shorter
    /// than a header.
    pub strange: u64,
    /// Frames that were sent over the UDP path of [`udp_bulk`](super::udp_bulk); they are among
    /// those that were handed over.
    pub udp_bulk_out: u64,
    /// Frames that came over it; they are among those that were received.
    pub udp_bulk_in: u64,
}

impl PortCounters {
    /// Every counter with its name, such as `frames-out`.
    pub fn each(&self, mut visit: impl FnMut(&'static str, u64)) {
        for (name, count) in [
            ("frames-out", self.frames_out),
            ("bytes-out", self.bytes_out),
            ("frames-in", self.frames_in),
            ("bytes-in", self.bytes_in),
            ("calls-out", self.calls_out),
            ("calls-in", self.calls_in),
            ("full", self.full),
            ("refused", self.refused),
            ("overrun", self.overrun),
            ("too-long", self.too_long),
            ("strange", self.strange),
            ("lane-out", self.udp_bulk_out),
            ("lane-in", self.udp_bulk_in),
        ] {
            visit(name, count);
        }
    }

    /// Counts a frame that came.
    pub(super) fn came(&mut self, bytes: usize) {
        self.frames_in += 1;
        self.bytes_in += bytes as u64;
    }

    /// Counts frames that went.
    pub(super) fn went(&mut self, frames: usize, bytes: usize) {
        self.frames_out += frames as u64;
        self.bytes_out += bytes as u64;
    }

    /// What two ways of one port have counted.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            frames_out: self.frames_out + other.frames_out,
            bytes_out: self.bytes_out + other.bytes_out,
            frames_in: self.frames_in + other.frames_in,
            bytes_in: self.bytes_in + other.bytes_in,
            calls_out: self.calls_out + other.calls_out,
            calls_in: self.calls_in + other.calls_in,
            full: self.full + other.full,
            refused: self.refused + other.refused,
            overrun: self.overrun + other.overrun,
            too_long: self.too_long + other.too_long,
            strange: self.strange + other.strange,
            udp_bulk_out: self.udp_bulk_out + other.udp_bulk_out,
            udp_bulk_in: self.udp_bulk_in + other.udp_bulk_in,
        }
    }
}
