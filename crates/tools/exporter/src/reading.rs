//! One device at one moment: what the kernel says of it, and the samples that follow.

use netdev::ethtool::{Coalesce, Features, Parameter, QueueCoalesce};
use netdev::netdev::Napi;
use show::Delay;
use show::Report;
use show::delays_of;
use sys::netlink::LinkStats;

use crate::metric::Metric;
use crate::sample::{Sample, Value};

/// The most series that one device has, whatever it is and however many queues it has.
pub(crate) const MAX_SERIES: usize = 50;

/// What holds packets back for a known time. Each has a series, so that it says 0 where
/// nothing is held.
const BOUNDED_CAUSES: [&str; 4] =
    ["coalescing", "completion-entries", "napi-deferral", "idle-state"];

#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Its settings: as much of what `earmark show` reads as is exported.
    pub(crate) report: Report,
    pub(crate) link: LinkStats,
    /// How often it has interrupted, and how often for received packets; `None`: it has no
    /// interrupts, or they are not known.
    pub(crate) interrupts: Option<(u64, u64)>,
    /// How often something of it could not be read.
    pub(crate) errors: u64,
}

struct Samples<'a> {
    device: &'a str,
    samples: Vec<Sample>,
}

impl Samples<'_> {
    fn add(&mut self, metric: Metric, value: impl Into<Value>) {
        self.samples.push(Sample::new(metric, &[self.device], value));
    }

    fn add_some(&mut self, metric: Metric, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.add(metric, value);
        }
    }

    fn add_with(&mut self, metric: Metric, label: &str, value: impl Into<Value>) {
        self.samples.push(Sample::new(metric, &[self.device, label], value));
    }
}

impl Reading {
    /// The samples of the device that is called `device`: at most [`MAX_SERIES`].
    pub(crate) fn samples(&self, device: &str) -> Vec<Sample> {
        let mut samples = Samples { device, samples: Vec::with_capacity(MAX_SERIES) };
        self.add_info(&mut samples);
        add_holds(&mut samples, &delays_of(&self.report));
        if let Some(coalescing) = &self.report.coalescing {
            add_coalescing(&mut samples, coalescing);
            add_queues(&mut samples, coalescing, &self.report.queue_coalescing);
        }
        self.add_deferral(&mut samples);
        self.add_counters(&mut samples);
        samples.samples.truncate(MAX_SERIES);
        samples.samples
    }

    fn add_info(&self, samples: &mut Samples<'_>) {
        let driver = self.report.driver.clone().unwrap_or_default();
        let name = self.report.driver_name();
        let bus = self.report.files.bus.as_deref().unwrap_or_default();
        let labels = [samples.device, name, &driver.firmware, bus, &driver.bus];
        samples.samples.push(Sample::new(Metric::Nic, &labels, true));
        if let Some(features) = &self.report.features {
            let [gro, gro_hw, lro] =
                ["rx-gro", "rx-gro-hw", "rx-lro"].map(|name| state(features, name));
            let labels = [samples.device, gro, gro_hw, lro];
            samples.samples.push(Sample::new(Metric::Offload, &labels, true));
        }
    }

    fn add_deferral(&self, samples: &mut Samples<'_>) {
        let deferral = &self.report.files.deferral;
        samples.add_some(Metric::FlushTimeout, deferral.gro_flush_timeout.map(nanoseconds));
        samples.add_some(Metric::DeferHardIrqs, deferral.napi_defer_hard_irqs);
        samples.add_some(Metric::Threaded, deferral.threaded.map(|threaded| threaded != 0));
        let Some(napis) = &self.report.napis else { return };
        samples.add(Metric::Napis, napis.len() as u64);
        let most = |of: fn(&Napi) -> Option<u64>| napis.iter().filter_map(of).max();
        let flush = most(|napi| napi.gro_flush_timeout);
        samples.add_some(Metric::NapiFlushTimeout, flush.map(nanoseconds));
        let deferred = most(|napi| napi.defer_hard_irqs.map(u64::from));
        samples.add_some(Metric::NapiDeferHardIrqs, deferred);
        let suspend = most(|napi| napi.irq_suspend_timeout);
        samples.add_some(Metric::NapiSuspendTimeout, suspend.map(nanoseconds));
    }

