//! Settings of an endpoint.

use base::time::Duration;

use crate::wire::{FrameType, HEAD};

/// The smallest MTU, in bytes after the Ethernet header.
pub const MIN_MTU: u16 = 576;
/// The largest MTU, in bytes after the Ethernet header.
pub const MAX_MTU: u16 = 9216;

/// Frames of one pull request (Open-MX: 32 as well).
pub(crate) const BLOCK_FRAMES: u32 = 32;

/// How an endpoint behaves. The defaults suit one Ethernet segment of 1 to 100 Gbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest frame, in bytes after the Ethernet header, [`MIN_MTU`] to [`MAX_MTU`]. Two
    /// endpoints use the smaller one of theirs.
    pub mtu: u16,
    /// What a peer must present to connect (`mx_open_endpoint`'s key).
    pub key: u32,
    /// Every frame ends with a CRC32C, if either of two endpoints wants it.
    pub crc: bool,
    /// The longest message that travels in one frame with its header, in bytes.
    pub small_max: u16,
    /// The longest message that is sent before its receiver asks for it, in bytes.
    pub eager_max: u32,
    /// The longest eager message, or rest of one, that goes in frames of the MTU although there is
    /// a bulk path, in bytes.
    pub bulk_min: u32,
    /// Bytes of a message that its announcement takes along, so that the receiver can
    /// [look](crate::endpoint::Endpoint::look) at them before it wants the rest; at most
    /// [`HEAD`]. They may be read from the source until the announcement is acknowledged, also
    /// after the send has ended.
    pub head: u8,
    /// Which frames are marked.
    pub marks: Marks,
    /// By how many frames the mark of an eager message of several comes too early: 0, but for
    /// experiments. The last frame loses it, as if others had overtaken the marked one (Open-MX
    /// paper, Table III).
    pub mark_early: u16,
    /// Bits of the match information that name a context, so that each context has queues of its
    /// own (`MX_PARAM_CONTEXT_ID`).
    pub context: ContextBits,
    /// Frames that may be under way to one peer without an acknowledgement, at most 256.
    pub window: u16,
    /// Pull requests in flight for one message (Open-MX: 4).
    pub blocks: u8,
    /// Frames that all pulls together may have under way.
    pub pull_window: u32,
    /// Peers that may come by themselves, which this endpoint has not asked for. A host may have as
    /// many as there are places left.
    pub guests: u32,
    /// How many bytes of a NIC's address name its host: all 6 of a MAC address, 4 of those where
    /// frames travel in UDP.
    pub host_bytes: u8,
    /// Bytes of eager messages that one peer may send before they are received.
    pub peer_credit: u32,
    /// Bytes of eager messages that all peers together may send before they are received. A new
    /// peer may have a quarter of what is left, at most [`peer_credit`](Self::peer_credit), and
    /// 32 KiB in any case; it announces what is beyond that.
    pub unexpected_bytes: u64,
    /// Messages that wait to be received, announced or eager, of all peers together. A peer that
    /// has as many waiting as are left for others begins no new ones.
    pub unexpected_messages: u32,
    /// Bytes of frames that came early, of all peers together. One may have as many as are left.
    pub early_bytes: u64,
    /// Frames after which an acknowledgement is sent at once.
    pub ack_every: u16,
    /// How long an acknowledgement may wait for a frame that takes it along.
    pub ack_delay: Duration,
    /// The shortest time after which a frame is sent again that nothing is known of.
    pub resend_min: Duration,
    /// The longest time between two attempts; it is shorter if a peer would otherwise be lost after
    /// fewer than 16 of them.
    pub resend_max: Duration,
    /// A peer is lost when nothing that is expected of it comes for this time, though it is
    /// probed: acknowledgements, the frames of a large message that were asked for, the rest of a
    /// message that has begun. Of a peer whose program takes its time, which has no room or has not
    /// received a large message, any frame is expected, and it answers probes.
    pub peer_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mtu: 1500,
            key: 0,
            crc: false,
            small_max: 128,
            eager_max: 32 << 10,
            bulk_min: 4608,
            head: 0,
            marks: Marks::ALL,
            mark_early: 0,
            context: ContextBits::NONE,
            window: 256,
            blocks: 4,
            pull_window: 256,
            guests: 4096,
            host_bytes: 6,
            // The window of many programs, 64 messages of 16 KiB, with what layers put before them.
            peer_credit: (1 << 20) + (64 << 10),
            unexpected_bytes: 256 << 20,
            unexpected_messages: 1 << 20,
            early_bytes: 16 << 20,
            ack_every: 16,
            ack_delay: Duration::from_micros(250),
            resend_min: Duration::from_millis(1),
            resend_max: Duration::from_millis(200),
            peer_timeout: Duration::from_millis(5_000),
        }
    }
}

/// So many probes are sent in the time after which a silent peer is lost.
const PROBES: u64 = 8;

/// So many attempts have to fail before a peer is lost: where a frame in eight is lost, seven in a
/// row are within a million seeds.
const ATTEMPTS: u64 = 16;

impl Config {
    /// The longest time between two attempts, with what the time permits after which a peer is
    /// lost.
    pub(crate) fn longest_wait(&self) -> Duration {
        let share = Duration::from_nanos(self.peer_timeout.as_nanos() / ATTEMPTS);
        self.resend_max.min(share.max(self.resend_min))
    }

