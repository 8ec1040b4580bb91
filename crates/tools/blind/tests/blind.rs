//! A small blind test, on seeds that are neither tuned on nor reported.
#![allow(non_snake_case, reason = "test names are subject__case")]

use blind::{Case, Decoy, Hold, Rating, Score, Table, play, probe};
use nic::moderation::{Marks, TimerKind};

/// Bars below those of the full bench, for its small number of cases.
#[test]
fn dozen_cases__families_values_and_decoys_are_right() {
    let scores = play(300_000, 12, Case::draw);
    let table = Table::of(&scores, (0.01, 1.0));
    assert!(table.sides >= 18, "{table}");
    assert!(table.family_right >= 0.8, "{table}");
    assert!(table.value_near >= 0.8, "{table}");
    assert!(table.acquitted >= 0.8, "{table}");
    // That the data cannot tell is no way out where it can.
    let unclear = scores.iter().filter(|score| score.outcome == Rating::CannotTell);
    assert!(10 * unclear.count() <= scores.len(), "{scores:#?}");
}

/// Families beside the usual ones, holds by length, programs that gather requests: each is right,
/// or it is said that the data does not tell.
#[test]
fn newer_families_and_decoys__are_not_mistaken() {
    let is_newer = |seed: &u64| {
        let case = Case::draw(*seed);
        let (theirs, mine) = case.holds();
        let newer = |hold: Hold| {
            let timer = hold.setting.timer == TimerKind::Quiet;
            timer || hold.deferral.is_some() || hold.setting.marks == Marks::Immediate
        };
        newer(theirs) || newer(mine) || matches!(case.decoy(), Some(Decoy::Gathering { .. }))
    };
    let seeds = (300_000..).filter(is_newer).take(12);
    let scores: Vec<Score> = seeds.flat_map(|seed| play(seed, 1, Case::draw)).collect();
    let wrong: Vec<_> = scores.iter().filter(|score| score.outcome == Rating::Wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let held = scores.iter().filter(|score| score.family != "none" && !score.bulk);
    let right = held.clone().filter(|score| score.outcome == Rating::Right).count();
    assert!(10 * right >= 8 * held.count(), "{scores:#?}");
}

#[test]
fn same_seed__same_verdict() {
    let case = Case::draw(300_100);
    assert_eq!(probe(&case), probe(&case));
}

/// A far adaptive hold of which a limit of answers leaves little: most packets that it did not hold
/// keep their distance, and most of the others are late by no rule that is left to see.
#[test]
fn adaptive_hold_of_which_little_is_heard__is_not_denied() {
    let case = Case::draw_hindered(910_228);
    let scores = Score::of(&case, &probe(&case));
    let [theirs, _mine] = &scores[..] else { panic!("{scores:#?}") };
    assert_eq!((&*theirs.family, theirs.outcome), ("adaptive", Rating::CannotTell), "{theirs:#?}");
}

/// Too few probes, probes too far apart, a limit of answers, machines under load: what cannot be
/// seen is not denied, and what is said is within its interval.
#[test]
fn hindered_cases__no_hold_is_denied_that_is_there() {
    let scores = play(300_000, 60, Case::draw_hindered);
    let denied: Vec<_> = scores
        .iter()
        .filter(|score| score.bound_us.is_some_and(|bound| bound < score.usecs))
        .collect();
    assert!(denied.is_empty(), "{denied:#?}");
    let wrong: Vec<_> = scores.iter().filter(|score| score.outcome == Rating::Wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let table = Table::of(&scores, (0.01, 1.0));
    assert!(table.covered >= 0.8, "{table}");
}
