//! One direction judged: the best explanation, its interval, and how sure it is.

use crate::apart::Distances;
use crate::explanation::{Fit, MAX_HOLD, MIN_NOISE, Shape, Waking};
use crate::limits::{
    BEYOND_NOISE, CLOSE_PER_THROTTLE, COST_PER_E_FOLD, DEVIATIONS_OF_95_PERCENT, DRIFT_NOISE_GAIN,
    EVERYDAY_LATENESS, FLOOR_ERROR_PER_LATENESS, LATE_QUANTILE, MAX_DISTANCE_PER_HOLD, MAX_DRIFT,
    MAX_DRIFT_CORRECTIONS, MAX_HALF_WIDTH, MAX_RIVAL_COST, MAX_UNEXPLAINED,
    MAX_UNEXPLAINED_BY_LEVELS, MAX_UNEXPLAINED_BY_QUIET, MEDIAN_ERROR_PER_MEAN_ERROR,
    MIN_CLOSE_SHARE, MIN_DISTANCE_PER_HOLD, MIN_HOLD_PER_NOISE, MIN_HOLD_PER_STEP, MIN_STARTERS,
    NEGLIGIBLE_DRIFT, NOISE_BIAS, SHORTEST_HOLD_US, STRAY_PER_NOISE, STRAY_US, TIMER_GRAIN_US,
    UNCORRECTED_DRIFT_US,
};
use crate::measured::MeasuredTrain;
use crate::series::{Series, Starter, Way};
use crate::stats::{cheapest, median, mode, quantile, slope, sorted, spread};
use crate::train::Purpose;
use crate::verdict::{Family, Interval};
use crate::{adaptive, edge, fit};

/// Families that look like this one where packets that are not seen keep a timer running.
const fn alike_beside_others(family: Family) -> &'static [Family] {
    match family {
        Family::None | Family::Adaptive => &[],
        Family::Delay => &[Family::Quiet, Family::Periodic],
        Family::Quiet => &[Family::Delay],
        Family::Throttle => &[Family::Deferral, Family::Periodic],
        Family::Deferral => &[Family::Throttle, Family::Periodic],
        Family::Periodic => &[Family::Delay, Family::Throttle, Family::Deferral],
    }
}

/// Families that are not excluded beside this one, if packets of others may hide what tells, and
/// another one explains the waits nearly as well.
fn alike(family: Family, is_hidden: bool, rival: Option<Family>) -> Vec<Family> {
    let hidden = if is_hidden { alike_beside_others(family) } else { &[] };
    let rival = rival.filter(|rival| *rival != Family::None && !hidden.contains(rival));
    let rival = rival.filter(|_| family != Family::None);
    hidden.iter().copied().chain(rival).collect()
}

const fn family_of(shape: Shape) -> Family {
    match shape {
        Shape::None => Family::None,
        Shape::Delay => Family::Delay,
        Shape::Throttle => Family::Throttle,
        Shape::Periodic { .. } => Family::Periodic,
        Shape::Quiet { .. } => Family::Quiet,
        Shape::Deferral { .. } => Family::Deferral,
        Shape::Adaptive => Family::Adaptive,
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) family: Family,
    /// The hold in microseconds, of an adaptive one the longest seen; 0 for none.
    pub(crate) usecs: Interval,
    pub(crate) frames: Option<u32>,
    /// Of quiet, where a train lasted so long, in microseconds.
    pub(crate) bound: Option<f64>,
    /// That a quiet hold begins anew with each packet was seen in bursts alone.
    pub(crate) in_bursts: bool,
    /// How many polls a deferral makes after the last packets.
    pub(crate) polls: Option<u32>,
    pub(crate) waking: Option<Waking>,
    /// How sure the family is, 0 to 1.
    pub(crate) confidence: f64,
    /// The noise that is left, in microseconds.
    pub(crate) noise: f64,
    /// Families that the data does not exclude although another one explains it better.
    pub(crate) alike: Vec<Family>,
    /// The share of waits that the explanation leaves unexplained.
    pub(crate) stray: f64,
    /// The share of waits that are longer than the explanation says.
    pub(crate) late: f64,
    /// By how much these are longer: the 90th percentile.
    pub(crate) late_usecs: f64,
    /// How long a lone packet waits in the middle.
    pub(crate) lone: f64,
    /// The distances that packets kept: which holds the data excludes.
    pub(crate) distances: Distances,
}

