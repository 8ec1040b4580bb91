//! `earmark watch`: what a device does, line by line.

mod suspension;

use std::io::{IsTerminal, stdout};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use base::quantity::Unit;
use clap::Args;
use netdev::netdev::Direction;
use netdev::{Root, device_name};

use bench::options::number;
use observe::{Meter, PollMeter};
use report::terminal::{Stream, Width};
use report::{errln, json, outln};
use show::suspension::{Suspension, Window};
use show::{QueueRates, Rates};
use tune::recover;

use super::show::poll_meter;

/// Lines of a terminal after which the header is said again.
const HEADER_EVERY: usize = 20;

#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// The devices, such as eth0
    #[arg(required = true, value_name = "DEVICE")]
    devices: Vec<String>,
    /// Seconds between two lines
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    #[arg(value_parser = number(Unit::Seconds, 0.01..=3_600.0))]
    interval: f64,
    /// Stop after this many
    #[arg(long)]
    count: Option<u64>,
    /// Whether servers suspend the interrupts of the devices: all that this user may look into
    #[arg(long)]
    suspension: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// Does what `args` say, until Ctrl-C. It changes nothing.
pub(crate) fn run(args: &WatchArgs) -> Result<()> {
    let root = Root::here();
    let mut watched = Vec::new();
    for name in &args.devices {
        let meter = Meter::open(&root, &device_name(&root, name))?;
        let before = meter.read()?;
        watched.push((name, meter, before));
    }
    let columns = if args.suspension {
        suspension::columns(Width::of_output())
    } else {
        columns(&args.devices, Width::of_output())
    };
    if let Some(remark) = columns.left_out("a wider terminal, or --json,").filter(|_| !args.json) {
        errln!("{remark}");
    }
    // What was overdue at the start is said already.
    let mut overdue = recover::reminders();
    let (mut printed, mut lines) = (0, 0);
    let mut polls = args.suspension.then(|| poll_meter(std::process::id()));
    while args.count.is_none_or(|count| printed < count) {
        sleep(Duration::from_secs_f64(args.interval));
        if !args.json && (lines == 0 || (lines >= HEADER_EVERY && stdout().is_terminal())) {
            outln!("{}", columns.header());
            lines = 0;
        }
        let polled = polls.as_mut().map(PollMeter::read).transpose()?;
        let pollers = if args.suspension { observe::pollers_here() } else { Vec::new() };
        for (name, meter, before) in &mut watched {
            let gone = || format!("{name} has gone; watch it again when it is back");
            let now = meter.read().with_context(gone)?;
            let rates = meter.between(before, &now);
            *before = now;
            let rows = if let Some(polled) = &polled {
                let window = Window::of(&rates, polled);
                let report = observe::read(&root, &rates.device, Duration::ZERO)?;
                let suspension = Suspension::of(&report, &pollers, Some(window));
                if args.json {
                    json::print_line(&suspension)?;
                    continue;
                }
                suspension::rows(&suspension)
            } else if args.json {
                json::print_line(&rates)?;
                continue;
            } else {
                rows(&rates)
            };
            lines += rows.len();
            rows.iter().for_each(|row| outln!("{}", columns.row(row)));
        }
        let reminders = recover::reminders();
        reminders.iter().filter(|it| !overdue.contains(it)).for_each(|it| errln!("{it}"));
        overdue = reminders;
        printed += 1;
    }
    Ok(())
}

/// Values of one line.
type Row = Vec<String>;

/// What fits; the names of devices need as much as they have.
fn columns(devices: &[String], width: Width) -> Stream {
    let names = devices.iter().map(|device| device.chars().count());
    let name = names.fold("  rx 1234".len(), usize::max);
    let columns = [
        ("", 0, name),
        ("rx pkt/s", 0, 10),
        ("rx Mbit/s", 2, 10),
        ("tx pkt/s", 4, 10),
        ("tx Mbit/s", 5, 10),
        ("int/s", 0, 10),
        ("rx pkt/int", 0, 10),
        ("drops/s", 1, 10),
        ("squeezes/s", 3, 10),
    ];
    Stream::new(columns, width)
}

/// The device, and below it its queues if it has several for receiving.
fn rows(rates: &Rates) -> Vec<Row> {
    let mut rows = vec![vec![
        rates.device.clone(),
        whole(rates.rx_packets_per_s),
        megabits(Some(rates.rx_bytes_per_s)),
        whole(rates.tx_packets_per_s),
        megabits(Some(rates.tx_bytes_per_s)),
        optional(rates.interrupts_per_s, 0),
        optional(rates.rx_packets_per_interrupt, 1),
        whole(rates.drops_per_s),
        whole(rates.squeezes_per_s),
    ]];
    let receiving = rates.queues.iter().filter(|queue| queue.direction == Direction::Rx).count();
    if receiving > 1 {
        let is_busy = |queue: &&QueueRates| {
            queue.packets_per_s > 0.0 || queue.interrupts_per_s.is_some_and(|rate| rate > 0.0)
        };
        rows.extend(rates.queues.iter().filter(is_busy).map(queue_row));
    }
    rows
}

fn queue_row(queue: &QueueRates) -> Row {
    let (packets, bits) = (whole(queue.packets_per_s), megabits(queue.bytes_per_s));
    let interrupts = optional(queue.interrupts_per_s, 0);
    let each = optional(queue.packets_per_interrupt, 1);
    let drops = optional(queue.drops_per_s, 0);
    match queue.direction {
        Direction::Rx => {
            let name = format!("  rx {}", queue.id);
            let none = String::new;
            vec![name, packets, bits, none(), none(), interrupts, each, drops, none()]
        }
        Direction::Tx => {
            let (name, none) = (format!("  tx {}", queue.id), String::new);
            vec![name, none(), none(), packets, bits, none(), none(), drops, none()]
        }
    }
}

fn whole(rate: f64) -> String {
    format!("{rate:.0}")
}

fn optional(value: Option<f64>, digits: usize) -> String {
    report::terminal::number(value, digits)
}

fn megabits(bytes_per_s: Option<f64>) -> String {
    optional(bytes_per_s.map(|bytes| bytes * 8.0 / 1e6), 2)
}
