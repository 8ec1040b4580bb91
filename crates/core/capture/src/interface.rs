//! An interface that a capture was made at.

use alloc::string::String;

/// What a capture says of one of its interfaces; pcap has one, without a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name, such as `eth0`, if the capture says it.
    pub name: Option<String>,
    /// The link type (`LINKTYPE_` number of tcpdump.org).
    pub link: i32,
    /// Bits per second, if the capture says it.
    pub speed: Option<u64>,
    /// In which steps its stamps count.
    pub resolution: Resolution,
    /// The packets that it has had so far.
    pub packets: u64,
}

/// The steps in which stamps count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Units of a second; never 0.
    pub per_second: u64,
    /// Seconds to add to each stamp.
    pub offset: i64,
}

impl Default for Resolution {
    fn default() -> Self {
        Self { per_second: 1_000_000, offset: 0 }
    }
}

impl Resolution {
    /// Nanoseconds since 1970 of a stamp in these units.
    #[inline]
    #[must_use]
    pub fn nanos(self, units: u64) -> u64 {
        let nanos = match self.per_second {
            1_000_000_000 => units,
            1_000_000 => units.saturating_mul(1_000),
            per_second => {
                let nanos = u128::from(units) * 1_000_000_000 / u128::from(per_second.max(1));
                u64::try_from(nanos).unwrap_or(u64::MAX)
            }
        };
        let offset = self.offset.saturating_mul(1_000_000_000);
        nanos.saturating_add_signed(offset)
    }

    /// Nanoseconds of a step, at least 1.
    #[must_use]
    pub fn step_ns(self) -> u64 {
        (1_000_000_000 / self.per_second.max(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_any_resolution_become_nanoseconds() {
        let of = |per_second, offset| Resolution { per_second, offset };
        assert_eq!(Resolution::default().nanos(1_500_000), 1_500_000_000);
        assert_eq!(of(1_000_000_000, 0).nanos(7), 7);
        assert_eq!(of(1 << 20, 0).nanos(1 << 19), 500_000_000);
        assert_eq!(of(1_000, 2).nanos(1), 2_001_000_000);
        assert_eq!(of(1_000, -9).nanos(1), 0, "before 1970");
        assert_eq!(of(1, 0).nanos(u64::MAX), u64::MAX);
        assert_eq!([of(1, 0), of(1 << 40, 0)].map(Resolution::step_ns), [1_000_000_000, 1]);
    }
}
