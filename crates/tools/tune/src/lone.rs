//! Changes under which a lone packet may wait for others without a time that ends it.
//!
//! `rx-usecs 0` is what most people type to turn coalescing off. Where the driver takes it
//! literally it leaves `rx-frames` as the only limit: a lone request may never be answered, and a
//! session over the device is lost. Off is `rx-usecs 0` *and* `rx-frames 1`.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use netdev::drivers::{Bound, Wait, lacks_timer};
use netdev::ethtool::Coalesce;

use super::device::TunedDevice;
use super::setting::{Change, Setting, State, Value};

/// Refuses a change after which a lone packet waits for others for certain, unless it names
/// `rx-frames`; else a warning where a packet may wait so.
pub fn check(device: &dyn TunedDevice, change: &Change) -> Result<Option<String>> {
    let state = device.read_with(&change.settings().collect::<Vec<_>>())?;
    let Some((queue, wait)) = waiting(device, &state, change, &places(change)).pop() else {
        return Ok(None);
    };
    let name = &device.identity().name;
    let off = single(device, &state, change);
    if wait.bound == Bound::Endless && change.get(frames_of(queue)).is_none() {
        bail!(
            "{name}: after that {}; off is: earmark apply {name} {off}; if that is what you want, \
             name {}, too; nothing was changed",
            wait.what,
            frames_of(queue)
        );
    }
    Ok(Some(format!("{name}: {}; off for certain is: earmark apply {name} {off}", wait.what)))
}

/// The same change, with `rx-frames 1` wherever a lone packet may wait without a time otherwise.
pub fn single(device: &dyn TunedDevice, state: &State, change: &Change) -> Change {
    let mut places = places(change);
    places.insert(None);
    let waiting = waiting(device, state, change, &places);
    let frames: Vec<Setting> = waiting.iter().map(|(queue, _)| frames_of(*queue)).collect();
    let mut change = change.without(|setting| frames.contains(&setting));
    change.0.extend(frames.into_iter().map(|frames| (frames, Value::Number(1))));
    change
}

/// Whether a device may have lone packets wait for `rx-frames` without a time, or beside a time of
/// 0, so that a search keeps off such settings.
pub fn may_wait(device: &dyn TunedDevice, state: &State) -> bool {
    let wanted = [
        (Setting::AdaptiveRx, Value::Switch(false)),
        (Setting::RxUsecs, Value::Number(0)),
        (Setting::RxFrames, Value::Number(64)),
    ];
    let change = Change(wanted.into_iter().filter(|(it, _)| state.get(*it).is_some()).collect());
    !waiting(device, state, &change, &BTreeSet::from([None])).is_empty()
}

/// The device (`None`) and the queues whose timer a change is about.
fn places(change: &Change) -> BTreeSet<Option<u16>> {
    let of_timer = [Setting::AdaptiveRx, Setting::RxUsecs, Setting::RxFrames];
    let place = |setting| match setting {
        Setting::Queue(queue, of) => of_timer.contains(of).then_some(Some(queue)),
        setting => of_timer.contains(&setting).then_some(None),
    };
    change.settings().filter_map(place).collect()
}

/// Where of `places` a lone packet may wait without a time after a change.
fn waiting(
    device: &dyn TunedDevice,
    state: &State,
    change: &Change,
    places: &BTreeSet<Option<u16>>,
) -> Vec<(Option<u16>, Wait)> {
    let Some(driver) = device.driver_name() else { return Vec::new() };
    let after = state.with(change);
    let wait = |queue| Some((queue, lacks_timer(&driver, &coalescing(&after, queue))?));
    places.iter().copied().filter_map(wait).collect()
}

fn coalescing(state: &State, queue: Option<u16>) -> Coalesce {
    let of_device = state.0.iter().filter(|(setting, _)| setting.of_device().is_none());
    let is_its =
        |setting: &Setting| matches!(setting, Setting::Queue(own, _) if queue == Some(*own));
    let of_queue = state.0.iter().filter(|(setting, _)| is_its(setting));
    of_device.chain(of_queue).fold(Coalesce::new(), |all, (setting, value)| {
        let number = match value {
            Value::Switch(is_on) => Some(u32::from(*is_on)),
            _ => value.number().and_then(|number| u32::try_from(number).ok()),
        };
        match (setting.parameter(), number) {
            (Some(parameter), Some(number)) => all.with(parameter, number),
            _ => all,
        }
    })
}

fn frames_of(queue: Option<u16>) -> Setting {
    queue.and_then(|queue| Setting::RxFrames.of_queue(queue)).unwrap_or(Setting::RxFrames)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeDevice;

    /// What becomes of `DRIVER | STATE | CHANGE`.
    fn said(case: &'static str) -> String {
        let [driver, state, change] = case.split(" | ").collect::<Vec<_>>()[..] else { panic!() };
        let mut device = FakeDevice::new("eth0", state);
        device.driver_name = Some(driver).filter(|driver| *driver != "none");
        let outcome = match check(&device, &change.parse().unwrap()) {
            Ok(None) => "nothing to say".into(),
            Ok(Some(warning)) => format!("warning: {warning}"),
            Err(refusal) => format!("refused: {refusal}"),
        };
        let keeps_off = may_wait(&device, &device.read().unwrap());
        let search = if keeps_off { "\n  a search keeps off" } else { "" };
        format!("{case}\n  {outcome}{search}\n")
    }

    #[test]
    fn a_time_of_zero_that_leaves_frames_is_refused_or_warned_of() {
        let expected = include_str!("lone.txt");
        let now: String =
            expected.lines().filter(|line| !line.starts_with(' ')).map(said).collect();
        assert_eq!(now, expected, "\n{now}");
    }
}
