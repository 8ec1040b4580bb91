//! `earmark show --suspension`: may programs suspend a device's interrupts, and does a server?

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use netdev::{Root, device_name};
use observe::{Meter, PollMeter, pollers};
use report::terminal::Width;
use report::{errln, json, outln};
use schemars::JsonSchema;
use serde::Serialize;
use show::Report;
use show::suspension::{Judged, Poller, Suspension, Window, elsewhere, lines};

/// What `show --suspension --json` prints.
#[derive(Serialize, JsonSchema)]
pub(in crate::command) struct ShownSuspension {
    /// The devices that were asked for, or those by which packets of the servers come.
    suspension: Vec<Suspension>,
    /// Pollers whose packets come by none of them.
    elsewhere: Vec<Judged>,
}

/// Shows devices, and processes: the numbers among `names` that are no devices. Where there are
/// only processes, the devices are those by which their packets come.
pub(super) fn run(root: &Root, names: &[String], sample: Duration, as_json: bool) -> Result<()> {
    let here = netdev::list_devices(root).unwrap_or_default();
    let process = |name: &String| name.parse().ok().filter(|_| !here.contains(name));
    let processes: Vec<u32> = names.iter().filter_map(process).collect();
    let found = processes.iter().map(|it| pollers(*it)).collect::<Result<Vec<_>>>()?;
    let found: Vec<Poller> = found.into_iter().flatten().collect();
    let named: Vec<String> = names
        .iter()
        .filter(|name| process(name).is_none())
        .map(|name| device_name(root, name))
        .collect();
    let are_chosen = !named.is_empty();
    let devices = if are_chosen { named } else { observe::nics(root)? };
    let windows = windows(root, &devices, processes.first().copied(), sample)?;
    let mut suspension = Vec::new();
    for (device, window) in devices.iter().zip(windows) {
        let report: Report = observe::read(root, device, Duration::ZERO)?;
        let it = Suspension::of(&report, &found, window);
        if are_chosen || processes.is_empty() || !it.pollers.is_empty() {
            suspension.push(it);
        }
    }
    let is_elsewhere = |poller: &&Poller| !suspension.iter().any(|it| it.has(poller));
    let elsewhere = found.iter().filter(is_elsewhere).map(elsewhere).collect();
    let shown = ShownSuspension { suspension, elsewhere };
    if as_json {
        return json::print(&shown);
    }
    let text = lines(&shown.suspension, &shown.elsewhere, Width::of_output());
    text.lines().iter().for_each(|line| outln!("{line}"));
    if let Some(process) = processes.first().filter(|_| found.is_empty()) {
        outln!(
            "Process {process} and its children have no epoll object with sockets, and no io_uring."
        );
    }
    Ok(())
}

/// What each device received while the process worked, if there is one.
fn windows(
    root: &Root,
    devices: &[String],
    process: Option<u32>,
    sample: Duration,
) -> Result<Vec<Option<Window>>> {
    let Some(process) = process.filter(|_| !sample.is_zero()) else {
        return Ok(vec![None; devices.len()]);
    };
    let meters = devices.iter().map(|it| Meter::open(root, it)).collect::<Result<Vec<_>>>()?;
    let read =
        || meters.iter().map(Meter::read).collect::<Result<Vec<_>>>().context("count packets");
    let mut polls = poll_meter(process);
    let before = read()?;
    polls.read()?;
    sleep(sample);
    let (after, polled) = (read()?, polls.read()?);
    let rates = meters
        .iter()
        .zip(before.iter().zip(&after))
        .map(|(meter, (before, after))| meter.between(before, after));
    Ok(rates.map(|rates| Some(Window::of(&rates, &polled))).collect())
}

/// Counts polls, and says so where they are counted by network alone.
pub(in crate::command) fn poll_meter(process: u32) -> PollMeter {
    let polls = PollMeter::start(process);
    if let Some(why) = polls.refusal() {
        errln!("Polls are counted for the whole network, not by program: {why}.");
    }
    polls
}
