//! What a received packet feels of one setting, in words.

use super::wait::code;
use super::{Bound, Count, Highest, Shown, Timer, Zero, rows_of, wait};
use crate::ethtool::{Coalesce, Parameter};

/// What a received packet feels of a setting of these; `None` for those that say enough by their
/// name.
pub fn meaning(driver: &str, settings: &Coalesce, name: Parameter, value: u32) -> Option<String> {
    use Parameter::{AdaptiveRx, CqeModeRx, RxFrames, RxUsecs, RxUsecsHigh};
    let is_adaptive = settings.is_on(AdaptiveRx) == Some(true);
    Some(match (name, value) {
        (RxUsecs, _) if is_adaptive => shown(driver),
        (RxUsecs, 0) => return Some(zero(driver, settings)),
        (RxUsecs, usecs) if settings.is_on(CqeModeRx) == Some(true) => {
            format!("a lone packet waits {usecs} us")
        }
        (RxUsecs, usecs) => time(driver, usecs),
        (RxFrames, frames) => number(driver, frames),
        (RxUsecsHigh, _) => return high(driver, value, is_adaptive).map(str::to_owned),
        (AdaptiveRx, 0) => "the values stay as they are".into(),
        (AdaptiveRx, _) => "the driver changes the values by the traffic".into(),
        (CqeModeRx, 0) => "the time counts from the first packet".into(),
        (CqeModeRx, _) => "each packet starts the time anew: a stream may wait for long".into(),
        _ => return None,
    })
}

fn shown(driver: &str) -> String {
    match rows_of(driver).adaptive_rx.shown {
        Some(Shown::Current) => "what the driver has chosen last".into(),
        Some(Shown::Ceiling) => "the longest that the driver chooses".into(),
        Some(Shown::Configured) => "what it is without adaptive-rx, not what is in force".into(),
        None => format!("under adaptive-rx; what it is for {driver} is not known here"),
    }
}

fn zero(driver: &str, settings: &Coalesce) -> String {
    let least = matches!(rows_of(driver).rx_usecs.zero, Some(Zero::LeastUs(_)));
    match wait(driver, settings).map(|wait| wait.bound) {
        None => "it interrupts for a packet at once",
        Some(Bound::Us(_)) if least => "the shortest time that the NIC has",
        Some(Bound::Us(_)) => "no time of its own; another limit ends the wait",
        Some(_) => "no time ends the wait; off is rx-usecs 0 and rx-frames 1",
    }
    .into()
}

fn time(driver: &str, usecs: u32) -> String {
    let rows = rows_of(driver);
    match rows.rx_usecs.is {
        _ if code(rows, usecs).is_some() => {
            "a code: the driver chooses the gap between two interrupts".into()
        }
        Some(Timer::Delay) => "a lone packet waits that long".into(),
        Some(Timer::Gap) => "that long at least between two interrupts".into(),
        None => format!(
            "usually the first packet waits that long; what {driver} does is not known here"
        ),
    }
}

fn number(driver: &str, frames: u32) -> String {
    let row = &rows_of(driver).rx_frames;
    match (row.is, frames) {
        (Some(Count::Batch), 0) => "each packet goes to the stack at once",
        (Some(Count::Batch), _) => "so many that are written in a row go to the stack together",
        (Some(Count::Fixed), _) => "fixed in the driver",
        (_, 0) if row.zero == Some(Zero::Off) => "0 turns moderation off",
        (_, 0) => "no number of packets ends the wait",
        (_, 1) => "the first packet ends the wait, so there is none",
        (Some(Count::Any), _) => "any number but 0: the first packet ends the wait",
        (None, _) => "so many packets end the wait",
    }
    .into()
}

fn high(driver: &str, value: u32, is_adaptive: bool) -> Option<&'static str> {
    let row = &rows_of(driver).rx_usecs_high;
    Some(match row.is? {
        Highest::Gap if value == 0 => "no limit of the interrupts' rate",
        Highest::Gap if is_adaptive && !row.adaptive => {
            "a limit of the interrupts' rate, which adaptive-rx takes the place of"
        }
        Highest::Gap => "a limit of the interrupts' rate: that long at least between two",
        Highest::Range => "the largest rx-usecs that the driver takes",
    })
}
