//! `earmark watch --suspension`: whether servers suspend a device's interrupts, interval by
//! interval.

use report::terminal::{Stream, Width};
use show::suspension::Suspension;

use super::Row;

/// The columns that fit a terminal of this width.
pub(super) fn columns(width: Width) -> Stream {
    let columns = [
        ("", 0, 26),
        ("rx pkt/s", 0, 9),
        ("int/s", 0, 9),
        ("rx pkt/int", 1, 10),
        ("polled/s", 0, 9),
        ("suspension", 0, 20),
    ];
    Stream::new(columns, width)
}

/// The device, and below it the servers that have packets from it, each with the verdict.
pub(super) fn rows(suspension: &Suspension) -> Vec<Row> {
    let window = suspension.window.clone().unwrap_or_default();
    let rate = |count: Option<u64>| {
        super::optional(count.map(|count| count as f64 / window.seconds.max(1e-9)), 0)
    };
    let each = window.interrupts.filter(|count| *count > 0);
    let each = each.map(|count| window.packets as f64 / count as f64);
    let ready = suspension.instances.iter().filter(|it| it.missing.is_empty()).count();
    let all = suspension.instances.len();
    let device = vec![
        suspension.device.clone(),
        rate(Some(window.packets)),
        rate(window.interrupts),
        super::optional(each, 1),
        rate(window.polled()),
        format!("{ready} of {all} ready"),
    ];
    let none = String::new;
    let servers = suspension.pollers.iter().map(|it| {
        let (poller, state) = (&it.poller, it.verdict.name());
        let name = format!("  {} ({}) {}", poller.program, poller.pid, poller.descriptor);
        vec![name, none(), none(), none(), none(), state]
    });
    [device].into_iter().chain(servers).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netdev::netdev::Napi;
    use show::Report;
    use show::suspension::{BusyPoll, Poller, Window};

    use super::*;

    #[test]
    fn a_line_of_a_server_has_its_verdict() {
        let napi = Napi {
            id: 8_193,
            defer_hard_irqs: Some(2),
            gro_flush_timeout: Some(20_000),
            irq_suspend_timeout: Some(20_000_000),
            ..Napi::default()
        };
        let report = Report { name: "eth0".into(), napis: Some(vec![napi]), ..Report::default() };
        let server = Poller {
            pid: 7,
            program: "nginx".into(),
            descriptor: 9,
            busy_poll: Some(BusyPoll { usecs: 0, budget: Some(64), prefer: true }),
            napis: BTreeMap::from([(8_193, 1)]),
            ..Poller::default()
        };
        let window = Window {
            seconds: 0.5,
            packets: 1_000,
            interrupts: Some(10),
            busy_polled: Some(900),
            polls: None,
        };
        let suspension = Suspension::of(&report, &[server], Some(window));
        let stream = columns(Width::columns(100));
        let lines: Vec<String> = rows(&suspension).iter().map(|row| stream.row(row)).collect();
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>().join(" "),
            "eth0 2000 20 100.0 1800 1 of 1 ready"
        );
        assert_eq!(
            lines[1].split_whitespace().collect::<Vec<_>>().join(" "),
            "nginx (7) 9 active, 90 %"
        );
    }
}
