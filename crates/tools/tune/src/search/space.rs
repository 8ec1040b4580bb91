//! The settings among which to search: axes, each a list of parts of a setting, and special ones.

use std::collections::BTreeSet;

use crate::setting::{Change, Setting, State, Value, profile};

/// Microseconds of the first axis. Neighbours are apart by half or less of themselves: a setting
/// between two of them is not far from either.
const LADDER: [u64; 18] =
    [0, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024];

/// Frames that are tried beside each time, from the strictest; 0 is no limit.
const FRAMES: [u64; 4] = [8, 32, 128, 0];

/// Deferrals that are tried beside each time, in microseconds.
const DEFERRALS: [u64; 3] = [20, 100, 0];

/// Microseconds that completions of sending may wait, beside each time: 0 is the mildest.
const COMPLETIONS: [u64; 2] = [128, 0];

/// What the times of a DIM profile are divided by, for one that is kinder to latency.
const PROFILE_DIVISOR: u32 = 4;

/// How long interrupts may stay off while a program polls, in microseconds: longer than a program
/// needs for what one poll has brought (`Documentation/networking/napi.rst`).
const SUSPENDED: u64 = 20_000;

/// Axes from which on a search has more trials.
const MANY_AXES: usize = 4;

/// How often in a row the kernel defers interrupts, where it does.
const DEFERRED_TIMES: u64 = 2;

/// Microseconds of busy polling, as `Documentation/admin-guide/sysctl/net.rst` recommends.
const BUSY: u64 = 50;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    Special(usize),
    At(Vec<usize>),
}

/// All settings that may be tried. What a setting does not name stays as it is.
#[derive(Clone, Debug)]
pub struct Space {
    /// Where the setting is that is in force already.
    pub present: Point,
    pub(crate) specials: Vec<Change>,
    /// Parts of settings. The first axis is in the order of growing holds; the first place on each
    /// of the others changes nothing.
    pub axes: Vec<Vec<Change>>,
    /// Whether a time of 0 goes with a single frame: else a lone packet may wait for others.
    single_frame: bool,
    /// How many of the last axes the user has named: all their places are tried.
    named: usize,
}

impl Space {
    /// The settings that a device has, with holds of at most `longest` microseconds.
    ///
    /// The first axis is `rx-usecs`; where there is none, the kernel's deferral, or `rx-frames`.
    pub fn of(state: &State, longest: u64) -> Self {
        Self::build(state, longest, false)
    }

    /// The same on a device where packets may wait for `rx-frames` others without a time that ends
    /// it ([`lone`](crate::lone)): there is none of `rx-frames` alone, and off is one frame.
    pub fn with_single_frame(state: &State, longest: u64) -> Self {
        Self::build(state, longest, true)
    }

    fn build(state: &State, longest: u64, single_frame: bool) -> Self {
        let fixed = |setting| state.get(setting).filter(|_| !state.is_driven(setting));
        let ladder: Vec<u64> = LADDER.into_iter().filter(|usecs| *usecs <= longest).collect();
        let mut axes: Vec<Vec<Change>> = Vec::new();
        if state.get(Setting::RxUsecs).is_some() {
            let now = fixed(Setting::RxUsecs).and_then(Value::number).filter(|now| *now <= longest);
            let mut ladder: Vec<u64> = ladder.iter().copied().chain(now).collect();
            ladder.sort_unstable();
            ladder.dedup();
            axes.push(ladder.into_iter().map(|usecs| held(state, usecs)).collect());
        }
        let deferral = [Setting::GroFlushTimeout, Setting::NapiDeferHardIrqs];
        if deferral.into_iter().all(|setting| state.get(setting).is_some()) {
            let first = axes.is_empty();
            let places = if first { ladder } else { DEFERRALS.to_vec() };
            axes.push(places.into_iter().map(deferred).collect());
        }
        let is_bounded = !single_frame || state.get(Setting::RxUsecs).is_some();
        if state.get(Setting::RxFrames).is_some() && is_bounded {
            let frames = |frames| Change(vec![(Setting::RxFrames, Value::Number(frames))]);
            axes.push(FRAMES.into_iter().map(frames).collect());
        }
        if !axes.is_empty() {
            axes.extend(beside_receiving(state));
        }
        if let Some(first) = axes.first_mut().filter(|axis| limits_frames(axis)) {
            // None at all is what interrupts at once where there is no timer.
            first.rotate_right(1);
        }
        let is_now =
            |part: &Change| part.0.iter().all(|(setting, value)| fixed(*setting) == Some(value));
        for axis in axes.iter_mut().skip(1) {
            axis.retain(|part| !is_now(part));
            axis.insert(0, Change::default());
        }
        let place = axes.first().and_then(|axis| axis.iter().position(is_now));
        let number = |setting| fixed(setting).and_then(Value::number).unwrap_or(0);
        let waits = number(Setting::RxUsecs) == 0 && number(Setting::RxFrames) > 1;
        let place = place.filter(|_| !(state.is_on(Setting::AdaptiveRx) || single_frame && waits));
        let mut specials = Vec::new();
        let present = match place {
            Some(place) => Point::At([&[place][..], &vec![0; axes.len() - 1]].concat()),
            None => {
                specials.push(Change::default());
                Point::Special(0)
            }
        };
        if state.get(Setting::AdaptiveRx) == Some(&Value::Switch(false)) {
            specials.push(Change(vec![(Setting::AdaptiveRx, Value::Switch(true))]));
        }
        specials.extend(shorter_profile(state));
        Self { present, specials, axes, single_frame, named: 0 }
    }