impl Judged {
    /// Whether the data bears out the hold that explains it best.
    pub(crate) fn is_supported(&self) -> bool {
        let Interval { value, high, .. } = self.usecs;
        let is_kept =
            self.distances.bound().is_some_and(|bound| bound < MAX_DISTANCE_PER_HOLD * value);
        let close = CLOSE_PER_THROTTLE * value;
        let is_close = || {
            self.distances.shortest().is_some_and(|usecs| usecs < close)
                && self.distances.closer(close) > MIN_CLOSE_SHARE
        };
        if self.family == Family::Throttle && !is_close() {
            return false;
        }
        // Packets that came closer than that and kept their distance say that there is no such
        // hold; an adaptive one is not as long all the time.
        let is_excluded = self.family != Family::Adaptive
            && self.distances.bound().is_some_and(|bound| bound < MIN_DISTANCE_PER_HOLD * value);
        if is_excluded {
            return false;
        }
        let is_lateness = self.stray > MAX_UNEXPLAINED_BY_LEVELS && self.late_usecs > value;
        if self.family == Family::Adaptive && is_lateness {
            return false;
        }
        // A poll that is late goes on while packets come, which looks alike, and so does a machine
        // that two hosts share, as long as one of them sends.
        let is_late_poll =
            self.stray > MAX_UNEXPLAINED_BY_QUIET || value < BEYOND_NOISE * self.noise;
        if self.family == Family::Quiet && (is_late_poll || self.in_bursts) {
            return false;
        }
        let is_clear = self.stray < MAX_UNEXPLAINED && value > BEYOND_NOISE * self.noise;
        let is_precise = high - value < MAX_HALF_WIDTH * value.max(SHORTEST_HOLD_US);
        is_precise && (is_kept || is_clear)
    }

    /// Holds longer than this, in microseconds, are excluded; nothing where none is.
    ///
    /// A hold that comes and goes, as an adaptive one does, leaves the distances of most packets
    /// alone and still makes many late: where most waits are unexplained, nothing is excluded.
    pub(crate) fn excluded(&self) -> Option<f64> {
        self.distances.bound().filter(|_| self.stray < MAX_UNEXPLAINED)
    }
}

/// Judges round trips; nothing if too little was heard.
pub(crate) fn round(heard: &[MeasuredTrain]) -> Option<Judged> {
    let series = Series::of(heard, Way::Round, 0.0);
    look(series).map(Look::conclude)
}

/// Judges two ways, one to another clock and one back from it; nothing if too little was heard.
///
/// One clock gains on the other, by the same in both directions. What it gains is first read from
/// the lower edge of waits, of the direction where that is straighter, and then from what the
/// better explanation leaves.
pub(crate) fn both(heard: &[MeasuredTrain], [to, from]: [Way; 2]) -> Option<(Judged, Judged)> {
    let series = |drift| (Series::of(heard, to, drift), Series::of(heard, from, drift));
    let (there, back) = series(0.0);
    // Edges of long holds say little, and many clocks agree.
    let mut drifts = vec![0.0];
    for drift in [there.edge(), -back.edge()] {
        let is_new = drifts.iter().all(|other: &f64| (drift - other).abs() > NEGLIGIBLE_DRIFT);
        if is_new && drift.abs() < MAX_DRIFT {
            drifts.push(drift);
        }
    }
    let glances = |drift: f64| -> Option<(Look, Look)> {
        let (there, back) = series(drift);
        Some((quick_fit(there, false)?, quick_fit(back, false)?))
    };
    let tried = drifts.into_iter().filter_map(|drift| Some((drift, glances(drift)?)));
    let left = |(drift, (there, back)): &(f64, (Look, Look))| {
        let doubt = if *drift == 0.0 { 1.0 } else { DRIFT_NOISE_GAIN };
        doubt * there.noise * back.noise
    };
    let (mut drift, mut seen) = cheapest(tried, left)?;
    for _ in 0..MAX_DRIFT_CORRECTIONS {
        let (there, back) = &seen;
        let more = if there.certainty() > back.certainty() { there.drift() } else { -back.drift() };
        if more.abs() < NEGLIGIBLE_DRIFT {
            break;
        }
        drift += more;
        seen = glances(drift)?;
    }
    let (there, back) = series(drift);
    Some((look(there)?.conclude(), look(back)?.conclude()))
}

