//! How long a lone packet waits for its interrupt under given settings.
//!
//! By `ethtool`'s own header an interrupt comes at whichever limit is reached first, the time or
//! the number of packets, and 0 sets no limit: what is off is a time of 0 *and* a single frame.
//! Many drivers have a time of 0 mean off; some do not, and then a lone packet waits for others for
//! as long as they take. What is known of a driver says which; else it is said not to be known.

use super::{Count, Highest, Rows, Shown, Timer, Zero, rows_of};
use crate::ethtool::{Coalesce, Parameter};

/// For how long at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// So many microseconds.
    Us(f64),
    /// Until other packets come, however long that takes.
    Endless,
    /// Nothing says so.
    Unknown,
}

/// How a lone packet may wait.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// For how long at most.
    pub bound: Bound,
    /// The setting that is to be changed for a shorter wait.
    pub by: Parameter,
    /// What happens, in words.
    pub what: String,
}

impl Wait {
    fn us(us: u32, what: impl Into<String>) -> Option<Self> {
        let by = Parameter::RxUsecs;
        Some(Self { bound: Bound::Us(us.into()), by, what: what.into() })
    }
}

/// How long a packet that comes when nothing else does may wait for its interrupt; `None`: it does
/// not wait.
pub fn wait(driver: &str, settings: &Coalesce) -> Option<Wait> {
    let rows = rows_of(driver);
    if settings.is_on(Parameter::AdaptiveRx) == Some(true) {
        return Some(adaptive(driver, rows, settings));
    }
    let high = high(rows, settings, false);
    let frames = frames(rows, settings);
    let usecs = settings.get(Parameter::RxUsecs).unwrap_or(0);
    if let Some(longest) = code(rows, usecs) {
        let what = format!(
            "rx-usecs {usecs} means that the driver chooses the gap between two interrupts"
        );
        return Wait::us(longest, what);
    }
    // One packet is enough.
    if frames == Some(1) || rows.rx_frames.zero == Some(Zero::Off) && frames == Some(0) {
        return None;
    }
    if usecs == 0 {
        return without_time(driver, rows, frames).or_else(|| match high {
            0 => None,
            high => Some(by_high(high, "")),
        });
    }
    let or_frames = match frames {
        Some(frames) if frames > 1 => format!(" or {frames} packets have come"),
        _ => String::new(),
    };
    let is_cqe = settings.is_on(Parameter::CqeModeRx) == Some(true);
    // `cqe-mode-rx` says itself when the time starts.
    match rows.rx_usecs.is.or(is_cqe.then_some(Timer::Delay)) {
        Some(Timer::Gap) if high > usecs => Some(by_high(high, &or_frames)),
        Some(Timer::Gap) => Wait::us(usecs, gap(&format!("rx-usecs {usecs}"), &or_frames)),
        Some(Timer::Delay) => {
            let anew = match is_cqe {
                true => "; each packet starts the time anew (cqe-mode-rx)",
                false => "",
            };
            let what = format!(
                "the NIC waits until rx-usecs {usecs} have passed{or_frames} before it \
                 interrupts{anew}"
            );
            Wait::us(usecs, what)
        }
        None => {
            let what = format!(
                "usually the first packet waits until rx-usecs {usecs} have passed{or_frames}; \
                 what {driver} does is not known here"
            );
            Wait::us(usecs, what)
        }
    }
}

/// How long a lone packet waits without a time; `None`: it does not.
fn without_time(driver: &str, rows: &Rows, frames: Option<u32>) -> Option<Wait> {
    let frames = frames.filter(|frames| *frames > 1);
    if let Some(Zero::LeastUs(least)) = rows.rx_usecs.zero {
        return Wait::us(least, "rx-usecs 0 becomes the shortest time that the NIC has");
    }
    let frames = frames.filter(|_| rows.rx_usecs.zero != Some(Zero::Off))?;
    let until = format!("the NIC waits until {frames} packets have come (rx-frames)");
    if let Some(limit) = rows.rx_frames.limit_us {
        return Some(Wait {
            bound: Bound::Us(limit.into()),
            by: Parameter::RxFrames,
            what: format!("{until}, and no longer than {limit} us"),
        });
    }
    Some(match rows.rx_usecs.zero {
        Some(Zero::Frames) => Wait {
            bound: Bound::Endless,
            by: Parameter::RxFrames,
            what: format!("{until}, however long that takes: no rx-usecs limits the wait"),
        },
        _ => Wait {
            bound: Bound::Unknown,
            by: Parameter::RxFrames,
            what: format!(
                "no rx-usecs limits the wait for {frames} packets (rx-frames); what {driver} does \
                 then is not known here"
            ),
        },
    })
}