    /// The settings that points may name, each once.
    pub fn settings(&self) -> BTreeSet<Setting> {
        let parts = self.specials.iter().chain(self.axes.iter().flatten());
        parts.flat_map(Change::settings).collect()
    }

    /// How many trials usually find the best.
    pub fn usual_trials(&self) -> usize {
        let (own, named) = self.axes.split_at(self.axes.len() - self.named);
        let named: usize = named.iter().map(|axis| axis.len() - 1).sum();
        named + if own.len() < MANY_AXES { 10 } else { 12 }
    }

    /// How the device is, and these settings alone.
    pub fn among(settings: &[Change]) -> Self {
        let present = [Change::default()];
        let specials = present.iter().chain(settings).cloned().collect();
        Self {
            present: Point::Special(0),
            specials,
            axes: Vec::new(),
            single_frame: false,
            named: 0,
        }
    }

    /// The same with settings that are tried first of all, such as those of a prediction.
    #[must_use]
    pub fn with_first(mut self, state: &State, settings: &[Change]) -> Self {
        for setting in settings {
            let mut setting = setting.clone();
            // A time of one's own means nothing while the driver chooses it.
            let is_own = setting.settings().any(|it| it == Setting::RxUsecs);
            let has_switch = setting.settings().any(|it| it == Setting::AdaptiveRx);
            if is_own && !has_switch && state.is_on(Setting::AdaptiveRx) {
                setting.0.insert(0, (Setting::AdaptiveRx, Value::Switch(false)));
            }
            if !self.specials.contains(&setting) {
                self.specials.push(setting);
            }
        }
        self
    }

    /// The same with busy polling as another axis, where it is to be had: it is of the whole
    /// machine. Where NAPI instances can be suspended while a program polls, they are.
    pub fn with_busy_polling(mut self, state: &State) -> Result<Self, String> {
        let settings = [Setting::BusyPoll, Setting::BusyRead];
        if settings.iter().any(|setting| state.get(*setting).is_none()) {
            return Err("busy polling is to be had on the machine's own network only".into());
        }
        let polls = Change(settings.map(|setting| (setting, Value::Number(BUSY))).to_vec());
        let mut places = vec![polls.clone()];
        if let Some(Value::Number(_)) = state.get(Setting::IrqSuspendTimeout) {
            let suspended = (Setting::IrqSuspendTimeout, Value::Number(SUSPENDED * 1_000));
            places.push(Change([polls.0, vec![suspended]].concat()));
        }
        self.add_axis(places);
        Ok(self)
    }

    /// The same with IRQ suspension, beside each timer of `DEFERRALS`: it takes a server that
    /// prefers busy polling.
    ///
    /// # Errors
    /// If the kernel cannot suspend interrupts of the device.
    pub fn with_suspension(self, state: &State) -> Result<Self, String> {
        let Some(Value::Number(_)) = state.get(Setting::IrqSuspendTimeout) else {
            return Err("the device has no irq-suspend-timeout: it takes Linux 6.13, and NAPI \
                        instances that have started"
                .into());
        };
        let timers = DEFERRALS.into_iter().filter(|usecs| *usecs > 0);
        let suspended = (Setting::IrqSuspendTimeout, Value::Number(SUSPENDED * 1_000));
        let settings: Vec<Change> = timers
            .map(|usecs| Change([deferred(usecs).0, vec![suspended.clone()]].concat()))
            .collect();
        Ok(self.with_first(state, &settings))
    }

