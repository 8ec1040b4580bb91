//! One direction judged: the best explanation, its interval, and how sure it is.

use crate::apart::Distances;
use crate::explanation::{Fit, MAX_HOLD, MIN_NOISE, Shape, Waking};
use crate::heard::Heard;
use crate::series::{Series, Starter, Way};
use crate::stats::{cheapest, median, mode, quantile, slope, sorted, spread};
use crate::train::Purpose;
use crate::verdict::{Family, Interval};
use crate::{adaptive, edge, fit};

/// Fewer starters than this say nothing.
const ENOUGH: usize = 30;

/// Anything shorter is what an interrupt takes to be served, in a virtual machine above all, in
/// microseconds: nobody outside can tell that from a hold.
const MIN_HOLD: f64 = 4.0;

/// A hold is so many times the noise that it leaves unexplained; less may be chance.
const NOISE_BELOW_HOLD: f64 = 7.0;

/// No clock of a computer gains more than this on another.
const FASTEST: f64 = 3e-4;

/// A drift this small moves nothing by more than half a microsecond while a probe lasts.
const NO_DRIFT: f64 = 1e-7;

/// That two clocks differ has to explain the waits of both directions better by as much.
const DOUBT: f64 = 1.2;

/// Noise is to one side, and by how much that moves its middle is not known: a share of it.
const SKEWED: f64 = 0.4;

/// Packets further apart than a hold keep their distance: all of them under a delay and a throttle,
/// most of them under a tick if it is a few times as far. A hold is supported by that.
const FURTHER: f64 = 4.0;

/// A hold is excluded if most packets keep distances below this share of it: those that came just
/// before its end may seem to.
const EXCLUDED: f64 = 0.75;

/// Without that, a hold has to explain most waits, and to be longer than this many times the noise.
const MIN_EXPLAINED: f64 = 0.5;
const CLEARLY: f64 = 12.0;

/// Nor may its interval be wider to each side than this share of the value: that would not tell it.
const VAGUE: f64 = 0.5;

/// Levels can be found in anything that is late now and then. If more than this share of waits is
/// explained by none of them, by more than the longest of them, lateness explains all.
const MOSTLY_LATE: f64 = 0.25;

/// A busy machine leaves more than this share of waits unexplained by what looks like a quiet hold:
/// 13 to 21 % on live sides without one, next to nothing in virtual time with one.
const LATE_POLLS: f64 = 0.1;

/// Packets have to come at less than this share of a throttle to tell it: at longer distances
/// alone, a delay that adapts to the rate looks the same, and one that drifts as if it began at the
/// release before.
const CLOSE: f64 = 0.5;

/// Of those that come at less than twice the throttle, this share has to: half or more do under
/// the usual plan. Where a plan keeps packets apart, a sender that is late still sends some in a
/// row, a fifth of them and more on a busy machine.
const CLOSE_SHARE: f64 = 0.4;

/// Corrections of the drift: each leaves a small part of what there was, and none follows one that
/// is below [`NO_DRIFT`].
const CORRECTIONS: usize = 4;

/// Only waits that are as the explanation says tell of clocks: within so many standard deviations
/// of the noise and so many microseconds, which is what a drift that is not corrected yet adds.
const TELLING: f64 = 12.0;
const TELLING_USECS: f64 = 5.0;

/// A throttle has to be longer than so many steps of whoever answers or polls, who keeps packets
/// apart, too: a queue of two comes about by chance, a longer one seldom.
const STEPS: f64 = 3.0;

/// A stray is off by so many standard deviations of the noise, and a microsecond.
const STRAY: f64 = 6.0;
const STRAY_USECS: f64 = 1.0;

/// Of strays that are late, the last tenth begins here.
const LATEST: f64 = 0.9;

/// Of a normal distribution, 95 % lie within so many standard deviations; and a median is off by so
/// many times as much as a mean.
const CONFIDENT: f64 = 1.96;
const MEDIAN: f64 = 1.25;

/// Where the floor is not known better, it may be off by this share of what a packet is usually
/// late by.
const LATENESS: f64 = 0.5;

/// What no statistics shows, in microseconds: steps of a poll, by which packets are reported one by
/// one, and of what a timer is set to.
const GRAIN: f64 = 0.4;

/// Of two families that cost the same, either is right with 50 %; of one that costs so much less
/// than the next, 18 % are left to err. If starters knew nothing of one another it would be 2 %,
/// but those of a train share what disturbs them.
const SURER: f64 = 4.0;

/// Of a family that costs so much more, two in a hundred would be left to be right.
const SURE: f64 = 3.0 * SURER;

