//! `earmark mx peers`: hosts on the segment.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use mx_io::discovery::{DiscoveredEndpoint, discover};
use mx_io::port::{self, LAST_ENDPOINT, NicId, PortSpec};
use serde::Serialize;

use report::terminal::{Table, Width};
use report::{errln, json, outln};

/// How long hosts have to answer.
const ANSWERS: Duration = Duration::from_millis(500);

#[derive(Args, Debug)]
pub(crate) struct PeersArgs {
    /// Where to look: packet:IFACE or virtio:SOCKET
    #[arg(long, value_name = "PORT")]
    port: PortSpec,
    /// Look for this host only
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A NIC of a host.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct SegmentHost {
    host: String,
    nic: String,
    /// The version of MX that it speaks.
    version: u16,
    /// Numbers of its endpoints.
    endpoints: Vec<u8>,
}

/// Prints who answers.
pub(super) fn run(args: &PeersArgs) -> Result<()> {
    if let PortSpec::Udp(_) | PortSpec::UdpOn { .. } = args.port {
        bail!(
            "look for peers through {}: there is no broadcast over UDP; write them into a peers \
             file, or use packet:IFACE",
            args.port
        );
    }
    // The last that is free: programs number theirs from the beginning.
    let mut port = port::open_free(&args.port, (0..=LAST_ENDPOINT).rev())?;
    let peers = by_nic(discover(&mut *port, args.host.as_deref(), ANSWERS)?);
    if args.json {
        return json::print_list("hosts", &peers);
    }
    if peers.is_empty() {
        errln!("no host has answered; endpoints answer while a program has them open");
        return Ok(());
    }
    let mut table = Table::new([("host", 0), ("address", 0), ("endpoints", 0), ("version", 1)]);
    for peer in peers {
        let endpoints = list(&peer.endpoints);
        table.add_row([peer.host, peer.nic, endpoints, peer.version.to_string()]);
    }
    outln!("{}", table.fit(Width::of_output()));
    Ok(())
}

/// Endpoints of a NIC together, hosts in the order of their names.
fn by_nic(found: Vec<DiscoveredEndpoint>) -> Vec<SegmentHost> {
    let mut nics: BTreeMap<(String, NicId, u16), Vec<u8>> = BTreeMap::new();
    for DiscoveredEndpoint { host, address, version } in found {
        nics.entry((host, address.nic, version)).or_default().push(address.endpoint);
    }
    let peer = |((host, nic, version), endpoints)| {
        let nic = NicId::to_string(&nic);
        SegmentHost { host, nic, version, endpoints }
    };
    nics.into_iter().map(peer).collect()
}

/// Numbers in ascending order, as people write them: `0-3, 7`.
fn list(numbers: &[u8]) -> String {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let text = |(first, last): (u8, u8)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use mx_io::discovery::DiscoveredEndpoint;

    use super::*;

    #[test]
    fn endpoints_of_a_nic_are_together() {
        let found = |host: &str, nic: u8, endpoint| {
            let mut one =
                DiscoveredEndpoint { host: host.to_owned(), ..DiscoveredEndpoint::default() };
            one.address.nic = NicId([nic; 6]);
            one.address.endpoint = endpoint;
            one
        };
        let peers = by_nic(vec![found("b", 2, 0), found("b", 2, 1), found("a", 4, 3)]);
        let shown: Vec<_> = peers.iter().map(|it| (&*it.host, list(&it.endpoints))).collect();
        assert_eq!(shown, [("a", "3".to_owned()), ("b", "0-1".to_owned())]);
        assert_eq!(peers[0].nic, "04:04:04:04:04:04");
    }

    #[test]
    fn numbers_in_a_row_are_a_range() {
        assert_eq!(list(&[0, 1, 2, 7, 254, 255]), "0-2, 7, 254-255");
        assert_eq!(list(&[]), "");
    }
}
