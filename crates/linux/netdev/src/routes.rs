//! By which device packets to an address leave: from `/proc/net/route` and `/proc/net/ipv6_route`.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The device by which this network reaches `to` from `local`; `None` if no route says so.
pub fn device(local: IpAddr, to: IpAddr) -> Option<String> {
    if local == to || to.is_loopback() {
        return Some("lo".into());
    }
    match to {
        IpAddr::V4(to) => v4(&fs::read_to_string("/proc/net/route").ok()?, to),
        IpAddr::V6(to) => v6(&fs::read_to_string("/proc/net/ipv6_route").ok()?, to),
    }
}

/// The longest route that fits; of several, the one with the lowest metric.
fn v4(table: &str, to: Ipv4Addr) -> Option<String> {
    let to = u32::from(to);
    let route = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let hex = |index: usize| u32::from_str_radix(words.get(index)?, 16).ok();
        // As they lie in memory.
        let (destination, mask) = (hex(1)?.to_le_bytes(), hex(7)?.to_le_bytes());
        let (destination, mask) = (u32::from_be_bytes(destination), u32::from_be_bytes(mask));
        let metric: u32 = words.get(6)?.parse().ok()?;
        let is_up = hex(3)? & 1 != 0;
        (is_up && to & mask == destination)
            .then(|| (mask.count_ones(), u32::MAX - metric, words[0].to_owned()))
    };
    table.lines().skip(1).filter_map(route).max().map(|(.., device)| device)
}

fn v6(table: &str, to: Ipv6Addr) -> Option<String> {
    let to = u128::from(to);
    let route = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let destination = u128::from_str_radix(words.first()?, 16).ok()?;
        let prefix = u32::from_str_radix(words.get(1)?, 16).ok().filter(|prefix| *prefix <= 128)?;
        let metric = u32::from_str_radix(words.get(5)?, 16).ok()?;
        let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
        let device = words.get(9)?;
        // The last resort, which refuses, is a route of the loopback device.
        let refuses = prefix == 0 && *device == "lo";
        (!refuses && to & mask == destination)
            .then(|| (prefix, u32::MAX - metric, (*device).to_owned()))
    };
    table.lines().filter_map(route).max().map(|(.., device)| device)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        eth1\t0000090A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        eth2\t0000090A\t00000000\t0001\t0\t0\t5\t00FFFFFF\t0\t0\t0\n";
    const V6: &str = "fd090000000000000000000000000000 40 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 00000100 00000001 00000000 00000001       a0\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";

    #[test]
    fn longest_route_wins_and_then_the_lowest_metric() {
        assert_eq!(v4(V4, Ipv4Addr::new(10, 9, 0, 2)).as_deref(), Some("eth1"));
        assert_eq!(v4(V4, Ipv4Addr::new(8, 8, 8, 8)).as_deref(), Some("eth0"));
        assert_eq!(v6(V6, "fd09::2".parse().unwrap()).as_deref(), Some("a0"));
        assert_eq!(v6(V6, "2001:db8::1".parse().unwrap()), None);
    }

    #[test]
    fn malformed_tables_have_no_routes() {
        for text in ["", "x", "x\ny\n", "h\neth0\tzz\t0\t1\n", "h\neth0 0 0 1\n"] {
            assert_eq!(v4(text, Ipv4Addr::LOCALHOST), None);
            assert_eq!(v6(text, Ipv6Addr::LOCALHOST), None);
        }
        assert_eq!(v6("0 ffff 0 0 0 0 0 0 0 eth0", Ipv6Addr::LOCALHOST), None);
    }

    #[test]
    fn own_addresses_are_reached_by_the_loopback() {
        let own: IpAddr = "192.0.2.7".parse().unwrap();
        assert_eq!(device(own, own).as_deref(), Some("lo"));
    }
}
