//! What holds a lone received packet back, and for how long at most.
//!
//! A lone packet is one that comes when nothing else does: a request, an answer, a time stamp. What
//! delays packets under load only, such as a softirq that runs out of budget, is not counted here.

use device::drivers::{self, Bound, Wait, is_software, wait};
use device::ethtool::{Parameter, QueueCoalesce};
use schemars::JsonSchema;
use serde::Serialize;

use super::lab::LabPort;
use super::lines::us;
use super::report::Report;
use super::sleep::{eee, pcie_link};

/// What holds a lone received packet back.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Delay {
    /// What it is: `coalescing`, `napi-deferral`, `idle-state` and so on.
    pub cause: &'static str,
    /// For how long at most, in microseconds; `None` if nothing says so, or nothing limits it.
    pub up_to_us: Option<f64>,
    /// Whether nothing limits it: it lasts until other packets come.
    pub endless: bool,
    /// What happens, in words.
    pub what: String,
}

impl Delay {
    pub(crate) fn new(cause: &'static str, up_to_us: Option<f64>, what: impl Into<String>) -> Self {
        Self { cause, up_to_us, endless: false, what: what.into() }
    }
}

/// What holds packets back on this device: what has no end, the longest, what is not known in
/// numbers; as far as `report` has been read.
pub fn delays_of(report: &Report) -> Vec<Delay> {
    let mut delays: Vec<Delay> = [
        report.lab.as_ref().map_or_else(|| coalescing(report), LabPort::delay),
        receive_delay(report),
        completion_entries(report),
        deferral(report),
        suspension(report),
        eee(report),
        pcie_link(report),
        idle(report),
        threaded(report),
        steering(report),
        merging(report),
        hypervisor(report),
    ]
    .into_iter()
    .flatten()
    .collect();
    let length = |delay: &Delay| match delay.endless {
        true => f64::INFINITY,
        false => delay.up_to_us.unwrap_or(0.0),
    };
    delays.sort_by(|a, b| length(b).total_cmp(&length(a)));
    delays
}

fn coalescing(report: &Report) -> Option<Delay> {
    let settings = report.coalescing.as_ref()?;
    let driver = report.called_driver();
    let of_queue = |queue: &QueueCoalesce| {
        // The ioctl shows an unsupported parameter as 0.
        let own = queue.coalesce.iter().filter(|(name, _)| settings.get(*name).is_some());
        let whole = own.fold(settings.clone(), |all, (name, value)| all.with(name, value));
        let mut wait = wait(driver, &whole)?;
        wait.what = format!("{} (queue {})", wait.what, queue.queue);
        Some(wait)
    };
    let queues = report.queue_coalescing.iter().filter_map(of_queue);
    let length = |wait: &Wait| match wait.bound {
        Bound::Us(us) => us,
        Bound::Unknown => f64::MAX,
        Bound::Endless => f64::INFINITY,
    };
    // Of equal ones the device's own.
    let waits = queues.chain(wait(driver, settings));
    let wait = waits.max_by(|one, another| length(one).total_cmp(&length(another)))?;
    let up_to = match wait.bound {
        Bound::Us(us) => Some(us),
        Bound::Endless | Bound::Unknown => None,
    };
    let delay = Delay::new("coalescing", up_to, wait.what);
    Some(Delay { endless: wait.bound == Bound::Endless, ..delay })
}

/// A delay that cannot be read is no bound.
fn receive_delay(report: &Report) -> Option<Delay> {
    let usecs = drivers::receive_delay(report.driver_name(), report.files.pci_id.as_deref()?)?;
    let what = format!(
        "the driver sets a receive delay (RDTR) of {usecs:.3} us on this card, on top, unless its \
         parameter RxIntDelay says otherwise; neither can be read"
    );
    Some(Delay::new("receive-delay", None, what))
}

fn completion_entries(report: &Report) -> Option<Delay> {
    let settings = report.coalescing.as_ref()?;
    let nanoseconds = settings.get(Parameter::RxCqeNsecs)?;
    // One packet fills an entry (`mana_get_coalesce` reports the time all the same).
    let nanoseconds = if settings.get(Parameter::RxCqeFrames) == Some(1) { 0 } else { nanoseconds };
    let entries = "the NIC gathers packets for one completion entry (rx-cqe-nsecs)";
    (nanoseconds > 0)
        .then(|| Delay::new("completion-entries", Some(f64::from(nanoseconds) / 1e3), entries))
}

