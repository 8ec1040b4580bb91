//! What an MPI's messages cost over Earmark, over its own TCP, over UCX's, and over libfabric's
//! `tcp;ofi_rxm`: on two hosts joined by a veth; first without offloads, so that
//! every frame is one of Ethernet, then as a veth is, which passes on 64 KiB of TCP or of datagrams
//! as one, as NICs do that take them apart by themselves. Or, with `within-host`, between two ranks
//! on one host, over Earmark and over the MPI's own shared memory, and between two programs of
//! libfabric's, over Earmark and its `shm`.
//!
//! ```console
//! $ cargo build --release -p earmark-provider --lib
//! $ cargo run --release -p earmark-provider --example mpi_figures -- N [within-host] [WHAT...]
//! ```
//!
//! All nets have their turn at a few figures, and then at the next ones, in each of `N` rounds: a
//! machine that changes between changes for all of them. Each rank has a core. `WHAT` may name some
//! of the figures. Figures and ratios are those of `turns.rs`. `xtask/benches.toml` has how to
//! start it on a machine that does other work. It needs root, Open MPI, hpcc for `random-access`,
//! and ethtool.

#[path = "../../tests/programs/hosts.rs"]
mod hosts;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/programs/launch.rs"]
mod launch;
mod pingpong;
mod random_access;
mod turns;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use hosts::{Hosts, NAMES, run};
use launch::{Mpi, Net};
use serde_json::{Value, json};
use turns::Turns;

/// What takes turns: a name, the net, and the port of Earmark.
const NETS: [(&str, Net, &str); 5] = [
    ("earmark packet+tcp", Net::Earmark, "packet:eth0+tcp"),
    ("earmark packet", Net::Earmark, "packet:eth0"),
    ("tcp", Net::Tcp, ""),
    ("ucx tcp", Net::Ucx, ""),
    ("tcp;ofi_rxm", Net::Rxm, ""),
];

const NETS_WITHIN_HOST: [(&str, Net); 2] = [("earmark", Net::Earmark), ("vader", Net::Vader)];

const RUNS: [&str; 8] = [
    "latency 0 64 1024 2048",
    "latency 4096 8192 16384 65536",
    "latency 262144 1048576 4194304",
    "bw 4096 16384 65536 1048576",
    "bibw 4096 16384 65536 1048576",
    "rate 8",
    "allreduce 8 1024 16384 1048576",
    "alltoall 8 1024 16384 1048576",
];
const RANDOM_ACCESS: &str = "random-access";
/// What libfabric's own program says of it: Open MPI 4 does not take its `shm`.
const PINGPONG: &str = "fi_pingpong";
const PROVIDERS: [&str; 2] = ["earmark", "shm"];

/// The turns of every figure, by what was measured and the bytes of a message.
type Figures = BTreeMap<(String, u64), Turns>;

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
    let version = run(Command::new("mpirun").arg("--version"));
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
    let mut figures = Figures::new();
    let start = |(net, port): (Net, &str), program: &Path, arguments: &[&str]| {
        let variables: &[_] = if port.is_empty() { &[] } else { &[("EARMARK_PORT", port)] };
        let mut command = mpi.launch(&hosts, (net, 1), variables);
        command.arg(hosts.path("pin")).arg(program).args(arguments);
        command
    };
    for round in 1..=rounds {
        eprintln!("offloads {offloads}, round {round} of {rounds}");
        for what in wanted(is_wanted) {
            for (name, net, port) in NETS {
                play(&mut figures, (name, round), &mut start((net, port), &program, &what));
            }
        }
        for (name, net, port) in NETS.into_iter().filter(|_| is_wanted(RANDOM_ACCESS)) {
            let (updates, line_ns) = between_lines(
                || start((net, port), &program, &["line", "0"]),
                || random_access::run(&hosts, |program| start((net, port), program, &[])),
            );
            let turns = figures.entry((RANDOM_ACCESS.into(), 0)).or_default();
            turns.add(name, round, updates, &line_ns);
        }
    }
    let figures: Vec<_> = figures.iter().map(|it| figure(it, NETS[0].0)).collect();
    json!({ "offloads": offloads, "figures": figures })
}

