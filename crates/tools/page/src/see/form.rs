//! What can be set: flags of `earmark bench`, with the values that a page offers.

use std::collections::BTreeMap;

use bench::applicability::{HostKind, Use};
use bench::experiment::Experiment;
use bench::line;
use bench::options::{ExperimentOptions, NicOptions};
use clap::ValueEnum;
use model::machine::Machine;
use nic::moderation::{Coalesce, Moderation, Profile};
use serde::Serialize;

/// Values of the page, by the names of their controls.
pub(crate) type Values = BTreeMap<String, String>;

/// The number of cores, which is a key of `--machine`.
const CORES: &str = "cores";

/// Something that can be set.
#[derive(Debug, Serialize)]
struct Setter {
    /// The flag, or the argument, that it sets.
    name: &'static str,
    kind: SetterKind,
    /// The values that it takes, in order; the empty one leaves the flag out.
    stops: Vec<String>,
    /// What it has at first.
    value: &'static str,
    unit: &'static str,
}

/// The same as a form has it.
#[derive(Debug, Serialize)]
pub(crate) struct SetterOfForm {
    #[serde(flatten)]
    setter: Setter,
    /// What the command's help says of it.
    hint: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum SetterKind {
    /// One of several words.
    Choice,
    /// A number, on a slider.
    Range,
    /// Given or not.
    Check,
}

/// Experiments that a page plays in a moment.
const EXPERIMENTS: [Experiment; 12] = [
    Experiment::TcpRr,
    Experiment::UdpRr,
    Experiment::Ping,
    Experiment::Mixed,
    Experiment::LoadedServer,
    Experiment::Memcached,
    Experiment::Ntp,
    Experiment::Bulk,
    Experiment::MxPingpong,
    Experiment::MxMisorder,
    Experiment::MxLargeAnatomy,
    Experiment::MxMixed,
];

/// Strategies that need nothing else: no registers of a device, no lanes.
const WITHOUT_MORE: [&str; 3] = ["driver", "frames", "lane"];

const RX_USECS: &[u32] = &[
    0, 1, 2, 3, 5, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 100, 125, 128, 150, 200, 250, 300,
    400, 500, 750, 1_000,
];
const RX_FRAMES: &[u32] = &[1, 2, 4, 8, 16, 32, 64, 128];
const RATES: &[u32] = &[100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000];
const BULK_RATES: &[u32] = &[10, 20, 50, 100, 200, 300, 500, 800, 1_000, 2_000, 5_000, 10_000];
const LATENCIES: &[u32] = &[0, 1, 2, 3, 5, 10, 20, 30, 40, 50, 60, 65, 80, 100, 200, 500];
const COSTS: &[u32] = &[0, 100, 191, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 20_000];

/// All that can be set, with the command's help.
pub(crate) fn controls() -> Vec<SetterOfForm> {
    let hint = |name| if name == CORES { "Cores of a host".to_owned() } else { line::help(name) };
    setters().map(|setter| SetterOfForm { hint: hint(setter.name), setter }).into()
}

/// All that can be set, in the order of the page and of the command.
fn setters() -> [Setter; 22] {
    use SetterKind::{Check, Choice, Range};
    let words = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let usual = |all: &[u32]| {
        let numbers = all.iter().map(u32::to_string);
        std::iter::once(String::new()).chain(numbers).collect::<Vec<_>>()
    };
    let all = Moderation::STRATEGIES.into_iter().filter(|name| !WITHOUT_MORE.contains(name));
    let strategies: Vec<&str> = all.collect();
    let machines: Vec<&str> = Machine::names().collect();
    let experiments = EXPERIMENTS.map(Experiment::name).to_vec();
    let rules = ["", "tcp-psh & length<=512", "mx", "length<=512"];
    [
        ("experiment", Choice, experiments, "mixed", ""),
        ("machine", Choice, words(&machines), "server", ""),
        ("strategy", Choice, words(&strategies), "delay", ""),
        ("rx-usecs", Range, usual(RX_USECS).split_off(1), "75", "us"),
        ("rx-frames", Range, usual(RX_FRAMES), "", "packets"),
        ("mark", Choice, words(&rules), "", ""),
        ("mx-misorder", Range, usual(&[0, 1, 2, 3, 5, 10]), "", "frames"),
        ("ports", Choice, words(&["", "a", "b"]), "", ""),
        ("transmit-interrupts", Check, words(&["", "true"]), "", ""),
        ("rate", Range, usual(RATES), "", "a second"),
        ("clients", Range, usual(&[1, 2, 3, 4, 6, 8, 16, 32]), "", ""),
        ("think", Range, usual(&[0, 10, 100, 1_000]), "", "us"),
        ("compute", Range, usual(&[0, 10, 50, 110, 200, 500]), "", "us"),
        ("value-bytes", Range, usual(&[100, 1_000, 4_096, 16_384, 65_536]), "", "bytes"),
        ("bulk-rate", Range, usual(BULK_RATES), "", "Mbit/s"),
        ("bulk-chunk", Range, usual(&[1_024, 4_096, 16_384, 65_536, 131_072]), "", "bytes"),
        ("link-rate", Range, usual(&[100, 1_000, 2_500, 10_000, 25_000]), "", "Mbit/s"),
        ("link-latency", Range, usual(LATENCIES), "", "us"),
        ("dma-latency", Range, usual(&[0, 1, 2, 5, 10]), "", "us"),
        (CORES, Range, usual(&[1, 2, 4, 8, 16]), "", ""),
        ("interrupt-cost", Range, usual(COSTS), "", "ns"),
        ("packet-cost", Range, usual(COSTS), "", "ns"),
    ]
    .map(|(name, kind, stops, value, unit)| Setter { name, kind, stops, value, unit })
}

/// The words behind `earmark bench` that `values` are, and the names of those that it takes.
///
/// # Errors
/// If there is no such experiment or strategy.
pub(crate) fn words(values: &Values) -> Result<(Vec<String>, Vec<&'static str>), String> {
    let of = |name: &str| values.get(name).map_or("", String::as_str);
    let experiment = Experiment::from_str(of("experiment"), false)
        .map_err(|_| format!("no experiment is called {}", of("experiment")))?;
    let one = Use { experiment: Some(experiment), place: HostKind::Model };
    let mut words = vec![experiment.name(), "--world".into(), "model".into()];
    let mut taken = vec!["experiment", CORES];
    for Setter { name, kind, .. } in setters() {
        let is_option = NicOptions::is_taken(name, &one) || ExperimentOptions::is_taken(name, &one);
        if !is_option || !suits(name, of("strategy"))? {
            continue;
        }
        taken.push(name);
        match (name, of(name), of(CORES)) {
            ("machine", machine, cores) if !cores.is_empty() => {
                let machine = if machine.is_empty() { "ideal" } else { machine };
                words.extend(["--machine".into(), format!("{machine},cores={cores}")]);
            }
            (_, "", _) => {}
            _ if matches!(kind, SetterKind::Check) => words.push(format!("--{name}")),
            (_, value, _) => words.extend([format!("--{name}"), value.to_owned()]),
        }
    }
    Ok((words, taken))
}

/// Whether a strategy has the number of this name.
fn suits(name: &str, strategy: &str) -> Result<bool, String> {
    let change = match name {
        "rx-usecs" => Coalesce { rx_usecs: Some(9), ..Coalesce::default() },
        "rx-frames" => Coalesce { rx_frames: Some(9), ..Coalesce::default() },
        _ => return Ok(true),
    };
    let setting: Moderation = strategy.parse().map_err(|error| format!("{strategy}: {error}"))?;
    let changed = setting.coalesce(change, Profile::default());
    Ok(changed.is_ok_and(|changed| changed.timer == setting.timer))
}
