//! Round-trip time of a peer: smoothed, and its variation.

use base::time::Duration;

/// The round trip time, and how much it varies, as of RFC 6298.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rtt {
    /// The smoothed round trip time; absent before the first measurement.
    smoothed: Option<Duration>,
    rttvar: Duration,
    min: Duration,
}

/// What is assumed before anything was measured.
const FIRST: Duration = Duration::from_millis(10);

impl Rtt {
    pub(crate) fn update(&mut self, sample: Duration) {
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(sample);
            self.min = sample;
            self.rttvar = Duration::from_nanos(sample.as_nanos() / 2);
            return;
        };
        let off = if sample > smoothed { sample - smoothed } else { smoothed - sample };
        self.min = self.min.min(sample);
        self.rttvar = weighted(self.rttvar, off, 4);
        self.smoothed = Some(weighted(smoothed, sample, 8));
    }

    /// The smoothed round trip time, as far as it is known.
    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed.unwrap_or(FIRST)
    }

    /// The shortest round trip time: the one with no queue on the way.
    pub(crate) const fn min(&self) -> Duration {
        self.min
    }

    /// An answer that comes sooner is one to something else: half a round trip, as far as none was
    /// shorter. The smoothed one may be out of date, since a frame that was sent twice says nothing
    /// of it, and where all are there is nothing else.
    pub(crate) fn shortest_answer(&self) -> Duration {
        Duration::from_nanos(self.smoothed().as_nanos() / 2).min(self.min)
    }

    pub(crate) fn pto(&self) -> Duration {
        self.smoothed.map_or(FIRST, |smoothed| smoothed + self.rttvar.times(4))
    }
}

fn weighted(old: Duration, new: Duration, parts: u64) -> Duration {
    let [old, new] = [old, new].map(Duration::as_nanos);
    // Not `(old * (parts - 1) + new) / parts`, which could overflow.
    Duration::from_nanos(old - old / parts + new / parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_round_trip_has_a_short_timeout() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.pto(), FIRST);
        for _ in 0..100 {
            rtt.update(Duration::from_micros(50));
        }
        assert!((49..=51).contains(&rtt.smoothed().as_micros()), "{rtt:?}");
        assert!(rtt.pto() < Duration::from_micros(52), "{rtt:?}");
    }

    #[test]
    fn an_uneven_round_trip_has_a_longer_one() {
        let mut rtt = Rtt::default();
        for round in 0..100 {
            rtt.update(Duration::from_micros(if round % 2 == 0 { 50 } else { 450 }));
        }
        assert!(rtt.pto() > Duration::from_micros(800), "{rtt:?}");
        rtt.update(Duration::from_nanos(u64::MAX));
    }
}