/// The deferral of the device, or of the NAPI instance that has most: nanoseconds and times.
fn deferral_of(report: &Report) -> (u64, u64) {
    let device = &report.files.deferral;
    let device = (device.gro_flush_timeout, device.napi_defer_hard_irqs);
    let instances = report.napis.iter().flatten();
    instances
        .map(|napi| (napi.gro_flush_timeout, napi.defer_hard_irqs.map(u64::from)))
        .chain([device])
        .map(|(timeout, times)| (timeout.unwrap_or(0), times.unwrap_or(0)))
        .max()
        .unwrap_or((0, 0))
}

/// Whether the kernel says that no NAPI instance polls this device, so that nothing is deferred.
pub(super) fn has_no_napi(report: &Report) -> bool {
    report.napis.as_ref().is_some_and(Vec::is_empty)
}

fn deferral(report: &Report) -> Option<Delay> {
    let (timeout, times) = deferral_of(report);
    if timeout == 0 || has_no_napi(report) {
        return None;
    }
    let microseconds = timeout as f64 / 1e3;
    let what = if times > 0 {
        format!(
            "after a poll interrupts stay off for gro_flush_timeout, {times} times in a row \
             (napi_defer_hard_irqs); a packet that comes then waits for the timer"
        )
    } else {
        "GRO keeps packets of a stream for others that may follow (gro_flush_timeout)".into()
    };
    Some(Delay::new("napi-deferral", Some(microseconds), what))
}

/// Whether a program polls is not known here, so it is no bound.
fn suspension(report: &Report) -> Option<Delay> {
    let instances = report.napis.iter().flatten();
    let longest = instances.filter_map(|napi| napi.irq_suspend_timeout).max().unwrap_or(0);
    (longest > 0).then(|| {
        let what = format!(
            "a program that polls keeps interrupts off until it polls again, for \
             irq-suspend-timeout {} at most: others wait",
            us(longest as f64 / 1e3)
        );
        Delay::new("irq-suspension", None, what)
    })
}

fn idle(report: &Report) -> Option<Delay> {
    let state = report.files.idle.deepest().filter(|state| state.latency_us > 0)?;
    let driver = report.files.idle.driver.as_deref().unwrap_or("the driver");
    Some(Delay::new(
        "idle-state",
        Some(state.latency_us as f64),
        format!(
            "a processor that sleeps in {} takes that long to wake up, says {driver}",
            state.name
        ),
    ))
}

fn threaded(report: &Report) -> Option<Delay> {
    use device::napi::Threaded;
    let by_thread = |threaded| threaded == Some(Threaded::Enabled);
    let any = report.napis.iter().flatten().any(|napi| by_thread(napi.threaded));
    (any || report.files.deferral.threaded == Some(1)).then(|| {
        Delay::new(
            "threaded-napi",
            None,
            "a kernel thread polls instead of the softirq (napi-threaded: enabled): the scheduler has \
             to give it a processor",
        )
    })
}

fn steering(report: &Report) -> Option<Delay> {
    use device::napi::Direction;
    let steered = report.files.steering.iter();
    let queues = steered.filter(|it| it.direction == Direction::Rx && !it.cpus.is_empty()).count();
    (queues > 0).then(|| {
        Delay::new(
            "rps",
            None,
            "RPS hands packets to other processors: an interrupt between processors, and perhaps \
             a wake-up",
        )
    })
}

fn merging(report: &Report) -> Option<Delay> {
    let features = report.features.as_ref()?;
    let on: Vec<&str> =
        ["rx-lro", "rx-gro-hw"].into_iter().filter(|it| features.is_on(it)).collect();
    (!on.is_empty()).then(|| {
        let names = on.join(" and ");
        Delay::new(
            "merging",
            None,
            format!("the NIC may keep a packet to merge it with the next of its stream ({names})"),
        )
    })
}

fn hypervisor(report: &Report) -> Option<Delay> {
    let is_guest = report.files.virtualisation.is_guest == Some(true);
    (is_guest && !is_software(report.driver_name()) && report.files.bus.is_some()).then(|| {
        Delay::new(
            "hypervisor",
            None,
            "this is a virtual machine: its host has a NIC, settings and sleeping processors of \
             its own, which cannot be seen from here",
        )
    })
}
