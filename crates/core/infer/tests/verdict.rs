//! Verdicts on far hosts that are written down by hand: no NIC of ours in them.
#![allow(non_snake_case, reason = "test names are subject__case")]

use base::time::Duration;
use infer::{
    Abilities, Family, Far, Finding, Length, Lengths, MeasuredTrain, OtherDelay, Place,
    PlaceVerdict, Plan, Probe, UnclearReason, Verdict, judge, judge_varied,
};

/// The path's cost, in nanoseconds.
const PATH: u64 = 40_000;

/// Plays a plan against a far host whose NIC reports packets by `far_nic`: for arrivals in
/// nanoseconds, in order, the moments of their releases.
fn play(stamps: bool, far_nic: impl FnMut(&[u64]) -> Vec<u64>) -> Verdict {
    play_both(Abilities { stamps, ..Abilities::default() }, far_nic, <[u64]>::to_vec)
}

/// The hold of the far NIC of [`play`], with stamps.
fn theirs(far_nic: impl FnMut(&[u64]) -> Vec<u64>) -> (Finding, Verdict) {
    let verdict = play(true, far_nic);
    let finding = verdict.at(Place::Theirs).expect("a hold of theirs").clone();
    (finding, verdict)
}

/// The same, where my own NIC reports answers by `my_nic`.
fn play_both(
    abilities: Abilities,
    far_nic: impl FnMut(&[u64]) -> Vec<u64>,
    my_nic: impl FnMut(&[u64]) -> Vec<u64>,
) -> Verdict {
    judge(&measure(abilities, far_nic, my_nic))
}

/// The trains of a plan, measured through both NICs.
fn measure(
    abilities: Abilities,
    mut far_nic: impl FnMut(&[u64]) -> Vec<u64>,
    my_nic: impl FnMut(&[u64]) -> Vec<u64>,
) -> Vec<MeasuredTrain> {
    let mut trains = measure_stamped(abilities, |arrived, _| far_nic(arrived), my_nic);
    trains.iter_mut().flat_map(|train| &mut train.probes).for_each(|probe| probe.nic = None);
    trains
}

/// The same, with a NIC of mine that stamps what it receives, and a far one that sees lengths.
fn measure_stamped(
    abilities: Abilities,
    mut far_nic: impl FnMut(&[u64], Length) -> Vec<u64>,
    mut my_nic: impl FnMut(&[u64]) -> Vec<u64>,
) -> Vec<MeasuredTrain> {
    let mut plan = Plan::new(abilities, 5);
    let stamps = abilities.stamps;
    let mut now = 0;
    while let Some(train) = plan.next_train() {
        let takes = if train.length == Length::Full { PATH + 12_000 } else { PATH };
        let begin = now + train.quiet.as_nanos();
        let sent: Vec<u64> = train.sends.iter().map(|send| begin + send.at.as_nanos()).collect();
        let arrived: Vec<u64> = sent.iter().map(|sent| sent + takes).collect();
        let received = far_nic(&arrived, train.length);
        let answers = received.iter().zip(&train.sends);
        let answered: Vec<u64> =
            answers.map(|(at, send)| at + 5_000 + send.wait.as_nanos()).collect();
        let back: Vec<u64> = answered.iter().map(|at| at + takes).collect();
        // A clock that is slow, too.
        let by_nic: Vec<u64> = back.iter().map(|at| at - at / 50_000 + 7_000_000_000).collect();
        let back = my_nic(&back);
        let probe = |at: usize| Probe {
            sent: sent[at],
            received: Some(back[at]),
            nic: Some(by_nic[at]),
            // A clock of its own, 9 ms ahead.
            far: stamps.then(|| Far {
                received: received[at] + 9_000_000,
                sent: answered[at] + 9_000_000,
            }),
            silent: false,
        };
        let probes: Vec<Probe> = (0..sent.len()).map(probe).collect();
        now = back.iter().copied().max().unwrap_or(now) + 1_000_000;
        plan.record(MeasuredTrain { train, probes });
    }
    plan.heard().to_vec()
}

