//! A device on one screen, from the wire to the application.

mod host;
mod nic;
mod set_by;

use device::ethtool::Parameter;

use super::lab::LabPort;
use super::lanes::Lane;
use super::lines::us;
use super::report::{Report, part};
use host::{busy_polling, machine, napi, processors, softirq, steering};
use nic::{coalescing, interrupts, link, merging, nic, pair, rings, timestamps};
use report::terminal::{Lines, Width};
use set_by::set_by;

/// A device in one line: its driver, its settings, its longest delay.
pub fn summary(report: &Report) -> String {
    let mut parts = vec![report.driver_name().to_owned()];
    parts.extend(link(report));
    let settings = report.coalescing.as_ref().filter(|_| report.lab.is_none()).map(|settings| {
        let shown = [Parameter::RxUsecs, Parameter::RxFrames, Parameter::AdaptiveRx];
        let shown = shown.into_iter().filter_map(|name| Some(pair(name, settings.get(name)?)));
        shown.collect::<Vec<_>>().join(", ")
    });
    let of_lab = || report.lab.as_ref().map(LabPort::describe);
    let settings = settings.or_else(of_lab);
    parts.push(settings.unwrap_or_else(|| "no coalescing settings".into()));
    let longest = report.delays.iter().find(|it| it.endless || it.up_to_us.is_some());
    parts.extend(longest.map(|it| match it.up_to_us {
        Some(microseconds) => format!("up to {} ({})", us(microseconds), it.cause),
        None => format!("until others come ({})", it.cause),
    }));
    format!("{}: {}", report.name, parts.join("; "))
}

/// A device on one screen.
pub fn screen(report: &Report, width: Width) -> Lines {
    let mut lines = Lines::new(width);
    lines.text("", &format!("{}: what delays a packet that it receives alone", report.name));
    delays(report, &mut lines);
    lines.gap();
    lines.group("NIC", [nic(report)]);
    lines.group("coalescing", coalescing(report));
    lines.group("set by", set_by(report));
    lines.group("lanes", report.lanes.iter().map(Lane::describe));
    if report.has(part::INTERRUPTS) {
        lines.group("interrupts", interrupts(report));
    }
    if report.has(part::DEFERRAL) {
        lines.group("NAPI", napi(report));
    }
    lines.group("busy polling", report.has(part::BUSY_POLLING).then(|| busy_polling(report)));
    lines.group("merging", merging(report));
    lines.group("rings", rings(report));
    if report.has(part::STEERING) {
        lines.group("steering", [steering(report)]);
    }
    lines.group("softirq", softirq(report));
    if report.has(part::PROCESSORS) {
        lines.group("processors", processors(report));
    }
    lines.group("machine", report.has(part::MACHINE).then(|| machine(report)));
    lines.group("timestamps", timestamps(report));
    let unreadable = report.unreadable.iter().map(|it| format!("{}: {}", it.what, it.why));
    lines.group("not read", unreadable);
    lines
}

