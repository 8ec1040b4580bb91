//! `earmark lane`: a queue for urgent packets on a NIC of this machine.

use std::net::{IpAddr, UdpSocket};

use anyhow::{Context, Result, ensure};
use clap::Args;
use netdev::Root;
use serde::Serialize;

use super::apply::{DeviceArgs, settled, to_confirm};
use bench::options::duration;
use report::{errln, json, outln};
use show::Lane;
use sys::ctrl_c;
use tune::Setting;
use tune::device::{DeviceKind, TunedDevice};
use tune::lane::Ports;
use tune::lane::{
    Begun, Candidate, Capabilities, Made, Plan, Wanted, begin, of_lanes, plan, queues_of_lanes,
    without_lanes,
};
use tune::transaction::{SettingResult, Transaction, current};
use tune::{Kept, Store};

/// How many ports are printed.
const PORTS: usize = 8;

#[derive(Args, Debug)]
pub(crate) struct LaneArgs {
    /// The device, such as eth0
    #[arg(value_name = "DEV")]
    pub(crate) device: String,
    /// Which packets, in the language of marks, and by src-ip=ADDRESS and dst-ip=ADDRESS; without
    /// it, the lanes that there are
    #[arg(value_name = "RULES")]
    pub(crate) packets: Option<String>,
    /// Its queue, from 0 on; without it the last one
    #[arg(long, value_name = "N", requires = "packets")]
    pub(crate) queue: Option<u16>,
    /// Microseconds that its packets may wait for their interrupt
    #[arg(long, default_value_t = 0, value_name = "MICROSECONDS", requires = "packets")]
    pub(crate) rx_usecs: u32,
    /// Microseconds that all other packets may wait; without it, as now
    #[arg(long, value_name = "MICROSECONDS", requires = "packets")]
    pub(crate) rest_usecs: Option<u32>,
    /// The processor for its interrupt and its transmit queue; those of other queues leave it
    #[arg(long, value_name = "N", requires = "packets")]
    pub(crate) cpu: Option<u32>,
    /// Make no rules: say which port numbers hash to the queue, for connections with this host
    #[arg(long, value_name = "ADDRESS", requires = "packets")]
    pub(crate) by_hash: Option<IpAddr>,
    /// Say what would be changed, and change nothing; what the driver refuses is not known then
    #[arg(long, requires = "packets")]
    pub(crate) dry_run: bool,
    /// Undo the change after so many seconds unless `earmark confirm` comes before
    #[arg(long, value_name = "SECONDS", value_parser = duration)]
    #[arg(conflicts_with = "dry_run", requires = "packets")]
    pub(crate) confirm_within: Option<f64>,
    /// Remove the lanes that Earmark has made; rules of others stay
    #[arg(long, conflicts_with = "packets")]
    pub(crate) remove: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) at: DeviceArgs,
}

/// A rule that is there.
#[derive(Serialize)]
struct LaneRule {
    /// `None`: the driver has chosen it.
    place: Option<u32>,
    rule: String,
    asked: String,
}

/// What `--json` prints of a lane that was made.
#[derive(Serialize)]
struct Printed<'a> {
    device: &'a str,
    driver: &'a str,
    dry_run: bool,
    queue: u16,
    rules: Vec<LaneRule>,
    settings: Vec<SettingResult>,
    ports: Option<&'a Ports>,
    lost: Vec<String>,
    confirm_within_s: Option<f64>,
    way_back: String,
}

/// What `--json` prints of lanes that there are.
#[derive(Serialize)]
struct Listed<'a> {
    device: &'a str,
    lanes: &'a [Lane],
    by_hash: &'a [u16],
}

pub(crate) fn run(args: &LaneArgs) -> Result<()> {
    if (args.packets.is_some() || args.remove) && !args.dry_run {
        args.at.may_change(&args.device)?;
    }
    let (store, device) = args.at.open(&args.device)?;
    let device = device.as_ref();
    ensure!(
        device.identity().kind == DeviceKind::Interface,
        "a port of a lab has lanes of its own: earmark nic set {} lane 'tcp-port=11211:1' strategy lane",
        args.device
    );
    match &args.packets {
        Some(packets) => add(args, packets, &store, device),
        None if args.remove => remove(args, &store, device),
        None => list(args, &store, device),
    }
}

/// The address from which packets to a host go. None is sent.
fn local_address(peer: IpAddr) -> Result<IpAddr> {
    let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let find = || {
        let socket = UdpSocket::bind(any)?;
        socket.connect((peer, 9))?;
        socket.local_addr()
    };
    Ok(find().with_context(|| format!("find the way to {peer}; look at: ip route"))?.ip())
}

fn add(args: &LaneArgs, packets: &str, store: &Store, device: &dyn TunedDevice) -> Result<()> {
    let by_hash = args.by_hash.map(|peer| Ok::<_, anyhow::Error>((peer, local_address(peer)?)));
    let wanted = Wanted {
        packets: packets.to_owned(),
        queue: args.queue,
        rx_usecs: args.rx_usecs,
        rest_usecs: args.rest_usecs,
        cpu: args.cpu,
        by_hash: by_hash.transpose()?,
    };
    if args.dry_run {
        return dry_run(args, &wanted, &Capabilities::read(device)?);
    }
    ctrl_c::watch().context("take signals")?;
    let mut begun = begin(device, store, &wanted)?;
    let mut made = begun.make()?;
    ctrl_c::check()?;
    let Begun { transaction, plan, driver, .. } = begun;
    match args.confirm_within {
        Some(seconds) => transaction.keep_for(seconds)?,
        None => transaction.keep()?,
    }
    let rules = std::mem::take(&mut made.rules).into_iter().map(|(placed, asked)| LaneRule {
        place: placed.location,
        rule: placed.rule.to_string(),
        asked,
    });
    let rules = rules.collect();
    print(args, &driver, &plan, rules, made)
}