    /// The same with values of a setting as another axis.
    pub fn with_knob(
        mut self,
        state: &State,
        setting: Setting,
        values: &[Value],
    ) -> Result<Self, String> {
        if self.settings().contains(&setting) {
            return Err(format!("{setting} is tried already"));
        }
        let now = state.get(setting);
        let others = values.iter().filter(|value| Some(*value) != now);
        let places: Vec<Change> =
            others.map(|value| Change(vec![(setting, value.clone())])).collect();
        if places.is_empty() {
            return Err(format!("{setting} has this value already; name others"));
        }
        self.add_axis(places);
        self.named += 1;
        Ok(self)
    }

    pub(crate) fn is_named(&self, axis: usize) -> bool {
        axis >= self.axes.len() - self.named
    }

    /// How many trials an axis beside the first one has at least.
    pub(crate) fn trials_of(&self, axis: usize) -> usize {
        if self.is_named(axis) { self.axes[axis].len() - 1 } else { 1 }
    }

    fn add_axis(&mut self, places: Vec<Change>) {
        self.axes.push([vec![Change::default()], places].concat());
        if let Point::At(places) = &mut self.present {
            places.push(0);
        } else if self.axes.len() == 1 {
            // The present setting is on no axis yet: it is where this one begins.
            self.specials.clear();
            self.present = Point::At(vec![0]);
        }
    }

    /// The setting at a point.
    pub fn change(&self, point: &Point) -> Change {
        match point {
            Point::Special(number) => self.specials.get(*number).cloned().unwrap_or_default(),
            Point::At(places) => {
                let parts = self.axes.iter().zip(places).filter_map(|(axis, at)| axis.get(*at));
                let mut change = Change(parts.flat_map(|part| part.0.iter().cloned()).collect());
                if self.single_frame && change.number(Setting::RxUsecs) == Some(0) {
                    change = change.without(|setting| setting == Setting::RxFrames);
                    change.0.push((Setting::RxFrames, Value::Number(1)));
                }
                change
            }
        }
    }

    /// Every point of it, special ones first.
    pub fn all(&self) -> Vec<Point> {
        let mut points = vec![Vec::new()];
        for axis in &self.axes {
            let longer =
                |point: Vec<usize>| (0..axis.len()).map(move |at| [&point[..], &[at]].concat());
            points = points.into_iter().flat_map(longer).collect();
        }
        let specials = (0..self.specials.len()).map(Point::Special);
        let axes = points.into_iter().filter(|point| !point.is_empty()).map(Point::At);
        let mut all: Vec<Point> = specials.chain(axes).collect();
        if self.single_frame {
            // Beside a time of 0 all numbers of frames are one.
            let mut seen = BTreeSet::new();
            all.retain(|point| seen.insert(self.change(point).to_string()));
        }
        all
    }
}

fn limits_frames(axis: &[Change]) -> bool {
    axis.first().is_some_and(|part| part.settings().eq([Setting::RxFrames]))
}

/// A time of the device's own, which takes adaptive moderation off where it is on.
fn held(state: &State, usecs: u64) -> Change {
    let is_on = state.is_on(Setting::AdaptiveRx);
    let off = is_on.then_some((Setting::AdaptiveRx, Value::Switch(false)));
    Change(off.into_iter().chain([(Setting::RxUsecs, Value::Number(usecs))]).collect())
}

/// Axes of what is not the receive timer: completions of sending, and who polls.
fn beside_receiving(state: &State) -> Vec<Vec<Change>> {
    let mut axes = Vec::new();
    let is_fixed = |setting| state.get(setting).is_some() && !state.is_driven(setting);
    if is_fixed(Setting::TxUsecs) {
        let usecs = |usecs| Change(vec![(Setting::TxUsecs, Value::Number(usecs))]);
        axes.push(COMPLETIONS.into_iter().map(usecs).collect());
    }
    if state.get(Setting::Threaded).is_some() {
        let threaded = |is_on| Change(vec![(Setting::Threaded, Value::Switch(is_on))]);
        axes.push([false, true].into_iter().map(threaded).collect());
    }
    axes
}

