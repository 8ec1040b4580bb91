//! Who polls without interrupts, on an ideal machine, against what guests in virtual time do.

use crate::support::{Experiment, Part, client, server};
use base::time::{Duration, Instant};
use model::machine::Machine;
use model::napi::{BusyPolling, NapiSettings, NapiThread};
use workload::{
    BulkReceiverSpec, BulkSenderSpec, Counter, RrClientSpec, RrServerSpec, Timing, Transport,
    WorkloadSpec,
};

/// The kernel's timer, its deferrals, and how long interrupts are suspended.
fn deferred(suspended_ms: u64, busy: Option<(u64, bool)>) -> NapiSettings {
    NapiSettings {
        defer_hard_irqs: 2,
        flush_timeout: Duration::from_micros(20),
        suspend_timeout: Duration::from_millis(suspended_ms),
        ..busy_for(busy)
    }
}

fn busy_for(busy: Option<(u64, bool)>) -> NapiSettings {
    let busy =
        busy.map(|(usecs, prefer)| BusyPolling { lasts: Duration::from_micros(usecs), prefer });
    NapiSettings { busy, ..NapiSettings::default() }
}

fn by_thread(thread: NapiThread) -> NapiSettings {
    NapiSettings { thread: Some(thread), ..NapiSettings::default() }
}

/// Requests on a schedule to a server that works 20 us on each.
fn asked(rate: u32) -> [Part; 2] {
    let asks =
        RrClientSpec { connections: 8, rate_per_s: Some(rate.into()), ..RrClientSpec::default() };
    let answers = RrServerSpec { compute_us: 20, ..RrServerSpec::default() };
    [
        client(0, (1, 7_000), Transport::Tcp, WorkloadSpec::RrClient(asks)),
        server(1, 7_000, Transport::Tcp, WorkloadSpec::RrServer(answers)),
    ]
}

/// `docs/results/polling.json` has the interrupts of guests: those of the server are none or one
/// for each request, as here, and the latencies are within a few looks at a clock.
#[test]
fn interrupts_are_deferred_and_suspended_as_in_guests() {
    let modes = [
        ("epoll", NapiSettings::default(), [61, 61, 61], [true, true, true]),
        ("defer:20", deferred(0, None), [61, 61, 70], [true, true, false]),
        ("busy:200", busy_for(Some((200, false))), [61, 61, 61], [true, true, true]),
        ("suspend:20", deferred(20, Some((0, true))), [61, 66, 70], [true, false, false]),
        ("so-busy-poll:200", deferred(0, Some((200, true))), [61, 61, 61], [true, false, false]),
        ("threaded", by_thread(NapiThread::Woken), [61, 61, 61], [true, true, true]),
        ("threaded-busy", by_thread(NapiThread::Polling), [61, 61, 61], [false, false, false]),
    ];
    let (from, to) = (Instant::from_micros(20_000), Instant::from_micros(120_000));
    for (name, napi, means, interrupts) in modes {
        for ((rate, mean), has_interrupts) in
            [1_000, 20_000, 45_000].into_iter().zip(means).zip(interrupts)
        {
            let experiment = Experiment { napi, from, to, ..Experiment::default() };
            let (world, records) = experiment.play(&asked(rate));
            let latency = records[0].distribution(Timing::Latency);
            assert_eq!(
                latency.sum_ns as u64 / latency.count / 1_000,
                mean,
                "{name}, {rate}/s: {latency:?}"
            );
            let raised: u64 = world.hosts[1].device.counters().interrupts.iter().sum();
            // What was before the window is among them.
            let one_each = u64::from(rate) * 12 / 100;
            let expected = if has_interrupts { one_each - 2..=one_each } else { 1..=30 };
            assert!(expected.contains(&raised), "{name}, {rate}/s: {raised} interrupts");
        }
    }
}

/// What is in a lane waits for nothing, and the rest as the setting says.
#[test]
fn packets_of_a_lane_interrupt_at_once() {
    let p50 = |moderation, lanes| {
        let experiment = Experiment { moderation, lanes, ..Experiment::default() };
        let latency = experiment.play(&asked(1_000)).1[0].distribution(Timing::Latency);
        latency.quantile_ns(500)
    };
    let at_once = p50("disabled", None);
    assert_eq!(p50("lane:75", Some("tcp-port=7000")), at_once);
    assert_eq!(p50("lane:75", Some("tcp-port=7001")), p50("delay:75", None));
    assert!(p50("delay:75", None) > at_once + 140_000);
}

/// A thread that never sleeps has a core for itself; one that sleeps pays for each wake-up.
#[test]
fn threads_that_poll_cost_a_core_or_a_wake_up() {
    let (from, to) = (Instant::from_micros(20_000), Instant::from_micros(120_000));
    let machine = Machine::named("server").unwrap();
    let [softirq, woken, polling] =
        [None, Some(NapiThread::Woken), Some(NapiThread::Polling)].map(|thread| {
            let napi = NapiSettings { thread, ..NapiSettings::default() };
            let machine = machine.clone();
            let experiment = Experiment { machine, napi, from, to, ..Experiment::default() };
            let (world, records) = experiment.play(&asked(20_000));
            let latency = records[0].distribution(Timing::Latency);
            (latency.sum_ns / latency.count as i64, world.hosts[1].busy().softirqs)
        });
    let wake = machine.constants.costs.wake as i64;
    assert!(woken.0 > softirq.0 + wake / 2, "{woken:?} beside {softirq:?}");
    assert!(polling.0 < softirq.0, "{polling:?} beside {softirq:?}");
    let core = to.since(Instant::ZERO).as_nanos();
    // The look that is going on counts as a whole.
    assert!((core * 99 / 100..=core + 1_000).contains(&polling.1), "{polling:?} of {core}");
    assert!(woken.1 > softirq.1 && woken.1 < core / 2, "{woken:?} beside {softirq:?}");
}

#[test]
fn two_programs_that_poll_one_queue_have_their_packets() {
    let bulk = BulkSenderSpec { rate_mbit: Some(300), chunk_bytes: 4_096, connections: 1 };
    let [asker, answerer] = asked(1_000);
    let parts = [
        asker,
        client(0, (1, 7_001), Transport::Tcp, WorkloadSpec::BulkSender(bulk)),
        answerer,
        server(1, 7_001, Transport::Tcp, WorkloadSpec::BulkReceiver(BulkReceiverSpec::default())),
    ];
    let to = Instant::from_micros(100_000);
    for (name, napi) in [
        ("busy", busy_for(Some((200, false)))),
        ("suspend", deferred(20, Some((0, true)))),
        ("so-busy-poll", deferred(0, Some((200, true)))),
    ] {
        for machine in ["ideal", "server"].map(|it| Machine::named(it).unwrap()) {
            let (_, records) =
                Experiment { machine: machine.clone(), napi, to, ..Experiment::default() }
                    .play(&parts);
            assert!(records[0].counter(Counter::Transactions) >= 98, "{name}: {:?}", records[0]);
            let mbit = records[3].counter(Counter::BytesReceived) * 8 / 100_000;
            assert!((290..=301).contains(&mbit), "{name}: {mbit} Mbit/s");
        }
    }
}
