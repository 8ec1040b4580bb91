//! Verdicts beside cases: who was right.

use std::collections::BTreeMap;
use std::fmt;

use base::quantiles::nearest_rank;
use infer::{Family, Finding, Length, Place, PlaceVerdict, Verdict};
use nic::moderation::TimerKind;
use serde::{Deserialize, Serialize};

use crate::case::{Case, Hold, ProbeKind};
use crate::decoy::Decoy;

/// What a verdict is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rating {
    /// The family is, or the hold in force is not above the bound of *no hold*.
    Right,
    /// Neither of the two.
    Wrong,
    /// It says that the data cannot tell.
    CannotTell,
}

/// One side of one case: what was true, and what was said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// Of the case.
    pub seed: u64,
    /// The setting, as `nic set` writes it.
    pub truth: String,
    /// The family that is right.
    pub family: String,
    /// The family that was said.
    pub said: String,
    /// The hold that was said in microseconds, and its frame limit.
    pub said_usecs: (f64, u32),
    /// The family was right.
    pub family_right: bool,
    /// The family, and the frame limit if there is one, were right.
    pub right: bool,
    /// Microseconds said, less those in force; where the family is right and has a fixed hold.
    pub error_us: Option<f64>,
    /// What is said is right, wrong, or that the data cannot tell.
    pub outcome: Rating,
    /// No hold above this, in microseconds, was said.
    pub bound_us: Option<f64>,
    /// The hold in force, in microseconds.
    pub usecs: f64,
    /// The true value lies in the interval.
    pub covered: Option<bool>,
    /// The side was named; where only round trips are known, and packets can be silent.
    pub side: Option<bool>,
    /// What kept probes from showing anything.
    pub obstacle: Option<String>,
    /// What was planted.
    pub decoy: Option<String>,
    /// There was bulk beside the probes.
    pub bulk: bool,
    /// Answers carried the far host's timestamps.
    pub stamped: bool,
    /// My NIC stamped them.
    pub nic_stamps: bool,
    /// Answers came when they were asked for.
    pub waits: bool,
}

impl Score {
    /// Scores a case: one score a side where timestamps tell them apart, else one.
    pub fn of(case: &Case, verdict: &Verdict) -> Vec<Self> {
        if case.tells_sides() {
            let sides = [(Place::Theirs, case.theirs), (Place::Mine, case.mine)];
            let side = |(place, truth)| {
                Self::by_length(case, truth, verdict, |length| verdict.verdict_for(place, length))
            };
            return sides.map(side).to_vec();
        }
        let is_theirs = case.theirs != Hold::NONE;
        let truth = if is_theirs { case.theirs } else { case.mine };
        let finding = verdict.findings.first();
        let place = if is_theirs { Place::Theirs } else { Place::Mine };
        // A tick's side does not show in round trips, nor an adaptive one's when it is short.
        let named = |finding: &Finding| finding.place == place;
        let is_visible = matches!(truth.setting.timer, TimerKind::Delay | TimerKind::Throttle);
        let side = finding.filter(|_| case.kind == ProbeKind::Silent && is_visible).map(named);
        let said = |length| {
            let finding = verdict.findings.iter().find(|finding| finding.lengths.covers(length));
            finding.map_or_else(|| verdict.verdict_for(Place::Nowhere, length), PlaceVerdict::Hold)
        };
        vec![Self { side, ..Self::by_length(case, truth, verdict, said) }]
    }

