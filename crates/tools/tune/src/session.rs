//! A whole run of `earmark tune`: it searches, verifies the pick, and puts it into force.

use std::cell::RefCell;
use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use bench::environment::VIRTUAL;
use sys::ctrl_c;

use super::answers::Answers;
use super::device::TunedDevice;
use super::expectation::Expectation;
use super::figures::Figures;
use super::goal::Goal;
use super::journal::Store;
use super::recommendation::{Limits, Recommendation, Subject, Verified};
use super::search::{Expect, Method, Point, Space, Trial, compare, search};
use super::setting::Change;
use super::transaction::{SettingResult, Transaction, Verdict};
use super::trial::Play;
use super::world::TunedWorld;

/// Rounds in which the pick is measured again, in turns with how the device was.
const VERIFY_ROUNDS: u32 = 3;

/// What is wanted.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The device, by the user's name for it.
    pub device: &'a str,
    /// The settings to choose from.
    pub space: &'a Space,
    /// What makes one better than another.
    pub goal: &'a Goal,
    /// How they are chosen for trials.
    pub method: Method,
    /// A model that says where to begin.
    pub expectation: Option<&'a Expectation>,
    /// Leave the device as it is.
    pub dry_run: bool,
    /// Put a pick that misses the goal into force, too.
    pub best_effort: bool,
    /// Undo the pick after so many seconds unless it is confirmed.
    pub confirm_within: Option<f64>,
}

impl<'a> Request<'a> {
    /// What the model expects at a point, which it plays once.
    fn expect(&self) -> Option<Box<Expect<'a>>> {
        let Self { space, expectation, .. } = *self;
        let expectation = expectation?;
        let played = RefCell::new(BTreeMap::new());
        Some(Box::new(move |point: &Point| {
            let play = || expectation.figures(&space.change(point));
            played.borrow_mut().entry(point.clone()).or_insert_with(play).clone()
        }))
    }

    fn model(&self) -> Option<String> {
        self.expectation.map(|it| it.machine().to_owned())
    }
}

/// Called with each setting before it is measured.
pub type Progress<'a> = dyn FnMut(&Change) + 'a;

struct Tuner<'a> {
    request: &'a Request<'a>,
    device: &'a dyn TunedDevice,
    play: &'a Play,
    transaction: Transaction<'a>,
    progress: &'a mut Progress<'a>,
    answers: Answers,
    measurements: usize,
}

/// Tunes a device: the pick is in force afterwards if it meets the goal and is no worse than how
/// the device was.
///
/// # Errors
/// If the workload cannot be played or the device cannot be changed; it is as it was, then.
pub fn tune_device<'a>(
    request: &'a Request<'a>,
    device: &'a dyn TunedDevice,
    store: &Store,
    play: &'a Play,
    progress: &'a mut Progress<'a>,
) -> Result<Recommendation> {
    let (space, goal) = (request.space, request.goal);
    // A workload that cannot be played, or that takes another way, is no reason to change anything.
    play.check(device)?;
    let transaction = Transaction::begin(device, store, "tune", space.settings().into_iter())?;
    let before = transaction.before().clone();
    let answers = Answers::default();
    let mut tuner =
        Tuner { request, device, play, transaction, progress, answers, measurements: 0 };
    let expect = request.expect();
    let found = search(space, goal, request.method, expect.as_deref(), &mut |point: &Point| {
        tuner.measure(point)
    })?;
    let pick = &found.trials[found.best];
    ensure!(
        goal.aimed(&pick.mean()).is_some(),
        "nothing could be measured of {} on {}; interrupts may not be counted there",
        goal.aim.1,
        request.device
    );
    let (verified, pick_figures) = tuner.verify(pick)?;
    let subject = Subject {
        device: request.device.to_owned(),
        driver: device.driver(),
        workload: play.name(),
        measurand: play.measurand().cloned(),
        model: request.model(),
        before,
        environment: worlds::environment::read("host"),
        measurements: tuner.measurements,
    };
    let mut recommendation = Recommendation::new(subject, space, goal, &found, &tuner.answers);
    recommendation.verified = verified;
    recommendation.limits = Limits::of(goal, &pick_figures);
    let is_wanted = recommendation.limits.goal_met || request.best_effort;
    let is_new = pick.point != space.present;
    if !request.dry_run && is_wanted && is_new && !recommendation.is_worse() {
        recommendation.took = tuner.put_into_force(&pick.point)?;
        recommendation.applied = true;
    }
    match (recommendation.applied, request.confirm_within) {
        (false, _) => tuner.transaction.undo()?,
        (true, Some(seconds)) => tuner.transaction.keep_for(seconds)?,
        (true, None) => tuner.transaction.keep()?,
    }
    Ok(recommendation)
}