fn delayed(arrived: &[u64], delay: u64) -> Vec<u64> {
    let mut due = 0;
    let release = |at: &u64| {
        if *at > due {
            due = at + delay;
        }
        due
    };
    arrived.iter().map(release).collect()
}

#[test]
fn nothing_heard__nothing_said() {
    let verdict = judge(&[]);
    assert!(!verdict.is_free_of_holds());
    assert!(verdict.reasons[0].contains("cannot tell"), "{:?}", verdict.reasons);
}

#[test]
fn delay__is_reported_with_its_side_and_what_it_does_to_clocks() {
    let verdict = play(true, |arrived| delayed(arrived, 75_000));
    let finding = verdict.at(Place::Theirs).expect("a delay of theirs");
    assert_eq!(finding.family, Family::Delay);
    assert!((finding.usecs.value - 75.0).abs() < 1.0, "{finding:?}");
    assert_eq!(verdict.at(Place::Mine), None);
    assert!((verdict.offset_bend.unwrap() - 37.5).abs() < 0.5, "{verdict:?}");
}

#[test]
fn each_family__is_found_with_its_time() {
    // When a packet is reported that finds nothing pending, after what was reported before.
    type Due = fn(at: u64, last: u64) -> u64;
    let cases: [(Family, u64, Due); 3] = [
        (Family::Delay, 75, |at, _| at + 75_000),
        (Family::Throttle, 125, |at, last| at.max(last + 125_000)),
        (Family::Periodic, 128, |at, _| at.div_ceil(128_000) * 128_000),
    ];
    for (family, usecs, due) in cases {
        let mut last = 0;
        let (finding, _) = theirs(|arrived| {
            let release = |at: &u64| {
                last = if *at > last { due(*at, last) } else { last };
                last
            };
            arrived.iter().map(release).collect()
        });
        assert_eq!(finding.family, family, "{finding:?}");
        assert!((finding.usecs.value - usecs as f64).abs() < 1.0, "{finding:?}");
    }
}

#[test]
fn delay_whose_packets_are_polled_one_by_one__is_measured_exactly() {
    // No joiner is reported at once: the floor shows only in which packets join. A poll takes 1 us
    // for each packet, and all that come until it is done.
    let mut done = 0;
    let (finding, _) = theirs(|arrived| {
        let release = |at: &u64| {
            done = 1_000 + if *at > done { at + 300_000 } else { done };
            done
        };
        arrived.iter().map(release).collect()
    });
    assert_eq!((finding.family, finding.frames), (Family::Delay, None));
    assert!((finding.usecs.value - 300.0).abs() < 1.0, "{finding:?}");
}

#[test]
fn delay__is_found_in_round_trips_without_its_side() {
    let verdict = play(false, |arrived| delayed(arrived, 75_000));
    let [finding] = &verdict.findings[..] else { panic!("{verdict:?}") };
    assert_eq!((finding.family, finding.place), (Family::Delay, Place::Unknown));
    assert!((finding.usecs.value - 75.0).abs() < 1.0, "{finding:?}");
}

#[test]
fn limit_to_which_others_are_counted__is_found() {
    // One of others comes every 400 us, on average, and may be the one that starts a delay.
    let mut chance = 1_u64;
    let mut other = 0;
    let (mut started, mut count) = (0, 0);
    let verdict = play(true, |arrived| {
        let mut released = vec![0; arrived.len()];
        let mut pending: Vec<usize> = Vec::new();
        let mut coming = arrived.iter().copied().enumerate().peekable();
        let last = arrived[arrived.len() - 1] + 400_000;
        loop {
            let mine = coming.peek().map_or(u64::MAX, |(_, at)| *at);
            let timer = if count > 0 { started + 200_000 } else { u64::MAX };
            let now = mine.min(timer).min(other);
            if now > last {
                return released;
            }
            if now < timer {
                started = if count == 0 { now } else { started };
                count += 1;
            }
            if now == mine {
                pending.extend(coming.next().map(|(index, _)| index));
            } else if now == other {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                other += (chance >> 33) % 800_000;
            }
            if now == timer || count == 12 {
                pending.drain(..).for_each(|index| released[index] = now);
                count = 0;
            }
        }
    });
    let finding = verdict.at(Place::Theirs).expect("a delay of theirs");
    assert_eq!((finding.family, finding.frames), (Family::Delay, Some(12)), "{finding:?}");
    assert!((finding.usecs.value - 200.0).abs() < 2.0, "{finding:?}");
}

