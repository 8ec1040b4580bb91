//! The metrics, each with its name, kind, unit and source: all that is exported, and nothing else.
//!
//! Names follow the conventions of Prometheus: base units, `_total` for counters, `_info` for what
//! has labels alone. The encoder adds these endings and the unit.

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// How a metric is exported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A number that goes up and down.
    Gauge,
    /// A number that only grows, and begins anew when the device or this program does.
    Counter,
    /// Labels; the value is always 1.
    Info,
    /// How many values were at most so much, for each of these bounds; their number and sum.
    Histogram(&'static [f64]),
}

/// A metric with its name, unit and labels.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name without the unit and without `_total` or `_info`.
    pub stem: &'static str,
    /// How it is exported.
    pub kind: Kind,
    /// Its unit, where it has one.
    pub unit: Option<&'static Unit>,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it is, and where the kernel has it.
    pub help: &'static str,
}

impl Family {
    /// Its whole name.
    pub fn name(&self) -> String {
        let unit = self.unit.map_or(String::new(), |unit| format!("_{}", unit.as_str()));
        let ending = match self.kind {
            Kind::Gauge | Kind::Histogram(_) => "",
            Kind::Counter => "_total",
            Kind::Info => "_info",
        };
        format!("{}{unit}{ending}", self.stem)
    }

    pub(crate) fn metric_type(&self) -> MetricType {
        match self.kind {
            Kind::Gauge => MetricType::Gauge,
            Kind::Counter => MetricType::Counter,
            Kind::Info => MetricType::Info,
            Kind::Histogram(_) => MetricType::Histogram,
        }
    }
}

const NO_UNIT: Option<&Unit> = None;
const SECONDS: Option<&Unit> = Some(&Unit::Seconds);
const BYTES: Option<&Unit> = Some(&Unit::Bytes);

/// Declares [`Metric`]: its variants, and how each is exported.
macro_rules! metrics {
    ($($variant:ident = $kind:ident$(($bounds:ident))? $stem:literal $unit:ident $labels:expr,
       $help:literal;)*) => {
        /// What is exported.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Metric {
            $(#[doc = $help] $variant,)*
        }

        impl Metric {
            /// All of them, in the order in which they are exported.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// How it is exported.
            pub fn family(self) -> Family {
                match self {
                    $(Self::$variant => Family {
                        stem: $stem,
                        kind: Kind::$kind$(($bounds))?,
                        unit: $unit,
                        labels: $labels,
                        help: $help,
                    },)*
                }
            }
        }
    };
}

/// Upper bounds of stages and holds, in seconds: from one to ten thousand microseconds.
const TIMES: &[f64] = &[5e-6, 10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 1e-3, 10e-3];

/// Upper bounds of the histograms that the kernel keeps, in seconds: each twice the one before.
const KERNEL_TIMES: &[f64] = &{
    let mut bounds = [1.024e-6; flows::histograms::BUCKETS - 1];
    let mut bucket = 1;
    while bucket < bounds.len() {
        bounds[bucket] = bounds[bucket - 1] * 2.0;
        bucket += 1;
    }
    bounds
};

const DEVICE: &[&str] = &["device"];
const DIRECTION: &[&str] = &["device", "direction"];
const CAUSE: &[&str] = &["device", "cause"];
const BOUND: &[&str] = &["device", "bound"];

