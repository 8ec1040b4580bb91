//! `earmark probe`: what a round trip costs, and the holds in it.

mod hosts;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use infer::{Length, MeasuredTrain, Place, Purpose};

use super::apply::DeviceArgs;

use netdev::routes;
use probe::fleet::Pace;
use probe::prober::{EchoKind, Prober};
use probe::recording::{self, Origin};
use probe::report::{Local, Report};
use probe::run::{self, Limits};
use report::terminal::Width;
use report::{errln, json, outln};
use sys::ctrl_c;
use tune::device;
use tune::lone;
use tune::transaction::{Transaction, Verdict};
use tune::{Setting, Value};

#[derive(clap::Args, Debug)]
pub(crate) struct ProbeArgs {
    /// The host to ask
    #[arg(value_name = "HOST[:PORT]", required_unless_present_any = ["replay", "hosts"])]
    host: Option<String>,
    /// Which echo; without it, the first that answers
    #[arg(long, value_enum)]
    kind: Option<EchoKind>,
    /// The port of the echo; without it, the usual one of each kind
    #[arg(long)]
    port: Option<u16>,
    /// Send at most so many packets; trains that would send more are left out
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    count: u32,
    /// Never send faster than so many packets a second; holds shorter than the gap then stay
    /// unseen
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    rate: u32,
    /// Let this device of mine hold nothing for some seconds, if nothing else shows the side of a
    /// hold; it is put back whatever happens
    #[arg(long, value_name = "DEV", conflicts_with_all = ["record", "replay"])]
    vary: Option<String>,
    /// Keep what was heard in a new file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Judge what a file of --record has, and send nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "kind", "port", "count", "rate", "record"])]
    replay: Option<PathBuf>,
    /// Ask all hosts of a file, one a line; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "vary", "record", "replay"])]
    hosts: Option<PathBuf>,
    /// So many of these hosts at a time; they disturb each other's measurement
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["host", "replay"])]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=64))]
    parallel: u8,
    /// Send all of these hosts together at most so many packets a second
    #[arg(long, value_name = "PACKETS", default_value_t = 5_000, conflicts_with_all = ["host", "replay"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    total_rate: u32,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: DeviceArgs,
}