    fn add_counters(&self, samples: &mut Samples<'_>) {
        if let Some(channels) = self.report.channels {
            let sending = channels.tx.unwrap_or(0).saturating_add(channels.combined.unwrap_or(0));
            samples.add_with(Metric::Queues, "rx", channels.receiving());
            samples.add_with(Metric::Queues, "tx", sending);
        }
        let link = &self.link;
        samples.add_with(Metric::Packets, "rx", link.rx_packets);
        samples.add_with(Metric::Packets, "tx", link.tx_packets);
        samples.add_with(Metric::Drops, "rx_dropped", link.rx_dropped);
        samples.add_with(Metric::Drops, "rx_missed_errors", link.rx_missed);
        samples.add_with(Metric::Drops, "tx_dropped", link.tx_dropped);
        if let Some((interrupts, receiving)) = self.interrupts {
            samples.add(Metric::Interrupts, interrupts);
            samples.add(Metric::ReceiveInterrupts, receiving);
            samples.add(Metric::Vectors, self.report.files.interrupts.len() as u64);
        }
        samples.add(Metric::ReadErrors, self.errors);
    }
}

/// Whether a feature is on, off, or none that the device has.
fn state(features: &Features, name: &str) -> &'static str {
    match (features.is_on(name), features.is_offered(name)) {
        (true, _) => "on",
        (false, true) => "off",
        (false, false) => "absent",
    }
}

fn add_holds(samples: &mut Samples<'_>, delays: &[Delay]) {
    for cause in BOUNDED_CAUSES {
        if delays.iter().all(|delay| delay.cause != cause) {
            samples.add_with(Metric::HoldLimit, cause, 0.0);
        }
    }
    for delay in delays {
        match delay.up_to_us {
            _ if delay.endless => samples.add_with(Metric::HoldLimit, delay.cause, f64::INFINITY),
            Some(up_to) => samples.add_with(Metric::HoldLimit, delay.cause, up_to / 1e6),
            None => samples.add_with(Metric::HoldUnbounded, delay.cause, true),
        }
    }
}

fn add_coalescing(samples: &mut Samples<'_>, coalescing: &Coalesce) {
    use Parameter::{
        AdaptiveRx, AdaptiveTx, CqeModeRx, RxCqeNsecs, RxFrames, RxUsecs, TxFrames, TxUsecs,
    };
    samples.add_some(Metric::RxUsecs, coalescing.get(RxUsecs).map(microseconds));
    samples.add_some(Metric::TxUsecs, coalescing.get(TxUsecs).map(microseconds));
    samples.add_some(Metric::RxFrames, coalescing.get(RxFrames));
    samples.add_some(Metric::TxFrames, coalescing.get(TxFrames));
    samples.add_some(Metric::RxAdaptive, coalescing.is_on(AdaptiveRx));
    samples.add_some(Metric::TxAdaptive, coalescing.is_on(AdaptiveTx));
    samples.add_some(Metric::RxCqeMode, coalescing.is_on(CqeModeRx));
    let completion = coalescing.get(RxCqeNsecs).map(|time| nanoseconds(time.into()));
    samples.add_some(Metric::RxCqe, completion);
}

/// The least and the most among queues: two series, however many queues there are.
fn add_queues(samples: &mut Samples<'_>, whole: &Coalesce, queues: &[QueueCoalesce]) {
    for (metric, parameter) in
        [(Metric::QueueRxUsecs, Parameter::RxUsecs), (Metric::QueueTxUsecs, Parameter::TxUsecs)]
    {
        // The ioctl of single queues shows an unsupported parameter as 0.
        if whole.get(parameter).is_none() {
            continue;
        }
        let values = || queues.iter().filter_map(|queue| queue.coalesce.get(parameter));
        if let (Some(min), Some(max)) = (values().min(), values().max()) {
            samples.add_with(metric, "min", microseconds(min));
            samples.add_with(metric, "max", microseconds(max));
        }
    }
}

fn microseconds(time: u32) -> f64 {
    f64::from(time) / 1e6
}

fn nanoseconds(time: u64) -> f64 {
    time as f64 / 1e9
}

#[cfg(test)]
mod tests;