/// When a NIC reports packets that waits for `quiet` without a packet, and for `bound` after the
/// first at the latest.
fn quieted(arrived: &[u64], quiet: u64, bound: u64) -> Vec<u64> {
    let mut released = vec![0; arrived.len()];
    let mut at = 0;
    while at < arrived.len() {
        let mut due = arrived[at] + quiet;
        let first = at;
        while at < arrived.len() && arrived[at] <= due {
            due = (arrived[at] + quiet).min(arrived[first] + bound);
            at += 1;
        }
        released[first..at].fill(due);
    }
    released
}

#[test]
fn quiet__is_found_with_its_bound_where_trains_last_so_long() {
    for (quiet, bound, shown) in [(140, 272, true), (20, 75, true), (60, 1_000_000, false)] {
        let (finding, verdict) = theirs(|arrived| quieted(arrived, quiet * 1_000, bound * 1_000));
        assert_eq!(finding.family, Family::Quiet, "{finding:?}");
        assert!((finding.usecs.value - quiet as f64).abs() < 1.0, "{finding:?}");
        assert_eq!(finding.lone_usecs, finding.usecs.value, "{finding:?}");
        let is_bound = |usecs: f64| shown && (usecs - bound as f64).abs() < 1.5;
        assert_eq!(finding.bound.map(is_bound), shown.then_some(true), "{finding:?}");
        assert!(verdict.other_delays.is_empty(), "{:?}", verdict.reasons);
    }
}

/// A kernel that polls so many times more, `usecs` apart, after a poll that has found something.
fn deferred(arrived: &[u64], usecs: u64, polls: u64, last: &mut u64) -> Vec<u64> {
    let poll = |at: &u64| {
        let ago = at.saturating_sub(*last);
        if *at > *last && (ago > polls * usecs || *last == 0) {
            *last = *at;
        } else if *at > *last {
            *last += ago.div_ceil(usecs) * usecs;
        }
        *last
    };
    arrived.iter().map(poll).collect()
}

#[test]
fn deferral__is_found_with_its_polls_and_one_poll_is_a_throttle() {
    for (usecs, polls, family) in
        [(100, 2, Family::Deferral), (40, 9, Family::Deferral), (100, 1, Family::Throttle)]
    {
        let mut last = 0;
        let (finding, verdict) =
            theirs(|arrived| deferred(arrived, usecs * 1_000, polls, &mut last));
        let count = (family == Family::Deferral).then_some(polls as u32);
        assert_eq!((finding.family, finding.polls), (family, count), "{finding:?}");
        assert!((finding.usecs.value - usecs as f64).abs() < 1.0, "{finding:?}");
        assert_eq!(finding.lone_usecs, 0.0);
        assert!(verdict.other_delays.is_empty(), "{:?}", verdict.reasons);
    }
}

/// Plays a plan of both lengths against a far host whose NIC reports packets of a length by
/// `far_nic`.
fn play_lengths(far_nic: impl FnMut(&[u64], Length) -> Vec<u64>) -> Verdict {
    let abilities = Abilities { stamps: true, full: true, ..Abilities::default() };
    judge(&measure_stamped(abilities, far_nic, <[u64]>::to_vec))
}

