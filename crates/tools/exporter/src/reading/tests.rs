//! Samples of made-up devices.

use std::collections::{BTreeSet, HashSet};

use netdev::aspm::Aspm;
use netdev::ethtool::{Channels, Driver};
use netdev::idle::IdleState;
use netdev::interrupts::{Affinity, Interrupt};
use netdev::netdev::{Direction, Threaded};
use netdev::steering::Steering;

use super::*;
use crate::metric::Kind;

const QUEUES: u32 = 4_096;

/// A device with everything that the kernel can say of one.
fn everything() -> Reading {
    let mut coalescing = Coalesce::new();
    Parameter::all().for_each(|parameter| coalescing.set(parameter, 64));
    // Else the driver chooses, and the values are no limits.
    coalescing.set(Parameter::AdaptiveRx, 0);
    let queue = |queue| QueueCoalesce {
        queue,
        coalesce: Coalesce::new().with(Parameter::RxUsecs, queue).with(Parameter::TxUsecs, queue),
    };
    let napi = |id| Napi {
        id,
        defer_hard_irqs: Some(id),
        gro_flush_timeout: Some(u64::from(id) * 1_000),
        irq_suspend_timeout: Some(7_000),
        threaded: Some(Threaded::Enabled),
        ..Napi::default()
    };
    let channels =
        Channels { rx: Some(1), tx: Some(2), combined: Some(QUEUES), ..Channels::default() };
    let names = ["rx-gro", "rx-lro", "rx-gro-hw"].map(str::to_owned);
    let mut reading = Reading {
        report: Report {
            driver: Some(Driver { name: "igb".into(), firmware: "1".into(), ..Driver::default() }),
            coalescing: Some(coalescing),
            queue_coalescing: (0..QUEUES).map(queue).collect(),
            channels: Some(channels),
            features: Some(Features { active: BTreeSet::from(names), ..Features::default() }),
            napis: Some((0..QUEUES).map(napi).collect()),
            ..Report::default()
        },
        interrupts: Some((9, 8)),
        errors: 1,
        ..Reading::default()
    };
    let files = &mut reading.report.files;
    files.bus = Some("pci".into());
    files.aspm = Some(Aspm { states: vec!["L1"], l1_exit_us: Some(32), ..Aspm::default() });
    files.virtualisation.is_guest = Some(true);
    files.deferral.gro_flush_timeout = Some(20_000);
    files.deferral.napi_defer_hard_irqs = Some(2);
    files.deferral.threaded = Some(1);
    files.idle.states = vec![IdleState { latency_us: 100, ..IdleState::default() }];
    files.interrupts = (0..QUEUES)
        .map(|number| (Interrupt { number, ..Default::default() }, Affinity::default()))
        .collect();
    files.steering = (0..QUEUES)
        .map(|queue| Steering { direction: Direction::Rx, queue, cpus: vec![1], flows: 1 })
        .collect();
    reading
}

fn values(samples: &[Sample], metric: Metric) -> Vec<(String, Value)> {
    let of_metric = samples.iter().filter(|sample| sample.metric == metric);
    of_metric.map(|it| (it.labels[1..].join(","), it.value.clone())).collect()
}

#[test]
fn no_device_has_more_series_than_the_limit_whatever_it_has() {
    let samples = everything().samples("eth0");
    let metrics: HashSet<_> = samples.iter().map(|sample| sample.metric as u16).collect();
    // Histograms are of requests, and there only with --stages.
    let of_devices = |metric: &&Metric| {
        let family = metric.family();
        family.labels.first() == Some(&"device") && !matches!(family.kind, Kind::Histogram(_))
    };
    let all = Metric::ALL.iter().filter(of_devices).count();
    assert_eq!(metrics.len(), all, "this device lacks a metric, so that it proves nothing");
    // Room for one more metric with two series; nothing was cut off.
    assert!(samples.len() <= MAX_SERIES - 2, "{} series", samples.len());
    let series: BTreeSet<_> = samples.iter().map(|it| (it.metric, it.labels.clone())).collect();
    assert_eq!(series.len(), samples.len(), "a series is there twice");
}

#[test]
fn values_are_those_of_the_kernel_in_base_units() {
    let samples = everything().samples("eth0");
    let of = |metric| values(&samples, metric);
    let one = |value: Value| vec![(String::new(), value)];
    assert_eq!(of(Metric::RxUsecs), one(64e-6.into()));
    assert_eq!(of(Metric::RxCqe), one(64e-9.into()));
    assert_eq!(of(Metric::FlushTimeout), one(20e-6.into()));
    assert_eq!(of(Metric::NapiDeferHardIrqs), one(u64::from(QUEUES - 1).into()));
    assert_eq!(of(Metric::Threaded), one(true.into()));
    let bounds = [("min".into(), 0.0.into()), ("max".into(), (f64::from(QUEUES - 1) / 1e6).into())];
    assert_eq!(of(Metric::QueueRxUsecs), bounds);
    let queues = [("rx".into(), (QUEUES + 1).into()), ("tx".into(), (QUEUES + 2).into())];
    assert_eq!(of(Metric::Queues), queues);
    // 4095 us of a queue are longer than 64 of the device.
    let holds = of(Metric::HoldLimit);
    let longest_first = [
        ("coalescing", 4_095e-6),
        ("napi-deferral", 4_095e-6),
        ("idle-state", 100e-6),
        ("pcie-aspm", 32e-6),
        ("completion-entries", 64e-9),
    ];
    assert_eq!(holds, longest_first.map(|(cause, seconds)| (cause.into(), seconds.into())));
    let unbounded: Vec<String> =
        of(Metric::HoldUnbounded).into_iter().map(|(cause, _)| cause).collect();
    assert_eq!(unbounded, ["irq-suspension", "threaded-napi", "rps", "merging", "hypervisor"]);
    assert_eq!(of(Metric::Offload)[0].0, "on,on,on");
}

#[test]
fn a_device_without_settings_has_counters_and_holds_nothing() {
    let samples = Reading::default().samples("dummy0");
    assert!(values(&samples, Metric::HoldLimit).iter().all(|(_, value)| *value == 0.0.into()));
    assert_eq!(values(&samples, Metric::Packets).len(), 2);
    assert!(values(&samples, Metric::RxUsecs).is_empty());
    assert!(values(&samples, Metric::Interrupts).is_empty());
}

#[test]
fn a_wait_for_frames_without_a_time_is_no_zero() {
    let mut reading = Reading::default();
    let coalescing = Coalesce::new().with(Parameter::RxUsecs, 0).with(Parameter::RxFrames, 64);
    reading.report.coalescing = Some(coalescing);
    let of = |reading: &Reading, metric| values(&reading.samples("eth0"), metric);
    // Nothing is known of the driver.
    assert!(of(&reading, Metric::HoldLimit).iter().all(|(cause, _)| cause != "coalescing"));
    assert_eq!(of(&reading, Metric::HoldUnbounded), [("coalescing".into(), true.into())]);
    reading.report.files.driver = Some("cxgb4".into());
    let endless = ("coalescing".to_owned(), f64::INFINITY.into());
    assert!(of(&reading, Metric::HoldLimit).contains(&endless));
    assert!(of(&reading, Metric::HoldUnbounded).is_empty());
}
