//! The softirq that receives: what each processor has handled, dropped and left for later.
//!
//! Format: `softnet_seq_show` of Linux, `net/core/net-procfs.c`: a line of hexadecimal words for
//! each processor that is online. Words were added over the years: 9 at first, the processor's
//! number with Linux 5.10, the lengths of both queues with 6.2.

use serde::Serialize;

use super::kernel::KernelFiles;

/// What a processor's receiving softirq has done since the machine runs. Counters wrap at 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Softnet {
    /// The processor. Before Linux 5.10, its place among those that are online.
    pub cpu: u32,
    /// Packets that it has handled.
    pub processed: u32,
    /// Packets dropped since the backlog was full.
    pub dropped: u32,
    /// How often it stopped with work left: budget or time were used up (a "squeeze").
    pub squeezed: u32,
    /// How often another processor sent packets here (RPS).
    pub received_rps: u32,
    /// Packets dropped since one flow had most of the backlog.
    pub flow_limited: u32,
    /// Packets that wait in the backlog; `None` before Linux 5.10 and 6.2, respectively.
    pub backlog: Option<u32>,
}

/// Reads `/proc/net/softnet_stat`; `None` if a line is none of it.
pub fn parse_softnet(text: &str) -> Option<Vec<Softnet>> {
    text.lines().enumerate().map(|(place, line)| parse_line(place, line)).collect()
}

fn parse_line(place: usize, line: &str) -> Option<Softnet> {
    let word = |word: &str| u32::from_str_radix(word, 16).ok().filter(|_| !word.starts_with('+'));
    let words: Vec<u32> = line.split_whitespace().map(word).collect::<Option<_>>()?;
    let (processed, dropped, squeezed) = (*words.first()?, *words.get(1)?, *words.get(2)?);
    Some(Softnet {
        cpu: words.get(12).copied().or_else(|| u32::try_from(place).ok())?,
        processed,
        dropped,
        squeezed,
        received_rps: words.get(9).copied().unwrap_or(0),
        flow_limited: words.get(10).copied().unwrap_or(0),
        backlog: words.get(11).copied().filter(|_| words.len() > 12),
    })
}

/// The limits of a receiving softirq, and polling by programs; `None` where the kernel, or a
/// network namespace, does not show one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SoftnetLimits {
    /// Packets at most in one go, over all devices.
    pub netdev_budget: Option<u64>,
    /// Microseconds at most in one go.
    pub netdev_budget_usecs: Option<u64>,
    /// Packets at most from the backlog at once.
    pub dev_weight: Option<u64>,
    /// Packets that may wait in a backlog.
    pub netdev_max_backlog: Option<u64>,
    /// Packets that GRO gathers before it hands them on.
    pub gro_normal_batch: Option<u64>,
    /// Microseconds that `poll` and `select` look at the device themselves.
    pub busy_poll: Option<u64>,
    /// Microseconds that a blocking read looks at the device itself.
    pub busy_read: Option<u64>,
    /// Flows that the stack keeps the reading processor of (RFS).
    pub rps_sock_flow_entries: Option<u64>,
}

/// The limits, from `/proc/sys/net/core`.
pub fn read_limits(files: &dyn KernelFiles) -> SoftnetLimits {
    let number = |name: &str| files.number(&format!("proc/sys/net/core/{name}"));
    SoftnetLimits {
        netdev_budget: number("netdev_budget"),
        netdev_budget_usecs: number("netdev_budget_usecs"),
        dev_weight: number("dev_weight"),
        netdev_max_backlog: number("netdev_max_backlog"),
        gro_normal_batch: number("gro_normal_batch"),
        busy_poll: number("busy_poll"),
        busy_read: number("busy_read"),
        rps_sock_flow_entries: number("rps_sock_flow_entries"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_none() {
        for text in ["\n", "1 2\n", "1 2 x\n", "-1 0 0\n", "123456789 0 0\n", "+1 0 0", "\u{fffd}"]
        {
            assert_eq!(parse_softnet(text), None, "{text:?}");
        }
        assert_eq!(parse_softnet(""), Some(vec![]));
    }
}