#[test]
fn hold_that_depends_on_length__is_neither_denied_nor_said_of_both() {
    let hold = |delays: fn(Length) -> u64| {
        let verdict = play_lengths(|arrived, length| delayed(arrived, delays(length)));
        assert_eq!(verdict.tried, Lengths::Both);
        verdict
    };
    let full = hold(|length| if length == Length::Full { 200_000 } else { 0 });
    let short = hold(|length| if length == Length::Full { 0 } else { 200_000 });
    for (verdict, held, free) in
        [(&full, Length::Full, Length::Short), (&short, Length::Short, Length::Full)]
    {
        let PlaceVerdict::Hold(finding) = verdict.verdict_for(Place::Theirs, held) else {
            panic!("{:?}", verdict.reasons)
        };
        assert!(finding.lengths != Lengths::Both && finding.lengths.covers(held), "{finding:?}");
        assert!((finding.usecs.value - 200.0).abs() < 1.0, "{finding:?}");
        let said = verdict.verdict_for(Place::Theirs, free);
        assert!(matches!(said, PlaceVerdict::NoHold { .. }), "{:?}", verdict.reasons);
        assert!(matches!(verdict.verdict_at(Place::Theirs), PlaceVerdict::Hold(_)));
    }
    // A client of NTP sends short packets.
    assert_eq!(full.offset_bend, Some(0.0));
    assert!((short.offset_bend.unwrap() - 100.0).abs() < 0.5, "{:?}", short.offset_bend);
}

#[test]
fn what_both_lengths_show__is_said_once_and_of_both() {
    for delay in [0, 75_000, 400_000] {
        let verdict = play_lengths(|arrived, _| delayed(arrived, delay));
        let all = verdict.findings.iter().map(|it| it.lengths);
        let all = all.chain(verdict.excluded.iter().map(|it| it.lengths));
        let all: Vec<Lengths> = all.chain(verdict.unclear.iter().map(|it| it.lengths)).collect();
        assert_eq!(all, [Lengths::Both; 2], "{:?}", verdict.reasons);
    }
}

/// NTP and memcached have no long requests.
#[test]
fn short_packets_alone__are_said_to_be_all_that_was_sent() {
    for delay in [0, 75_000] {
        let verdict = play(true, |arrived| delayed(arrived, delay));
        assert_eq!(verdict.tried, Lengths::Short);
        let is_said = |words: &String| words.starts_with("only short packets were sent");
        assert!(verdict.reasons.iter().any(is_said), "{:?}", verdict.reasons);
        let is_of_all = |words: &String| words.contains("alike");
        assert!(!verdict.reasons.iter().any(is_of_all), "{:?}", verdict.reasons);
    }
}

/// Packets of others, which neither end sees, keep its timer running.
#[test]
fn quiet_beside_much_else__is_not_surely_a_delay() {
    let mut chance = 1_u64;
    let mut other = 0;
    let verdict = play(true, |arrived| {
        let mut all: Vec<(u64, Option<usize>)> =
            arrived.iter().enumerate().map(|(index, at)| (*at, Some(index))).collect();
        while other < arrived[arrived.len() - 1] {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            other += (chance >> 33) % 400_000;
            all.push((other, None));
        }
        all.sort_unstable();
        let at: Vec<u64> = all.iter().map(|(at, _)| *at).collect();
        let released = quieted(&at, 275_000, 648_000).into_iter().zip(&all);
        let mut mine = vec![0; arrived.len()];
        released.for_each(|(at, (_, index))| index.iter().for_each(|index| mine[*index] = at));
        mine
    });
    let finding = verdict.at(Place::Theirs).expect("a hold of theirs");
    let families = [&[finding.family], &finding.alike[..]].concat();
    assert!(families.contains(&Family::Quiet), "{finding:?}");
}