    /// The score of a side: what is said of one length has to be right, and what is said of the
    /// other one, too, unless that is that the data cannot tell, and both are held alike.
    fn by_length<'a>(
        case: &Case,
        truth: Hold,
        verdict: &Verdict,
        said: impl Fn(Length) -> PlaceVerdict<'a>,
    ) -> Self {
        let tried = Length::ALL.into_iter().filter(|length| verdict.tried.covers(*length));
        let one = |length| Self::one(case, case.of_length(truth, length), said(length));
        let scores: Vec<Self> = tried.map(one).collect();
        let is_by_length = Length::ALL.iter().any(|it| case.of_length(truth, *it) != truth);
        let first = |outcome| scores.iter().find(|score| score.outcome == outcome);
        let right_last = [Rating::Wrong, Rating::CannotTell, Rating::Right];
        let cannot_tell_last = [Rating::Wrong, Rating::Right, Rating::CannotTell];
        let order = if is_by_length { right_last } else { cannot_tell_last };
        let score = order.into_iter().find_map(first).expect("one length was tried").clone();
        let by = if is_by_length { format!(" {}", case.rules()) } else { String::new() };
        Self { truth: format!("{truth}{by}"), ..score }
    }

    fn one(case: &Case, truth: Hold, said: PlaceVerdict<'_>) -> Self {
        let (finding, bound_us) = match said {
            PlaceVerdict::Hold(finding) => (Some(finding), None),
            PlaceVerdict::NoHold { above } => (None, Some(above)),
            PlaceVerdict::CannotTell => (None, None),
        };

        let Hold { setting, deferral } = truth;
        let family = family(truth);
        let says = finding.map_or(Family::None, |finding| finding.family);
        let frames = finding.and_then(|finding| finding.frames).unwrap_or(0);
        let family_right = says == family;
        let right = family_right && frames == setting.rx_frames;
        let usecs = f64::from(deferral.map_or(setting.rx_usecs, |deferral| deferral.usecs));
        // How long an adaptive one was, it alone knows.
        let longest = match family {
            Family::None => 0.0,
            Family::Adaptive => f64::INFINITY,
            _ => usecs,
        };
        let outcome = match said {
            PlaceVerdict::CannotTell => Rating::CannotTell,
            PlaceVerdict::NoHold { above } if longest <= above => Rating::Right,
            PlaceVerdict::Hold(_) if family_right => Rating::Right,
            // It says that the data does not exclude the right one.
            PlaceVerdict::Hold(finding) if finding.alike.contains(&family) => Rating::CannotTell,
            // It says that a program may have done it, and one has.
            PlaceVerdict::Hold(finding)
                if finding.or_program && matches!(case.decoy, Some(Decoy::Gathering { .. })) =>
            {
                Rating::CannotTell
            }
            PlaceVerdict::NoHold { .. } | PlaceVerdict::Hold(_) => Rating::Wrong,
        };
        let fixed = finding.filter(|_| family_right && setting.timer != TimerKind::Adaptive);
        let name = |family: Family, frames: u32| match frames {
            0 => family.name().to_owned(),
            _ => format!("{family}+frames"),
        };
        Self {
            seed: case.seed(),
            truth: truth.to_string(),
            family: name(family, setting.rx_frames),
            said: name(says, frames),
            said_usecs: (finding.map_or(0.0, |finding| finding.usecs.value), frames),
            family_right,
            right,
            error_us: fixed.map(|finding| finding.usecs.value - usecs),
            covered: fixed.map(|finding| (finding.usecs.low..=finding.usecs.high).contains(&usecs)),
            outcome,
            bound_us,
            usecs,
            side: None,
            obstacle: case.obstacle.map(|obstacle| obstacle.name().to_owned()),
            decoy: case.decoy.map(|decoy| decoy.name().to_owned()),
            bulk: case.bulk > 0.0,
            stamped: case.kind == ProbeKind::Stamped,
            nic_stamps: case.nic_stamps,
            waits: case.waits,
        }
    }

    /// Whether the value is within `share` or `usecs` of the truth; nothing where there is none.
    pub fn is_near(&self, share: f64, usecs: f64) -> Option<bool> {
        self.error_us.map(|error| error.abs() <= (share * self.usecs).max(usecs))
    }
}

/// The family that is right.
fn family(Hold { setting, deferral }: Hold) -> Family {
    match setting.timer {
        // One poll after the packets is a throttle, in the NIC or in the kernel.
        TimerKind::Disabled => deferral.map_or(Family::None, |deferral| match deferral.polls {
            1 => Family::Throttle,
            _ => Family::Deferral,
        }),
        TimerKind::Delay => Family::Delay,
        TimerKind::Quiet => Family::Quiet,
        TimerKind::Throttle | TimerKind::Itr(_) => Family::Throttle,
        TimerKind::Periodic => Family::Periodic,
        TimerKind::Adaptive => Family::Adaptive,
        TimerKind::Driver | TimerKind::Custom(_) => {
            unreachable!("a secret setting is one of our timers")
        }
    }
}

/// All scores together.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Sides of cases that were judged.
    pub sides: usize,
    /// The share whose family is right.
    pub family_right: f64,
    /// The share whose family and frame limit are right.
    pub all_right: f64,
    /// The same where nothing was held: those with a decoy, by its name, and how many there were.
    pub decoys_acquitted: BTreeMap<String, (f64, usize)>,
    /// All decoys together.
    pub acquitted: f64,
    /// Of those with the right family, the share whose value is near enough.
    pub value_near: f64,
    /// What near enough is: a share, or microseconds.
    pub near: (f64, f64),
    /// Quantiles of the absolute error in microseconds: 50, 90, 99 and 100 percent.
    pub error_us: [f64; 4],
    /// The share of intervals that hold the truth.
    pub covered: f64,
    /// The share of sides that silent packets named right.
    pub side_right: f64,
    /// By obstacle, *none* where there was none: how many verdicts were right, wrong, and that the
    /// data cannot tell.
    pub outcomes: BTreeMap<String, BTreeMap<Rating, usize>>,
    /// True family to said family to count.
    pub confusion: BTreeMap<String, BTreeMap<String, usize>>,
    /// Family right by circumstance.
    pub by: BTreeMap<&'static str, (f64, usize)>,
}

