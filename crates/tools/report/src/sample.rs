//! A report with plausible numbers, for tests and for a look at the page.

use super::{
    CdfChart, CdfSeries, Cell, Interrupt, Lane, Packet, Report, Table, Timeline, TradeoffChart,
    TradeoffPoint,
};

/// Name; p50 of round trips alone and beside bulk, us; interrupts/s and Mbit/s with both.
const SETTINGS: [(&str, f64, f64, f64, f64); 8] = [
    ("disabled", 122.0, 410.0, 41_800.0, 712.0),
    ("delay:75", 343.0, 352.0, 9_100.0, 938.0),
    ("throttle:125", 248.0, 301.0, 6_900.0, 940.0),
    ("periodic:75", 201.0, 233.0, 11_900.0, 936.0),
    ("frames", 296.0, 262.0, 7_600.0, 941.0),
    ("marked:75", 109.0, 131.0, 9_400.0, 941.0),
    ("stream:75", 113.0, 138.0, 8_700.0, 940.0),
    ("adaptive", 187.0, 322.0, 12_700.0, 931.0),
];

pub(super) fn report() -> Report {
    Report {
        title: "What interrupt moderation does to latency".into(),
        subtitle: "TCP round trips and a bulk stream between two hosts on this machine, under \
                   eight settings of one NIC"
            .into(),
        made_at: "2026-09-14 16:20 UTC".into(),
        story: "delay:75 makes a lone round trip 2.8 times slower than an interrupt for each \
                packet does. marked:75 is as fast as no moderation, with a quarter of its \
                interrupts while bulk flows."
            .into(),
        table: table(),
        latency: vec![
            cdf("Round trips alone", "Under delay, each packet waits its full 75 us.", |s| s.1),
            cdf("Round trips beside a bulk stream", "The same client, now in a crowd.", |s| s.2),
        ],
        tradeoff: TradeoffChart {
            title: "Round trips and bulk at once".into(),
            note: "marked:75 reaches the corner that no other setting does.".into(),
            points: SETTINGS.iter().map(point).collect(),
        },
        timelines: vec![
            timeline("disabled", "Every packet interrupts.", 0.0, false),
            timeline("delay:75", "The marked packet waits with the rest.", 75.0, false),
            timeline("marked:75", "The marked packet ends the wait for all.", 75.0, true),
        ],
        environment: [("kernel", "Linux 6.12.43"), ("cpu", "2 cores"), ("world", "live, TAP")]
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec(),
    }
}

fn table() -> Table {
    let headers = ["setting", "alone p50 us", "alone p99 us", "bulk Mbit/s", "both p50 us"];
    let headers = headers.into_iter().chain(["both interrupts/s", "packets/interrupt"]);
    let row = |&(name, alone, both, interrupts, bulk): &(&str, f64, f64, f64, f64)| {
        let latency = |us: f64, limit: f64| match us {
            us if us < 150.0 => Cell::good(format!("{us:.0}")),
            us if us > limit => Cell::bad(format!("{us:.0}")),
            us => Cell::plain(format!("{us:.0}")),
        };
        let many = interrupts > 20_000.0;
        vec![
            Cell::plain(name),
            latency(alone, 290.0),
            Cell::plain(format!("{:.0}", alone * 1.6)),
            if bulk < 900.0 {
                Cell::bad(format!("{bulk}"))
            } else {
                Cell::plain(format!("{bulk}"))
            },
            latency(both, 330.0),
            if many {
                Cell::bad(format!("{interrupts}"))
            } else {
                Cell::plain(format!("{interrupts}"))
            },
            Cell::plain(format!("{:.1}", 81_000.0 / interrupts)),
        ]
    };
    Table {
        headers: headers.map(str::to_owned).collect(),
        rows: SETTINGS.iter().map(row).collect(),
    }
}

fn point(
    &(name, _, latency_us, interrupts_per_s, bulk): &(&str, f64, f64, f64, f64),
) -> TradeoffPoint {
    TradeoffPoint {
        name: name.into(),
        latency_us,
        interrupts_per_s,
        host_busy: None,
        bulk_mbit: Some(bulk),
    }
}

fn cdf(title: &str, note: &str, p50: impl Fn(&(&str, f64, f64, f64, f64)) -> f64) -> CdfChart {
    let series = |setting: &(&str, f64, f64, f64, f64)| {
        let median = p50(setting);
        // A free-running tick spreads its wait evenly; the others have a sharp knee and a tail.
        let spread = if setting.0.starts_with("periodic") { 0.75 } else { 0.18 };
        let points = (0..=400).map(|step| f64::from(step) / 400.0).map(|fraction| {
            let tail = (1.0 / (1.0 - fraction * 0.999_9)).ln().powi(2) * 0.012;
            (median * (1.0 + spread * (fraction - 0.5) + tail), fraction)
        });
        CdfSeries { name: setting.0.into(), points: points.collect() }
    };
    CdfChart {
        title: title.into(),
        note: note.into(),
        series: SETTINGS.iter().map(series).collect(),
    }
}

/// Bulk packets 12 us apart in two bursts, a marked one in between and a lone one later.
fn timeline(setting: &str, note: &str, delay: f64, marks: bool) -> Timeline {
    let bulk = (0..9).map(|index| f64::from(index) * 12.3 + 10.0);
    let bulk = bulk.chain((0..7).map(|index| f64::from(index) * 12.3 + 262.0));
    let mut arrivals: Vec<(f64, bool)> = bulk.map(|at| (at, false)).collect();
    arrivals.extend([(52.0, true), (188.0, true), (300.0, true)]);
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lane = Lane { port: "server".into(), ..Lane::default() };
    let mut client = Lane { port: "client".into(), ..Lane::default() };
    receive(&mut lane, &arrivals, delay, marks);
    let answers: Vec<(f64, bool)> = lane
        .packets
        .iter()
        .filter(|packet| packet.marked)
        .map(|packet| (packet.delivered_us + 21.0, true))
        .collect();
    receive(&mut client, &answers, delay, marks);
    for lane in [&mut lane, &mut client] {
        lane.packets.iter_mut().for_each(|packet| {
            packet.arrived_us += 5_000.0;
            packet.delivered_us += 5_000.0;
        });
        lane.interrupts.iter_mut().for_each(|interrupt| interrupt.at_us += 5_000.0);
    }
    Timeline {
        setting: setting.into(),
        note: note.into(),
        from_us: 5_000.0,
        to_us: 5_420.0,
        lanes: vec![lane, client],
    }
}

fn receive(lane: &mut Lane, arrivals: &[(f64, bool)], delay: f64, marks: bool) {
    let mut waiting: Vec<(f64, bool)> = Vec::new();
    let mut interrupt = |at: f64, reason: &str, waiting: &mut Vec<(f64, bool)>| {
        lane.interrupts.push(Interrupt { at_us: at, reason: reason.into() });
        lane.packets.extend(waiting.drain(..).map(|(arrived_us, marked)| Packet {
            arrived_us,
            delivered_us: at + 1.5,
            marked,
            length_bytes: if marked { 67 } else { 1514 },
        }));
    };
    for &(at, marked) in arrivals {
        if let Some((first, _)) = waiting.first().copied().filter(|(first, _)| first + delay < at) {
            interrupt(first + delay, "timer", &mut waiting);
        }
        waiting.push((at, marked));
        if marks && marked {
            interrupt(at, "mark", &mut waiting);
        } else if delay == 0.0 {
            interrupt(at, "frames", &mut waiting);
        }
    }
    if let Some((first, _)) = waiting.first().copied() {
        interrupt(first + delay, "timer", &mut waiting);
    }
}