#[test]
fn idle_state__is_no_hold() {
    let mut awake_at = 0;
    let verdict = play(true, |arrived| {
        let wake = |at: &u64| {
            let wakes = if *at > awake_at + 300_000 { 90_000 } else { 0 };
            awake_at = awake_at.max(at + wakes);
            awake_at
        };
        arrived.iter().map(wake).collect()
    });
    assert!(verdict.is_free_of_holds(), "{verdict:?}");
    let woken = verdict.other_delays.iter().find_map(|delay| match delay {
        OtherDelay::Waking { takes, .. } => Some(*takes),
        _ => None,
    });
    assert!(woken.is_some_and(|takes| (takes - 90.0).abs() < 3.0), "{verdict:?}");
}

/// A packet that is early now and then, as one that a poll finds, is not late by nothing.
#[test]
fn packets_that_are_early__are_not_called_late() {
    let mut count = 0;
    let verdict = play(true, |arrived| {
        let mut released = delayed(arrived, 300_000);
        for (released, arrived) in released.iter_mut().zip(arrived) {
            count += 1;
            if count % 8 == 0 {
                *released = (*arrived + 40_000).min(*released);
            }
        }
        released
    });
    let late = verdict.other_delays.iter().any(|it| matches!(it, OtherDelay::Stray { .. }));
    assert!(!late, "{:?}", verdict.reasons);
}

/// A program that gathers requests for a while, and answers them together.
#[test]
fn round_trips__do_not_tell_a_nic_from_a_program_that_gathers_requests() {
    let held = |arrived: &[u64]| delayed(arrived, 75_000);
    let or_program = |abilities| {
        let verdict = play_both(abilities, held, <[u64]>::to_vec);
        let finding = verdict.findings.first().expect("a hold").clone();
        let said = verdict.reasons[0].contains("a far program that gathers requests");
        assert_eq!(finding.or_program, said, "{:?}", verdict.reasons);
        said
    };
    assert!(or_program(Abilities::default()));
    assert!(!or_program(Abilities { stamps: true, ..Abilities::default() }));
}

/// Far releases are further apart than mine, so whatever comes back finds my NIC at rest: only
/// answers at moments of their own show how long it holds.
#[test]
fn delay_of_mine_behind_a_longer_one__shows_where_answers_can_be_asked_for_later() {
    let said = |waits| {
        let abilities = Abilities { stamps: true, waits, ..Abilities::default() };
        let (theirs, mine) = (|at: &[u64]| delayed(at, 904_000), |at: &[u64]| delayed(at, 728_000));
        let verdict = play_both(abilities, theirs, mine);
        verdict.at(Place::Mine).map(|finding| (finding.family, finding.usecs.value))
    };
    let (family, usecs) = said(true).expect("a delay of mine");
    assert_eq!(family, Family::Delay);
    assert!((usecs - 728.0).abs() < 7.28, "{usecs}");
    assert!(said(false).is_none_or(|(_, usecs)| usecs < 700.0), "then why ask?");
}

#[test]
fn varying__shows_the_side_where_round_trips_do_not() {
    let hear = |theirs: u64, mine: u64| {
        let far_nic = |at: &[u64]| delayed(at, theirs);
        measure(Abilities::default(), far_nic, |at: &[u64]| delayed(at, mine))
    };
    let sides = |theirs, mine| {
        let verdict = judge_varied(&hear(theirs, mine), &hear(theirs, 0));
        verdict.findings.iter().map(|finding| finding.place).collect::<Vec<_>>()
    };
    assert_eq!(judge(&hear(0, 90_000)).findings[0].place, Place::Unknown);
    assert_eq!(sides(0, 90_000), [Place::Mine]);
    assert_eq!(sides(90_000, 0), [Place::Theirs]);
    assert_eq!(sides(90_000, 300_000), [Place::Theirs, Place::Mine]);
    assert_eq!(sides(0, 0), []);
}

#[test]
fn plan__stays_within_its_limits() {
    let abilities =
        Abilities { most: 500, least_gap: Duration::from_micros(100), ..Abilities::default() };
    let mut plan = Plan::new(abilities, 1);
    let mut sent = 0;
    while let Some(train) = plan.next_train() {
        sent += train.sends.len();
        let gaps = train.sends.windows(2).map(|pair| pair[1].at - pair[0].at);
        assert!(gaps.min().is_none_or(|gap| gap >= Duration::from_micros(100)));
    }
    assert!((1..=500).contains(&sent), "{sent}");
}

