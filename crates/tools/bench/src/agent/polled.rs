//! What busy polling brought in.

use std::fs;

/// Packets that came in by busy polling on this host, since it booted: `BusyPollRxPackets` of
/// /proc/net/netstat; 0 where there is no such count.
pub(super) fn packets() -> u64 {
    let text = fs::read_to_string("/proc/net/netstat").unwrap_or_default();
    count(&text, "TcpExt:", "BusyPollRxPackets").unwrap_or(0)
}

/// A count of a group: one line has the names, the next one the values.
fn count(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.find(|(it, _)| *it == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_by_name() {
        let text = "TcpExt: SyncookiesSent BusyPollRxPackets\nTcpExt: 3 77\n\
                    IpExt: InNoRoutes BusyPollRxPackets\nIpExt: 0 5\n";
        assert_eq!(count(text, "TcpExt:", "BusyPollRxPackets"), Some(77));
        assert_eq!(count(text, "TcpExt:", "Nothing"), None);
        assert_eq!(count("", "TcpExt:", "BusyPollRxPackets"), None);
    }
}
