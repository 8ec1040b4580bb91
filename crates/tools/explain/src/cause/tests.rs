//! Requests made by hand, and what is concluded from them.

use std::collections::BTreeSet;

use base::quantiles::Quantiles;
use flows::record::{FlowStage, LongestBlock, TracedRequest};

use super::checks::{alike, request};
use super::ranked::Ranked;
use super::{Facts, FlowCause, RequestVerdict, Side};
use crate::evidence::{Far, OwnHold};

const FACTS: Facts = Facts {
    device: Some("eth7"),
    own_hold: &OwnHold::None,
    far: None,
    far_hold_up_to_us: None,
    throttled_us: None,
    slow_start_after_idle: Some(true),
    frequency: None,
    packets_per_s: 2_000.0,
};

fn judged(requests: Vec<TracedRequest>, facts: &Facts) -> RequestVerdict {
    RequestVerdict::new(&Ranked::new(requests), facts)
}

/// The causes of a typical request, the largest group first.
fn typical(stages: &[(FlowStage, u64)], facts: &Facts) -> Vec<Vec<FlowCause>> {
    causes(&judged(alike(20, stages), facts).typical)
}

fn causes(part: &super::PartVerdict) -> Vec<Vec<FlowCause>> {
    part.causes.iter().map(|group| group.causes.clone()).collect()
}

#[test]
fn each_stage_that_has_one_cause_is_named_by_it() {
    for (stage, cause, side) in [
        (FlowStage::Connect, FlowCause::Connection, Side::Between),
        (FlowStage::BetweenWrites, FlowCause::BetweenWrites, Side::Mine),
        (FlowStage::StackOut, FlowCause::StackOut, Side::Mine),
        (FlowStage::SendBuffer, FlowCause::SendBuffer, Side::Mine),
        (FlowStage::Nagle, FlowCause::Nagle, Side::Mine),
        (FlowStage::Pacing, FlowCause::Pacing, Side::Mine),
        (FlowStage::ReceiverWindow, FlowCause::ReceiverWindow, Side::Theirs),
        (FlowStage::Qdisc, FlowCause::Qdisc, Side::Mine),
        (FlowStage::Driver, FlowCause::Driver, Side::Mine),
        (FlowStage::Retransmission, FlowCause::Loss, Side::Between),
        (FlowStage::FarAcked, FlowCause::FarProgram, Side::Theirs),
        (FlowStage::OutOfOrder, FlowCause::FarLoss, Side::Between),
        (FlowStage::Hold, FlowCause::Hold, Side::Mine),
        (FlowStage::Deferral, FlowCause::Deferral, Side::Mine),
        (FlowStage::Softirq, FlowCause::Softirq, Side::Mine),
        (FlowStage::StackIn, FlowCause::StackIn, Side::Mine),
        (FlowStage::WakeUp, FlowCause::WakeUp, Side::Mine),
        (FlowStage::Elsewhere, FlowCause::Elsewhere, Side::Mine),
        (FlowStage::Read, FlowCause::Read, Side::Mine),
        (FlowStage::Preempted, FlowCause::Preempted, Side::Mine),
        (FlowStage::Lock, FlowCause::Lock, Side::Mine),
        (FlowStage::Disk, FlowCause::Disk, Side::Mine),
        (FlowStage::Sleep, FlowCause::Sleep, Side::Mine),
        (FlowStage::Blocked, FlowCause::Blocked, Side::Mine),
        (FlowStage::Computes, FlowCause::Computes, Side::Mine),
    ] {
        let verdict = judged(alike(20, &[(stage, 300), (FlowStage::FarUnacked, 50)]), &FACTS);
        assert_eq!(causes(&verdict.typical), [[cause]], "{stage:?}");
        let group = &verdict.typical.causes[0];
        assert_eq!((group.side, group.us, group.separates.is_empty()), (side, 300.0, true));
        assert!((group.share - 300.0 / 350.0).abs() < 1e-9, "{stage:?}");
    }
}