    /// The time between two probes of a peer that is silent.
    pub(crate) const fn probe_interval(&self) -> Duration {
        Duration::from_nanos(self.peer_timeout.as_nanos() / PROBES)
    }

    /// What is wrong with these settings, if anything.
    ///
    /// # Errors
    /// The setting, its value, and what it may be.
    pub fn check(&self) -> Result<(), ConfigError> {
        let ranges = [
            ("mtu", self.mtu.into(), MIN_MTU.into(), MAX_MTU.into()),
            // A small message and its header fit into the smallest frame.
            ("small-max", self.small_max.into(), 0, 512),
            ("eager-max", self.eager_max.into(), self.small_max.into(), 1 << 20),
            ("head", self.head.into(), 0, HEAD as u64),
            ("window", self.window.into(), 8, 256),
            ("blocks", self.blocks.into(), 1, 64),
            ("pull-window", self.pull_window.into(), BLOCK_FRAMES.into(), 1 << 16),
            ("host-bytes", self.host_bytes.into(), 1, 6),
            ("peer-credit", self.peer_credit.into(), 0, 1 << 30),
            ("ack-every", self.ack_every.into(), 1, 128),
            ("context bits", self.context.bits.into(), 0, 16),
            ("context shift", self.context.shift.into(), 0, 63),
            ("context bits and shift", self.context.end(), 0, 64),
            ("ack-delay (ns)", self.ack_delay.as_nanos(), 0, 1_000_000_000),
            ("resend-min (ns)", self.resend_min.as_nanos(), 1_000, 10_000_000_000),
            ("resend-max (ns)", self.resend_max.as_nanos(), self.resend_min.as_nanos(), u64::MAX),
            ("peer-timeout (ns)", self.peer_timeout.as_nanos(), 1_000_000, u64::MAX),
        ];
        for (setting, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return Err(ConfigError { setting, value, least, most });
            }
        }
        Ok(())
    }
}

/// A setting that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    setting: &'static str,
    value: u64,
    least: u64,
    most: u64,
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { setting, value, least, most } = self;
        write!(f, "open an MX endpoint: {setting} is {value}, but may be {least} to {most}")
    }
}

impl core::error::Error for ConfigError {}

/// Frames that the sender marks, since a host waits for them: a NIC that looks at marks interrupts
/// for these (Open-MX paper, section III-B). Taking one away shows what it is worth (Table II).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// No frame is marked.
    pub const NONE: Self = Self(0);
    /// Messages of one frame.
    pub const SMALL: Self = Self(0x01);
    /// The last frame of an eager message.
    pub const MEDIUM_LAST: Self = Self(0x02);
    /// Announcements of large messages.
    pub const RENDEZVOUS: Self = Self(0x04);
    /// Pull requests are marked.
    pub const PULL: Self = Self(0x08);
    /// The last frame of each answer to a pull request.
    pub const REPLY_LAST: Self = Self(0x10);
    /// The end of a large message.
    pub const NOTIFY: Self = Self(0x20);
    /// What the paper marks.
    pub const ALL: Self = Self(0x3f);
    /// Besides the last frame, the one half way: of an eager message of many frames, and of a long
    /// answer to a pull request whose last frame is marked. The host works at the first half while
    /// the second is on the wire, for one more interrupt if it has finished by then. There is no
    /// such mark where other messages wait behind this one, nor without [`Marks::MEDIUM_LAST`] and
    /// [`Marks::REPLY_LAST`].
    pub const HALFWAY: Self = Self(0x40);

    /// What the paper marks, by name.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("small", Self::SMALL),
        ("medium-last", Self::MEDIUM_LAST),
        ("rendezvous", Self::RENDEZVOUS),
        ("pull", Self::PULL),
        ("reply-last", Self::REPLY_LAST),
        ("notify", Self::NOTIFY),
    ];

    /// These without those.
    #[must_use]
    pub const fn without(self, those: Self) -> Self {
        Self(self.0 & !those.0)
    }

    /// These and those.
    #[must_use]
    pub const fn with(self, those: Self) -> Self {
        Self(self.0 | those.0)
    }

    pub(crate) const fn marks_half_way(self) -> bool {
        self.0 & Self::HALFWAY.0 != 0
    }

    /// Whether a frame is marked that completes what its type is for.
    #[must_use]
    pub(crate) const fn has(self, frame: FrameType) -> bool {
        let of_the_type = match frame {
            FrameType::Small => Self::SMALL,
            FrameType::Medium => Self::MEDIUM_LAST,
            FrameType::Rendezvous => Self::RENDEZVOUS,
            FrameType::Pull => Self::PULL,
            FrameType::Reply => Self::REPLY_LAST,
            FrameType::Notify => Self::NOTIFY,
            _ => Self::NONE,
        };
        self.0 & of_the_type.0 != 0
    }
}

/// Which bits of the match information name a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextBits {
    /// How many, at most 16.
    pub bits: u8,
    /// How many bits are to the right of them.
    pub shift: u8,
}

impl ContextBits {
    /// One context for all.
    pub const NONE: Self = Self { bits: 0, shift: 0 };

    const fn end(self) -> u64 {
        self.bits as u64 + self.shift as u64
    }

    pub(crate) const fn mask(self) -> u64 {
        // At most 16 bits that end below 64: checked when the endpoint was opened.
        ((1 << self.bits) - 1) << self.shift
    }

    pub(crate) const fn of(self, match_info: u64) -> u16 {
        ((match_info & self.mask()) >> self.shift) as u16
    }
}
