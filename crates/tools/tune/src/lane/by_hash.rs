//! A lane without rules: the port numbers whose hash leads to a queue of its own.
//!
//! Receive-side scaling looks the low bits of a hash of addresses and ports up in a table of
//! queues. If one entry alone leads to the urgent queue, so do the flows whose hash picks that
//! entry, one in 128 for a table of 128. A client that may choose the port it sends from chooses
//! one of those. Other flows may hit the entry by chance, as rarely.
//!
//! The hash is that of Toeplitz over source address, destination address, source port and
//! destination port (Microsoft, "RSS hashing types", and the vectors of "Verifying the RSS hash
//! calculation"), under the key that the driver shows.

use std::net::IpAddr;

use netdev::ethtool::Rss;
use nic::rss::toeplitz;

/// The first port that a client would choose.
const FIRST: u16 = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flows {
    pub(crate) peer: IpAddr,
    pub(crate) local: IpAddr,
    pub(crate) port: u16,
}

/// Ports that lead to a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Ports {
    /// For a client on the far host, whose server is here.
    pub of_peer: Vec<u16>,
    /// For a client here, whose server is the far host.
    pub here: Vec<u16>,
}

/// The table that leaves one entry to `queue` and the others to `rest`, as far as they lead to
/// `queue` now; and which entry that is.
///
/// `None`: there is no table, or no other queue.
pub(super) fn table(now: &[u32], queue: u32, rest: &[u32]) -> Option<(Vec<u32>, usize)> {
    if rest.is_empty() || now.is_empty() {
        return None;
    }
    let entry = now.iter().rposition(|it| *it == queue).unwrap_or(now.len() - 1);
    let mut table = without(now, queue, rest);
    table[entry] = queue;
    Some((table, entry))
}

/// A table in which the entries of `queue` lead to `rest` in turn.
pub(super) fn without(table: &[u32], queue: u32, rest: &[u32]) -> Vec<u32> {
    let mut others = rest.iter().copied().cycle();
    let entry = |it: &u32| if *it == queue { others.next().unwrap_or(*it) } else { *it };
    table.iter().map(entry).collect()
}

pub(super) fn ports(rss: &Rss, entry: usize, flows: Flows) -> Result<Ports, String> {
    let size = rss.table.len();
    if !rss.is_toeplitz() {
        return Err("the device hashes in another way than Toeplitz'".into());
    }
    let addresses = match (flows.peer, flows.local) {
        (IpAddr::V4(peer), IpAddr::V4(local)) => [peer.octets(), local.octets()].concat(),
        (IpAddr::V6(peer), IpAddr::V6(local)) => [peer.octets(), local.octets()].concat(),
        _ => return Err("one address is of IPv4, the other of IPv6".into()),
    };
    // A window of 32 bits for each bit of the input.
    if rss.key.len() < addresses.len() + 8 {
        return Err("the driver does not show the key of its hash".into());
    }
    if !size.is_power_of_two() {
        return Err(format!("how a hash picks one of {size} entries is not known"));
    }
    // The hash is linear: each bit that is set adds its part, whatever the others are.
    let hash = |source: u16, destination: u16| {
        let ports = [source.to_be_bytes(), destination.to_be_bytes()].concat();
        toeplitz(&rss.key, &[addresses.clone(), ports].concat())
    };
    let none = hash(0, 0);
    let sources: [u32; 16] = std::array::from_fn(|bit| hash(1 << bit, 0) ^ none);
    let destinations: [u32; 16] = std::array::from_fn(|bit| hash(0, 1 << bit) ^ none);
    let find = |fixed: u32, parts: [u32; 16]| {
        let is_picked = |port: &u16| {
            let set = (0..16).filter(|bit| port >> bit & 1 == 1);
            set.fold(fixed, |sum, bit| sum ^ parts[bit]) as usize % size == entry
        };
        (FIRST..=u16::MAX).filter(is_picked).collect()
    };
    Ok(Ports {
        of_peer: find(hash(0, flows.port), sources),
        here: find(hash(flows.port, 0), destinations),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nic::rss::DEFAULT_KEY;

    fn rss(size: usize) -> Rss {
        let table = (0..size as u32).map(|at| at % 4).collect();
        Rss { table, key: DEFAULT_KEY.to_vec(), function: 1, transform: 0 }
    }

    type End = (&'static str, u16);

    /// Of "Verifying the RSS hash calculation": source, destination, hash with ports.
    const VECTORS: [(End, End, u32); 5] = [
        (("66.9.149.187", 2_794), ("161.142.100.80", 1_766), 0x51cc_c178),
        (("199.92.111.2", 14_230), ("65.69.140.83", 4_739), 0xc626_b0ea),
        (("38.27.205.30", 48_228), ("209.142.163.6", 2_217), 0xafc7_327f),
        (("3ffe:2501:200:1fff::7", 2_794), ("3ffe:2501:200:3::1", 1_766), 0x4020_7d3d),
        (("3ffe:501:8::260:97ff:fe40:efab", 14_230), ("ff02::1", 4_739), 0xdde5_1bbf),
    ];

    #[test]
    fn ports_of_the_published_vectors_are_among_those_found() {
        for ((peer, source), (local, port), hash) in VECTORS {
            let rss = rss(128);
            let flows = Flows { peer: peer.parse().unwrap(), local: local.parse().unwrap(), port };
            let found = ports(&rss, hash as usize % 128, flows).unwrap();
            assert!(found.of_peer.contains(&source), "{peer}");
            let other = ports(&rss, (hash as usize + 1) % 128, flows).unwrap();
            assert!(!other.of_peer.contains(&source), "{peer}");
            // As server of the same packet, whose port is the client's of ours.
            let reverse = Flows { port: source, ..flows };
            assert!(ports(&rss, hash as usize % 128, reverse).unwrap().here.contains(&port));
            // A hash spreads evenly, more or less.
            assert!((400..620).contains(&found.of_peer.len()), "{}", found.of_peer.len());
        }
    }

    #[test]
    fn one_entry_is_left_to_the_lane() {
        let (table, entry) = table(&[0, 1, 2, 3, 0, 1, 2, 3], 3, &[0, 1, 2]).unwrap();
        assert_eq!((table, entry), (vec![0, 1, 2, 0, 0, 1, 2, 3], 7));
        let (table, entry) = super::table(&[0, 0, 0, 0], 1, &[0]).unwrap();
        assert_eq!((table, entry), (vec![0, 0, 0, 1], 3));
        assert_eq!(super::table(&[0, 0], 0, &[]), None);
        assert_eq!(super::table(&[], 1, &[0]), None);
    }

    #[test]
    fn a_hash_that_is_not_known_is_refused() {
        let flows = Flows {
            peer: "10.0.0.1".parse().unwrap(),
            local: "10.0.0.2".parse().unwrap(),
            port: 7,
        };
        for (rss, words) in [
            (Rss { function: 2, ..rss(128) }, "another way than Toeplitz'"),
            (Rss { transform: 1, ..rss(128) }, "another way than Toeplitz'"),
            (Rss { key: vec![], ..rss(128) }, "does not show the key"),
            (rss(100), "one of 100 entries"),
        ] {
            assert!(ports(&rss, 0, flows).unwrap_err().contains(words), "{rss:?}");
        }
        let mixed = Flows { peer: "::1".parse().unwrap(), ..flows };
        assert!(ports(&rss(128), 0, mixed).unwrap_err().contains("IPv6"));
    }
}