#[test]
fn nic_of_mine_that_stamps__tells_both_sides_from_round_trips() {
    let played = |theirs: u64, mine: u64| {
        let heard = measure_stamped(
            Abilities::default(),
            |arrived, _| delayed(arrived, theirs),
            |arrived| delayed(arrived, mine),
        );
        judge(&heard)
    };
    let verdict = played(90_000, 0);
    assert_eq!(verdict.at(Place::Theirs).unwrap().family, Family::Delay, "{:?}", verdict.reasons);
    assert_eq!(verdict.at(Place::Mine), None, "{:?}", verdict.reasons);
    let verdict = played(0, 60_000);
    assert_eq!(verdict.at(Place::Theirs), None, "{:?}", verdict.reasons);
    let mine = verdict.at(Place::Mine).unwrap();
    assert!((mine.usecs.value - 60.0).abs() < 1.0, "{mine:?}");
    assert_eq!(verdict.offset_bend, None, "no stamp has the far time");
}

#[test]
fn nic_that_stamps_few_packets__is_not_asked() {
    let mut heard =
        measure_stamped(Abilities::default(), |at, _| delayed(at, 90_000), <[u64]>::to_vec);
    let stamps = heard.iter_mut().flat_map(|heard| &mut heard.probes);
    stamps.enumerate().filter(|(at, _)| at % 4 == 0).for_each(|(_, probe)| probe.nic = None);
    let verdict = judge(&heard);
    let finding = verdict.findings.first().unwrap();
    assert_eq!((finding.family, finding.place), (Family::Delay, Place::Unknown));
}

/// Every packet finds the NIC at rest and is late by as much, which looks like a longer cable.
#[test]
fn probes_further_apart_than_a_delay__cannot_tell_it_from_none() {
    let least_gap = Duration::from_micros(200);
    for delay in [0, 120_000] {
        let abilities = Abilities { stamps: true, waits: true, least_gap, ..Abilities::default() };
        let verdict = play_both(abilities, |at| delayed(at, delay), <[u64]>::to_vec);
        assert_eq!(
            verdict.verdict_at(Place::Theirs),
            PlaceVerdict::CannotTell,
            "{:?}",
            verdict.reasons
        );
        assert!(!verdict.is_free_of_holds());
        let unclear = verdict.unclear.iter().find(|unclear| unclear.place == Place::Theirs);
        let unclear = unclear.expect("a place that is unclear");
        assert!(unclear.below.is_some_and(|below| (200.0..500.0).contains(&below)), "{unclear:?}");
        assert!(matches!(unclear.why[..], [UnclearReason::Spacing { .. }]), "{unclear:?}");
        assert!(verdict.reasons.iter().any(|reason| reason.contains("--rate")));
        assert_eq!(verdict.offset_bend, None, "of what?");
    }
    let abilities = Abilities { stamps: true, least_gap, ..Abilities::default() };
    let verdict = play_both(abilities, |at| delayed(at, 700_000), <[u64]>::to_vec);
    let finding = verdict.at(Place::Theirs).expect("a delay that is longer than the distance");
    assert!(finding.usecs.low <= 700.0 && 700.0 <= finding.usecs.high, "{finding:?}");
}

