//! `earmark nic`: the NIC of a lab that runs.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::cli::{NicArgs, NicCommand};
use base::quantiles::Quantiles;
use labctl::client::{Labs, ask, choose, labs};
use labctl::{AttachmentState, LaneState, PortState, QueueState, Request, SETTINGS};
use report::names::did_you_mean;
use report::terminal::Lines;
use report::terminal::number;
use report::terminal::{Stream, Width};
use report::{errln, json, outln};

pub(crate) fn run(args: &NicArgs) -> Result<()> {
    if let (Some(lab), NicCommand::Labs | NicCommand::Serve { .. }) = (&args.lab, &args.command) {
        bail!(
            "--lab {lab}: that is for show, set and watch, which look at one lab; to name the NIC \
             of `nic serve`, give it --name"
        );
    }
    match &args.command {
        NicCommand::Labs => {
            let Labs { own, others } = labs()?;
            own.iter().for_each(|lab| outln!("{lab}"));
            others.iter().for_each(|(lab, user)| errln!("lab {lab} is that of user {user}"));
            Ok(())
        }
        NicCommand::Show { port, queue, json } => {
            let lab = choose(args.lab.as_deref())?;
            let ports = pick(ask(&lab, &Request::Show)?, port.as_deref(), *queue)?;
            if *json {
                json::print_list("ports", &ports)?;
            } else {
                let width = Width::of_output();
                ports.iter().for_each(|port| outln!("{}", shown(port, &lab, width)));
            }
            Ok(())
        }
        NicCommand::Set { port, settings, queue } => {
            ensure!(
                settings.len() % 2 == 0,
                "settings are pairs of name and value; `{}` has no value",
                settings.last().map_or("", String::as_str)
            );
            let unknown = settings.iter().step_by(2).find(|it| !SETTINGS.contains(&it.as_str()));
            if let Some(name) = unknown {
                let known = did_you_mean(name, SETTINGS.into_iter(), None);
                bail!("no setting is called {name}; {known}");
            }
            let pairs = settings.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone()));
            let request =
                Request::Set { port: port.clone(), queue: *queue, settings: pairs.collect() };
            let ports = ask(&choose(args.lab.as_deref())?, &request)?;
            for state in ports.iter().filter(|state| state.port == *port) {
                state.queues.iter().enumerate().for_each(|(number, queue)| {
                    outln!("{port} queue {number}: {}", queue.setting);
                });
            }
            Ok(())
        }
        NicCommand::Evict { port } => {
            ask(&choose(args.lab.as_deref())?, &Request::Evict { port: port.clone() })?;
            outln!("{port}: what was connected is disconnected; another frontend may connect");
            Ok(())
        }
        NicCommand::Serve { a, b, nic } => super::serve::run([a, b], nic),
        NicCommand::Watch { port, interval, count } => {
            watch(&choose(args.lab.as_deref())?, port.as_deref(), *interval, *count)
        }
    }
}

/// The ports and queues that the user wants to see.
fn pick(
    mut ports: Vec<PortState>,
    port: Option<&str>,
    queue: Option<u16>,
) -> Result<Vec<PortState>> {
    if let Some(name) = port {
        let names: Vec<String> = ports.iter().map(|port| port.port.clone()).collect();
        ports.retain(|port| port.port == name);
        ensure!(!ports.is_empty(), "no port {name}; there are {}", names.join(", "));
    }
    if let Some(queue) = queue {
        for port in &mut ports {
            let Some(chosen) = port.queues.get(usize::from(queue)).cloned() else {
                bail!("port {} has queues 0 to {}, not {queue}", port.port, port.queues.len() - 1);
            };
            port.queues = vec![chosen];
        }
    }
    Ok(ports)
}

