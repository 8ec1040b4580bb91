//! Predictions whose figures follow from theory.

use base::time::{Duration, Instant};
use nic::marker::Rules;
use nic::processor::Costs;
use predict::{ArrivedPacket, By, Grid, Groups, RunSettings, SettingOutcome, SettingRun, propose};

/// A TCP segment over IPv4 with ACK, and PSH if it is wanted.
fn arrival(at_ns: u64, length: usize, port: u16, psh: bool) -> ArrivedPacket {
    let mut frame = vec![0; length];
    frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    frame[16..18].copy_from_slice(&((length - 14) as u16).to_be_bytes());
    frame[23] = 6;
    frame[34..36].copy_from_slice(&50_000_u16.to_be_bytes());
    frame[36..38].copy_from_slice(&port.to_be_bytes());
    frame[46..48].copy_from_slice(&[0x50, if psh { 0x18 } else { 0x10 }]);
    let headers = nic::headers::parse(&frame);
    ArrivedPacket { at: Instant::from_nanos(at_ns), length: length as u32, headers }
}

fn predict(setting: &str, arrivals: &[ArrivedPacket], settings: &RunSettings) -> SettingOutcome {
    let mut groups = Groups::new(By::Port, Rules::NONE);
    let mut run = SettingRun::new(setting.parse().unwrap(), settings).unwrap();
    for arrival in arrivals {
        let group = groups.number(&arrival.headers);
        run.arrive(arrival, group);
    }
    run.finish(Duration::from_millis(1_000), &groups)
}

/// A packet each `gap` nanoseconds for a second.
fn steady(gap: u64) -> Vec<ArrivedPacket> {
    (0..1_000_000_000 / gap).map(|n| arrival(n * gap, 60, 80, false)).collect()
}

#[test]
fn steady_packets_wait_as_theory_says() {
    let settings = RunSettings::default();
    let arrivals = steady(10_000);
    let outcome = predict("disabled", &arrivals, &settings);
    assert_eq!((outcome.interrupts, outcome.hold_us.unwrap().max), (100_000, 0.0));
    // The first packet waits 75 us, and 7 more come meanwhile: an interrupt for 8 packets.
    let outcome = predict("delay:75", &arrivals, &settings);
    let hold = outcome.hold_us.unwrap();
    assert_eq!((outcome.interrupts, outcome.packets), (12_500, 100_000));
    assert_eq!((hold.min, hold.p50, hold.max), (5.0, 35.0, 75.0));
    assert_eq!(outcome.packets_per_interrupt, 8.0);
    // A lone packet each millisecond is never within the gap.
    let outcome = predict("throttle:50", &steady(1_000_000), &settings);
    assert_eq!((outcome.interrupts, outcome.hold_us.unwrap().max), (1_000, 0.0));
    let outcome = predict("delay:75+frames:4", &arrivals, &settings);
    assert_eq!((outcome.interrupts, outcome.hold_us.unwrap().max), (25_000, 30.0));
}

#[test]
fn what_waits_at_the_end_is_counted() {
    let outcome = predict("delay:75", &[arrival(5, 60, 80, false)], &RunSettings::default());
    assert_eq!((outcome.packets, outcome.interrupts), (1, 1));
    assert_eq!(outcome.hold_us.unwrap().p50, 75.0);
    let nothing = predict("delay:75", &[], &RunSettings::default());
    assert_eq!((nothing.packets, nothing.interrupts, nothing.hold_us), (0, 0, None));
}

#[test]
fn a_ring_that_is_too_small_drops() {
    let settings = RunSettings { ring: 4, ..RunSettings::default() };
    let outcome = predict("delay:75", &steady(10_000), &settings);
    assert_eq!((outcome.packets, outcome.missed), (50_000, 50_000));
}

