//! What the parameters of `ethtool -C` mean to a strategy: the one place that says it, for flags,
//! `earmark nic set`, `earmark apply` and a guest's command alike.
//!
//! A parameter goes into the strategy that is in force. What has no such parameter becomes the
//! strategy that has it and is nearest:
//!
//! | in force | `rx-usecs N` | `rx-usecs 0` | `rx-frames N` |
//! |---|---|---|---|
//! | `delay`, `throttle`, `periodic` | the same with N | the same with 0 | the same with N |
//! | `quiet` | the same with N; a shorter bound grows | the same with 0 | the same with N |
//! | `itr` | `throttle:N` | `throttle:0` | the same with N |
//! | `adaptive`, `driver` | `delay:N` | `delay:0` | the same with N |
//! | `disabled` | `delay:N` | `disabled` | refused above 1 |
//!
//! A timer of 0 us interrupts for each packet, whatever its `rx-frames`: this NIC never waits for
//! packets alone, as some drivers do. The strategy keeps its name and its marks, so that another
//! `rx-usecs` restores it. `rx-frames` 0 is no limit; 1 is an interrupt for each packet, which
//! `disabled` does already. `adaptive-rx on` makes the timer `adaptive`, which chooses both
//! numbers; `off` leaves those that it chose last, in a `delay`.

use super::{Moderation, Profile, SettingError, TimerKind};

/// The parameters that one `ethtool -C` changes together; what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalesce {
    /// `adaptive-rx`: on or off.
    pub adaptive_rx: Option<bool>,
    /// `rx-usecs`, in microseconds.
    pub rx_usecs: Option<u32>,
    /// `rx-frames`, in packets; 0 for no limit.
    pub rx_frames: Option<u32>,
}

impl Moderation {
    /// The setting that this one becomes by `change`; `chosen` is what adaptive moderation has
    /// chosen last, if it is in force.
    ///
    /// # Errors
    /// If a number is out of range, or the parameters do not go together.
    pub fn coalesce(self, change: Coalesce, chosen: Profile) -> Result<Self, SettingError> {
        let mut setting = self;
        match change.adaptive_rx {
            Some(true) if change.rx_usecs.is_some() || change.rx_frames.is_some() => {
                return Err(SettingError::AdaptiveChooses);
            }
            Some(true) => {
                setting = Self { timer: TimerKind::Adaptive, rx_usecs: 0, rx_frames: 0, ..setting };
            }
            Some(false) if setting.timer == TimerKind::Adaptive => {
                let Profile { rx_usecs, rx_frames } = chosen;
                setting = Self { timer: TimerKind::Delay, rx_usecs, rx_frames, ..setting };
            }
            _ => {}
        }
        if let Some(rx_usecs) = change.rx_usecs {
            setting = setting.timed(rx_usecs);
        }
        if let Some(rx_frames) = change.rx_frames {
            let is_one_each = setting.timer == TimerKind::Disabled && rx_frames == 1;
            setting.rx_frames = if is_one_each { 0 } else { rx_frames };
        }
        setting.checked()
    }