fn delays(report: &Report, lines: &mut Lines) {
    if report.delays.is_empty() {
        let nothing = match report.unreadable.is_empty() {
            true => "Nothing here holds it back.",
            false => "Nothing that was read holds it back.",
        };
        lines.text("  ", nothing);
    }
    for delay in &report.delays {
        let how_long = match delay.up_to_us {
            Some(microseconds) => format!("  Up to {}:", us(microseconds)),
            None if delay.endless => "  No limit:".into(),
            None => "  Unknown:".into(),
        };
        lines.text(&format!("{how_long:<18}"), &delay.what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delays::delays_of;
    use crate::report::{Unreadable, Vector};
    use device::ethtool::{Channels, Coalesce, Driver, Features, ProfileStep, Rings};
    use device::idle::IdleState;
    use device::napi::{Direction, Napi, Threaded};
    use device::steering::Steering;
    use report::terminal::checks::fits;

    /// What no driver of today has, and those of 2005 had.
    fn is_of_rates(name: Parameter) -> bool {
        name.name().ends_with("-low") || name.name().ends_with("-high")
    }

    /// A large server's NIC, with every group as full as it gets.
    fn fullest() -> Report {
        let vector = |number: u32| Vector {
            number,
            handlers: vec![format!("mlx5_comp{number}@pci:0000:17:00.0")],
            count: u64::MAX / 100,
            per_cpu: vec![(number, 5)],
            per_s: Some(123_456.7),
            cpus_allowed: Some(vec![0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24]),
            cpus_effective: Some(vec![number]),
        };
        let steered = |queue| Steering {
            direction: Direction::Rx,
            queue,
            cpus: (0..64).collect(),
            flows: 4_096,
        };
        let step = |usec| ProfileStep { usec: Some(usec), pkts: Some(256), comps: Some(8) };
        let mut coalescing = Coalesce::new();
        let all = Parameter::all();
        all.filter(|name| !is_of_rates(*name)).for_each(|name| coalescing.set(name, 1_000));
        coalescing.rx_profile = Some([1, 8, 64, 128, 256].map(step).into());
        coalescing.tx_profile.clone_from(&coalescing.rx_profile);
        let state = |name: &str, latency_us| IdleState {
            name: name.into(),
            latency_us,
            ..IdleState::default()
        };
        let driver = Driver {
            name: "mlx5_core".into(),
            firmware: "16.35.2000 (MT_0000000012)".into(),
            bus: "0000:17:00.0".into(),
            ..Driver::default()
        };
        let features = ["rx-gro", "rx-lro", "rx-gro-hw"].map(String::from);
        let mut report = Report {
            name: "enp23s0f0np0".into(),
            driver: Some(driver),
            coalescing: Some(coalescing),
            rings: Some(Rings { rx: Some(1024), rx_max: Some(8192), ..Rings::default() }),
            channels: Some(Channels { combined: Some(63), ..Channels::default() }),
            features: Some(Features { active: features.into(), ..Features::default() }),
            napis: Some(vec![Napi {
                irq_suspend_timeout: Some(20_000_000),
                gro_flush_timeout: Some(200_000),
                defer_hard_irqs: Some(100),
                ..Napi::default()
            }]),
            interrupts: (0..64).map(vector).collect(),
            unreadable: vec![Unreadable { what: "rings", why: "needs root: mount sysfs".into() }],
            ..Report::default()
        };
        report.files.bus = Some("pci".into());
        report.files.steering = (0..63).map(steered).collect();
        report.files.deferral.threaded = Some(1);
        report.files.idle.driver = Some("intel_idle".into());
        report.files.idle.states =
            vec![state("POLL", 0), state("C1", 1), state("C1E", 4), state("C6", 170)];
        report.files.virtualisation.is_guest = Some(true);
        report.delays = delays_of(&report);
        report
    }

    #[test]
    fn the_fullest_screen_is_one_screen() {
        report::json::checks::conforms(&fullest());
        let screen = screen(&fullest(), Width::columns(100));
        let text = screen.lines().join("\n");
        assert!(screen.lines().len() <= 48, "{} lines:\n{text}", screen.lines().len());
        let widest = screen.lines().iter().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{text}");
        for words in ["Up to 256 us:", "C6 170 us", "64 vectors", "and 60 with fewer", "needs root"]
        {
            assert!(text.contains(words), "no {words:?} in:\n{text}");
        }
    }

    #[test]
    fn every_terminal_has_the_whole_screen() {
        let essential = ["Up to 256 us:", "64 vectors", "C6 170 us", "needs root"];
        fits(|width| screen(&fullest(), width).lines().join("\n"), &essential);
        fits(|width| Lines::listed(&summary(&fullest()), width), &["enp23s0f0np0", "256 us"]);
    }

    #[test]
    fn what_moves_interrupts_or_polls_for_them_is_named() {
        let napi = Napi { threaded: Some(Threaded::BusyPoll), ..Napi::default() };
        let mut report = Report { crowded_cpu: Some(0), irqbalance: Some(812), ..fullest() };
        report.napis = Some(vec![napi]);
        let text = screen(&report, Width::columns(300)).lines().join("\n");
        for words in [
            "those that receive all come to CPU 0, and may go to others",
            "irqbalance (process 812) runs",
            "1 polled by a thread that never sleeps (napi-threaded: busy-poll)",
        ] {
            assert!(text.contains(words), "no {words:?} in:\n{text}");
        }
        let text = screen(&fullest(), Width::columns(300)).lines().join("\n");
        assert!(!text.contains("irqbalance") && !text.contains("all come to"), "{text}");
    }

    #[test]
    fn nothing_known_is_a_screen_too() {
        let report = Report { name: "x".into(), ..Report::default() };
        let text = screen(&report, Width::columns(100)).lines().join("\n");
        assert!(text.contains("Nothing here holds it back") && text.contains("no such settings"));
        let line = summary(&Report { name: "x".into(), ..Report::default() });
        assert_eq!(line, "x: no driver; no coalescing settings");
    }
}