/// Whether a lone packet may wait for others without a time that ends it: for ever, or nothing
/// says for how long. Off for certain is `rx-usecs 0` *and* `rx-frames 1`.
pub fn lacks_timer(driver: &str, settings: &Coalesce) -> Option<Wait> {
    let is_fixed = settings.is_on(Parameter::AdaptiveRx) != Some(true);
    wait(driver, settings).filter(|wait| is_fixed && !matches!(wait.bound, Bound::Us(_)))
}

/// `rx-frames`, as far as a packet waits for so many.
fn frames(rows: &Rows, settings: &Coalesce) -> Option<u32> {
    let frames = settings.get(Parameter::RxFrames)?;
    match rows.rx_frames.is {
        None => Some(frames),
        Some(Count::Any) => Some(frames.min(1)),
        Some(Count::Batch | Count::Fixed) => None,
    }
}

/// The longest time that a value of `rx-usecs` lets the driver choose, if it is a code.
pub(super) fn code(rows: &Rows, usecs: u32) -> Option<u32> {
    rows.rx_usecs.codes.get(&usecs.to_string()).copied()
}

/// The gap between interrupts that `rx-usecs-high` sets, if it does.
fn high(rows: &Rows, settings: &Coalesce, is_adaptive: bool) -> u32 {
    let is_gap = rows.rx_usecs_high.is == Some(Highest::Gap);
    let high = settings.get(Parameter::RxUsecsHigh);
    high.filter(|_| is_gap && (rows.rx_usecs_high.adaptive || !is_adaptive)).unwrap_or(0)
}

/// The wait for the gap of `rx-usecs-high`.
fn by_high(high: u32, or_frames: &str) -> Wait {
    Wait {
        bound: Bound::Us(high.into()),
        by: Parameter::RxUsecsHigh,
        what: gap(&format!("rx-usecs-high {high}"), or_frames),
    }
}

fn gap(setting: &str, or_frames: &str) -> String {
    format!(
        "the NIC leaves at least {setting} between two interrupts{or_frames}; a packet after a \
         longer silence does not wait"
    )
}

fn adaptive(driver: &str, rows: &Rows, settings: &Coalesce) -> Wait {
    let row = &rows.adaptive_rx;
    let profile = settings.rx_profile.as_ref();
    let reported = profile.and_then(|steps| steps.iter().filter_map(|step| step.usec).max());
    let is_cqe = settings.is_on(Parameter::CqeModeRx) == Some(true);
    let bounded = row.up_to.and_then(|parameter| settings.get(parameter));
    let known = if is_cqe { row.longest_cqe_us } else { None }.or(row.longest_us);
    let longest = reported.or(bounded).or(known);
    let longest = longest.map(|longest| longest.max(high(rows, settings, true)));
    let low = match row.up_to {
        Some(Parameter::RxUsecsHigh) => settings.get(Parameter::RxUsecsLow).unwrap_or(0),
        _ => 0,
    };
    let chosen = match longest {
        Some(longest) => format!("between {low} and {longest} us"),
        None => format!("and what {driver} chooses from is not known here"),
    };
    let now = match (row.shown, settings.get(Parameter::RxUsecs)) {
        (Some(Shown::Current), Some(now)) => format!(", now {now}"),
        _ => String::new(),
    };
    Wait {
        bound: longest.map_or(Bound::Unknown, |longest| Bound::Us(longest.into())),
        by: Parameter::RxUsecs,
        what: format!(
            "adaptive-rx is on: the driver chooses rx-usecs by the traffic, {chosen}{now}"
        ),
    }
}