struct Look {
    series: Series,
    starters: Vec<Starter>,
    best: Fit,
    /// The best of those whose hold never changes; levels of an adaptive one follow a drift, too.
    steady: Fit,
    noise: f64,
    margin: f64,
    rival: Family,
    /// How far the floor may be off where a delay hides it, in microseconds.
    doubt: f64,
}

/// Looks twice where a delay hides the floor.
fn look(series: Series) -> Option<Look> {
    let mut look = quick_fit(series, true)?;
    if look.best.shape == Shape::Delay {
        let edge = edge::find(&look.series, &look.starters, &look.best);
        if edge.above > 0.0 {
            look.series.raise(-edge.above);
            look = quick_fit(look.series, true)?;
        }
        look.doubt = edge.doubt;
    }
    Some(look)
}

fn quick_fit(series: Series, thorough: bool) -> Option<Look> {
    let starters = series.starters();
    if starters.len() < MIN_STARTERS {
        return None;
    }
    let Choice { best, steady, noise, margin, rival } = choose(&series, &starters, thorough);
    Some(Look { series, starters, best, steady, noise, margin, rival, doubt: 0.0 })
}

/// The best explanation, and how it stands to others.
struct Choice {
    best: Fit,
    steady: Fit,
    noise: f64,
    /// By how much the best explanation by another family costs more, and which that is.
    margin: f64,
    rival: Family,
}

fn choose(series: &Series, starters: &[Starter], thorough: bool) -> Choice {
    let (mut fits, mut noise) = fit::all(series, starters, thorough);
    if let Some(fit) = adaptive::fit(starters, noise) {
        noise = noise.min(spread(&fit.residuals)).max(MIN_NOISE);
        fits.push(fit);
    }
    let mut costs: Vec<(f64, Fit)> = fits.into_iter().map(|fit| (fit.cost(noise), fit)).collect();
    costs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, best) = costs[0].clone();
    let family = |fit: &Fit| core::mem::discriminant(&fit.shape);
    let rival = costs.iter().find(|(_, fit)| family(fit) != family(&best));
    let margin = rival.map_or(0.0, |(cost, _)| cost - least);
    let rival = rival.map_or(Family::None, |(_, fit)| family_of(fit.shape));
    let is_steady = |(_, fit): &&(f64, Fit)| fit.shape != Shape::Adaptive;
    let steady = costs.iter().find(is_steady).map_or_else(|| best.clone(), |(_, fit)| fit.clone());
    Choice { best, steady, noise, margin, rival }
}

impl Look {
    /// What residuals say about clocks: those of starters that do not wait for another's release.
    fn telling(&self) -> Vec<(f64, f64)> {
        let free = |starter: &Starter| match self.steady.shape {
            Shape::None | Shape::Delay | Shape::Quiet { .. } => true,
            Shape::Throttle => starter.last + self.steady.usecs < starter.arrived,
            Shape::Deferral { polls } => {
                starter.last + f64::from(polls) * self.steady.usecs < starter.arrived
            }
            Shape::Periodic { .. } | Shape::Adaptive => false,
        };
        let pairs = self.starters.iter().zip(&self.steady.residuals);
        let free: Vec<_> = pairs.filter(|(starter, _)| free(starter)).collect();
        let residuals: Vec<f64> = free.iter().map(|(_, residual)| **residual).collect();
        let centre = mode(&residuals);
        let near = free.iter().filter(|(_, residual)| {
            (**residual - centre).abs() < BEYOND_NOISE * self.noise + UNCORRECTED_DRIFT_US
        });
        near.map(|(starter, residual)| (starter.arrived, **residual)).collect()
    }

    /// How exactly [`drift`](Self::drift) is known, in no unit.
    fn certainty(&self) -> f64 {
        (self.telling().len() as f64).sqrt() / self.noise
    }

    fn drift(&self) -> f64 {
        let telling = self.telling();
        if telling.len() < MIN_STARTERS { 0.0 } else { slope(&telling) }
    }

