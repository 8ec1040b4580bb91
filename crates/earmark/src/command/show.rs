//! `earmark show`: what delays a received packet, on one screen.

pub(super) mod check;
mod suspension;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use base::quantity::Unit;
use clap::Args;
use netdev::{Root, device_name, illegible_devices};
use schemars::JsonSchema;
use serde::Serialize;

use super::or_port;
use bench::options::number;
use bench::suggestions::SuggestedValues;
use labctl::client::port_here;
use report::terminal::Lines;
use report::terminal::Width;
use report::{errln, json, outln};
use show::LabPort;
use show::Report;
use show::{screen, summary};

pub(super) use suspension::{ShownSuspension, poll_meter};

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The devices, such as eth0; without any, one line for each NIC
    #[arg(value_name = "DEVICE")]
    devices: Vec<String>,
    /// Seconds over which interrupts are counted
    #[arg(long, default_value_t = 0.5, value_name = "SECONDS")]
    #[arg(value_parser = number(Unit::Seconds, 0.0..=60.0))]
    sample: f64,
    /// Hold devices against a policy: one that comes with Earmark, or a TOML file
    ///
    /// The exit status is 0 if all rules hold, 3 if one is broken, 4 if none is and not all are
    /// known to hold.
    #[arg(long, value_name = "POLICY")]
    #[arg(value_parser = policies(), hide_possible_values = true)]
    check: Option<String>,
    /// Whether programs may suspend the interrupts of a device while they poll, and whether those
    /// do whose process ids are among the devices
    #[arg(long, conflicts_with = "check")]
    suspension: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The parser of a policy's name, or that of a file.
pub(super) fn policies() -> SuggestedValues<String> {
    SuggestedValues::new(show::check::BUILT_IN.map(|(name, _)| name).to_vec())
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Shown {
    devices: Vec<Report>,
}

/// Does what `args` say. It changes nothing.
pub(crate) fn run(args: &ShowArgs) -> Result<ExitCode> {
    let root = Root::here();
    let width = Width::of_output();
    let policy = match args.check.as_deref().map(|name| (name, check::policy(name))) {
        Some((_, Err(status))) => return Ok(status),
        Some((name, Ok(policy))) => Some((name, policy)),
        None => None,
    };
    // No rule is about interrupts.
    let sample = if policy.is_some() { 0.0 } else { args.sample };
    let sample = Duration::from_secs_f64(sample);
    if args.suspension {
        suspension::run(&root, &args.devices, sample, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_list = args.devices.is_empty();
    let read = |device: &String| {
        let report = observe::read(&root, &device_name(&root, device), sample);
        report.map_err(|error| or_port(error, device))
    };
    let mut devices: Vec<Report> = args.devices.iter().map(read).collect::<Result<_>>()?;
    if is_list {
        // One that goes away meanwhile is not shown.
        let nics = observe::nics(&root)?;
        devices.extend(nics.iter().filter_map(|it| observe::read(&root, it, Duration::ZERO).ok()));
    }
    devices = devices.into_iter().map(with_lab).collect();
    if is_list {
        for name in illegible_devices(&root).unwrap_or_default() {
            errln!(
                "{name}: its name is no UTF-8, so it cannot be named here; in bash, \
                 ip link set $'{name}' name NEW gives it another"
            );
        }
    }
    if let Some((name, policy)) = &policy {
        return check::run(name, policy, &devices, (!args.json).then_some(width));
    }
    if args.json {
        json::print(&Shown { devices })?;
    } else if !is_list {
        let screens = devices.iter().map(|device| screen(device, width).lines().join("\n"));
        outln!("{}", screens.collect::<Vec<_>>().join("\n\n"));
    } else {
        devices.iter().for_each(|device| outln!("{}", Lines::listed(&summary(device), width)));
        match devices.first() {
            Some(first) => errln!("more about one of them: earmark show {}", first.name),
            None => errln!("there is no NIC here, only the loopback: earmark show lo"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The same with the port of a lab's NIC that it is, if it is one.
fn with_lab(device: Report) -> Report {
    if device.driver_name() != "tun" {
        return device;
    }
    let lab = port_here(&device.name).map(|(lab, port)| LabPort {
        lab,
        settings: port.queues.into_iter().map(|queue| queue.setting).collect(),
    });
    Report { lab, ..device }.with_delays()
}
