//! How long a round of virtual time is going to take.
//!
//! Every exchange between guests takes real time, about a millisecond, however short it is in
//! theirs. Over a fast cable there are hundreds of thousands in a second, and a user who waits
//! for them should know.

use std::time::{Duration, Instant as RealInstant};

use base::time::Instant;

/// What has to be known of a pace before anything is said of it.
const SAMPLE_FOR: Duration = Duration::from_secs(5);

/// A round that takes longer is worth a word.
const WORTH_REPORTING: Duration = Duration::from_secs(60);

/// How fast time passes between two moments of the calendar.
#[derive(Debug)]
pub(crate) struct Eta {
    from: Instant,
    until: Instant,
    /// When it was first seen that it was past `from`, and where it was then.
    seen: Option<(RealInstant, Instant)>,
}

impl Eta {
    /// Of the time from `from` until `until`.
    pub(crate) fn new(from: Instant, until: Instant) -> Self {
        Self { from, until, seen: None }
    }

    /// It is `now` in virtual time, and `real` in real time: how long the whole way will take, if
    /// that is known and long.
    pub(crate) fn estimate(&mut self, now: Instant, real: RealInstant) -> Option<Duration> {
        if now < self.from {
            return None;
        }
        let (begun, from) = *self.seen.get_or_insert((real, now));
        let looked = real.saturating_duration_since(begun);
        let passed = now.since(from).as_nanos();
        if looked < SAMPLE_FOR || passed == 0 {
            return None;
        }
        let all = self.until.since(self.from).as_nanos();
        let whole = looked.as_secs_f64() * all as f64 / passed as f64;
        Duration::try_from_secs_f64(whole).ok().filter(|whole| *whole > WORTH_REPORTING)
    }
}

/// What to tell the user of a round that takes `whole`.
pub(crate) fn message(whole: Duration) -> String {
    let minutes = whole.as_secs_f64() / 60.0;
    format!(
        "earmark: a round of this experiment takes about {minutes:.0} minutes of real time, because its hosts \
         exchange so much; results of virtual time are exact, so a --duration of 0.05 tells as much"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    #[test]
    fn a_long_round_is_reported_once_known() {
        let begin = RealInstant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let mut eta = Eta::new(at(1_000_000), at(3_000_000));
        assert_eq!(eta.estimate(at(500), after(0)), None);
        assert_eq!(eta.estimate(at(1_000_000), after(1)), None);
        assert_eq!(eta.estimate(at(1_000_100), after(4)), None, "too early to tell");
        assert_eq!(eta.estimate(at(1_100_000), after(6)), Some(Duration::from_secs(100)));
        assert_eq!(eta.estimate(at(2_000_000), after(7)), None, "it has become short");
        assert!(message(Duration::from_secs(600)).contains("about 10 minutes"));
    }

    #[test]
    fn standing_still_has_no_estimate() {
        let begin = RealInstant::now();
        let mut eta = Eta::new(at(0), at(1));
        assert_eq!(eta.estimate(at(0), begin), None);
        assert_eq!(eta.estimate(at(0), begin + Duration::from_secs(3_600)), None);
        let mut endless = Eta::new(at(0), Instant::from_nanos(u64::MAX));
        assert_eq!(endless.estimate(at(0), begin), None);
        assert!(
            endless
                .estimate(Instant::from_nanos(1), begin + SAMPLE_FOR)
                .is_none_or(|d| d > WORTH_REPORTING)
        );
    }
}
