//! The NIC of a lab behind a TAP device: the driver of TAPs knows nothing of it.

use ::nic::moderation::{Moderation, TimerKind};
use schemars::JsonSchema;
use serde::Serialize;

use super::delays::Delay;

/// A port of the NIC of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LabPort {
    /// The name of the lab, as `earmark nic labs` lists it.
    pub lab: String,
    /// The settings of its queues, such as `delay:75`.
    pub settings: Vec<String>,
}

impl LabPort {
    /// The lab and its settings, in words.
    pub fn describe(&self) -> String {
        let mut settings = self.settings.clone();
        settings.dedup();
        let (lab, settings) = (&self.lab, settings.join(", "));
        format!("the NIC of lab {lab} is set to {settings} (earmark nic --lab {lab} show)")
    }

    pub(crate) fn delay(&self) -> Option<Delay> {
        let limits: Option<Vec<f64>> = self.settings.iter().map(|setting| up_to(setting)).collect();
        let longest = limits.map(|limits| limits.into_iter().fold(0.0, f64::max));
        (longest != Some(0.0)).then(|| Delay::new("coalescing", longest, self.describe()))
    }
}

/// The longest time that a setting holds a lone packet, in microseconds; `None`: others choose it.
fn up_to(setting: &str) -> Option<f64> {
    let setting: Moderation = setting.parse().ok()?;
    if setting.rx_frames == 1 {
        return Some(0.0);
    }
    Some(f64::from(match setting.timer {
        TimerKind::Disabled => 0,
        TimerKind::Delay | TimerKind::Throttle | TimerKind::Periodic => setting.rx_usecs,
        TimerKind::Quiet => setting.rx_abs_usecs,
        // 4,000 interrupts a second; the last of DIM's profiles.
        TimerKind::Itr(_) => 250,
        TimerKind::Adaptive => 256,
        TimerKind::Driver | TimerKind::Custom(_) => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_holds_packets_as_its_setting_says() {
        let of = |settings: &[&str]| {
            let settings = settings.iter().map(ToString::to_string).collect();
            LabPort { lab: "x".into(), settings }.delay()
        };
        let delay = of(&["delay:200"]).unwrap();
        assert_eq!((delay.cause, delay.up_to_us), ("coalescing", Some(200.0)));
        assert_eq!(delay.what, "the NIC of lab x is set to delay:200 (earmark nic --lab x show)");
        assert_eq!(of(&["disabled"]), None);
        assert_eq!(of(&["delay:0", "delay:0"]), None);
        assert_eq!(of(&["delay:50+frames:1"]), None);
        assert_eq!(of(&["disabled", "marked:75"]).unwrap().up_to_us, Some(75.0));
        assert_eq!(of(&["adaptive"]).unwrap().up_to_us, Some(256.0));
        assert_eq!(of(&["driver"]).unwrap().up_to_us, None);
        assert_eq!(of(&["of a later version"]).unwrap().up_to_us, None);
    }
}
