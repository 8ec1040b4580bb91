//! What an MPI's messages cost over Earmark, over its own TCP, and over libfabric's `tcp;ofi_rxm`
//! and `udp;ofi_rxd`: on two hosts joined by a veth; first without offloads, so that every frame
//! is one of Ethernet, then as a veth is, which passes on 64 KiB of TCP or of datagrams as one, as
//! NICs do that take them apart by themselves. Or, with `within-host`, between two ranks on one
//! host, over Earmark and over the MPI's own shared memory.
//!
//! ```console
//! $ cargo build --release -p earmark-provider --lib
//! $ cargo run --release -p earmark-provider --example mpi_figures -- N [within-host] [WHAT...]
//! ```
//!
//! All nets have their turn in each of `N` rounds, on a machine that is idle before each; each rank
//! has a core. `WHAT` may name some of the figures. A figure is the median of the rounds, a ratio
//! the median of the ratios within a round. It needs root, Open MPI, hpcc and ethtool.

#[path = "../../tests/programs/hosts.rs"]
mod hosts;
mod idle;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/programs/launch.rs"]
mod launch;
mod random_access;

use std::collections::BTreeMap;
use std::path::Path;

use base::quantiles::median;
use hosts::{Hosts, NAMES, run};
use launch::{Mpi, Net};
use serde_json::{Value, json};

/// What takes turns: a name, the net, and the port of Earmark.
const NETS: [(&str, Net, &str); 5] = [
    ("earmark packet+tcp", Net::Earmark, "packet:eth0+tcp"),
    ("earmark packet", Net::Earmark, "packet:eth0"),
    ("tcp", Net::Tcp, ""),
    ("tcp;ofi_rxm", Net::Rxm, ""),
    ("udp;ofi_rxd", Net::Rxd, ""),
];

const NETS_WITHIN_HOST: [(&str, Net); 2] = [("earmark", Net::Earmark), ("vader", Net::Vader)];

const RUNS: [&[&str]; 6] = [
    &["latency", "0", "64", "1024", "4096", "16384", "65536", "262144", "1048576", "4194304"],
    &["bw", "4096", "16384", "65536", "1048576"],
    &["bibw", "4096", "16384", "65536", "1048576"],
    &["rate", "8"],
    &["allreduce", "8", "1024", "16384", "1048576"],
    &["alltoall", "8", "1024", "16384", "1048576"],
];
const RANDOM_ACCESS: &str = "random-access";

/// The same of every round, by what was measured and over which net.
type Figures = BTreeMap<(String, u64), BTreeMap<&'static str, Vec<f64>>>;

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(5, |text| text.parse().expect("ROUNDS"));
    let mut what: Vec<String> = std::env::args().skip(2).collect();
    let is_within_host = what.first().is_some_and(|name| name == "within-host");
    if is_within_host {
        what.remove(0);
    }
    let is_wanted = |name: &str| what.is_empty() || what.iter().any(|other| other == name);
    if is_wanted(RANDOM_ACCESS) && !is_within_host {
        random_access::require();
    }
    let version = run(std::process::Command::new("mpirun").arg("--version"));
    let figures = if is_within_host {
        json!({ "within_host": within_host(rounds, &is_wanted) })
    } else {
        let framings = [false, true].map(|offloads| framing(offloads, rounds, &is_wanted));
        json!({ "congestion_control": hosts::CONGESTION_CONTROL, "framings": framings })
    };
    let mut out = json!({
        "schema_version": 1, "rounds": rounds, "mpi": version.lines().next(),
    });
    if let (Value::Object(out), Value::Object(mut figures)) = (&mut out, figures) {
        out.append(&mut figures);
    }
    println!("{}", serde_json::to_string_pretty(&out).expect("JSON"));
}

/// What makes a veth pass on frames that are longer than those of Ethernet, or join them.
const OFFLOADS: [&str; 4] = ["tso", "gso", "gro", "tx-udp-segmentation"];