metrics! {
    Nic = Info "earmark_nic" NO_UNIT &["device", "driver", "firmware", "bus", "address"],
        "The device: driver, firmware and place on its bus (ethtool -i).";
    Offload = Info "earmark_nic_offload" NO_UNIT &["device", "gro", "gro_hw", "lro"],
        "Offloads that merge received packets: on, off, or absent if the device cannot (ethtool -k).";
    HoldLimit = Gauge "earmark_nic_hold_limit" SECONDS CAUSE,
        "How long a packet that is received alone can be held at most, by cause; 0 if this cause \
         holds none; +Inf if it is held until others come; absent where nothing tells (as earmark \
         show).";
    HoldUnbounded = Gauge "earmark_nic_hold_unbounded" NO_UNIT CAUSE,
        "1 if this cause may hold a packet that is received alone, for a time that nothing tells \
         (as earmark show).";
    RxUsecs = Gauge "earmark_nic_coalesce_rx" SECONDS DEVICE,
        "How long the device waits before it interrupts for what it has received (ethtool -c \
         rx-usecs; drivers differ in what it means).";
    TxUsecs = Gauge "earmark_nic_coalesce_tx" SECONDS DEVICE,
        "How long the device waits before it interrupts for what it has sent (ethtool -c tx-usecs).";
    RxFrames = Gauge "earmark_nic_coalesce_rx_frames" NO_UNIT DEVICE,
        "After how many received packets it interrupts all the same; 0: no number (ethtool -c \
         rx-frames).";
    TxFrames = Gauge "earmark_nic_coalesce_tx_frames" NO_UNIT DEVICE,
        "After how many sent packets it interrupts all the same; 0: no number (ethtool -c tx-frames).";
    RxAdaptive = Gauge "earmark_nic_coalesce_rx_adaptive" NO_UNIT DEVICE,
        "1 if the driver chooses the receive values by the traffic (ethtool -c adaptive-rx).";
    TxAdaptive = Gauge "earmark_nic_coalesce_tx_adaptive" NO_UNIT DEVICE,
        "1 if the driver chooses the transmit values by the traffic (ethtool -c adaptive-tx).";
    RxCqeMode = Gauge "earmark_nic_coalesce_rx_cqe_mode" NO_UNIT DEVICE,
        "1 if the receive timer starts anew at each packet (ethtool -c cqe-mode-rx).";
    RxCqe = Gauge "earmark_nic_coalesce_rx_completion" SECONDS DEVICE,
        "How long the first packet of a completion entry waits for others (ethtool -c rx-cqe-nsecs).";
    QueueRxUsecs = Gauge "earmark_nic_queue_coalesce_rx" SECONDS BOUND,
        "The least and the most of rx-usecs among the queues of the device, where it tells them \
         apart (ethtool --per-queue).";
    QueueTxUsecs = Gauge "earmark_nic_queue_coalesce_tx" SECONDS BOUND,
        "The least and the most of tx-usecs among the queues of the device, where it tells them \
         apart (ethtool --per-queue).";
    FlushTimeout = Gauge "earmark_nic_gro_flush_timeout" SECONDS DEVICE,
        "For how long interrupts stay off after a poll, and packets are kept for GRO \
         (/sys/class/net/DEVICE/gro_flush_timeout).";
    DeferHardIrqs = Gauge "earmark_nic_napi_defer_hard_irqs" NO_UNIT DEVICE,
        "How often in a row interrupts stay off after an empty poll \
         (/sys/class/net/DEVICE/napi_defer_hard_irqs).";
    Threaded = Gauge "earmark_nic_napi_threaded" NO_UNIT DEVICE,
        "1 if kernel threads poll instead of the softirq (/sys/class/net/DEVICE/threaded).";
    NapiFlushTimeout = Gauge "earmark_nic_napi_gro_flush_timeout_max" SECONDS DEVICE,
        "The longest gro-flush-timeout of a NAPI instance of the device (netdev napi-get, Linux 6.13).";
    NapiDeferHardIrqs = Gauge "earmark_nic_napi_defer_hard_irqs_max" NO_UNIT DEVICE,
        "The largest defer-hard-irqs of a NAPI instance of the device (netdev napi-get, Linux 6.13).";
    NapiSuspendTimeout = Gauge "earmark_nic_napi_irq_suspend_timeout_max" SECONDS DEVICE,
        "The longest irq-suspend-timeout of a NAPI instance of the device (netdev napi-get, Linux \
         6.13).";
    Napis = Gauge "earmark_nic_napis" NO_UNIT DEVICE,
        "NAPI instances of the device; 0 while it is down (netdev napi-get, Linux 6.8).";
    Queues = Gauge "earmark_nic_queues" NO_UNIT DIRECTION,
        "Queues in use, those that do both counted in both directions (ethtool -l).";
    Packets = Counter "earmark_nic_packets" NO_UNIT DIRECTION,
        "Packets that the device has received (rx) or sent (tx) (rtnetlink, IFLA_STATS64).";
    Drops = Counter "earmark_nic_drops" NO_UNIT &["device", "counter"],
        "Packets dropped, by the kernel's name of the counter: rx_dropped and tx_dropped by the \
         stack, rx_missed_errors by the device for want of room (rtnetlink, IFLA_STATS64).";
    Interrupts = Counter "earmark_nic_interrupts" NO_UNIT DEVICE,
        "Interrupts of the device (/proc/interrupts, by the numbers that its bus has given it).";
    ReceiveInterrupts = Counter "earmark_nic_receive_interrupts" NO_UNIT DEVICE,
        "Those of them that may be for received packets, by the names of their handlers.";
    Vectors = Gauge "earmark_nic_interrupt_vectors" NO_UNIT DEVICE,
        "How many different interrupts the device has (/proc/interrupts).";
    ReadErrors = Counter "earmark_nic_read_errors" NO_UNIT DEVICE,
        "How often something of the device could not be read; its other metrics are there.";
    ChangesOverdue = Gauge "earmark_changes_overdue" NO_UNIT &[],
        "Changes of devices by Earmark that should have been undone and are in force: they \
         were not confirmed in time, or what made them was killed (earmark rollback undoes them).";
    Devices = Gauge "earmark_exporter_devices" NO_UNIT &[],
        "Devices that were read.";
    DevicesLeftOut = Gauge "earmark_exporter_devices_left_out" NO_UNIT &["reason"],
        "Devices that were not read: too many, or their names are not UTF-8.";
    Collections = Counter "earmark_exporter_collections" NO_UNIT &[],
        "How often the devices were read, this time included.";
    CollectDuration = Gauge "earmark_exporter_collect_duration" SECONDS &[],
        "How long it took to read the devices this time.";
    CollectTime = Gauge "earmark_exporter_collect_time" SECONDS &[],
        "When they were read, in seconds since 1970.";
    ExplainStage = Histogram(TIMES) "earmark_explain_stage" SECONDS &["host", "stage"],
        "Where the time of requests to the host of --explain goes, by stage (as earmark explain).";
    ExplainRuns = Counter "earmark_explain_runs" NO_UNIT &["host", "outcome"],
        "How often such requests were followed: done, or failed.";
    ProbeHold = Histogram(TIMES) "earmark_probe_hold" SECONDS &["host", "side", "family"],
        "How long the holds are that probes of the hosts of --probe found, one value a probe (as \
         earmark probe).";
    ProbeVerdicts = Counter "earmark_probe_verdicts" NO_UNIT &["host", "side", "verdict"],
        "What probes said of a side: hold, no-hold, or cannot-tell.";
    ProbeRuns = Counter "earmark_probe_runs" NO_UNIT &["host", "outcome"],
        "How often these hosts were probed: done, or failed.";
    Stage = Histogram(KERNEL_TIMES) "earmark_stage" SECONDS &["device", "cgroup", "role", "stage"],
        "For what requests of this machine wait how long, of --stages: a value for each request that \
         has the stage (as earmark explain).";
    Request = Histogram(KERNEL_TIMES) "earmark_request" SECONDS &["device", "cgroup", "role"],
        "How long requests of this machine take, of --stages: asks, from the first write to the last \
         read; answers, from the arrival to the last byte sent.";
    StagesFollowed = Counter "earmark_stages_followed" SECONDS &[],
        "For how long --stages has followed requests: less than the time that has passed where all \
         of them would cost more than 1 % of a processor.";
    StagesKernelCpu = Counter "earmark_stages_kernel_cpu" SECONDS &[],
        "CPU time that following requests has used in the kernel (BPF run time).";
    StagesLeftOut = Counter "earmark_stages_left_out" NO_UNIT &["what"],
        "Requests and sockets for which --stages had no room.";
    Build = Info "earmark_build" NO_UNIT &["version"],
        "The version of Earmark.";
    OwnCpu = Counter "earmark_exporter_cpu" SECONDS &[],
        "CPU time that the exporter has used, in user space and in the kernel.";
    OwnMemory = Gauge "earmark_exporter_resident_memory" BYTES &[],
        "Memory of the exporter that is in RAM.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_differ_and_end_as_prometheus_wants_them() {
        let names: BTreeSet<String> = Metric::ALL.iter().map(|it| it.family().name()).collect();
        assert_eq!(names.len(), Metric::ALL.len(), "two metrics have one name");
        assert_eq!(Metric::RxUsecs.family().name(), "earmark_nic_coalesce_rx_seconds");
        assert_eq!(Metric::Packets.family().name(), "earmark_nic_packets_total");
        let cpu = Metric::OwnCpu.family().name();
        assert_eq!(cpu, "earmark_exporter_cpu_seconds_total");
        assert_eq!(Metric::Nic.family().name(), "earmark_nic_info");
        for metric in Metric::ALL {
            let family = metric.family();
            assert!(family.help.ends_with('.') && !family.help.contains(['"', '\\', '\n']));
            assert!(!family.stem.ends_with("_total") && !family.stem.ends_with("_info"));
            // Others are those of node_exporter itself, which refuses files that have them, too.
            assert!(family.stem.starts_with("earmark_"), "{}", family.stem);
        }
    }
}
