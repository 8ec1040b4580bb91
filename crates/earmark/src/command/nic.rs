//! `earmark nic`: the NIC of a lab that runs.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::cli::{NicArgs, NicCommand};
use crate::control::client::{ask, choose, labs};
use crate::control::{AttachmentState, PortState, QueueState, Request};
use crate::say::say;

/// Does what `args` say.
///
/// # Errors
/// If no lab runs, or it refuses.
pub fn run(args: &NicArgs) -> Result<()> {
    if let (Some(lab), NicCommand::Labs | NicCommand::Serve { .. }) = (&args.lab, &args.command) {
        bail!(
            "--lab {lab}: that is for show, set and watch, which look at one lab; to name the NIC \
             of `nic serve`, give it --name"
        );
    }
    match &args.command {
        NicCommand::Labs => {
            labs()?.iter().for_each(|lab| say!("{lab}"));
            Ok(())
        }
        NicCommand::Show { port, queue, json } => {
            let lab = choose(args.lab.as_deref())?;
            let ports = pick(ask(&lab, &Request::Show)?, port.as_deref(), *queue)?;
            if *json {
                say!("{}", serde_json::to_string_pretty(&ports)?);
            } else {
                ports.iter().for_each(|port| show(port, &lab));
            }
            Ok(())
        }
        NicCommand::Set { port, settings, queue } => {
            ensure!(
                settings.len() % 2 == 0,
                "settings are pairs of name and value; `{}` has no value",
                settings.last().map_or("", String::as_str)
            );
            let pairs = settings.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone()));
            let request =
                Request::Set { port: port.clone(), queue: *queue, settings: pairs.collect() };
            let ports = ask(&choose(args.lab.as_deref())?, &request)?;
            for state in ports.iter().filter(|state| state.port == *port) {
                state.queues.iter().enumerate().for_each(|(number, queue)| {
                    say!("{port} queue {number}: {}", queue.setting);
                });
            }
            Ok(())
        }
        NicCommand::Evict { port } => {
            ask(&choose(args.lab.as_deref())?, &Request::Evict { port: port.clone() })?;
            say!("{port}: what was connected is disconnected; another frontend may connect");
            Ok(())
        }
        NicCommand::Serve { a, b, nic } => super::serve::run([a, b], nic),
        NicCommand::Watch { port, interval, count } => {
            ensure!((0.01..=3_600.0).contains(interval), "--interval is 0.01 to 3600 seconds");
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

fn show(port: &PortState, lab: &str) {
    say!("Coalesce parameters for {} (lab {lab}):", port.port);
    say!("mark: {}", if port.mark.is_empty() { "nothing" } else { &port.mark });
    if let Some(why) = &port.vanished {
        say!("VANISHED: {why}");
    }
    if let Some(attachment) = &port.attachment {
        say!("guest: {}", tell(attachment));
    }
    for (number, queue) in port.queues.iter().enumerate() {
        if port.queues.len() > 1 {
            say!("queue {number}:");
        }
        show_queue(queue);
    }
    if let Some([p50, p99, max]) = port.hold_us {
        say!("hold: p50 {p50:.1} us, p99 {p99:.1} us, max {max:.1} us");
    }
    show_counters(&port.counters);
    say!("");
}

/// How the guest of a port stands.
fn tell(attachment: &AttachmentState) -> String {
    let AttachmentState { connected, lost, queue_pairs, queue_pairs_used } = attachment;
    match lost {
        _ if *connected => {
            format!("connected, uses {queue_pairs_used} of {queue_pairs} queue pairs")
        }
        Some(why) => format!("none; the last one was lost: {why}"),
        None => "none yet".into(),
    }
}

fn show_queue(queue: &QueueState) {
    say!("strategy: {} ({})", queue.strategy, queue.setting);
    say!("adaptive-rx: {}", if queue.adaptive_rx { "on" } else { "off" });
    say!("rx-usecs: {}", queue.rx_usecs);
    say!("rx-frames: {}", queue.rx_frames);
    let interrupts = queue.interrupts.iter().map(|(reason, count)| format!("{reason} {count}"));
    say!(
        "interrupts: {} ({})",
        queue.interrupts.values().sum::<u64>(),
        interrupts.collect::<Vec<_>>().join(", ")
    );
    show_counters(&queue.counters);
}

fn show_counters(counters: &BTreeMap<String, u64>) {
    counters.iter().for_each(|(name, value)| say!("{name}: {value}"));
}

/// Prints a line for each port and interval.
fn watch(lab: &str, port: Option<&str>, interval: f64, count: Option<u64>) -> Result<()> {
    say!(
        "{:<6} {:<24} {:>12} {:>14} {:>12} {:>10}",
        "port",
        "setting",
        "packets/s",
        "interrupts/s",
        "packets/int",
        "marked/s"
    );
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
            say!(
                "{:<6} {:<24} {packets:>12.0} {interrupts:>14.0} {each:>12.1} {marked:>10.0}",
                now.port,
                now.queues[0].setting
            );
        }
        before = now;
        printed += 1;
    }
    Ok(())
}

fn total(port: &PortState, of: fn(&QueueState) -> u64) -> u64 {
    port.queues.iter().map(of).sum()
}