    /// With this `rx-usecs`, not checked.
    fn timed(self, rx_usecs: u32) -> Self {
        let timer = match self.timer {
            TimerKind::Disabled if rx_usecs == 0 => TimerKind::Disabled,
            TimerKind::Disabled
            | TimerKind::Adaptive
            | TimerKind::Driver
            | TimerKind::Custom(_) => TimerKind::Delay,
            TimerKind::Itr(_) => TimerKind::Throttle,
            timer => timer,
        };
        let rx_abs_usecs = match timer {
            TimerKind::Quiet => self.rx_abs_usecs.max(rx_usecs),
            _ => self.rx_abs_usecs,
        };
        Self { timer, rx_usecs, rx_abs_usecs, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    const CHOSEN: Profile = Profile { rx_usecs: 32, rx_frames: 8 };

    const REFUSED: &str = "refused";

    fn becomes(setting: &str, change: Coalesce) -> String {
        let setting: Moderation = setting.parse().unwrap();
        setting
            .coalesce(change, CHOSEN)
            .map_or_else(|_| REFUSED.into(), |setting| setting.to_string())
    }

    fn usecs(usecs: u32) -> Coalesce {
        Coalesce { rx_usecs: Some(usecs), ..Coalesce::default() }
    }

    fn frames(frames: u32) -> Coalesce {
        Coalesce { rx_frames: Some(frames), ..Coalesce::default() }
    }

    fn adaptive(on: bool) -> Coalesce {
        Coalesce { adaptive_rx: Some(on), ..Coalesce::default() }
    }

    /// Every strategy, with `rx-usecs` 0 and 50, `rx-frames` 0, 1 and 16, `adaptive-rx` on and off.
    #[test]
    fn every_parameter_has_one_meaning_for_every_strategy() {
        #[rustfmt::skip]
        let table = [
            ("disabled", ["disabled", "delay:50", "disabled", "disabled", REFUSED, "adaptive", "disabled"]),
            ("delay:75", ["delay:0", "delay:50", "delay:75", "delay:75+frames:1", "delay:75+frames:16", "adaptive", "delay:75"]),
            ("delay:0", ["delay:0", "delay:50", "delay:0", "delay:0+frames:1", "delay:0+frames:16", "adaptive", "delay:0"]),
            ("throttle:125", ["throttle:0", "throttle:50", "throttle:125", "throttle:125+frames:1", "throttle:125+frames:16", "adaptive", "throttle:125"]),
            ("periodic:128", ["periodic:0", "periodic:50", "periodic:128", "periodic:128+frames:1", "periodic:128+frames:16", "adaptive", "periodic:128"]),
            ("quiet:20/75", ["quiet:0/75", "quiet:50/75", "quiet:20/75", "quiet:20/75+frames:1", "quiet:20/75+frames:16", "adaptive", "quiet:20/75"]),
            ("quiet:5/9", ["quiet:0/9", "quiet:50/50", "quiet:5/9", "quiet:5/9+frames:1", "quiet:5/9+frames:16", "adaptive", "quiet:5/9"]),
            ("itr:3", ["throttle:0", "throttle:50", "itr:3", "itr:3+frames:1", "itr:3+frames:16", "adaptive", "itr:3"]),
            ("adaptive", ["delay:0", "delay:50", "adaptive", "adaptive+frames:1", "adaptive+frames:16", "adaptive", "delay:32+frames:8"]),
            ("driver", ["delay:0", "delay:50", "driver", "driver+frames:1", "driver+frames:16", "adaptive", "driver"]),
            ("frames:32", ["delay:0+frames:32", "delay:50+frames:32", "delay:75", "delay:75+frames:1", "delay:75+frames:16", "adaptive", "delay:75+frames:32"]),
            ("marked:75+gap:20", ["marked:0+gap:20", "marked:50+gap:20", "marked:75+gap:20", "marked:75+frames:1+gap:20", "marked:75+frames:16+gap:20", "marked+adaptive+gap:20", "marked:75+gap:20"]),
            ("stream+adaptive", ["stream:0", "stream:50", "stream+adaptive", "stream+adaptive+frames:1", "stream+adaptive+frames:16", "stream+adaptive", "stream:32+frames:8"]),
            ("lane+itr:1", ["lane+throttle:0", "lane+throttle:50", "lane+itr:1", "lane+itr:1+frames:1", "lane+itr:1+frames:16", "lane+adaptive", "lane+itr:1"]),
        ];
        let changes = [
            usecs(0),
            usecs(50),
            frames(0),
            frames(1),
            frames(16),
            adaptive(true),
            adaptive(false),
        ];
        for (setting, expected) in table {
            for (change, expected) in changes.into_iter().zip(expected) {
                assert_eq!(becomes(setting, change), expected, "{setting} with {change:?}");
            }
        }
        for strategy in Moderation::STRATEGIES {
            assert!(
                table.iter().any(|(setting, _)| setting.starts_with(strategy)),
                "{strategy} has no row"
            );
        }
    }

    #[test]
    fn parameters_change_together() {
        let both = Coalesce { rx_frames: Some(16), ..usecs(50) };
        assert_eq!(becomes("disabled", both), "delay:50+frames:16");
        assert_eq!(
            becomes("adaptive", Coalesce { adaptive_rx: Some(false), ..usecs(9) }),
            "delay:9+frames:8"
        );
        assert_eq!(becomes("delay:75", Coalesce { adaptive_rx: Some(true), ..both }), REFUSED);
    }

    #[test]
    fn what_a_number_of_0_replaced_comes_back_with_another_number() {
        for setting in ["marked+throttle:125", "quiet:20/75", "stream:75+frames:4", "periodic:9"] {
            let setting: Moderation = setting.parse().unwrap();
            let there = setting.coalesce(usecs(0), CHOSEN).unwrap();
            let back = there.coalesce(usecs(setting.rx_usecs), CHOSEN).unwrap();
            assert_eq!(back, setting);
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(becomes("delay:75", usecs(1_000_001)), REFUSED);
        assert_eq!(becomes("delay:75", frames(65_536)), REFUSED);
    }
}