/// All about a port, a line for each setting and counter.
fn shown(port: &PortState, lab: &str, width: Width) -> String {
    let mut lines = vec![
        format!("Coalesce parameters for {} (lab {lab}):", port.port),
        format!("mark: {}", if port.mark.is_empty() { "nothing" } else { &port.mark }),
    ];
    let lane = |lane: &LaneState| format!("lane: {} ({} packets)", lane.rule, lane.packets);
    lines.extend(port.lanes.iter().map(lane));
    lines.extend(port.vanished.as_ref().map(|why| format!("VANISHED: {why}")));
    lines.extend(port.attachment.as_ref().map(|it| format!("guest: {}", describe(it))));
    for (number, queue) in port.queues.iter().enumerate() {
        if port.queues.len() > 1 {
            lines.push(format!("queue {number}:"));
        }
        lines.extend(queue_lines(queue));
    }
    if let Some(Quantiles { p50, p99, max, .. }) = port.hold_us {
        lines.push(format!("hold: p50 {p50:.1} us, p99 {p99:.1} us, max {max:.1} us"));
    }
    lines.extend(counters(&port.counters));
    let wrapped = lines.iter().map(|line| Lines::listed(line, width) + "\n");
    wrapped.collect()
}

/// How the guest of a port stands.
fn describe(attachment: &AttachmentState) -> String {
    let AttachmentState { connected, lost, queue_pairs, queue_pairs_used } = attachment;
    match lost {
        _ if *connected => {
            format!("connected, uses {queue_pairs_used} of {queue_pairs} queue pairs")
        }
        Some(why) => format!("none; the last one was lost: {why}"),
        None => "none yet".into(),
    }
}

fn queue_lines(queue: &QueueState) -> Vec<String> {
    let interrupts =
        queue.interrupts.iter().map(|(reason, count)| format!("{reason}\u{a0}{count}"));
    let mut lines = vec![
        format!("strategy: {} ({})", queue.strategy, queue.setting),
        format!("adaptive-rx: {}", if queue.adaptive_rx { "on" } else { "off" }),
        format!("rx-usecs: {}", queue.rx_usecs),
        format!("rx-frames: {}", queue.rx_frames),
        format!(
            "interrupts: {} ({})",
            queue.interrupts.values().sum::<u64>(),
            interrupts.collect::<Vec<_>>().join(", ")
        ),
    ];
    lines.extend(counters(&queue.counters));
    lines
}

fn counters(counters: &BTreeMap<String, u64>) -> impl Iterator<Item = String> {
    counters.iter().map(|(name, value)| format!("{name}: {value}"))
}

/// The columns of `nic watch`; a setting may be changed for a longer one meanwhile.
fn columns(width: Width) -> Stream {
    let columns = [
        ("port", 0, 6),
        ("setting", 0, 24),
        ("packets/s", 1, 12),
        ("interrupts/s", 0, 14),
        ("packets/int", 0, 12),
        ("marked/s", 2, 10),
    ];
    Stream::new(columns, width)
}

/// Prints a line for each port and interval.
fn watch(lab: &str, port: Option<&str>, interval: f64, count: Option<u64>) -> Result<()> {
    let columns = columns(Width::of_output());
    if let Some(remark) = columns.left_out("a wider terminal") {
        errln!("{remark}");
    }
    outln!("{}", columns.header());
    let mut before = pick(ask(lab, &Request::Show)?, port, None)?;
    let mut printed = 0;
    while count.is_none_or(|count| printed < count) {
        sleep(Duration::from_secs_f64(interval));
        let now = pick(ask(lab, &Request::Show)?, port, None)?;
        for (now, before) in now.iter().zip(&before) {
            let rate =
                |of: fn(&QueueState) -> u64| (total(now, of) - total(before, of)) as f64 / interval;
            let packets = rate(|queue| queue.counters.get("rx-packets").copied().unwrap_or(0));
            let marked = rate(|queue| queue.counters.get("rx-marked").copied().unwrap_or(0));
            let interrupts = rate(|queue| queue.interrupts.values().sum());
            let each = if interrupts > 0.0 { packets / interrupts } else { 0.0 };
            let values = [(packets, 0), (interrupts, 0), (each, 1), (marked, 0)];
            let values = values.map(|(value, digits)| number(Some(value), digits));
            let names = [now.port.clone(), now.queues[0].setting.clone()];
            outln!("{}", columns.row(&[&names[..], &values].concat()));
        }
        before = now;
        printed += 1;
    }
    Ok(())
}

fn total(port: &PortState, of: fn(&QueueState) -> u64) -> u64 {
    port.queues.iter().map(of).sum()
}