#[test]
fn a_processor_with_costs_is_busy_and_takes_later() {
    let costs = Costs {
        interrupt: Duration::from_nanos(2_000),
        packet: Duration::from_nanos(1_000),
        ..Costs::default()
    };
    let settings = RunSettings { costs, ..RunSettings::default() };
    let arrivals = steady(10_000);
    let outcome = predict("disabled", &arrivals, &settings);
    assert!((outcome.host_busy.unwrap() - 0.3).abs() < 1e-4, "{:?}", outcome.host_busy);
    assert_eq!(outcome.taken_us.unwrap().p50, 3.0);
    let outcome = predict("delay:75", &arrivals, &settings);
    // 12,500 interrupts, and those packets that come during a poll need none.
    assert!((0.1..0.13).contains(&outcome.host_busy.unwrap()), "{:?}", outcome.host_busy);
    // It cannot keep up with a packet each microsecond and a half of work.
    let slow = Costs { packet: Duration::from_nanos(1_500), ..costs };
    let outcome = predict("disabled", &steady(1_000), &RunSettings { costs: slow, ..settings });
    assert!(outcome.host_busy.unwrap() > 0.99 && outcome.missed > 300_000, "{outcome:?}");
    assert!(outcome.interrupts < 100, "one who never catches up polls on");
}

#[test]
fn marks_and_lanes_spare_what_their_rules_name() {
    // Bulk at port 5001, a small request at port 80 each millisecond.
    let mut arrivals: Vec<_> =
        (0..80_000).map(|n| arrival(n * 12_500, 1_514, 5_001, false)).collect();
    arrivals.extend((0..1_000).map(|n| arrival(n * 1_000_000 + 6_000, 100, 80, true)));
    arrivals.sort_by_key(|arrival| arrival.at);
    let rules = "tcp-port=80".parse().unwrap();
    let settings = RunSettings { rules, ..RunSettings::default() };
    let hold = |setting: &str, name: &str| {
        let outcome = predict(setting, &arrivals, &settings);
        let group = outcome.groups.iter().find(|group| group.name == name);
        (outcome.marked, group.unwrap().hold_us.max)
    };
    assert_eq!(hold("marked:75", "tcp 80"), (1_000, 0.0));
    assert_eq!(hold("lane:75", "tcp 80").1, 0.0);
    assert!(hold("delay:75", "tcp 80").1 > 60.0);
    let proposals = propose("delay:75".parse().unwrap(), &arrivals, &settings).unwrap();
    // The small rules mark the same, so one of them is left: the one for filters.
    assert_eq!(proposals[0].rule, "tcp-port=80", "{proposals:#?}");
    assert_eq!(proposals[0].lane.as_deref(), Some("tcp-port=80"));
    assert!(proposals.iter().any(|it| it.rule == "tcp-port=5001"), "{proposals:#?}");
    assert!(proposals.iter().all(|it| !it.rule.contains("psh")), "{proposals:#?}");
}

#[test]
fn a_grid_has_a_front() {
    let arrivals = steady(10_000);
    let timer = nic::moderation::TimerKind::Delay;
    let grid = Grid::search(timer, &arrivals, &RunSettings::default()).unwrap();
    let on_front: Vec<_> = grid.points.iter().filter(|point| point.on_front).collect();
    assert!(on_front.len() > 5 && on_front.len() < grid.points.len(), "{on_front:?}");
    assert_eq!((on_front[0].rx_usecs, on_front[0].hold_p99_us), (0, 0.0));
}

#[test]
fn every_strategy_takes_every_packet_once() {
    let arrivals = steady(7_000);
    for setting in [
        "disabled",
        "delay:20",
        "throttle:50",
        "adaptive",
        "marked:75",
        "periodic:128",
        "quiet:20/75",
        "itr:3",
        "itr:1",
        "stream:75",
        "frames:32",
        "lane:75",
    ] {
        for queues in [1, 3] {
            let settings =
                RunSettings { queues, rules: "tcp-psh".parse().unwrap(), ..RunSettings::default() };
            let outcome = predict(setting, &arrivals, &settings);
            assert_eq!(outcome.packets, arrivals.len() as u64, "{setting}, {queues} queues");
        }
    }
}