    fn conclude(self) -> Judged {
        let Self { series, starters, best, noise, margin, rival, doubt, .. } = self;
        let late = fit::usual_lateness(&best.residuals, noise);
        // Floors are lower edges: levels are measured from there. A delay's edge gave
        // its floor, and the others are measured between releases.
        let usecs = match best.shape {
            Shape::None => 0.0,
            Shape::Adaptive => (best.usecs - late).max(0.0),
            Shape::Delay
            | Shape::Throttle
            | Shape::Periodic { .. }
            | Shape::Quiet { .. }
            | Shape::Deferral { .. } => best.usecs,
        };
        // Polls and servers keep packets apart, too, and go on while packets come.
        let is_alike =
            matches!(best.shape, Shape::Throttle | Shape::Deferral { .. } | Shape::Quiet { .. });
        let apart = if is_alike { MIN_HOLD_PER_STEP * series.service() } else { 0.0 };
        let least = (SHORTEST_HOLD_US + apart).max(MIN_HOLD_PER_NOISE * noise);
        let family = match best.shape {
            Shape::None => Family::None,
            _ if !(least..=MAX_HOLD).contains(&usecs) => Family::None,
            shape => family_of(shape),
        };
        let centre = mode(&best.residuals);
        let strays = best.residuals.iter().map(|residual| residual - centre);
        let strays = sorted(
            strays.filter(|residual| residual.abs() > STRAY_PER_NOISE * noise + STRAY_US).collect(),
        );
        let late_strays = &strays[strays.partition_point(|residual| *residual < 0.0)..];
        let count = starters.len() as f64;
        let stray = strays.len() as f64 / count;
        let is_hidden =
            stray > EVERYDAY_LATENESS || best.waking.is_some() && family == Family::Throttle;
        let alike = alike(family, is_hidden, Some(rival).filter(|_| margin < MAX_RIVAL_COST));
        let lone = series.points.iter().filter(|point| point.purpose == Purpose::Lone);
        let unseen = match best.shape {
            Shape::Delay => edge::INTERRUPT + doubt,
            Shape::Quiet { .. } | Shape::Deferral { .. } => best.doubt,
            _ => FLOOR_ERROR_PER_LATENESS * late,
        };
        let by_chance = DEVIATIONS_OF_95_PERCENT * MEDIAN_ERROR_PER_MEAN_ERROR * noise
            / (count - strays.len() as f64).max(1.0).sqrt();
        let half = by_chance + NOISE_BIAS * noise + unseen + TIMER_GRAIN_US;
        let usecs = if family == Family::None { 0.0 } else { usecs };
        Judged {
            family,
            usecs: Interval::around(usecs, if family == Family::None { 0.0 } else { half }),
            frames: best.frames.filter(|_| family != Family::None),
            bound: match best.shape {
                Shape::Quiet { bound, .. } if family != Family::None => {
                    Some(bound).filter(|it| it.is_finite())
                }
                _ => None,
            },
            in_bursts: matches!(best.shape, Shape::Quiet { by_few: false, .. }),
            polls: match best.shape {
                Shape::Deferral { polls } if family != Family::None => Some(polls),
                _ => None,
            },
            waking: best.waking,
            confidence: 1.0 - 0.5 * (-margin / COST_PER_E_FOLD).exp(),
            alike,
            noise,
            stray,
            late: late_strays.len() as f64 / count,
            late_usecs: quantile(late_strays, LATE_QUANTILE),
            lone: median(lone.map(crate::series::Reception::wait)),
            distances: Distances::of(&series),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a busy machine looked like that had no hold; only how many are late differs.
    fn levels(stray: f64) -> Judged {
        Judged {
            family: Family::Adaptive,
            usecs: Interval::around(608.4, 7.8),
            frames: None,
            bound: None,
            in_bursts: false,
            polls: None,
            waking: None,
            confidence: 0.99,
            alike: Vec::new(),
            noise: 20.0,
            stray,
            late: stray,
            late_usecs: 679.8,
            lone: 77.1,
            distances: Distances::of(&Series::of(&[], Way::Round, 0.0)),
        }
    }

    #[test]
    fn levels_among_waits_that_are_mostly_late_are_no_hold() {
        assert!(!levels(0.39).is_supported());
        assert!(levels(0.10).is_supported());
        assert!(Judged { late_usecs: 300.0, ..levels(0.39) }.is_supported());
        assert!(Judged { family: Family::Delay, ..levels(0.39) }.is_supported());
    }
}