/// Adaptive moderation with a profile whose times are shorter.
fn shorter_profile(state: &State) -> Option<Change> {
    state.get(Setting::AdaptiveRx)?;
    let mut steps = profile::parse(&state.get(Setting::RxProfile)?.to_string()).ok()?;
    steps.iter_mut().for_each(|step| {
        step.usec = step.usec.map(|usec| usec.div_ceil(PROFILE_DIVISOR));
    });
    let shorter = (Setting::RxProfile, Value::Text(profile::text(&steps)));
    Some(Change(vec![(Setting::AdaptiveRx, Value::Switch(true)), shorter]))
}

fn deferred(usecs: u64) -> Change {
    let times = if usecs == 0 { 0 } else { DEFERRED_TIMES };
    Change(vec![
        (Setting::NapiDeferHardIrqs, Value::Number(times)),
        (Setting::GroFlushTimeout, Value::Number(usecs * 1_000)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::testing::state;

    #[test]
    fn settings_of_a_prediction_are_tried_as_they_are_meant() {
        let first: Vec<Change> =
            ["rx-usecs 20", "adaptive-rx on"].map(|text| text.parse().unwrap()).into();
        let named = |settings: &str| {
            let state = state(settings);
            let space = Space::of(&state, 128).with_first(&state, &first);
            space.specials.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let while_off = named("adaptive-rx off rx-usecs 3");
        assert_eq!(while_off, ["adaptive-rx on", "rx-usecs 20"], "each once");
        let while_on = named("adaptive-rx on rx-usecs 3");
        assert!(while_on.contains(&"adaptive-rx off rx-usecs 20".into()), "{while_on:?}");
    }

    /// The points of a space, `HOW: STATE`: as the device is, special ones, and each axis.
    fn described(text: &str) -> Result<String, String> {
        let (how, settings) = text.split_once(": ").unwrap();
        let state = || state(settings);
        let space = match how.split_once(' ').unwrap_or((how, "")) {
            ("among", _) => {
                let changes: Vec<Change> =
                    settings.split(", ").map(|change| change.parse().unwrap()).collect();
                Space::among(&changes)
            }
            ("single", _) => Space::with_single_frame(&state(), 128),
            ("suspend", _) => Space::of(&state(), 128).with_suspension(&state())?,
            ("busy", _) => Space::of(&state(), 128).with_busy_polling(&state())?,
            ("knob", knob) => {
                let values = [0, 8].map(Value::Number);
                let space = Space::of(&state(), 128).with_busy_polling(&state())?;
                space.with_knob(&state(), knob.parse().unwrap(), &values)?
            }
            _ => Space::of(&state(), 128),
        };
        let words =
            |all: &[Change]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ");
        let mut lines = format!(
            "  {} points, {} trials, now {:?}: {}\n",
            space.all().len(),
            space.usual_trials(),
            space.present,
            space.change(&space.present)
        );
        if !space.specials.is_empty() {
            lines += &format!("  special: {}\n", words(&space.specials));
        }
        for (at, axis) in space.axes.iter().enumerate() {
            let named = if space.is_named(at) { ", named" } else { "" };
            lines += &format!("  axis{named}: {}\n", words(axis));
        }
        let settings: String = space.settings().iter().map(|it| format!(" {it}")).collect();
        let mut last: Vec<usize> = space.axes.iter().map(|axis| axis.len() - 1).collect();
        lines += &format!("  last: {}\n", space.change(&Point::At(last.clone())));
        last.first_mut().into_iter().for_each(|place| *place = 0);
        let at_once = space.change(&Point::At(last));
        Ok(lines + &format!("  at once: {at_once}\n  settings:{settings}\n"))
    }

    #[test]
    fn a_space_has_what_the_device_has() {
        let expected = include_str!("spaces.txt");
        let cases = expected.lines().filter(|line| !line.starts_with(' '));
        let now: String = cases
            .map(|case| {
                let space = described(case).unwrap_or_else(|why| format!("  refused: {why}\n"));
                format!("{case}\n{space}")
            })
            .collect();
        assert_eq!(now, expected, "\n{now}");
    }
}
