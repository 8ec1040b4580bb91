//! What a capture of Earmark's own NIC says of a packet, in the packet's comment.

/// The hold of a packet, as the NIC has recorded it (`--pcap` of a lab).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Nanoseconds that it waited for its interrupt.
    pub hold_ns: u64,
    /// The interrupt that reported it, counted from 1; none if the host polled unasked.
    pub interrupt: Option<u64>,
    /// The queue that it came through.
    pub queue: u16,
}

impl Recorded {
    /// Reads a comment such as `mark=no hold=75.103us interrupt=412 reason=timer queue=0`; `None`
    /// for any other text.
    #[must_use]
    pub fn parse(comment: &[u8]) -> Option<Self> {
        let text = core::str::from_utf8(comment).ok()?;
        let value =
            |key| text.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let (micros, nanos) = value("hold")?.strip_suffix("us")?.split_once('.')?;
        let whole: u64 = micros.parse().ok()?;
        let part: u64 = nanos.parse().ok().filter(|nanos| *nanos < 1_000)?;
        value("mark")?;
        Some(Self {
            hold_ns: whole.checked_mul(1_000)?.checked_add(part)?,
            interrupt: value("interrupt").and_then(|number| number.parse().ok()),
            queue: value("queue")?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_comments_of_the_nic_are_read() {
        let read = |text: &str| Recorded::parse(text.as_bytes());
        let held = Recorded { hold_ns: 75_103, interrupt: Some(412), queue: 1 };
        assert_eq!(read("mark=no hold=75.103us interrupt=412 reason=timer queue=1"), Some(held));
        let late = "mark=yes hold=0.000us interrupt=412 reason=timer off=20.004us queue=1";
        assert_eq!(read(late), Some(Recorded { hold_ns: 0, ..held }));
        let polled = Recorded { hold_ns: 1, interrupt: None, queue: 0 };
        assert_eq!(read("mark=no hold=0.001us polled queue=0"), Some(polled));
        for other in ["transmitted", "hold=1.000us queue=0", "mark=no hold=9.9999us queue=0", ""] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
