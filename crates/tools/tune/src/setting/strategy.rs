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

#[cfg(test)]
mod tests {
    use super::*;

    fn becomes(now: &str, change: &str) -> String {
        let state = State(
            [
                (Setting::Strategy, Value::Text(now.into())),
                (Setting::RxUsecs, Value::Number(32)),
                (Setting::RxFrames, Value::Number(8)),
            ]
            .into(),
        );
        changed(&state, &change.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn settings_of_ethtool_make_strategies() {
        assert_eq!(becomes("delay:75", "rx-usecs 50 rx-frames 16"), "delay:50+frames:16");
        assert_eq!(becomes("marked:75", "rx-usecs 0"), "marked:0");
        assert_eq!(becomes("delay:75", "adaptive-rx on"), "adaptive");
        assert_eq!(becomes("adaptive", "adaptive-rx off"), "delay:32+frames:8");
        assert_eq!(becomes("adaptive", "adaptive-rx off rx-usecs 9 rx-frames 0"), "delay:9");
        assert_eq!(becomes("adaptive", "strategy marked:60"), "marked:60");
        assert_eq!(becomes("adaptive", "strategy marked:60 rx-usecs 20"), "marked:20");
        assert_eq!((longest_usecs("marked+itr:1", 14), longest_usecs("delay:14", 14)), (250, 14));
    }

    #[test]
    fn what_the_nic_cannot_do_is_refused() {
        let state = State([(Setting::Strategy, Value::Text("delay:75".into()))].into());
        assert!(changed(&state, &"rx-usecs 1000001".parse().unwrap()).is_err());
        assert!(changed(&state, &"strategy dealy".parse().unwrap()).is_err());
    }
}