fn dry_run(args: &LaneArgs, wanted: &Wanted, device: &Capabilities) -> Result<()> {
    let hides = device.hides_rules() && wanted.by_hash.is_none();
    let mut plan = if hides { plan(wanted, &device.with_room()) } else { plan(wanted, device) }?;
    if hides {
        plan.lost.push("rules do not count now; where there is room is known once they do".into());
    }
    let asked = |(place, candidate): (&Option<u32>, &Candidate)| LaneRule {
        place: *place,
        rule: candidate.ways.first().map(ToString::to_string).unwrap_or_default(),
        asked: candidate.asked.clone(),
    };
    let rules = plan.places.iter().zip(&plan.candidates).map(asked).collect();
    let made = Made { lost: plan.lost.clone(), ..Made::default() };
    print(args, &device.driver, &plan, rules, made)
}

fn print(
    args: &LaneArgs,
    driver: &str,
    plan: &Plan,
    rules: Vec<LaneRule>,
    made: Made,
) -> Result<()> {
    let name = &args.device;
    let way_back = format!("earmark lane {name} --remove{}", args.at.flags());
    if args.json {
        return json::print(&Printed {
            device: name,
            driver,
            dry_run: args.dry_run,
            queue: plan.queue,
            rules,
            settings: made.settings,
            ports: plan.ports.as_ref(),
            lost: made.lost,
            confirm_within_s: args.confirm_within,
            way_back,
        });
    }
    let would = if args.dry_run { "would be: " } else { "" };
    for rule in &rules {
        let place = rule.place.map_or_else(|| "any".into(), |place| place.to_string());
        outln!("{name}: {would}queue {} by the rule {place}:{}", plan.queue, rule.rule);
    }
    for setting in &made.settings {
        outln!("{name}: {}", setting.describe());
    }
    if args.dry_run && !plan.change.is_empty() {
        outln!("{name}: would be: {}", plan.change);
    }
    if let (Some(ports), Some(peer)) = (&plan.ports, args.by_hash) {
        outln!("{name}: queue {} by {}", plan.queue, describe(ports, peer));
    }
    made.lost.iter().for_each(|lost| outln!("{name}: lost: {lost}"));
    if args.dry_run {
        return Ok(());
    }
    if let Some(seconds) = args.confirm_within {
        to_confirm(name, &args.at.flags(), seconds);
    }
    outln!("way back: {way_back}");
    Ok(())
}

fn describe(ports: &Ports, peer: IpAddr) -> String {
    let some = |ports: &[u16]| {
        let first: Vec<String> = ports.iter().take(PORTS).map(u16::to_string).collect();
        format!("{}, ... ({} in all; --json has them)", first.join(", "), ports.len())
    };
    format!(
        "the port that a client on {peer} sends from: {}; or that one here does: {}",
        some(&ports.of_peer),
        some(&ports.here)
    )
}

/// Puts back what lanes have changed, and nothing else.
fn remove(args: &LaneArgs, store: &Store, device: &dyn TunedDevice) -> Result<()> {
    let name = &args.device;
    let journal = current(store, device)?;
    let named: Vec<Setting> = of_lanes(&journal).iter().map(|kept| kept.setting).collect();
    ensure!(
        !named.is_empty(),
        "Earmark has made no lane on {name} since the machine was started; rules of others: \
         ethtool -n {name}"
    );
    let before = without_lanes(&journal, &device.read_with(&named)?);
    ctrl_c::watch().context("take signals")?;
    let mut transaction = Transaction::begin(device, store, "lane", named.iter().copied())?;
    let took = transaction.restore(&before)?;
    ctrl_c::check()?;
    transaction.keep()?;
    forget(store, device, &named)?;
    if args.json {
        return json::print_list("settings", &took);
    }
    took.iter().for_each(|took| outln!("{name}: {}", took.describe()));
    settled(name, device, &before)?;
    outln!("{name} has no lane of Earmark's any more");
    Ok(())
}

/// Takes settings out of the journal that are not any more what Earmark made them.
fn forget(store: &Store, device: &dyn TunedDevice, settings: &[Setting]) -> Result<()> {
    let held = store.hold(device.identity())?;
    let (mut journal, now) = (current(store, device)?, device.read_with(settings)?);
    let is_ours = |kept: &Kept| now.get(kept.setting) == Some(&kept.after);
    journal.kept.retain(|kept| !settings.contains(&kept.setting) || is_ours(kept));
    store.write(&journal, &held)
}

/// Says which lanes there are, of Earmark or of others.
fn list(args: &LaneArgs, store: &Store, device: &dyn TunedDevice) -> Result<()> {
    let report = observe::read(&Root::here(), &device.identity().name, std::time::Duration::ZERO)?;
    let of_ours = queues_of_lanes(&current(store, device)?);
    let has_rules = |queue: &u16| report.lanes.iter().any(|it| it.queue == u32::from(*queue));
    let by_hash: Vec<u16> = of_ours.into_iter().filter(|queue| !has_rules(queue)).collect();
    let name = &args.device;
    if args.json {
        let (lanes, by_hash) = (&report.lanes, &by_hash);
        return json::print(&Listed { device: name, lanes, by_hash });
    }
    report.lanes.iter().for_each(|lane| outln!("{name}: {}", lane.describe()));
    by_hash.iter().for_each(|queue| outln!("{name}: queue {queue}, by the choice of ports"));
    if report.lanes.is_empty() && by_hash.is_empty() {
        errln!("{name} has no lane; for one: earmark lane {name} tcp-port=11211");
    }
    Ok(())
}