fn within_host(rounds: usize, is_wanted: &impl Fn(&str) -> bool) -> Value {
    let hosts = Hosts::new();
    let mpi = Mpi::packaged();
    let program = mpi.compile(&hosts, "figures");
    let mut figures = Figures::new();
    for round in 1..=rounds {
        eprintln!("within a host, round {round} of {rounds}");
        for what in wanted(is_wanted) {
            for (name, net) in NETS_WITHIN_HOST {
                let mut command = mpi.launch_on(&hosts, &NAMES[..1], (net, 2), &[]);
                command.arg(hosts.path("pin")).arg(&program).args(&what);
                play(&mut figures, (name, round), &mut command);
            }
        }
        if !is_wanted(PINGPONG) {
            continue;
        }
        let line = || {
            let mut command = mpi.launch_on(&hosts, &NAMES[..1], (Net::Vader, 2), &[]);
            command.arg(hosts.path("pin")).arg(&program).args(["line", "0"]);
            command
        };
        for (bytes, name) in
            pingpong::SIZES.iter().flat_map(|bytes| PROVIDERS.map(|it| (*bytes, it)))
        {
            let (us, line_ns) = between_lines(line, || pingpong::run(&hosts, name, bytes));
            let turns = figures.entry((PINGPONG.into(), bytes)).or_default();
            turns.add(name, round, us, &line_ns);
        }
    }
    let figures: Vec<_> = figures.iter().map(|it| figure(it, NETS_WITHIN_HOST[0].0)).collect();
    json!({ "figures": figures })
}

/// The words of each of [`RUNS`] that is wanted.
fn wanted(is_wanted: &impl Fn(&str) -> bool) -> impl Iterator<Item = Vec<&'static str>> {
    let runs = RUNS.map(|run| run.split(' ').collect::<Vec<_>>());
    runs.into_iter().filter(|run| is_wanted(run[0]))
}

/// The turn of a net at some figures.
fn play(figures: &mut Figures, turn: (&'static str, usize), command: &mut Command) {
    run(command).lines().for_each(|line| note(figures, turn, line));
}

/// Measures by another program, and with `line`, which starts `figures`, how far the cores are from
/// each other before and after that, in ns.
fn between_lines(line: impl Fn() -> Command, measure: impl FnOnce() -> f64) -> (f64, Vec<f64>) {
    let line_ns = || {
        let text = run(&mut line());
        let figures = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let pairs = figures.filter_map(|figure| figure["line_ns"].as_array().cloned());
        pairs.flatten().filter_map(|ns| ns.as_f64()).collect::<Vec<_>>()
    };
    let before = line_ns();
    let value = measure();
    (value, [before, line_ns()].concat())
}

/// Takes a line that a program has printed, if it is a figure.
fn note(figures: &mut Figures, (net, round): (&'static str, usize), line: &str) {
    let Ok(figure) = serde_json::from_str::<Value>(line) else { return };
    let (what, bytes) = (figure["what"].as_str(), figure["bytes"].as_u64());
    let line_ns = figure["line_ns"].as_array();
    let (Some(what), Some(bytes), Some(value), Some(line_ns)) =
        (what, bytes, figure["median"].as_f64(), line_ns)
    else {
        return;
    };
    let line_ns: Vec<f64> = line_ns.iter().filter_map(Value::as_f64).collect();
    let turns = figures.entry((what.to_owned(), bytes)).or_default();
    turns.add(net, round, value, &line_ns);
}

/// One figure over every net in each state.
fn figure(((what, bytes), turns): (&(String, u64), &Turns), ours: &str) -> Value {
    let unit = match what.as_str() {
        "latency" | PINGPONG => "us, one way",
        "allreduce" | "alltoall" => "us",
        "bw" | "bibw" => "MB/s",
        "rate" => "messages/s",
        _ => "GUP/s",
    };
    let (states, changed) = (turns.states(ours), turns.changed());
    json!({ "what": what, "bytes": bytes, "unit": unit, "states": states, "changed": changed })
}