/// All interrupts are a probe's distance apart, as a throttle of that length leaves them, and a few
/// packets come closer, since the sender is late now and then.
#[test]
fn probes_further_apart_than_a_delay_that_drifts__are_no_throttle() {
    let abilities =
        Abilities { silent: true, least_gap: Duration::from_micros(200), ..Abilities::default() };
    let mut train = 0;
    let drifting = |arrived: &[u64]| {
        train += 1;
        delayed(arrived, 120_000 + train * 37 % 80 * 1_000)
    };
    let mut heard = measure(abilities, drifting, <[u64]>::to_vec);
    for heard in &mut heard {
        for at in (7..heard.probes.len()).step_by(29) {
            let [.., late, next] = &mut heard.probes[..=at] else { continue };
            let joined = late.received.map(|received| received + 150_000);
            (late.sent, late.received, next.received) = (late.sent + 150_000, joined, joined);
        }
    }
    let verdict = judge(&heard);
    assert!(verdict.findings.iter().all(|finding| finding.family == Family::Delay), "{verdict:?}");
    let idle = |delay: &OtherDelay| matches!(delay, OtherDelay::Waking { .. });
    assert!(!verdict.other_delays.iter().any(idle), "{verdict:?}");
    assert!(!verdict.is_free_of_holds());
}

#[test]
fn no_hold__is_said_with_what_is_excluded() {
    let abilities = Abilities { stamps: true, ..Abilities::default() };
    let verdict = play_both(abilities, <[u64]>::to_vec, <[u64]>::to_vec);
    assert!(verdict.is_free_of_holds(), "{:?}", verdict.reasons);
    for place in [Place::Theirs, Place::Mine] {
        let PlaceVerdict::NoHold { above } = verdict.verdict_at(place) else {
            panic!("{verdict:?}")
        };
        assert!(above < 10.0, "{above}");
    }
    assert!(verdict.reasons[0].contains("no hold above"), "{:?}", verdict.reasons);
}

#[test]
fn hundred_probes__cannot_tell() {
    let abilities = Abilities {
        stamps: true,
        most: 100,
        least_gap: Duration::from_millis(5),
        ..Abilities::default()
    };
    let verdict = play_both(abilities, |at| delayed(at, 120_000), <[u64]>::to_vec);
    assert_eq!(
        verdict.verdict_at(Place::Theirs),
        PlaceVerdict::CannotTell,
        "{:?}",
        verdict.reasons
    );
    let whys = verdict.unclear.iter().flat_map(|unclear| &unclear.why);
    assert!(
        whys.clone().any(|why| matches!(why, UnclearReason::Few { sent: 1..=100 })),
        "{verdict:?}"
    );
    assert!(whys.clone().any(|why| matches!(why, UnclearReason::Spacing { .. })), "{verdict:?}");
}

#[test]
fn answers_that_a_limit_leaves_out__are_no_proof_that_nothing_holds() {
    for delay in [0, 120_000] {
        let mut heard =
            measure(Abilities::default(), |at| delayed(at, delay), |at: &[u64]| at.to_vec());
        // Two hundred a second, as the kernel limits its answers to pings.
        let mut next = 0;
        for probe in heard.iter_mut().flat_map(|heard| &mut heard.probes) {
            if probe.sent < next {
                probe.received = None;
            } else {
                next = probe.sent + 5_000_000;
            }
        }
        let verdict = judge(&heard);
        assert_eq!(
            verdict.verdict_at(Place::Nowhere),
            PlaceVerdict::CannotTell,
            "{:?}",
            verdict.reasons
        );
        assert!(verdict.unclear[0].why.contains(&UnclearReason::Lost), "{:?}", verdict.unclear);
    }
}

/// The shorter hold adds the same to every round trip.
#[test]
fn round_trips__leave_the_other_side_open() {
    let abilities = Abilities { silent: true, ..Abilities::default() };
    let verdict = play_both(abilities, |at| delayed(at, 300_000), |at| delayed(at, 200_000));
    let [finding] = &verdict.findings[..] else { panic!("{verdict:?}") };
    let [unclear] = &verdict.unclear[..] else { panic!("{verdict:?}") };
    assert_eq!(unclear.why, [UnclearReason::RoundTrips]);
    assert_ne!(unclear.place, finding.place, "one of each side, or both on either");
    assert!(unclear.below >= Some(200.0), "{unclear:?}");
    assert!(verdict.reasons.iter().any(|reason| reason.contains("earmark echo")));
}