/// Probes, or reads what another run heard, and says what it found.
pub(crate) fn run(args: &ProbeArgs) -> Result<ExitCode> {
    if let Some(path) = &args.hosts {
        let pace = Pace {
            kind: args.kind,
            port: args.port,
            limits: args.limits(),
            parallel: args.parallel.into(),
            total_rate: args.total_rate,
        };
        return hosts::run(path, &pace, args.json);
    }
    let Observations { origin, heard, unheld, local } = match (&args.replay, &args.vary) {
        (Some(path), _) => {
            let (origin, heard) = recording::read(path)?;
            Observations { origin, heard, unheld: Vec::new(), local: None }
        }
        (None, Some(name)) => ask_and_vary(args, name)?,
        (None, None) => ask(args, args.kind)?,
    };
    if let Some(path) = &args.record {
        recording::write(path, &origin, &heard)?;
    }
    let verdict = infer::judge_varied(&heard, &unheld);
    let report = Report::new(&origin, &heard, &verdict, local.as_ref());
    if args.json {
        json::print(&report)?;
    } else {
        outln!("{}", report.text(Width::of_output()).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

impl ProbeArgs {
    fn limits(&self) -> Limits {
        Limits { count: self.count, rate: self.rate }
    }
}

/// What was heard.
struct Observations {
    origin: Origin,
    heard: Vec<MeasuredTrain>,
    /// The same while a device of mine held nothing.
    unheld: Vec<MeasuredTrain>,
    /// The device that answers came through.
    local: Option<Local>,
}

/// What the device says of itself by which `to` is reached.
fn local(from: IpAddr, to: IpAddr) -> Option<Local> {
    let device = routes::device(from, to)?;
    let state = device::open(&device, None).and_then(|it| it.read()).unwrap_or_default();
    let number = |setting| state.get(setting).and_then(Value::number);
    let deferral = number(Setting::GroFlushTimeout).zip(number(Setting::NapiDeferHardIrqs));
    let rx_usecs = number(Setting::RxUsecs);
    let deferral = deferral.filter(|(nanos, polls)| *nanos > 0 && *polls > 0);
    Some(Local { device, rx_usecs, deferral })
}

/// Which lengths a probe has.
fn lengths(prober: &Prober) -> String {
    if !prober.kind().can_be_full() {
        return ", all of them short,".to_owned();
    }
    let [short, full] = Length::ALL.map(|length| prober.bytes(length));
    format!(" of {short} or {full} bytes")
}

fn ask(args: &ProbeArgs, kind: Option<EchoKind>) -> Result<Observations> {
    let host = args.host.as_ref().context("name the host to ask")?;
    let mut prober = Prober::find(host, kind, args.port)?;
    let mut plan = run::plan(&prober, args.limits());
    let (address, kind) = (prober.address, prober.kind());
    // ICMP has no ports.
    let shown = match kind {
        EchoKind::Icmp => address.ip().to_string(),
        _ => address.to_string(),
    };
    errln!(
        "probing {shown} by {}: {} packets{} in a few seconds",
        kind.name(),
        plan.packets(),
        lengths(&prober)
    );
    if prober.is_local() {
        errln!("{shown} is this host itself: no NIC is in between");
    }
    ctrl_c::watch().context("take signals")?;
    if !run::run(&mut prober, &mut plan)? {
        let sent: usize = plan.heard().iter().map(|heard| heard.probes.len()).sum();
        errln!("interrupted: this is what the first {sent} of {} packets say", plan.packets());
    }
    let local = prober.local().and_then(|from| local(from, address.ip()));
    let origin = Origin::new(address.to_string(), kind);
    Ok(Observations { origin, heard: plan.heard().to_vec(), unheld: Vec::new(), local })
}

/// Asks, and if that does not show the side of a hold, asks again while device `name` holds
/// nothing.
fn ask_and_vary(args: &ProbeArgs, name: &str) -> Result<Observations> {
    args.at.may_change(name)?;
    let (store, device) = args.at.open(name)?;
    let device = device.as_ref();
    let before = device.counted()?.packets;
    let mut seen = ask(args, args.kind)?;
    let Observations { origin, heard, .. } = &seen;
    let verdict = infer::judge(heard);
    let received = device.counted()?.packets.saturating_sub(before);
    // Answers to packets that were sent close to one another may have come as one.
    let lone = heard.iter().filter(|heard| heard.train.purpose == Purpose::Lone);
    let alone = lone.flat_map(|heard| &heard.probes).filter(|probe| probe.received.is_some());
    ensure!(
        received >= alone.count() as u64 / 2,
        "the answers of {} do not come through {name}; `ip route get` says which device is meant",
        origin.host
    );
    if ctrl_c::is() || verdict.findings.iter().all(|finding| finding.place != Place::Unknown) {
        return Ok(seen);
    }
    let state = device.read()?;
    let change = lone::single(device, &state, &state.unheld());
    ensure!(
        !change.is_empty() || state.get(Setting::RxUsecs).is_some(),
        "{name} ({}) does not say what it holds, so it cannot be varied; leave out --vary",
        device.driver()
    );
    if change.is_empty() {
        errln!("{name} holds nothing as it is");
        seen.unheld = heard.clone();
        return Ok(seen);
    }
    let mut transaction = Transaction::begin(device, &store, "probe", change.settings())?;
    for took in transaction.change(&change)? {
        ensure!(took.verdict != Verdict::Ignored, "{name}: {}", took.describe());
        errln!("{name}: {}, for some seconds", took.describe());
    }
    seen.unheld = ask(args, Some(origin.kind))?.heard;
    if ctrl_c::is() {
        // Half of it says nothing beside the whole.
        seen.unheld.clear();
    }
    transaction.undo()?;
    Ok(seen)
}