impl Table {
    /// Sums up; a value is near within `near.0` of it or `near.1` microseconds.
    pub fn of(scores: &[Score], near: (f64, f64)) -> Self {
        let mut confusion: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        for score in scores {
            let said = confusion.entry(score.family.clone()).or_default();
            *said.entry(score.said.clone()).or_default() += 1;
        }
        let mut errors: Vec<f64> =
            scores.iter().filter_map(|score| score.error_us).map(f64::abs).collect();
        errors.sort_unstable_by(f64::total_cmp);
        let at = |per_mille| nearest_rank(&errors, per_mille).unwrap_or_default();
        let planted = |score: &&Score| score.family == "none" && score.decoy.is_some();
        let mut decoys_acquitted = BTreeMap::new();
        for name in scores.iter().filter_map(|score| score.decoy.as_ref()) {
            let is_it = |score: &&Score| score.decoy.as_ref() == Some(name);
            let of = scores.iter().filter(planted).filter(is_it);
            decoys_acquitted.insert(name.clone(), share(of.map(|score| score.right)));
        }
        let right_where = |keep: fn(&&Score) -> bool| {
            share(scores.iter().filter(keep).map(|score| score.family_right))
        };
        let by = BTreeMap::from([
            ("timestamps", right_where(|score| score.stamped)),
            ("timestamps and answers at will", right_where(|score| score.waits)),
            ("my NIC's timestamps", right_where(|score| !score.stamped && score.nic_stamps)),
            ("round trips only", right_where(|score| !score.stamped && !score.nic_stamps)),
            ("with bulk", right_where(|score| score.bulk)),
            ("without bulk", right_where(|score| !score.bulk)),
            (
                "hold and decoy",
                right_where(|score| score.family != "none" && score.decoy.is_some()),
            ),
        ]);
        Self {
            sides: scores.len(),
            family_right: share(scores.iter().map(|score| score.family_right)).0,
            all_right: share(scores.iter().map(|score| score.right)).0,
            decoys_acquitted,
            acquitted: share(scores.iter().filter(planted).map(|score| score.right)).0,
            value_near: share(scores.iter().filter_map(|score| score.is_near(near.0, near.1))).0,
            near,
            error_us: [500, 900, 990, 1_000].map(at),
            covered: share(scores.iter().filter_map(|score| score.covered)).0,
            side_right: share(scores.iter().filter_map(|score| score.side)).0,
            outcomes: outcomes(scores),
            confusion,
            by,
        }
    }
}

fn outcomes(scores: &[Score]) -> BTreeMap<String, BTreeMap<Rating, usize>> {
    let mut outcomes: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for score in scores {
        let obstacle = score.obstacle.clone().unwrap_or_else(|| "none".into());
        let of = outcomes.entry(obstacle).or_default();
        *of.entry(score.outcome).or_default() += 1;
    }
    outcomes
}

/// The share that is true, and of how many.
fn share(of: impl Iterator<Item = bool>) -> (f64, usize) {
    let (mut right, mut all) = (0, 0);
    for is in of {
        right += usize::from(is);
        all += 1;
    }
    (if all == 0 { 1.0 } else { right as f64 / all as f64 }, all)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        writeln!(f, "true \\ said (of {} sides)", self.sides)?;
        for (truth, said) in &self.confusion {
            let said: Vec<_> = said.iter().map(|(said, count)| format!("{said} {count}")).collect();
            writeln!(f, "  {truth:<13} {}", said.join(", "))?;
        }
        for (name, outcomes) in &self.outcomes {
            writeln!(f, "obstacle {name:<16} {outcomes:?}")?;
        }
        writeln!(f, "family right        {}", percent(self.family_right))?;
        writeln!(f, "  and frame limit   {}", percent(self.all_right))?;
        for (name, (right, of)) in &self.by {
            writeln!(f, "  {name:<17} {} of {of}", percent(*right))?;
        }
        writeln!(
            f,
            "value near          {} within {} or {} us",
            percent(self.value_near),
            percent(self.near.0),
            self.near.1
        )?;
        let [p50, p90, p99, most] = self.error_us;
        writeln!(f, "error us            p50 {p50:.2}, p90 {p90:.2}, p99 {p99:.2}, max {most:.2}")?;
        writeln!(f, "interval holds it   {}", percent(self.covered))?;
        writeln!(
            f,
            "side named right    {} from round trips and silent packets",
            percent(self.side_right)
        )?;
        writeln!(f, "decoys acquitted    {}", percent(self.acquitted))?;
        for (name, (right, of)) in &self.decoys_acquitted {
            writeln!(f, "  {name:<17} {} of {of}", percent(*right))?;
        }
        Ok(())
    }
}
