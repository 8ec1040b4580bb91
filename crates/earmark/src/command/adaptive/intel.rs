//! Intel's drivers: which interval each asks its NIC for, on the same traffic.

use anyhow::Result;
use bench::environment::{Environment, VIRTUAL};
use bench::measurement::{Quantiles, Rounds};
use bench::nic_kind::NicKind;
use bench::options::{NicOptions, Text};
use bench::world::adaptive::{Interval, shares};
use report::{json, outln};
use serde::Serialize;
use sys::privilege::Privilege;

use super::traffic::{self, Mode, Traffic};

/// The speed of the link: that of the cards of the first articles' kind.
const LINK_MBIT: u32 = 1_000;

/// How many changes are printed for people.
const PRINTED: usize = 6;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Traces {
    environment: Environment,
    driver: &'static str,
    link_mbit: u32,
    traffic: Vec<Trace>,
}

/// One kind of traffic.
#[derive(Debug, Serialize)]
struct Trace {
    name: String,
    about: String,
    /// Seconds before those that are measured.
    warmup_s: f64,
    duration_s: f64,
    modes: Vec<ModeOutcome>,
}

/// What came of it in one mode.
#[derive(Debug, Serialize)]
struct ModeOutcome {
    #[serde(flatten)]
    mode: Mode,
    /// In the order in which the NIC had them; the setting `marked:75` does not use them.
    intervals: Vec<Interval>,
    shares: Vec<Share>,
    /// How often another interval was asked for, each second.
    changes_per_s: f64,
    interrupts_per_s: Option<f64>,
    latency_us: Option<Quantiles>,
    transactions_per_s: Option<f64>,
    bulk_bits_per_s: Option<f64>,
    datagrams_per_s: Option<f64>,
}

/// For how much of the time an interval was in force.
#[derive(Debug, Serialize)]
struct Share {
    interval_us: f64,
    share: f64,
}

/// Plays each kind of traffic in each mode of the driver of `nic`.
pub(super) fn run(
    nic: NicKind,
    traffic: &[Traffic],
    is_json: bool,
    privilege: Privilege,
) -> Result<()> {
    let modes = traffic::modes(nic.driver())?;
    let environment =
        Environment { privilege: privilege.to_string(), ..Environment::read(VIRTUAL) };
    let mut traces = Vec::new();
    for traffic in traffic {
        let modes = modes.iter().map(|mode| play(traffic, nic, mode, &environment));
        let trace = Trace {
            name: traffic.name.clone(),
            about: traffic.about.clone(),
            warmup_s: traffic.plan.warmup_s,
            duration_s: traffic.plan.duration_s,
            modes: modes.collect::<Result<_>>()?,
        };
        if !is_json {
            print(&trace);
        }
        traces.push(trace);
    }
    if is_json {
        json::print(&Traces {
            environment,
            driver: nic.driver(),
            link_mbit: LINK_MBIT,
            traffic: traces,
        })?;
    }
    Ok(())
}

fn play(
    traffic: &Traffic,
    nic: NicKind,
    mode: &Mode,
    environment: &Environment,
) -> Result<ModeOutcome> {
    let given = mode.driver_options.iter().map(|option| option.parse().map(Text));
    let given = given.collect::<Result<Vec<_>, &str>>().map_err(anyhow::Error::msg)?;
    let options = NicOptions {
        nic: Some(nic),
        link_rate: Some(LINK_MBIT),
        driver_options: (!given.is_empty()).then_some(given),
        ..NicOptions::default()
    };
    let (intervals, slice) = traffic.observed().intervals(&options, mode.setting.parse()?)?;
    let rounds = Rounds {
        setting: mode.setting.clone(),
        clients: None,
        slices: std::slice::from_ref(&slice),
        missed: &[],
        reports_half: false,
    };
    let measured = rounds.measurement(environment.clone());
    let seconds = traffic.plan.warmup_s + traffic.plan.duration_s;
    let shares = shares(&intervals, (seconds * 1e6) as u64).into_iter();
    let shares = shares.map(|(ns, share)| Share { interval_us: ns as f64 / 1e3, share });
    Ok(ModeOutcome {
        mode: mode.clone(),
        changes_per_s: intervals.len().saturating_sub(1) as f64 / seconds,
        shares: shares.collect(),
        intervals,
        interrupts_per_s: measured.interrupts_per_s,
        latency_us: measured.latency_us,
        transactions_per_s: measured.transactions_per_s,
        bulk_bits_per_s: measured.bulk_bits_per_s,
        datagrams_per_s: measured.datagrams_per_s,
    })
}

fn print(trace: &Trace) {
    outln!("{}: {}", trace.name, trace.about);
    for outcome in &trace.modes {
        let mut words = Vec::new();
        if outcome.mode.setting == "driver" {
            let step =
                |it: &Interval| format!("{:.1} ms {} us", it.at_us as f64 / 1e3, it.interval_us);
            words.extend(outcome.intervals.iter().take(PRINTED).map(step));
            let more = outcome.intervals.len().saturating_sub(PRINTED);
            words.extend((more > 0).then(|| format!("and {more} more")));
        }
        words.extend(outcome.interrupts_per_s.map(|rate| format!("{rate:.0} interrupts/s")));
        words.extend(
            outcome.latency_us.map(|it| format!("p50 {:.1} us, p99 {:.1} us", it.p50, it.p99)),
        );
        words.extend(outcome.bulk_bits_per_s.map(|bits| format!("{:.0} Mbit/s", bits / 1e6)));
        outln!("  {:<13} {}", outcome.mode.name, words.join(", "));
    }
    outln!("");
}
