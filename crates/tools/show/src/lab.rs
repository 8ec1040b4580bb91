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
