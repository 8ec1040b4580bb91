//! Counters of queues among a driver's own ones, which each driver names as it likes.
//!
//! For drivers that do not answer `qstats-get` . Names were taken from
//! the drivers in Linux, `drivers/net/`: `rx_queue_0_packets` (igb, ixgbe), `rx-0.packets` (i40e),
//! `rx0_packets` (mlx5), `queue_0_rx_cnt` (ena), `[0]: rx_ucast_packets` (bnxt), `rx_packets[0]`
//! (gve), `rx_0_packets` (mana).
//!
//! [`Netdev::queue_counters`]: super::napi::QueueCounters

use std::collections::BTreeMap;

use super::napi::{Direction, QueueCounters};

/// What queues have counted, from counters by their names, as `ethtool -S` has them.
pub fn queues_among(statistics: &BTreeMap<String, u64>) -> Vec<QueueCounters> {
    let mut queues: BTreeMap<(Direction, u32), BTreeMap<&'static str, u64>> = BTreeMap::new();
    for (name, value) in statistics {
        let Some((direction, id, counter)) = parse_name(name) else { continue };
        // Some count unicast, multicast and broadcast apart.
        let sum = queues.entry((direction, id)).or_default().entry(counter).or_insert(0);
        *sum = sum.wrapping_add(*value);
    }
    let queue = |((direction, id), counters)| QueueCounters { ifindex: 0, direction, id, counters };
    queues.into_iter().map(queue).collect()
}

/// Which queue a counter is of, and what it counts; `None` for anything else.
pub fn parse_name(name: &str) -> Option<(Direction, u32, &'static str)> {
    let (mut direction, mut id, mut unit) = (None, None, None);
    for word in words(name) {
        let previous = match word {
            "rx" => direction.replace(Direction::Rx).is_some(),
            "tx" => direction.replace(Direction::Tx).is_some(),
            "packets" | "pkts" | "cnt" => unit.replace("packets").is_some(),
            "bytes" => unit.replace("bytes").is_some(),
            "queue" | "q" | "ring" | "ucast" | "mcast" | "bcast" => false,
            number => id.replace(number.parse().ok()?).is_some(),
        };
        if previous {
            return None;
        }
    }
    let counter = match (direction?, unit?) {
        (Direction::Rx, "packets") => "rx-packets",
        (Direction::Rx, _) => "rx-bytes",
        (Direction::Tx, "packets") => "tx-packets",
        (Direction::Tx, _) => "tx-bytes",
    };
    Some((direction?, id?, counter))
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    let kind = |c: char| match c {
        c if c.is_ascii_alphabetic() => 1,
        c if c.is_ascii_digit() => 2,
        _ => 0,
    };
    let mut rest = name;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| kind(c) == 0);
        let first = kind(rest.chars().next()?);
        let (word, after) = rest.split_at(rest.find(|c| kind(c) != first).unwrap_or(rest.len()));
        rest = after;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_many_drivers_are_understood() {
        for name in [
            "rx_queue_3_packets",
            "rx-3.packets",
            "rx3_packets",
            "queue_3_rx_cnt",
            "[3]: rx_ucast_packets",
            "rx_packets[3]",
            "rx_3_packets",
        ] {
            assert_eq!(parse_name(name), Some((Direction::Rx, 3, "rx-packets")), "{name}");
        }
        assert_eq!(parse_name("tx_queue_12_bytes"), Some((Direction::Tx, 12, "tx-bytes")));
    }

    #[test]
    fn other_counters_are_not() {
        for name in [
            "rx_packets",
            "rx0_xdp_packets",
            "rx_queue_0_csum_err",
            "rx0_lro_packets",
            "rx_64_byte_packets",
            "rx0_tx0_packets",
            "rx_0_1_packets",
            "rx_99999999999_packets",
            "",
            "\u{fffd}",
        ] {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }

    #[test]
    fn kinds_of_packets_are_added_up() {
        let names = ["[0]: rx_ucast_packets", "[0]: rx_mcast_packets", "[1]: rx_ucast_packets"];
        let statistics = names.into_iter().zip([5, 2, 1]).map(|(name, n)| (name.to_owned(), n));
        let queues = queues_among(&statistics.collect());
        let packets: Vec<_> = queues.iter().map(|it| (it.id, it.counters["rx-packets"])).collect();
        assert_eq!(packets, [(0, 7), (1, 1)]);
    }
}
