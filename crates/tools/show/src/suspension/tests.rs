//! Settings and counts made by hand, and the verdict on them.

use std::collections::BTreeMap;

use device::napi::{Direction, Napi, Queue};
use report::terminal::Width;

use super::*;

fn report(suspend: Option<u64>, timer: u64, defer: u32) -> Report {
    let napi = Napi {
        id: 8_193,
        irq: Some(24),
        defer_hard_irqs: Some(defer),
        gro_flush_timeout: Some(timer),
        irq_suspend_timeout: suspend,
        ..Napi::default()
    };
    let queue = Queue { ifindex: 2, direction: Direction::Rx, id: 3, napi: Some(8_193) };
    Report {
        name: "eth0".into(),
        napis: Some(vec![napi]),
        queues: Some(vec![queue]),
        ..Report::default()
    }
}

fn ready() -> Report {
    report(Some(20_000_000), 20_000, 2)
}

fn poller(prefer: bool) -> Poller {
    Poller {
        pid: 100,
        program: "memcached".into(),
        descriptor: 5,
        busy_poll: Some(BusyPoll { usecs: 0, budget: Some(64), prefer }),
        sockets: Some(2),
        napis: BTreeMap::from([(8_193, 2)]),
        ..Poller::default()
    }
}

fn window(packets: u64, interrupts: u64, busy_polled: Option<u64>) -> Option<Window> {
    let interrupts = Some(interrupts);
    Some(Window { seconds: 1.0, packets, interrupts, busy_polled, polls: None })
}

#[track_caller]
fn judged(report: &Report, poller: &Poller, window: Option<Window>) -> Verdict {
    let suspension = Suspension::of(report, std::slice::from_ref(poller), window);
    assert_eq!(suspension.pollers.len(), 1);
    suspension.pollers[0].verdict.clone()
}

#[test]
fn a_verdict_takes_settings_and_counts() {
    let state = |report: &Report, prefer, window| judged(report, &poller(prefer), window).state;
    let busy = || window(1_000, 10, Some(900));
    assert_eq!(state(&ready(), true, busy()), SuspensionState::Active);
    assert_eq!(state(&ready(), true, window(1_000, 900, Some(0))), SuspensionState::Unused);
    assert_eq!(state(&ready(), true, window(1_000, 900, Some(99))), SuspensionState::HardlyUsed);
    assert_eq!(state(&ready(), true, window(1_000, 900, Some(100))), SuspensionState::Active);
    assert_eq!(state(&ready(), true, window(0, 0, Some(0))), SuspensionState::Unknown);
    assert_eq!(state(&ready(), true, window(1_000, 10, None)), SuspensionState::Unknown);
    assert_eq!(state(&ready(), true, None), SuspensionState::Unknown);
    // However many packets programs polled for, nothing suspends without the settings.
    assert_eq!(state(&ready(), false, busy()), SuspensionState::Unarmed);
    for (suspend, timer, defer) in [(0, 20_000, 2), (20_000_000, 0, 2), (20_000_000, 20_000, 0)] {
        assert_eq!(
            state(&report(Some(suspend), timer, defer), true, busy()),
            SuspensionState::Unarmed
        );
    }
    assert_eq!(state(&report(None, 20_000, 2), true, busy()), SuspensionState::Impossible);
}

#[test]
fn a_verdict_names_the_share_of_packets_that_programs_found() {
    let name = |polled| judged(&ready(), &poller(true), window(1_000, 10, polled)).name();
    let cases = [
        (0, "armed, but not used"),
        (1, "hardly used, below 1 %"),
        (12, "hardly used, 1 %"),
        (480, "active, 48 %"),
        // Not all of them is not 100.
        (999, "active, 99 %"),
        // Those of another device of the network are counted, too.
        (1_300, "active, 100 %"),
    ];
    for (polled, said) in cases {
        assert_eq!(name(Some(polled)), said, "{polled} of 1000");
    }
    assert_eq!(name(None), "unknown");
    let shared = judged(&ready(), &poller(true), window(1_000, 10, Some(1_300)));
    assert_eq!(shared.polled_share, Some(1.0));
    let unarmed = judged(&ready(), &poller(false), window(1_000, 10, Some(900)));
    assert_eq!((unarmed.name().as_str(), unarmed.polled_share), ("not armed", None));
}

#[test]
fn pollers_whose_polls_are_counted_together_are_said_to_be() {
    let [one, other] = [5, 6].map(|descriptor| Poller { descriptor, ..poller(true) });
    let by_network = window(1_000, 10, Some(900));
    let why = |pollers: &[Poller], window| {
        let suspension = Suspension::of(&ready(), pollers, window);
        suspension.pollers[0].verdict.why.clone()
    };
    assert!(!why(&[one.clone(), poller(false)], by_network.clone()).contains("counted in"));
    let one_more = "; polls of 1 other poller are counted in";
    let both = why(&[one.clone(), other.clone()], by_network);
    assert!(both.ends_with(one_more), "{both}");
    // Where programs are counted each by itself, only another poller of the same one is.
    let by_program = window_of((10, 480), (10, 500), (9, 20));
    let both = why(&[one.clone(), other.clone()], by_program.clone());
    assert!(both.ends_with(one_more), "{both}");
    let of_another = Poller { pid: 101, ..other };
    assert!(!why(&[one, of_another], by_program).contains("counted in"));
}