/// If more than this share of waits is unexplained, packets of others may keep a timer running: of
/// everyday lateness there is less.
pub(crate) const OTHERS: f64 = 0.05;

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
        let is_kept = self.distances.bound().is_some_and(|bound| bound < FURTHER * value);
        let close = CLOSE * value;
        let is_close = || {
            self.distances.shortest().is_some_and(|usecs| usecs < close)
                && self.distances.closer(close) > CLOSE_SHARE
        };
        if self.family == Family::Throttle && !is_close() {
            return false;
        }
        // Packets that came closer than that and kept their distance say that there is no such
        // hold; an adaptive one is not as long all the time.
        let is_excluded = self.family != Family::Adaptive
            && self.distances.bound().is_some_and(|bound| bound < EXCLUDED * value);
        if is_excluded {
            return false;
        }
        let is_lateness = self.stray > MOSTLY_LATE && self.late_usecs > value;
        if self.family == Family::Adaptive && is_lateness {
            return false;
        }
        // A poll that is late goes on while packets come, which looks alike, and so does a machine
        // that two hosts share, as long as one of them sends.
        let is_late_poll = self.stray > LATE_POLLS || value < CLEARLY * self.noise;
        if self.family == Family::Quiet && (is_late_poll || self.in_bursts) {
            return false;
        }
        let is_clear = self.stray < MIN_EXPLAINED && value > CLEARLY * self.noise;
        let is_precise = high - value < VAGUE * value.max(MIN_HOLD);
        is_precise && (is_kept || is_clear)
    }

    /// Holds longer than this, in microseconds, are excluded; nothing where none is.
    ///
    /// A hold that comes and goes, as an adaptive one does, leaves the distances of most packets
    /// alone and still makes many late: where most waits are unexplained, nothing is excluded.
    pub(crate) fn excluded(&self) -> Option<f64> {
        self.distances.bound().filter(|_| self.stray < MIN_EXPLAINED)
    }
}

/// Judges round trips; nothing if too little was heard.
pub(crate) fn round(heard: &[Heard]) -> Option<Judged> {
    let series = Series::of(heard, Way::Round, 0.0);
    look(series).map(Look::conclude)
}

/// Judges two ways, one to another clock and one back from it; nothing if too little was heard.
///
/// One clock gains on the other, by the same in both directions. What it gains is first read from
/// the lower edge of waits, of the direction where that is straighter, and then from what the
/// better explanation leaves.
pub(crate) fn both(heard: &[Heard], [to, from]: [Way; 2]) -> Option<(Judged, Judged)> {
    let series = |drift| (Series::of(heard, to, drift), Series::of(heard, from, drift));
    let (there, back) = series(0.0);
    // Edges of long holds say little, and many clocks agree.
    let mut drifts = vec![0.0];
    for drift in [there.edge(), -back.edge()] {
        let is_new = drifts.iter().all(|other: &f64| (drift - other).abs() > NO_DRIFT);
        if is_new && drift.abs() < FASTEST {
            drifts.push(drift);
        }
    }
    let glances = |drift: f64| -> Option<(Look, Look)> {
        let (there, back) = series(drift);
        Some((quick_fit(there, false)?, quick_fit(back, false)?))
    };
    let tried = drifts.into_iter().filter_map(|drift| Some((drift, glances(drift)?)));
    let left = |(drift, (there, back)): &(f64, (Look, Look))| {
        let doubt = if *drift == 0.0 { 1.0 } else { DOUBT };
        doubt * there.noise * back.noise
    };
    let (mut drift, mut seen) = cheapest(tried, left)?;
    for _ in 0..CORRECTIONS {
        let (there, back) = &seen;
        let more = if there.certainty() > back.certainty() { there.drift() } else { -back.drift() };
        if more.abs() < NO_DRIFT {
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
    if starters.len() < ENOUGH {
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
    let family = |fit: &Fit| std::mem::discriminant(&fit.shape);
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
            (**residual - centre).abs() < TELLING * self.noise + TELLING_USECS
        });
        near.map(|(starter, residual)| (starter.arrived, **residual)).collect()
    }

    /// How exactly [`drift`](Self::drift) is known, in no unit.
    fn certainty(&self) -> f64 {
        (self.telling().len() as f64).sqrt() / self.noise
    }

    fn drift(&self) -> f64 {
        let telling = self.telling();
        if telling.len() < ENOUGH { 0.0 } else { slope(&telling) }
    }

    fn conclude(self) -> Judged {
        let Self { series, starters, best, noise, margin, rival, doubt, .. } = self;
        let late = fit::usual_lateness(&best.residuals, noise);
        // Floors are lower edges: levels are measured from there. A delay's floor was told by
        // itself, and the others are measured between releases.
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
        let apart = if is_alike { STEPS * series.service() } else { 0.0 };
        let least = (MIN_HOLD + apart).max(NOISE_BELOW_HOLD * noise);
        let family = match best.shape {
            Shape::None => Family::None,
            _ if !(least..=MAX_HOLD).contains(&usecs) => Family::None,
            shape => family_of(shape),
        };
        let centre = mode(&best.residuals);
        let strays = best.residuals.iter().map(|residual| residual - centre);
        let strays = sorted(
            strays.filter(|residual| residual.abs() > STRAY * noise + STRAY_USECS).collect(),
        );
        let late_strays = &strays[strays.partition_point(|residual| *residual < 0.0)..];
        let count = starters.len() as f64;
        let stray = strays.len() as f64 / count;
        let is_hidden = stray > OTHERS || best.waking.is_some() && family == Family::Throttle;
        let alike = alike(family, is_hidden, Some(rival).filter(|_| margin < SURE));
        let lone = series.points.iter().filter(|point| point.purpose == Purpose::Lone);
        let unseen = match best.shape {
            Shape::Delay => edge::INTERRUPT + doubt,
            Shape::Quiet { .. } | Shape::Deferral { .. } => best.doubt,
            _ => LATENESS * late,
        };
        let by_chance = CONFIDENT * MEDIAN * noise / (count - strays.len() as f64).max(1.0).sqrt();
        let half = by_chance + SKEWED * noise + unseen + GRAIN;
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
            confidence: 1.0 - 0.5 * (-margin / SURER).exp(),
            alike,
            noise,
            stray,
            late: late_strays.len() as f64 / count,
            late_usecs: quantile(late_strays, LATEST),
            lone: median(lone.map(crate::series::Point::wait)),
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
