//! Sequence numbers that wrap.

use core::fmt;

/// The number of a frame, or of whatever is counted without end in 32 bits (RFC 1982). Two numbers
/// are compared by the shorter way around, so they must be less than 2^31 apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(pub u32);

impl Seq {
    /// The number `count` later.
    #[must_use]
    pub const fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// How far this number is after `other`; negative if it is before it.
    #[must_use]
    pub const fn after(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// The later one of two numbers.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if self.after(other) > 0 { self } else { other }
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap() {
        let last = Seq(u32::MAX);
        assert_eq!(last.plus(1), Seq(0));
        assert_eq!(last.plus(3).after(last), 3);
        assert_eq!(last.after(last.plus(3)), -3);
        assert_eq!(last.max(Seq(1)), Seq(1));
    }
}
