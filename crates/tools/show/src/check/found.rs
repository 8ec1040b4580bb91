//! What a device says of that which a rule is about.

use device::drivers::is_software;
use device::ethtool::{Coalesce, Parameter};
use device::napi::Napi;

use super::key::{Key, Other, ValueKind};
use super::limit::format_number;
use crate::delays::Delay;
use crate::report::{FILES, NO_DRIVER, Report, part};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Why it is only known to be one of these values; `None`: it may take each of them.
    pub(super) unclear: Option<String>,
    /// Of which queue it is, or who chooses it.
    pub(super) note: String,
}

impl Found {
    fn value(value: impl Into<f64>) -> Self {
        let value = value.into();
        Self { low: value, high: value, unclear: None, note: String::new() }
    }

    fn noted(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    pub(super) fn words(&self, kind: ValueKind) -> String {
        let word = |value: f64| match value.is_infinite() {
            true => "no limit".into(),
            false => format_number(kind, value),
        };
        let values = match (self.low, self.high) {
            (low, high) if low == high => word(low),
            (low, high) if high.is_infinite() => format!("at least {}", word(low)),
            (low, high) => format!("{} to {}", word(low), word(high)),
        };
        if self.note.is_empty() { values } else { format!("{values} ({})", self.note) }
    }
}

type Unknown = String;

pub(super) fn find(device: &Report, key: Key) -> Result<Vec<Found>, Unknown> {
    let other = match key {
        Key::Coalescing(parameter) => return coalescing(device, parameter),
        Key::Other(other) => other,
    };
    let switch = |is_on: bool| Some(f64::from(u8::from(is_on)));
    let feature = |name: &str| switch(device.features.as_ref()?.is_on(name));
    let number = |value: Option<u64>| value.map(|value| value as f64);
    let files = &device.files;
    // The value, and what would have to be read for it.
    let (value, what) = match other {
        Other::LongestHold => return Ok(vec![longest(device, is_hold)]),
        Other::LongestDelay => return Ok(vec![longest(device, |_| true)]),
        Other::GroFlushTimeout | Other::NapiDeferHardIrqs => return deferral(device, other),
        Other::IrqSuspendTimeout => return suspension(device),
        Other::IdleLatency => (number(files.idle.deepest().map(|state| state.latency_us)), ""),
        Other::Threaded => (number(files.deferral.threaded), part::DEFERRAL),
        Other::BusyPoll => (number(files.limits.busy_poll), part::BUSY_POLLING),
        Other::BusyRead => (number(files.limits.busy_read), part::BUSY_POLLING),
        Other::RingRx => (device.rings.and_then(|rings| rings.rx).map(f64::from), "rings"),
        Other::RingTx => (device.rings.and_then(|rings| rings.tx).map(f64::from), "rings"),
        Other::RxGro | Other::RxLro | Other::RxGroHw => (feature(key.name()), "features"),
        Other::HardwareTimestamps => {
            let both = device.timestamps.as_ref().and_then(|stamps| {
                switch(stamps.has_hardware_receive() && stamps.has_hardware_transmit())
            });
            (both, "timestamps")
        }
        Other::Mtu => (number(files.mtu), ""),
        Other::Speed => (device.speed_mbps().map(f64::from), "link"),
    };
    value.map(|value| vec![Found::value(value)]).ok_or_else(|| match other {
        Other::IdleLatency if device.has(part::PROCESSORS) => {
            "the kernel lists no idle states here".into()
        }
        Other::IdleLatency => unread(device, part::PROCESSORS),
        _ => why_not(device, what, key.name()),
    })
}

const SYS_UNREAD: &str = "/sys cannot be read";

/// Why a part of the device is not known, which was not read.
fn unread(device: &Report, part: &str) -> Unknown {
    match device.why_unread(part) {
        Some(why) if device.has(FILES) => why.to_owned(),
        _ => SYS_UNREAD.into(),
    }
}

/// Why something is not known, as far as reading it has shown.
fn why_not(device: &Report, what: &str, name: &str) -> Unknown {
    match device.unreadable.iter().find(|unreadable| unreadable.what == what) {
        Some(unreadable) => unreadable.why.clone(),
        None if !device.has(FILES) => SYS_UNREAD.into(),
        None if device.driver_name() == NO_DRIVER => format!("no driver reports {name}"),
        None => format!("driver {} does not report {name}", device.driver_name()),
    }
}

fn coalescing(device: &Report, parameter: Parameter) -> Result<Vec<Found>, Unknown> {
    let settings = device.coalescing.as_ref();
    let get = |settings: &Coalesce| settings.get(parameter);
    let value = settings.and_then(get);
    let value = value.ok_or_else(|| why_not(device, "coalescing", parameter.name()))?;
    if let Some(chosen) = chosen(device, parameter) {
        return chosen.map(|found| vec![found]);
    }
    let queues = device.queue_coalescing.iter().filter_map(|queue| {
        let value = get(&queue.coalesce)?;
        Some(Found::value(value).noted(format!("queue {}", queue.queue)))
    });
    Ok(std::iter::once(Found::value(value)).chain(queues).collect())
}

/// What adaptive moderation may choose, if that is on: the value in force is one of these.
fn chosen(device: &Report, parameter: Parameter) -> Option<Result<Found, Unknown>> {
    let adaptive = adaptive_of(parameter)?;
    if device.coalescing.as_ref()?.is_on(adaptive) != Some(true) {
        return None;
    }
    let name = adaptive.name();
    let delay = device.delays.iter().find(|delay| delay.cause == "coalescing");
    let longest = delay.and_then(|delay| delay.up_to_us);
    Some(match longest.filter(|_| parameter == Parameter::RxUsecs) {
        Some(high) => Ok(Found {
            low: 0.0,
            high,
            unclear: None,
            note: format!("{name} is on: the driver chooses"),
        }),
        None => Err(format!("{name} is on: the driver chooses, and does not report from what")),
    })
}

pub(crate) fn adaptive_of(parameter: Parameter) -> Option<Parameter> {
    match parameter {
        Parameter::RxUsecs | Parameter::RxFrames => Some(Parameter::AdaptiveRx),
        Parameter::TxUsecs | Parameter::TxFrames => Some(Parameter::AdaptiveTx),
        _ => None,
    }
}

fn deferral(device: &Report, other: Other) -> Result<Vec<Found>, Unknown> {
    let is_timeout = other == Other::GroFlushTimeout;
    let own = &device.files.deferral;
    let own = if is_timeout { own.gro_flush_timeout } else { own.napi_defer_hard_irqs };
    let name = if is_timeout { "gro-flush-timeout" } else { "napi-defer-hard-irqs" };
    let own = own.ok_or_else(|| why_not(device, part::DEFERRAL, name))?;
    let napis = device.napis.iter().flatten().filter_map(|napi| {
        let value = match is_timeout {
            true => napi.gro_flush_timeout?,
            false => napi.defer_hard_irqs?.into(),
        };
        let found = Found::value(value as f64).noted(format!("NAPI instance {}", napi.id));
        (value != own).then_some(found)
    });
    Ok(std::iter::once(Found::value(own as f64)).chain(napis).collect())
}

fn suspension(device: &Report) -> Result<Vec<Found>, Unknown> {
    let napis = device.napis.iter().flatten();
    let of = |napi: &Napi| {
        let found = Found::value(napi.irq_suspend_timeout? as f64);
        Some(found.noted(format!("NAPI instance {}", napi.id)))
    };
    let found: Vec<Found> = napis.filter_map(of).collect();
    let why = "no NAPI instance of it has an irq-suspend-timeout, which came with Linux 6.13";
    if found.is_empty() { Err(why.into()) } else { Ok(found) }
}

/// Whether a delay is one before the interrupt, or instead of it.
pub(super) fn is_hold(delay: &Delay) -> bool {
    matches!(delay.cause, "coalescing" | "completion-entries" | "napi-deferral")
}

/// The longest of some delays. One of unknown length may be longer.
fn longest(device: &Report, counts: impl Fn(&Delay) -> bool) -> Found {
    let delays = || device.delays.iter().filter(|delay| counts(delay));
    if let Some(endless) = delays().find(|delay| delay.endless) {
        return Found::value(f64::INFINITY).noted(endless.cause);
    }
    let known = delays().filter_map(|delay| delay.up_to_us).fold(0.0, f64::max);
    let cause = delays().find(|delay| delay.up_to_us == Some(known)).map(|delay| delay.cause);
    let unknown = delays().find(|delay| delay.up_to_us.is_none());
    let unclear = match unknown {
        Some(delay) => Some(delay.what.clone()),
        None if !device.has(part::DEFERRAL) => Some(unread(device, part::DEFERRAL)),
        None if reports_no_timer(device) => Some(why_not(device, "coalescing", "rx-usecs")),
        None => None,
    };
    let high = if unclear.is_some() { f64::INFINITY } else { known };
    Found { low: known, high, unclear, note: cause.unwrap_or_default().into() }
}

/// Whether there is a NIC that may wait, and does not report how long.
fn reports_no_timer(device: &Report) -> bool {
    let timers = [Parameter::RxUsecs, Parameter::AdaptiveRx, Parameter::RxCqeNsecs];
    let reports = |it: &Coalesce| timers.iter().any(|timer| it.get(*timer).is_some());
    device.lab.is_none()
        && !device.coalescing.as_ref().is_some_and(reports)
        && !is_software(device.driver_name())
        && device.name != "lo"
}