/// Tunes a NIC of ours in a world of its own, which ends.
pub fn tune_world(
    request: &Request<'_>,
    world: TunedWorld,
    progress: &mut Progress<'_>,
) -> Result<Recommendation> {
    let (space, goal) = (request.space, request.goal);
    let name = &world.environment().world;
    let mut measurements = 0;
    let expect = request.expect();
    let found = search(space, goal, request.method, expect.as_deref(), &mut |point: &Point| {
        let change = space.change(point);
        progress(&change);
        measurements += 1;
        // The same seed in virtual time, so that settings alone make the difference.
        world.once(&change, if name == VIRTUAL { 1 } else { 1 + measurements as u64 })
    })?;
    ensure!(
        goal.aimed(&found.trials[found.best].mean()).is_some(),
        "{} is not measured in the {name} world; take another goal",
        goal.aim.1,
    );
    let subject = Subject {
        device: request.device.to_owned(),
        driver: format!("our NIC in the {name} world"),
        workload: world.workload().name(),
        measurand: None,
        model: request.model(),
        before: world.state(),
        environment: world.environment().clone(),
        measurements,
    };
    world.finish().context("end the world")?;
    Ok(Recommendation::new(subject, space, goal, &found, &Answers::default()))
}

impl Tuner<'_> {
    /// One trial. A setting that the device refuses has no figures.
    fn measure(&mut self, point: &Point) -> Result<Figures> {
        ctrl_c::check()?;
        let change = self.request.space.change(point);
        (self.progress)(&change);
        if change.is_empty() {
            self.transaction.reset()?;
        } else {
            match self.transaction.set(&change) {
                Ok(took) => self.answers.note(point, &took),
                Err(error) => {
                    self.answers.refused.push((point.clone(), format!("{error:#}")));
                    self.transaction.reset()?;
                    return Ok(Figures::default());
                }
            }
        }
        self.measurements += 1;
        let figures = self.play.once(self.device, self.measurements as u64);
        // A play that failed while this process was stopped failed because of that.
        self.transaction.check_in_force()?;
        figures
    }

    /// Measures the pick again, in turns with how the device was; and the figures of the pick of
    /// all its rounds, those of the search and these.
    fn verify(&mut self, pick: &Trial) -> Result<(Option<Verified>, Figures)> {
        let Request { space, goal, method, .. } = *self.request;
        if pick.point == space.present || matches!(method, Method::Exhaustive(_)) {
            return Ok((None, pick.mean()));
        }
        let trial = |point: &Point| Trial { point: point.clone(), rounds: Vec::new() };
        let mut pair = [trial(&space.present), trial(&pick.point)];
        for round in 0..VERIFY_ROUNDS {
            for trial in &mut pair {
                let figures = self.measure(&trial.point)?;
                trial.rounds.push((round, figures));
            }
        }
        let doubt = compare(&pair[1], &pair[0], goal);
        let verified = Verified::of(&pair[0], &pair[1], goal, doubt);
        let [_, mut all] = pair;
        all.rounds.extend(pick.rounds.iter().cloned());
        Ok((Some(verified), all.mean()))
    }

    /// Puts the pick into force; what the device took.
    fn put_into_force(&mut self, pick: &Point) -> Result<Vec<SettingResult>> {
        ctrl_c::check()?;
        let mut took = self.transaction.set(&self.request.space.change(pick))?;
        let mut before = self.transaction.before().clone().0;
        took.iter_mut().for_each(|took| took.before = before.remove(&took.setting));
        if took.iter().all(|took| took.verdict == Verdict::Ignored && took.before != took.asked) {
            bail!("{} takes nothing of it", self.device.identity().name);
        }
        Ok(took)
    }
}