/// Where polls are counted by who polls: those of the poller's process, of others, and of none.
fn window_of(own: (u64, u64), other: (u64, u64), unasked: (u64, u64)) -> Option<Window> {
    let polls = |napi, pid, (polls, packets)| Polls { napi, pid, polls, packets };
    let polls = vec![
        polls(8_193, Some(100), own),
        polls(8_193, Some(101), other),
        polls(8_193, None, unasked),
        // Another instance of this device has no part in it, nor has another device.
        polls(8_194, Some(100), (500, 500)),
    ];
    let by_network = window(1_000, 10, Some(own.1 + other.1));
    by_network.map(|window| Window { polls: Some(polls), ..window })
}

#[test]
fn where_polls_are_counted_by_program_a_verdict_is_of_its_own() {
    let cases = [
        ((10, 480), (10, 500), (9, 20), "active, 48 %"),
        ((10, 20), (10, 980), (0, 0), "hardly used, 2 %"),
        ((10, 0), (10, 980), (9, 20), "armed, but not used"),
        ((0, 0), (10, 980), (9, 20), "armed, but not used"),
        ((10, 0), (0, 0), (0, 0), "unknown"),
    ];
    for (own, other, unasked, said) in cases {
        let verdict = judged(&ready(), &poller(true), window_of(own, other, unasked));
        assert_eq!(verdict.name(), said, "{own:?} {other:?} {unasked:?}: {verdict:?}");
        let is_judged = said != "unknown";
        assert_eq!(verdict.counted_by, is_judged.then_some(CountedBy::Process), "{verdict:?}");
        assert!(!is_judged || verdict.why.contains("of this program"), "{verdict:?}");
        assert_eq!(verdict.why.contains("it did not poll"), own.0 == 0, "{verdict:?}");
    }
    let counted = window(1_000, 10, Some(900));
    assert_eq!(judged(&ready(), &poller(true), counted).counted_by, Some(CountedBy::Network));
    // Of the window, what is of other devices goes; what programs took is known of the device.
    let suspension = Suspension::of(&ready(), &[], window_of((1, 3), (1, 4), (1, 5)));
    let window = suspension.window.unwrap();
    assert_eq!((window.polls.as_ref().map(Vec::len), window.polled()), (Some(3), Some(7)));
}

#[test]
fn what_is_missing_comes_with_its_command() {
    let verdict = judged(&report(Some(0), 0, 0), &poller(false), None);
    let fixes: Vec<_> = verdict.missing.iter().map(|it| it.fix.as_deref()).collect();
    let expected = [
        Some("earmark apply eth0 queue:3:irq-suspend-timeout 20ms"),
        Some("earmark apply eth0 queue:3:gro-flush-timeout 20us queue:3:napi-defer-hard-irqs 2"),
        None,
    ];
    assert_eq!(fixes, expected);
}

#[test]
fn packets_of_no_instance_are_not_held_against_a_device() {
    let over_loopback = Poller { napis: BTreeMap::new(), ..poller(true) };
    let suspension = Suspension::of(&ready(), std::slice::from_ref(&over_loopback), None);
    assert!(suspension.pollers.is_empty() && !suspension.has(&over_loopback));
    assert_eq!(elsewhere(&over_loopback).verdict.state, SuspensionState::Impossible);
    let of_another = Poller { napis: BTreeMap::from([(9, 1)]), ..poller(true) };
    assert_eq!(elsewhere(&of_another).verdict.state, SuspensionState::Unknown);
}

#[test]
fn nothing_is_suspended_for_an_io_uring() {
    let ring = |usecs, prefer| Poller {
        kind: PollerKind::IoUring,
        busy_poll: Some(BusyPoll { usecs, budget: None, prefer }),
        sockets: None,
        napis: BTreeMap::new(),
        ..poller(prefer)
    };
    for (ring, says) in [
        (ring(50, true), "gro-flush-timeout at a time"),
        (ring(50, false), "it polls, beside interrupts"),
        (ring(0, false), "nor does it poll"),
        (Poller { busy_poll: None, ..ring(0, false) }, "does not say"),
    ] {
        let verdict = elsewhere(&ring).verdict;
        assert_eq!(verdict.state, SuspensionState::Impossible);
        assert!(verdict.why.contains(says), "{}", verdict.why);
    }
}

#[test]
fn a_screen_says_what_was_counted() {
    let suspension = Suspension::of(&ready(), &[poller(true)], window(1_000, 10, Some(900)));
    let screen = lines(&[suspension], &[], Width::columns(80));
    let text = screen.lines().join("\n");
    for part in [
        "eth0: ready to suspend interrupts (1 NAPI instance)",
        "memcached (100), epoll object 5, 2 sockets: polls for 0 us, prefers to",
        "Active, 90 % (NAPI 8193): 900 of 1000 packets came in 1.0 s",
        "10 interrupts came, those for sent packets included: 100.0 packets each",
    ] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(part), "{part}\n{text}");
    }
}