#[test]
fn parts_have_causes_of_their_own() {
    let mut requests = alike(1_000, &[(FlowStage::FarUnacked, 100), (FlowStage::WakeUp, 15)]);
    for number in (7..1_000).step_by(100) {
        requests[number as usize] =
            request(number, &[(FlowStage::Retransmission, 210_000), (FlowStage::FarUnacked, 100)]);
        requests[number as usize].counts.timeouts = 1;
    }
    let verdict = judged(requests, &FACTS);
    assert_eq!(verdict.typical.causes[0].causes, [FlowCause::Way, FlowCause::FarHold]);
    assert_eq!(causes(&verdict.mean), [[FlowCause::Loss]]);
    assert_eq!(causes(&verdict.slowest), [[FlowCause::Loss]]);
    let loss = &verdict.slowest.causes[0];
    assert_eq!((loss.us, verdict.slowest.requests), (210_000.0, 10));
    let seen = "10 of 10 requests; 10 segments sent again after a timeout, 0 before one";
    assert_eq!(loss.seen.as_deref(), Some(seen));
    let text = verdict.text();
    for words in [
        "Typical, 115 us",
        "Mean, ",
        "Slowest 1 %, 210.0 ms more than that, 210.1 ms: 210.0 ms (100 %",
        seen,
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn losses_are_found_in_requests_of_other_kinds() {
    let usual = Ranked::new(alike(20, &[(FlowStage::FarUnacked, 100)]));
    let mut lost = alike(9, &[(FlowStage::Retransmission, 210_000)]);
    lost[3].counts.fast_retransmissions = 1;
    let all = usual.with([&Ranked::new(lost)]);
    assert_eq!((usual.has_losses(), all.has_losses(), all.len()), (false, true, 29));
    assert_eq!(causes(&RequestVerdict::new(&all, &FACTS).slowest), [[FlowCause::Loss]]);
}

#[test]
fn slowest_are_named_by_what_they_have_more_than_typical_ones() {
    let usual = [(FlowStage::FarUnacked, 40_000), (FlowStage::WakeUp, 20)];
    let slow = [(FlowStage::FarUnacked, 41_000), (FlowStage::WakeUp, 30_000)];
    let with = |slow: &[(FlowStage, u64)]| {
        let mut requests = alike(100, &usual);
        requests[3] = request(3, slow);
        judged(requests, &FACTS)
    };
    // The way is longer than the wake-up in all of them, and makes none of them slow.
    assert_eq!(causes(&with(&slow).slowest), [[FlowCause::WakeUp]]);
    let verdict = with(&[(FlowStage::FarUnacked, 41_000), (FlowStage::WakeUp, 30)]);
    assert!(verdict.text().contains("Slowest 1 %, 41.0 ms: hardly longer than typical ones."));
}

#[test]
fn stage_is_acquitted_by_its_largest_value() {
    let usual = [(FlowStage::FarUnacked, 300), (FlowStage::WakeUp, 10), (FlowStage::StackIn, 4)];
    let mut requests = alike(1_000, &usual);
    let acquitted = |requests: &[TracedRequest]| {
        let all = judged(requests.to_vec(), &FACTS).acquitted;
        all.iter().map(|it| (it.at.stage, it.at_most_us)).collect::<Vec<_>>()
    };
    let hold = (FlowStage::Hold, 0.0);
    let (stack, wake) = ((FlowStage::StackIn, 4.0), (FlowStage::WakeUp, 10.0));
    assert_eq!(acquitted(&requests), [hold, stack, wake]);
    // One late wake-up of a thousand is in no quantile of the table.
    requests[500] = request(500, &[(FlowStage::FarUnacked, 300), (FlowStage::WakeUp, 5_000)]);
    assert_eq!(acquitted(&requests), [hold, stack]);
    // A NIC that may hold packets is not acquitted by requests without a known hold.
    let facts = Facts { own_hold: &OwnHold::Unknown, ..FACTS };
    assert!(judged(requests, &facts).acquitted.iter().all(|it| it.at.stage != FlowStage::Hold));
}

#[test]
fn nothing_is_concluded_from_less_than_nine_tenths() {
    let of = |unaccounted| {
        let rest = 1_000 - unaccounted;
        judged(alike(9, &[(FlowStage::Lock, rest), (FlowStage::Unaccounted, unaccounted)]), &FACTS)
    };
    assert_eq!(causes(&of(99).typical), [[FlowCause::Lock]]);
    let verdict = of(101);
    assert_eq!((causes(&verdict.typical), causes(&verdict.slowest)), (vec![], vec![]));
    assert!((verdict.typical.accounted - 0.899).abs() < 1e-9);
    assert!(verdict.text().contains("account for 89 % of it, which is too little"), "{verdict:?}");
}

#[test]
fn rest_that_follows_our_acknowledgement_was_held_by_nagle_over_there() {
    let rest = |unacked, acked| {
        typical(
            &[
                (FlowStage::FarUnacked, 110),
                (FlowStage::RestUnacked, unacked),
                (FlowStage::RestAcked, acked),
            ],
            &FACTS,
        )
    };
    assert_eq!(rest(41_500, 115), [[FlowCause::FarNagle]]);
    // It came before our acknowledgement, or long after it: the far program is between two writes.
    let open = [FlowCause::FarProgram, FlowCause::FarAsleep, FlowCause::Way];
    assert_eq!((rest(20_000, 0), rest(40_000, 9_000)), (vec![open.to_vec()], vec![open.to_vec()]));
}

#[test]
fn acknowledgement_without_an_answer_clears_the_way() {
    // The far kernel waited for 40 ms for an answer to send its acknowledgement with.
    let verdict =
        judged(alike(9, &[(FlowStage::FarUnacked, 40_060), (FlowStage::FarAcked, 30_000)]), &FACTS);
    assert_eq!(causes(&verdict.typical), [[FlowCause::FarProgram]]);
    assert_eq!(verdict.typical.causes[0].us, 70_000.0);
    // One that comes just before the answer shows nothing: a queue may have held the request.
    let stages = [(FlowStage::FarUnacked, 40_060), (FlowStage::FarAcked, 900)];
    assert_eq!(typical(&stages, &FACTS)[0].len(), 3);
    // On a way that is that long it may have been delayed by nothing.
    let mut requests = alike(9, &[(FlowStage::FarUnacked, 40_060), (FlowStage::FarAcked, 30_000)]);
    requests.iter_mut().for_each(|it| it.tcp.as_mut().unwrap().min_rtt_us = Some(40_000));
    let far = causes(&judged(requests, &FACTS).typical);
    assert_eq!(far, [vec![FlowCause::Way, FlowCause::FarHold], vec![FlowCause::FarProgram]]);
}

#[test]
fn rare_silence_as_long_as_a_timeout_may_be_a_lost_answer() {
    let mut requests = alike(100, &[(FlowStage::FarUnacked, 100)]);
    requests[9] = request(9, &[(FlowStage::FarUnacked, 100), (FlowStage::FarAcked, 210_000)]);
    let verdict = judged(requests, &FACTS);
    assert_eq!(causes(&verdict.slowest), [[FlowCause::FarProgram, FlowCause::FarLoss]]);
    assert_eq!(verdict.slowest.causes[0].side, Side::Unknown);
}

#[test]
fn far_time_is_the_way_only_if_the_least_round_trip_is_as_long() {
    let far = |us, facts: &Facts| typical(&[(FlowStage::FarUnacked, us)], facts).remove(0);
    assert_eq!(far(100, &FACTS), [FlowCause::Way, FlowCause::FarHold]);
    let held = Facts { own_hold: &OwnHold::Unknown, ..FACTS };
    assert_eq!(far(100, &held), [FlowCause::Way, FlowCause::FarHold, FlowCause::Hold]);
    let open = [FlowCause::FarProgram, FlowCause::FarAsleep, FlowCause::Way];
    assert_eq!(far(300, &FACTS), open);
    let mut datagrams = alike(9, &[(FlowStage::FarUnacked, 300)]);
    datagrams.iter_mut().for_each(|it| it.tcp = None);
    let verdict = judged(datagrams, &FACTS);
    assert_eq!(verdict.typical.causes[0].causes.len(), 4);
    let separates = &verdict.typical.causes[0].separates;
    let there = "on the far host: earmark explain -- PROGRAM";
    let here = "here, with requests back to back beside others: earmark explain HOST";
    assert_eq!(separates[..3], [there, here, "here: earmark probe HOST"]);
    let text = verdict.text();
    assert!(text.contains(&format!(" or far-hold:\n  {there}\n  {here}\n")), "{text}");
}

#[test]
fn references_say_what_the_far_side_does() {
    for (found, expected) in [
        (Far::SlowProgram, &[FlowCause::FarProgram][..]),
        (Far::ProgramOrHold, &[FlowCause::FarProgram, FlowCause::FarHold]),
        (Far::SleepyProgram, &[FlowCause::FarAsleep]),
        (Far::SleepyMachine, &[FlowCause::FarAsleep]),
        (Far::RemoteHold, &[FlowCause::FarHold]),
        (Far::SomeHold, &[FlowCause::Hold, FlowCause::FarHold]),
        (Far::Way, &[FlowCause::Way]),
        (Far::WayOrHold, &[FlowCause::Way, FlowCause::FarHold]),
        (Far::Unknown, &[FlowCause::FarProgram, FlowCause::FarAsleep, FlowCause::Way]),
    ] {
        let facts = Facts { far: Some(found), ..FACTS };
        assert_eq!(typical(&[(FlowStage::FarUnacked, 300)], &facts), [expected], "{found:?}");
    }
    // They are of typical requests, and say nothing of what only a few have, nor of a mean that
    // these make.
    let mut requests = alike(100, &[(FlowStage::FarUnacked, 300)]);
    requests[9] = request(9, &[(FlowStage::FarUnacked, 9_000)]);
    let verdict = judged(requests, &Facts { far: Some(Far::SlowProgram), ..FACTS });
    assert_eq!(causes(&verdict.typical), [[FlowCause::FarProgram]]);
    let counts = [&verdict.mean, &verdict.slowest].map(|part| part.causes[0].causes.len());
    assert_eq!(counts, [3, 3]);
}

#[test]
fn window_is_small_after_a_pause_or_after_a_loss_or_has_not_grown() {
    let stages = [(FlowStage::CongestionWindow, 30_000), (FlowStage::FarUnacked, 100)];
    let of = |facts: &Facts, ssthresh, pause_ms: u64| {
        let mut requests = alike(9, &stages);
        for (number, request) in (0..).zip(&mut requests) {
            let begin = number * (pause_ms * 1_000_000 + request.length());
            (request.end, request.begin) = (begin + request.length(), begin);
            request.tcp.as_mut().unwrap().ssthresh = ssthresh;
        }
        causes(&judged(requests, facts).typical).remove(0)
    };
    let (none, some) = (0x7fff_ffff, 20);
    assert_eq!(of(&FACTS, none, 400), [FlowCause::CwndAfterIdle]);
    assert_eq!(of(&FACTS, none, 100), [FlowCause::CongestionWindow]);
    assert_eq!(of(&FACTS, some, 100), [FlowCause::CwndAfterLoss]);
    let off = Facts { slow_start_after_idle: Some(false), ..FACTS };
    assert_eq!(of(&off, none, 400), [FlowCause::CongestionWindow]);
    let unknown = Facts { slow_start_after_idle: None, ..FACTS };
    assert_eq!(of(&unknown, none, 400), [FlowCause::CwndAfterIdle, FlowCause::CongestionWindow]);
}

#[test]
fn quota_and_frequency_are_named_where_they_were_seen() {
    let waits = [(FlowStage::Preempted, 10_000), (FlowStage::Computes, 900)];
    let throttled = |us| typical(&waits, &Facts { throttled_us: us, ..FACTS }).remove(0);
    assert_eq!(throttled(None), [FlowCause::Preempted]);
    assert_eq!(throttled(Some(0.0)), [FlowCause::Preempted]);
    assert_eq!(throttled(Some(500_000.0)), [FlowCause::Throttled]);
    assert_eq!(throttled(Some(900.0)), [FlowCause::Throttled, FlowCause::Preempted]);
    let capped = |share| {
        let facts = Facts { frequency: share, ..FACTS };
        typical(&[(FlowStage::Computes, 900)], &facts).remove(0)
    };
    assert_eq!(capped(Some(0.4)), [FlowCause::Computes, FlowCause::Frequency]);
    assert_eq!(
        (capped(Some(1.0)), capped(None)),
        (vec![FlowCause::Computes], vec![FlowCause::Computes])
    );
}

#[test]
fn first_packet_without_an_answer_was_lost_or_dropped() {
    let connect = |us| typical(&[(FlowStage::Connect, us)], &FACTS).remove(0);
    assert_eq!(connect(999_999), [FlowCause::Connection]);
    assert_eq!(connect(1_000_000), [FlowCause::Connection, FlowCause::Loss]);
}

#[test]
fn segment_that_is_overtaken_was_not_lost() {
    let hole = |us| typical(&[(FlowStage::OutOfOrder, us)], &FACTS).remove(0);
    assert_eq!(hole(59), [FlowCause::Reordering]);
    assert_eq!(hole(61), [FlowCause::FarLoss]);
}

#[test]
fn several_causes_of_one_part_are_named_by_their_share() {
    let stages = [
        (FlowStage::Lock, 500),
        (FlowStage::Computes, 300),
        (FlowStage::WakeUp, 190),
        (FlowStage::StackIn, 10),
    ];
    assert_eq!(typical(&stages, &FACTS), [[FlowCause::Lock], [FlowCause::Computes]]);
}

#[test]
fn parts_of_receiving_are_one_cause_where_each_is_less_than_another_stage() {
    let of = |softirq, stack, wake_up, far| {
        let stages = [
            (FlowStage::Softirq, softirq),
            (FlowStage::StackIn, stack),
            (FlowStage::WakeUp, wake_up),
            (FlowStage::FarUnacked, far),
        ];
        judged(alike(20, &stages), &FACTS).typical.causes
    };
    let first = |stages: &[super::CauseGroup]| stages[0].causes[0];
    let all = of(60, 70, 80, 100);
    assert_eq!((first(&all), all[0].us, all[0].side), (FlowCause::Receiving, 210.0, Side::Mine));
    let seen = "softirq 60.0 us, stack, receiving 70.0 us, wake-up 80.0 us";
    assert_eq!(all[0].seen.as_deref(), Some(seen));
    // The far time is named beside it, and each part of the whole is named once.
    assert_eq!((all.len(), all[1].us), (2, 100.0));
    assert_eq!(first(&of(60, 70, 110, 100)), FlowCause::WakeUp);
    assert_eq!(first(&of(9, 9, 90, 100)), FlowCause::Way);
    assert_eq!(first(&of(20, 20, 30, 100)), FlowCause::Way);
}

#[test]
fn blocks_come_with_their_call_and_pipelining_is_counted() {
    let mut requests = alike(9, &[(FlowStage::Blocked, 900)]);
    let frames = |name: &str| vec!["pthread_mutex_lock".to_owned(), name.to_owned()];
    for (call, request) in [61, 7, 61, 61].into_iter().zip(&mut requests) {
        let name = (call == 61).then(|| "wait4".to_owned());
        let frames = frames(if call == 61 { "serve" } else { "other" });
        let call = Some(call);
        request.block = Some(LongestBlock { nanos: 1, call, name, stack: None, frames });
        request.partial.pipelined = call == Some(7);
    }
    let verdict = judged(requests, &FACTS);
    let group = &verdict.mean.causes[0];
    assert_eq!(group.seen.as_deref(), Some("longest in wait4"));
    assert_eq!(group.stack, frames("serve"));
    let text = verdict.text();
    assert!(
        text.contains("The stack in which most of them wait:\n  pthread_mutex_lock\n  serve\n"),
        "{text}"
    );
    assert_eq!(verdict.pipelined, 1);
    assert!(verdict.text().contains("During 1 of the 9 requests others were in flight"));
}

#[test]
fn own_hold_comes_with_the_command_and_its_price() {
    let stages = [(FlowStage::Hold, 200), (FlowStage::FarUnacked, 40)];
    let set = |single_frame| OwnHold::Set {
        rx_usecs: 0,
        rx_frames: 64,
        adaptive: false,
        up_to_us: None,
        single_frame,
    };
    let counted = OwnHold::Counted {
        hold_us: Quantiles { p50: 200.0, ..Quantiles::default() },
        lab: "x".into(),
    };
    for (own_hold, command) in [
        (set(true), "ethtool -C eth7 adaptive-rx off rx-usecs 0 rx-frames 1"),
        (set(false), "ethtool -C eth7 adaptive-rx off rx-usecs 0"),
        (counted, "earmark nic --lab x set eth7 rx-usecs 0"),
    ] {
        let verdict = judged(alike(9, &stages), &Facts { own_hold: &own_hold, ..FACTS });
        let advice = &verdict.typical.causes[0].advice[0];
        assert_eq!(advice.takes, format!("let it interrupt earlier: {command}"));
        assert!(advice.costs.contains("2000 a second"), "{}", advice.costs);
    }
}

#[test]
fn each_cause_has_a_text_and_each_text_a_cause() {
    let schema = serde_json::to_value(schemars::schema_for!(FlowCause)).unwrap();
    let names = schema["oneOf"].as_array().unwrap().iter();
    let names: BTreeSet<&str> = names.filter_map(|it| it["const"].as_str()).collect();
    let table: toml::Table = toml::from_str(include_str!("causes.toml")).unwrap();
    assert_eq!(names, table.keys().map(String::as_str).collect());
}
