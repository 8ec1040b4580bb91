//! Commands that bring a device back to what a rule allows.

use device::drivers::{lacks_timer, wait};
use device::ethtool::Parameter;

use super::found::{Found, adaptive_of, is_hold};
use super::key::{Key, Other, ValueKind};
use super::limit::Limit;
use crate::delays::Delay;
use crate::report::Report;

pub(super) fn command(device: &Report, key: Key, limit: &Limit, found: &Found) -> Option<String> {
    let name = &device.name;
    let wanted = limit.nearest(found.high);
    let switch = if wanted == 0.0 { "off" } else { "on" };
    let apply = |key: &str| Some(format!("earmark apply {name} {key} {wanted}"));
    let feature = |key: &str| Some(format!("ethtool -K {name} {key} {switch}"));
    match key {
        Key::Coalescing(parameter) => Some(coalescing(device, parameter, limit, wanted)),
        Key::Other(other) => match other {
            Other::LongestHold | Other::LongestDelay => shorten(device, other, limit),
            Other::IdleLatency => Some(idle(wanted)),
            Other::GroFlushTimeout
            | Other::NapiDeferHardIrqs
            | Other::IrqSuspendTimeout
            | Other::BusyPoll
            | Other::BusyRead => apply(key.name()),
            Other::Threaded => Some(format!("echo {wanted} > /sys/class/net/{name}/threaded")),
            Other::RingRx => Some(format!("ethtool -G {name} rx {wanted}")),
            Other::RingTx => Some(format!("ethtool -G {name} tx {wanted}")),
            Other::RxGro => feature("gro"),
            Other::RxLro => feature("lro"),
            Other::RxGroHw => feature("rx-gro-hw"),
            Other::Mtu => Some(format!("ip link set {name} mtu {wanted}")),
            Other::HardwareTimestamps | Other::Speed => None,
        },
    }
}

fn coalescing(device: &Report, parameter: Parameter, limit: &Limit, wanted: f64) -> String {
    let value = match limit.kind {
        ValueKind::Switch => if wanted == 0.0 { "off" } else { "on" }.into(),
        _ => wanted.to_string(),
    };
    // A fixed value says nothing beside a switch that overrides it.
    let adaptive = adaptive_of(parameter).filter(|adaptive| {
        device.coalescing.as_ref().and_then(|settings| settings.is_on(*adaptive)) == Some(true)
    });
    let off = adaptive.map(|adaptive| format!(" {adaptive} off")).unwrap_or_default();
    let settings = device.coalescing.clone().unwrap_or_default();
    let settings = settings.with(Parameter::AdaptiveRx, 0).with(parameter, wanted as u32);
    // Without a time, nothing but a frame ends the wait.
    let one = match lacks_timer(device.driver_name(), &settings) {
        Some(_) if parameter == Parameter::RxUsecs => " rx-frames 1",
        _ => "",
    };
    format!("earmark apply {}{off} {parameter} {value}{one}", device.name)
}

/// Shortens the longest delay of all, or of those before the interrupt; or lets the NIC wait, where
/// there is none and shall be one.
fn shorten(device: &Report, other: Other, limit: &Limit) -> Option<String> {
    let counts = |delay: &&Delay| other == Other::LongestDelay || is_hold(delay);
    let length = |delay: &Delay| match delay.endless {
        true => f64::INFINITY,
        false => delay.up_to_us.unwrap_or(0.0),
    };
    let delays = device.delays.iter().filter(counts);
    let longest = delays.max_by(|one, another| length(one).total_cmp(&length(another)));
    let wanted = limit.nearest(longest.map_or(0.0, length));
    let name = &device.name;
    match longest.map_or("coalescing", |delay| delay.cause) {
        "coalescing" if device.lab.is_some() => {
            Some(format!("earmark apply {name} rx-usecs {wanted}"))
        }
        "coalescing" => shorter(device, limit, wanted),
        "completion-entries" => Some(format!("earmark apply {name} rx-cqe-nsecs {}", wanted * 1e3)),
        "napi-deferral" => Some(format!("earmark apply {name} gro-flush-timeout {}", wanted * 1e3)),
        "idle-state" => Some(idle(wanted)),
        "eee" => Some(format!("ethtool --set-eee {name} eee off")),
        _ => None,
    }
}

fn shorter(device: &Report, limit: &Limit, wanted: f64) -> Option<String> {
    let settings = device.coalescing.as_ref()?;
    let by = wait(device.driver_name(), settings).map_or(Parameter::RxUsecs, |wait| wait.by);
    let time = settings.get(Parameter::RxUsecs);
    Some(match by {
        // What has no time is meant to be off.
        Parameter::RxFrames if time.is_none() || limit.nearest(0.0) == 0.0 => {
            coalescing(device, by, limit, 1.0)
        }
        Parameter::RxFrames => coalescing(device, Parameter::RxUsecs, limit, limit.nearest(0.0)),
        by => {
            settings.get(by)?;
            coalescing(device, by, limit, wanted)
        }
    })
}

/// Forbids idle states that take longer than `most` microseconds to come back from.
fn idle(most: f64) -> String {
    format!("cpupower idle-set -D {}", most + 1.0)
}
