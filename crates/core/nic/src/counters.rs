//! What a queue and a port have counted since they were made. Free-running, never reset: subtract
//! two readings.

use crate::descriptor::Descriptor;
use crate::moderation::Reason;
use core::ops::{Add, Sub};

/// Declares [`Counters`] once: fields, docs, names, sum and difference all come from this one list.
macro_rules! counters {
    ($($(#[doc = $doc:literal])* $field:ident = $name:literal,)*) => {
        /// Counters of one queue; added up, of a port.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[doc = $doc])* pub $field: u64,)*
            /// Interrupts by [`Reason`], in the order of [`Reason::ALL`].
            pub interrupts: [u64; Reason::ALL.len()],
        }

        impl Counters {
            /// Every counter but the interrupts, with the name that `nic show` prints.
            #[must_use]
            pub fn named(&self) -> [(&'static str, u64); [$($name),*].len()] {
                [$(($name, self.$field)),*]
            }

            fn combine(self, other: Self, op: impl Fn(u64, u64) -> u64) -> Self {
                let mut interrupts = self.interrupts;
                for (mine, theirs) in interrupts.iter_mut().zip(other.interrupts) {
                    *mine = op(*mine, theirs);
                }
                Self { $($field: op(self.$field, other.$field),)* interrupts }
            }
        }
    };
}

counters! {
    /// Frames put into the ring.
    packets = "rx-packets",
    /// Their bytes, Ethernet headers included.
    bytes = "rx-bytes",
    /// Those among them that a rule marked.
    marked = "rx-marked",
    /// Those among them whose headers lie or end early; they are never marked.
    malformed = "rx-malformed",
    /// Frames dropped because they are shorter than an Ethernet header or longer than 65,535 bytes.
    bad_length = "rx-length-errors",
    /// Frames dropped because the ring was full.
    ring_full = "rx-missed",
    /// Packets that the host took.
    delivered = "rx-delivered",
    /// Polls of the host that took at least one packet.
    polls = "polls",
    /// Transmissions of the host that completed, where these share the interrupt.
    transmit_completions = "tx-completions",
}

impl Counters {
    /// Interrupts for any reason.
    #[must_use]
    pub fn interrupts_total(&self) -> u64 {
        self.interrupts.iter().sum()
    }

    /// Interrupts for `reason`.
    #[must_use]
    pub fn interrupts_for(&self, reason: Reason) -> u64 {
        self.interrupts[reason as usize]
    }

    /// A packet was put into a ring.
    pub(crate) fn count_arrival(&mut self, descriptor: &Descriptor) {
        self.packets += 1;
        self.bytes += u64::from(descriptor.length);
        self.marked += u64::from(descriptor.marked);
    }

    pub(crate) fn count_interrupt(&mut self, reason: Reason) {
        self.interrupts[reason as usize] += 1;
    }
}

impl Add for Counters {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.combine(other, u64::wrapping_add)
    }
}

impl Sub for Counters {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        self.combine(earlier, u64::wrapping_sub)
    }
}
