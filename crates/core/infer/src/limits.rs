//! The bounds by which [`direction`](crate::direction) judges, with what each was derived from.
//!
//! "Noise" is the standard deviation of the residuals that an explanation leaves, "unexplained" the
//! share of waits that are strays to it. Numbers that follow from something say from what; the
//! others were found by trial on cases of the blind test, which is what a change of one is to be
//! tried on (`earmark probe-blind`).

// What counts as data.

/// Starters of a direction: the median of 30 is off by a quarter of their deviation.
pub(crate) const MIN_STARTERS: usize = 30;

/// No hold is shorter: an interrupt takes as long to be served, in a virtual machine above all, and
/// from outside the two look alike.
pub(crate) const SHORTEST_HOLD_US: f64 = 4.0;

/// The shortest hold, in noises: shorter ones come about by chance.
pub(crate) const MIN_HOLD_PER_NOISE: f64 = 7.0;

/// The shortest throttle, quiet or deferral, in steps of a poll or a server, which keeps packets
/// apart, too: a queue of two comes about by chance, one of three seldom.
pub(crate) const MIN_HOLD_PER_STEP: f64 = 3.0;

/// A residual of more noises than this is not noise: a hold as long is clear, and a wait as far off
/// the explanation does not show how clocks drift.
pub(crate) const BEYOND_NOISE: f64 = 12.0;

/// A stray is off by so many noises, and by so much: it is more than a step of a stamp.
pub(crate) const STRAY_PER_NOISE: f64 = 6.0;
pub(crate) const STRAY_US: f64 = 1.0;

/// The quantile of late strays that is reported.
pub(crate) const LATE_QUANTILE: f64 = 0.9;

// Drift of two clocks, in seconds a second.

/// More is no drift: crystals of computers are within 100 ppm, so two differ by 200.
pub(crate) const MAX_DRIFT: f64 = 3e-4;

/// Less moves nothing by more than half a microsecond in the five seconds that a probe lasts.
pub(crate) const NEGLIGIBLE_DRIFT: f64 = 1e-7;

/// A drift has to lower the product of both directions' noises by this factor to be preferred to
/// none.
pub(crate) const DRIFT_NOISE_GAIN: f64 = 1.2;

/// Corrections of a drift: each leaves a small part of what there was.
pub(crate) const MAX_DRIFT_CORRECTIONS: usize = 4;

/// What a drift that is not corrected yet adds to residuals.
pub(crate) const UNCORRECTED_DRIFT_US: f64 = 5.0;

// What bears out a hold.

/// The shortest distance that most packets keep, in holds. Under a delay and a throttle it is one,
/// and under a tick a few. A shorter one excludes the hold, but for packets that came just before
/// its end.
pub(crate) const MIN_DISTANCE_PER_HOLD: f64 = 0.75;
pub(crate) const MAX_DISTANCE_PER_HOLD: f64 = 4.0;

/// Where distances do not bear a hold out, it explains most waits, and without that nothing is
/// excluded either.
pub(crate) const MAX_UNEXPLAINED: f64 = 0.5;

/// Levels fit anything that is late now and then: if they leave more unexplained, by more than the
/// longest of them, all of it is lateness.
pub(crate) const MAX_UNEXPLAINED_BY_LEVELS: f64 = 0.25;

/// A busy machine without a hold left 13 to 21 % unexplained by what looked like a quiet one (live
/// sides); with one, next to nothing is (virtual time).
pub(crate) const MAX_UNEXPLAINED_BY_QUIET: f64 = 0.1;

/// Packets that tell a throttle are closer than this share of it: at longer distances, a delay that
/// adapts to the rate, or drifts, looks the same.
pub(crate) const CLOSE_PER_THROTTLE: f64 = 0.5;

/// The share of such packets among those closer than twice the throttle: the usual plan sends half
/// or more; where one keeps packets apart, a late sender makes a fifth.
pub(crate) const MIN_CLOSE_SHARE: f64 = 0.4;

/// Lateness that every machine shows. With more, packets that are not seen may keep a timer going.
pub(crate) const EVERYDAY_LATENESS: f64 = 0.05;

// How sure a value and a family are.

/// Half of an interval is at most this share of its hold.
pub(crate) const MAX_HALF_WIDTH: f64 = 0.5;

/// Of a normal distribution, 95 % lie within so many standard deviations.
pub(crate) const DEVIATIONS_OF_95_PERCENT: f64 = 1.96;

/// A median's standard error is that of a mean times the root of pi / 2.
pub(crate) const MEDIAN_ERROR_PER_MEAN_ERROR: f64 = 1.25;

/// Noise is to one side, which moves its middle by up to this share of it.
pub(crate) const NOISE_BIAS: f64 = 0.4;

/// How far a floor may be off, as a share of what a packet is usually late by.
pub(crate) const FLOOR_ERROR_PER_LATENESS: f64 = 0.5;

/// Steps of a poll that reports packets one by one, and of a timer: no statistics shows them.
pub(crate) const TIMER_GRAIN_US: f64 = 0.4;

/// The rise in cost by which the doubt in a family falls e-fold. It would be 1 if starters knew
/// nothing of one another; those of a train share what disturbs them.
pub(crate) const COST_PER_E_FOLD: f64 = 4.0;

/// A rival that costs so much more has a chance of 2 %.
pub(crate) const MAX_RIVAL_COST: f64 = 3.0 * COST_PER_E_FOLD;
