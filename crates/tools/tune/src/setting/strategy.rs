//! The strategy of a NIC of ours: how settings of ethtool change it.

use anyhow::{Result, anyhow};
use nic::moderation::{Coalesce, Moderation, Profile, TimerKind};

use super::{Change, Setting, State, Value};

/// The `rx-usecs` of a strategy. What `itr` has picked changes with each poll, and no setting
/// does: its longest gap, 250 us, stands for it.
pub(crate) fn longest_usecs(strategy: &str, in_force: u32) -> u32 {
    match strategy.parse() {
        Ok(Moderation { timer: TimerKind::Itr(_), .. }) => 250,
        _ => in_force,
    }
}

/// The strategy that `now` becomes by `change` ([`Moderation::coalesce`]).
pub(crate) fn changed(now: &State, change: &Change) -> Result<Moderation> {
    let written = |text: &str| text.parse::<Moderation>().map_err(|why| anyhow!("{why}"));
    let Some(Value::Text(text)) = now.get(Setting::Strategy) else {
        anyhow::bail!("the NIC does not tell its strategy; its lab is of another version")
    };
    let before = match change.get(Setting::Strategy) {
        Some(Value::Text(text)) => written(text)?,
        _ => written(text)?,
    };
    let read = |setting| now.get(setting).and_then(Value::number).unwrap_or(0) as u32;
    let chosen = Profile { rx_usecs: read(Setting::RxUsecs), rx_frames: read(Setting::RxFrames) };
    // What is too large for the type is too large for the setting.
    let number =
        |setting| change.number(setting).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let coalesce = Coalesce {
        adaptive_rx: change.get(Setting::AdaptiveRx).and_then(Value::switch),
        rx_usecs: number(Setting::RxUsecs),
        rx_frames: number(Setting::RxFrames),
    };
    Ok(before.coalesce(coalesce, chosen)?)
}