fn framing(offloads: bool, rounds: usize, is_wanted: &impl Fn(&str) -> bool) -> Value {
    let hosts = Hosts::new();
    for name in NAMES.into_iter().filter(|_| !offloads) {
        let off = OFFLOADS.into_iter().flat_map(|offload| [offload, "off"]);
        run(hosts.command(name, "ethtool").args(["-K", "eth0"]).args(off));
    }
    let mpi = Mpi::packaged();
    let program = mpi.compile(&hosts, "figures");
    let mut idle = Vec::new();
    let mut figures = Figures::new();
    for round in 1..=rounds {
        for (name, net, port) in NETS {
            eprintln!("offloads {offloads}, round {round} of {rounds}: {name}");
            let variables: &[_] = if port.is_empty() { &[] } else { &[("EARMARK_PORT", port)] };
            let start = |program: &Path, arguments: &[&str]| {
                let mut command = mpi.launch(&hosts, (net, 1), variables);
                command.arg(hosts.path("pin")).arg(program).args(arguments);
                command
            };
            for arguments in RUNS.into_iter().filter(|run| is_wanted(run[0])) {
                idle.push(idle::wait());
                for line in run(&mut start(&program, arguments)).lines() {
                    note(&mut figures, name, line);
                }
            }
            if !is_wanted(RANDOM_ACCESS) {
                continue;
            }
            idle.push(idle::wait());
            let updates = random_access::run(&hosts, |program| start(program, &[]));
            figures
                .entry((RANDOM_ACCESS.into(), 0))
                .or_default()
                .entry(name)
                .or_default()
                .push(updates);
        }
    }
    let figures: Vec<_> = figures.iter().map(figure).collect();
    json!({ "offloads": offloads, "idle_before": spread(&idle), "figures": figures })
}

fn within_host(rounds: usize, is_wanted: &impl Fn(&str) -> bool) -> Value {
    let hosts = Hosts::new();
    let mpi = Mpi::packaged();
    let program = mpi.compile(&hosts, "figures");
    let mut idle = Vec::new();
    let mut figures = Figures::new();
    for round in 1..=rounds {
        for (name, net) in NETS_WITHIN_HOST {
            eprintln!("within a host, round {round} of {rounds}: {name}");
            for arguments in RUNS.into_iter().filter(|run| is_wanted(run[0])) {
                idle.push(idle::wait());
                let mut command = mpi.launch_on(&hosts, &NAMES[..1], (net, 2), &[]);
                command.arg(hosts.path("pin")).arg(&program).args(arguments);
                for line in run(&mut command).lines() {
                    note(&mut figures, name, line);
                }
            }
        }
    }
    let figures: Vec<_> = figures.iter().map(figure).collect();
    json!({ "idle_before": spread(&idle), "figures": figures })
}

/// Takes a line that a program has printed, if it is a figure.
fn note(figures: &mut Figures, net: &'static str, line: &str) {
    let Ok(figure) = serde_json::from_str::<Value>(line) else { return };
    let (what, bytes) = (figure["what"].as_str(), figure["bytes"].as_u64());
    let (Some(what), Some(bytes), Some(value)) = (what, bytes, figure["median"].as_f64()) else {
        return;
    };
    figures.entry((what.to_owned(), bytes)).or_default().entry(net).or_default().push(value);
}

/// One figure over every net, and how the first net compares with each other one.
fn figure(((what, bytes), nets): (&(String, u64), &BTreeMap<&'static str, Vec<f64>>)) -> Value {
    let unit = match what.as_str() {
        "latency" => "us, one way",
        "allreduce" | "alltoall" => "us",
        "bw" | "bibw" => "MB/s",
        "rate" => "messages/s",
        _ => "GUP/s",
    };
    let values: BTreeMap<_, _> =
        nets.iter().map(|(name, values)| (*name, spread(values))).collect();
    let names = [NETS[0].0, NETS_WITHIN_HOST[0].0];
    let ours = names.into_iter().find_map(|name| nets.get(name)).expect("ours among the nets");
    let mut ratios = BTreeMap::new();
    for (name, theirs) in nets {
        let of_rounds: Vec<f64> = ours.iter().zip(theirs).map(|(our, their)| our / their).collect();
        ratios.insert(*name, spread(&of_rounds));
    }
    json!({ "what": what, "bytes": bytes, "unit": unit, "values": values, "ratios": ratios })
}

/// The median, the least and the most.
fn spread(values: &[f64]) -> Value {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    json!({ "median": median(values.iter().copied()), "least": sorted[0], "most": sorted[sorted.len() - 1] })
}
