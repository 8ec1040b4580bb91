//! The words for it.

use device::napi::Threaded;
use report::terminal::{Lines, Width};

use super::{BusyPoll, Instance, Judged, PollerKind, Suspension};
use crate::lines::{count, us};

/// Devices and pollers on a screen; `elsewhere` are those whose packets come by none of the
/// devices.
pub fn lines(devices: &[Suspension], elsewhere: &[Judged], width: Width) -> Lines {
    let mut lines = Lines::new(width);
    for (number, device) in devices.iter().enumerate() {
        if number > 0 {
            lines.gap();
        }
        of_device(device, &mut lines);
    }
    elsewhere.iter().for_each(|it| judged(it, &mut lines));
    lines
}

fn of_device(device: &Suspension, lines: &mut Lines) {
    let ready = device.instances.iter().filter(|it| it.missing.is_empty()).count();
    let head = match device.instances.len() {
        0 => "no NAPI instance is known of it, so nothing of it can be suspended".to_owned(),
        all if ready == all => {
            format!("ready to suspend interrupts ({})", count(all, "NAPI instance"))
        }
        1 => "not ready to suspend interrupts".into(),
        all => format!("{ready} of {all} NAPI instances are ready to suspend interrupts"),
    };
    lines.text("", &format!("{}: {head}", device.device));
    for instance in &device.instances {
        lines.group(&format!("NAPI {}", instance.id), settings(instance));
        for missing in &instance.missing {
            lines.group("", [missing.what.clone()]);
            lines.group("", missing.fix.clone());
        }
    }
    if device.instances.iter().any(|it| it.irq_suspend_timeout_us.is_some()) {
        lines.group(
            "",
            ["Whether the driver keeps these settings when the device goes down, the kernel does \
              not say; look again after that."
                .to_owned()],
        );
    }
    device.pollers.iter().for_each(|it| judged(it, lines));
}

fn settings(instance: &Instance) -> Vec<String> {
    let mut parts = Vec::new();
    match instance.queues[..] {
        [] => parts.push("queue unknown".to_owned()),
        [one] => parts.push(format!("queue {one}")),
        [first, ..] => {
            parts.push(format!("{} from {first} on", count(instance.queues.len(), "queue")));
        }
    }
    parts.extend(instance.irq.map(|irq| format!("IRQ {irq}")));
    if !instance.cpus.is_empty() {
        parts.push(format!("CPU {}", device::cpus::write_list(&instance.cpus)));
    }
    let time = |value: Option<f64>| value.map_or("unknown".into(), us);
    let defer = instance.defer_hard_irqs.map_or("unknown".into(), |it| it.to_string());
    // Kernels before 6.13 have none of the three for each instance.
    if instance.irq_suspend_timeout_us.is_some() {
        parts.push(format!("irq-suspend-timeout {}", time(instance.irq_suspend_timeout_us)));
        parts.push(format!("gro-flush-timeout {}", time(instance.gro_flush_timeout_us)));
        parts.push(format!("napi-defer-hard-irqs {defer}"));
    }
    match instance.threaded {
        Some(Threaded::Enabled) => parts.push("a kernel thread polls".into()),
        Some(Threaded::BusyPoll) => parts.push("a kernel thread polls without a pause".into()),
        Some(Threaded::Disabled) | None => {}
    }
    vec![parts.join(", ")]
}

fn judged(judged: &Judged, lines: &mut Lines) {
    let Judged { poller, napi, verdict } = judged;
    let kind = match poller.kind {
        PollerKind::Epoll => "epoll object",
        PollerKind::IoUring => "io_uring",
    };
    let sockets = poller.sockets.map(|sockets| format!(", {}", count(sockets, "socket")));
    let polls = match poller.busy_poll {
        None => "unknown how it polls".to_owned(),
        Some(BusyPoll { usecs: 0, prefer: false, .. }) => "never polls".into(),
        Some(BusyPoll { usecs, prefer, .. }) => {
            let prefers = if prefer { ", prefers to" } else { "" };
            format!("polls for {usecs} us{prefers}")
        }
    };
    lines.gap();
    lines.text(
        "",
        &format!(
            "{} ({}), {kind} {}{}: {polls}",
            poller.program,
            poller.pid,
            poller.descriptor,
            sockets.unwrap_or_default()
        ),
    );
    let state = verdict.name();
    let state = state[..1].to_uppercase() + &state[1..];
    let of = napi.map(|napi| format!(" (NAPI {napi})")).unwrap_or_default();
    lines.text("  ", &format!("{state}{of}: {}.", verdict.why));
    for missing in &verdict.missing {
        lines.text("  ", &format!("{}.", missing.what));
        missing.fix.iter().for_each(|fix| lines.text("    ", fix));
    }
    if poller.napis.len() > 1 {
        let number = poller.napis.len();
        lines.text(
            "  ",
            &format!(
                "Its sockets belong to {number} NAPI instances, of which it polls one at a time: a \
             thread and a poller for each (SO_INCOMING_NAPI_ID says whose a connection is) would \
             poll all."
            ),
        );
    }
}
