//! Whether real traffic confirms what the model shows, by rounds in which each setting has a turn.
//!
//! A round agrees if it has the trade-off, and `marked:75` has both ends of it: by ratio, its
//! median is nearer to that of `disabled`, and its interrupts are nearer to those of `delay:75`. On
//! a machine that is too busy to tell, latency and interrupts fall on either side of these two
//! bounds by chance, so at most a quarter of the rounds agree. Then five rounds more agree than do
//! not, at any time, with a probability of (1/3)^5 at most (the gambler's ruin): that many confirm.

use bench::experiment::{MIXED_BULK_MBIT, MIXED_ROUND_TRIPS_PER_S};
use bench::measurement::Round;
use serde::Serialize;

/// How many more rounds must agree than do not.
const LEAD: u32 = 5;

/// The part of the load that a round must carry for its figures to compare.
const CARRIED: f64 = 0.9;

/// How many rounds agree with the model.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Agreement {
    /// How many agree.
    pub agreed: u32,
    /// How many there were.
    pub rounds: u32,
}

impl Agreement {
    /// Counts a round of `disabled`, `delay:75` and `marked:75`.
    pub(super) fn count(&mut self, round: [Option<Round>; 3]) {
        self.rounds += 1;
        let [Some(disabled), Some(delay), Some(marked)] =
            round.map(|it| it.and_then(|it| figures(&it)))
        else {
            return;
        };
        self.agreed += u32::from(agrees(disabled, delay, marked));
    }

    /// Whether so many agree that it is not by chance.
    pub(super) fn confirms(self) -> bool {
        self.agreed >= self.rounds - self.agreed + LEAD
    }
}

/// Median latency and interrupts a second, if the load was carried.
fn figures(round: &Round) -> Option<(f64, f64)> {
    let carries = |carried: Option<f64>, all: f64| carried.is_some_and(|it| it >= all * CARRIED);
    let is_whole = carries(round.bulk_bits_per_s, f64::from(MIXED_BULK_MBIT) * 1e6)
        && carries(round.transactions_per_s, f64::from(MIXED_ROUND_TRIPS_PER_S));
    round.latency_p50_us.zip(round.interrupts_per_s).filter(|_| is_whole)
}

fn agrees(disabled: (f64, f64), delay: (f64, f64), marked: (f64, f64)) -> bool {
    let has_trade_off = disabled.0 < delay.0 && delay.1 < disabled.1;
    let between = |one: f64, other: f64| (one * other).sqrt();
    has_trade_off
        && marked.0 < between(disabled.0, delay.0)
        && marked.1 < between(disabled.1, delay.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round((p50, interrupts): (f64, f64)) -> Option<Round> {
        Some(Round {
            latency_p50_us: Some(p50),
            interrupts_per_s: Some(interrupts),
            transactions_per_s: Some(990.0),
            bulk_bits_per_s: Some(299e6),
            ..Round::default()
        })
    }

    fn agreed(rounds: [Option<Round>; 3]) -> u32 {
        let mut agreement = Agreement::default();
        agreement.count(rounds);
        agreement.agreed
    }

    #[test]
    fn a_round_agrees_if_marked_has_both_ends_of_a_trade_off() {
        let (disabled, delay) = ((158.0, 18_964.0), (318.0, 9_982.0));
        for (marked, expected) in
            [((153.0, 10_397.0), 1), ((300.0, 10_397.0), 0), ((153.0, 17_000.0), 0)]
        {
            assert_eq!(agreed([disabled, delay, marked].map(round)), expected, "{marked:?}");
        }
        let has_none = [disabled, (150.0, 9_982.0), (140.0, 9_000.0)];
        assert_eq!(agreed(has_none.map(round)), 0);
        assert_eq!(agreed([round(disabled), None, round((153.0, 10_397.0))]), 0);
        let mut starved = [disabled, delay, (153.0, 10_397.0)].map(round);
        starved[0].as_mut().unwrap().bulk_bits_per_s = Some(200e6);
        assert_eq!(agreed(starved), 0);
    }

    #[test]
    fn it_takes_five_more_that_agree() {
        let confirms = |agreed, rounds| Agreement { agreed, rounds }.confirms();
        assert!(confirms(5, 5) && confirms(8, 11));
        assert!(!confirms(4, 4) && !confirms(7, 10) && !confirms(0, 0));
    }
}
