//! Hosts that speak IP, on an ideal machine, where times are exact.

mod many;
mod napi;
mod support;

use base::time::Instant;
use model::machine::Machine;
use network::link::LinkSettings;
use support::{Experiment, Part, client, memcached, server};
use workload::{
    BulkReceiverSpec, BulkSenderSpec, Counter, MemcachedClientSpec, NtpClientSpec, NtpServerSpec,
    PpsReceiverSpec, PpsSenderSpec, RrClientSpec, RrServerSpec, Timing, Transport, WorkloadSpec,
};

/// The way of a frame of so many bytes, without FCS: the wire and 20 us.
fn way(bytes: u64) -> i64 {
    (((bytes.max(60) + 24) * 8) + 20_000) as i64
}

fn asks(connections: usize) -> WorkloadSpec {
    WorkloadSpec::RrClient(RrClientSpec { connections, ..RrClientSpec::default() })
}

fn answers(compute_us: u64) -> WorkloadSpec {
    WorkloadSpec::RrServer(RrServerSpec { compute_us, ..RrServerSpec::default() })
}

fn round_trips(transport: Transport) -> [Part; 2] {
    [client(0, (1, 7_000), transport, asks(1)), server(1, 7_000, transport, answers(0))]
}

fn bulk(rate_mbit: Option<u64>) -> [Part; 2] {
    let sender = BulkSenderSpec { rate_mbit, chunk_bytes: 131_072, connections: 1 };
    [
        client(0, (1, 7_001), Transport::Tcp, WorkloadSpec::BulkSender(sender)),
        server(1, 7_001, Transport::Tcp, WorkloadSpec::BulkReceiver(BulkReceiverSpec::default())),
    ]
}

#[test]
fn a_round_trip_takes_wire_latency_and_what_moderation_holds() {
    for (transport, frame) in [(Transport::Udp, 60), (Transport::Tcp, 67)] {
        for (moderation, held) in [("disabled", 0), ("delay:75", 75_000)] {
            let experiment = Experiment { moderation, ..Experiment::default() };
            let (_, records) = experiment.play(&round_trips(transport));
            let latency = records[0].distribution(Timing::Latency);
            let expected = 2 * (way(frame) + held);
            assert_eq!((latency.min_ns, latency.max_ns), (expected, expected), "{moderation}");
            assert_eq!(latency.count, (20_000_000 - 1) / expected as u64, "{moderation}");
        }
    }
}

#[test]
fn a_throttle_of_125_us_gives_8000_round_trips_a_second() {
    let (from, to) = (Instant::from_micros(10_000), Instant::from_micros(110_000));
    let experiment = Experiment { moderation: "throttle:125", from, to, ..Experiment::default() };
    let (_, records) = experiment.play(&round_trips(Transport::Tcp));
    let latency = records[0].distribution(Timing::Latency);
    assert_eq!(latency.quantile_ns(500), 125_000);
    assert_eq!(records[0].counter(Counter::Transactions), 800);
}

#[test]
fn an_echo_is_answered_by_the_kernel() {
    let spec = RrClientSpec { request_bytes: 56, response_bytes: 56, ..RrClientSpec::default() };
    let ping = client(0, (1, 0), Transport::Icmp, WorkloadSpec::RrClient(spec));
    let (_, records) = Experiment::default().play(&[ping]);
    assert_eq!(records[0].distribution(Timing::Latency).min_ns, 2 * way(98));
}

#[test]
fn a_value_is_got_from_memcached() {
    let value_bytes = 4_096;
    let spec = MemcachedClientSpec { value_bytes, ..MemcachedClientSpec::default() };
    let client = client(0, (1, 11_211), Transport::Tcp, WorkloadSpec::MemcachedClient(spec));
    let (_, records) = Experiment::default().play(&[client, memcached(1, 11_211)]);
    // Once the window is open, the first of three segments has the answer's first bytes.
    let latency = records[0].distribution(Timing::Latency);
    assert_eq!(latency.quantile_ns(500), way(66 + 13) + way(1_514));
    assert!(records[0].counter(Counter::Transactions) > 200, "{latency:?}");
    assert_eq!(records[0].counter(Counter::Misses), 0);
}

#[test]
fn long_datagrams_come_in_fragments() {
    let spec = RrClientSpec { request_bytes: 4_000, ..RrClientSpec::default() };
    let server_spec = RrServerSpec { request_bytes: 4_000, ..RrServerSpec::default() };
    let parts = [
        client(0, (1, 7_000), Transport::Udp, WorkloadSpec::RrClient(spec)),
        server(1, 7_000, Transport::Udp, WorkloadSpec::RrServer(server_spec)),
    ];
    let (_, records) = Experiment::default().play(&parts);
    let request = 2 * (1_514 + 24) * 8 + way(34 + 8 + 4_000 - 2 * 1_480);
    assert_eq!(records[0].distribution(Timing::Latency).min_ns, request + way(60));
}

#[test]
fn bulk_fills_the_cable() {
    let (from, to) = (Instant::from_micros(100_000), Instant::from_micros(300_000));
    for moderation in ["disabled", "delay:75"] {
        let experiment = Experiment { moderation, from, to, ..Experiment::default() };
        let (_, records) = experiment.play(&bulk(None));
        let mbit = records[1].counter(Counter::BytesReceived) * 8 / 200_000;
        assert!(mbit > 900, "{moderation}: {mbit} Mbit/s");
    }
}

/// Programs begin at a moment of the simulation, and their windows count from there.
#[test]
fn what_begins_later_measures_the_same() {
    let play = |begins| {
        let (world, records) =
            Experiment { begins, ..Experiment::default() }.play(&round_trips(Transport::Tcp));
        (world.now().since(begins), records)
    };
    assert_eq!(play(Instant::ZERO), play(Instant::from_micros(1_000_000)));
}

#[test]
fn a_loaded_server_works_between_its_answers() {
    let parts = [
        client(0, (1, 7_000), Transport::Tcp, asks(4)),
        server(1, 7_000, Transport::Tcp, answers(110)),
    ];
    let (_, records) = Experiment::default().play(&parts);
    let answered = records[1].counter(Counter::Transactions);
    assert!((180..=182).contains(&answered), "20 ms of 110 us each, but for the first: {answered}");
}

/// Three processes of a server, on cores of their own, take the next request of any client.
#[test]
fn workers_share_what_comes_to_a_port() {
    let machine = Machine { cores: 4, ..Machine::named("ideal").unwrap() };
    for transport in [Transport::Tcp, Transport::Udp] {
        let worker = server(1, 7_000, transport, answers(110));
        let parts =
            [worker.clone(), worker.clone(), worker, client(0, (1, 7_000), transport, asks(8))];
        let experiment = Experiment { machine: machine.clone(), ..Experiment::default() };
        let (_, records) = experiment.play(&parts);
        let of_each = records[..3].iter().map(|record| record.counter(Counter::Transactions));
        for answered in of_each {
            assert!((179..=182).contains(&answered), "20 ms of 110 us each: {answered}");
        }
    }
}

/// 90,000 to 100,000 packets and 55,000 answers a second, and pings of 220 us beside the hold.
#[test]
fn the_odroid_is_as_its_article_says() {
    let experiment = || Experiment {
        machine: Machine::named("odroid").unwrap(),
        from: Instant::from_micros(10_000),
        to: Instant::from_micros(30_000),
        ..Experiment::default()
    };
    let pps = PpsSenderSpec { rate_per_s: Some(150_000), ..PpsSenderSpec::default() };
    let flood = [
        server(1, 7_000, Transport::Udp, WorkloadSpec::PpsReceiver(PpsReceiverSpec::default())),
        client(0, (1, 7_000), Transport::Udp, WorkloadSpec::PpsSender(pps)),
    ];
    let received = experiment().play(&flood).1[0].counter(Counter::DatagramsReceived);
    assert!((1_800..=2_000).contains(&received), "{received} in 20 ms");
    let asked =
        [server(1, 123, Transport::Udp, answers(0)), client(0, (1, 123), Transport::Udp, asks(32))];
    let answered = experiment().play(&asked).1[0].counter(Counter::Transactions);
    assert!((1_045..=1_155).contains(&answered), "{answered} in 20 ms");
    let ping = [client(0, (1, 0), Transport::Icmp, asks(1))];
    let median = experiment().play(&ping).1[0].distribution(Timing::Latency).quantile_ns(500);
    assert!((215_000..225_000).contains(&median), "{median} ns");
}

#[test]
fn packets_and_clocks_pass_unchanged() {
    let pps = PpsSenderSpec { rate_per_s: Some(100_000), ..PpsSenderSpec::default() };
    let ntp = NtpClientSpec { interval_us: 1_000, ..NtpClientSpec::default() };
    let parts = [
        client(0, (1, 7_000), Transport::Udp, WorkloadSpec::PpsSender(pps)),
        client(0, (1, 123), Transport::Udp, WorkloadSpec::NtpClient(ntp)),
        server(1, 7_000, Transport::Udp, WorkloadSpec::PpsReceiver(PpsReceiverSpec::default())),
        server(1, 123, Transport::Udp, WorkloadSpec::NtpServer(NtpServerSpec::default())),
    ];
    let (_, records) = Experiment::default().play(&parts);
    assert_eq!(records[0].counter(Counter::DatagramsSent), 2_000);
    assert_eq!(records[2].counter(Counter::DatagramsReceived), 1_998);
    let offset = records[1].distribution(Timing::Offset);
    assert!(offset.count >= 19 && offset.max_ns.abs() <= 1_000, "{offset:?}");
}

#[test]
fn invalid_frames_are_dropped() {
    let flood = WorkloadSpec::FrameSender(workload::FrameSenderSpec::default());
    let binding = model::stack::net::Binding::Interface;
    let part = Part { binding, ..client(0, (1, 0), Transport::Packet, flood) };
    let (world, records) = Experiment::default().play(&[part]);
    let sent = records[0].counter(Counter::DatagramsSent);
    // 152 bytes each on the wire.
    assert!((16_400..16_500).contains(&sent), "{sent}");
    assert!(world.hosts[1].polled > 16_400);
}

#[test]
fn losses_are_recovered() {
    let faults = LinkSettings { loss_ppm: 1_000, ..LinkSettings::default() };
    let to = Instant::from_micros(2_000_000);
    let experiment = Experiment { faults, to, ..Experiment::default() };
    let (world, records) = experiment.play(&bulk(None));
    assert!(world.lost(1) > 10);
    let mbit = records[1].counter(Counter::BytesReceived) * 8 / 2_000_000;
    assert!(mbit > 100, "{mbit} Mbit/s");
}

#[test]
fn a_seed_is_a_run() {
    let [bulk_sender, bulk_receiver] = bulk(Some(300));
    let [asker, answerer] = round_trips(Transport::Tcp);
    let parts = [asker, bulk_sender, answerer, bulk_receiver];
    let faults = LinkSettings { loss_ppm: 5_000, ..LinkSettings::default() };
    for name in Machine::names() {
        let play = |seed| {
            let (machine, faults) = (Machine::named(name).unwrap(), faults.clone());
            let experiment = Experiment { machine, faults, seed, ..Experiment::default() };
            let (world, records) = experiment.play(&parts);
            (world.events(), records)
        };
        assert_eq!(play(1), play(1), "{name}");
        assert_ne!(play(1).0, play(2).0, "{name}");
    }
}

#[test]
fn clients_of_one_server_share_its_cable() {
    let mut parts = vec![server(0, 7_000, Transport::Tcp, answers(0))];
    parts.extend((1..9).map(|host| client(host, (0, 7_000), Transport::Tcp, asks(1))));
    let (world, records) = Experiment { hosts: 9, ..Experiment::default() }.play(&parts);
    // Nothing is flooded: each host polls its own packets.
    assert!(
        (1..9).all(
            |host| world.hosts[host].polled <= 2 + records[host].counter(Counter::Transactions)
        )
    );
    let latencies: Vec<i64> =
        records[1..].iter().map(|it| it.distribution(Timing::Latency).max_ns).collect();
    // The switch forwards whole frames: the wire is taken twice each way, by at most 8.
    let least = 2 * (way(60) + 672);
    assert!(latencies.iter().all(|it| (least..=least + 2 * 8 * 672).contains(it)), "{latencies:?}");
}

#[test]
fn incast_overflows_the_switch_and_goes_on() {
    let sink = WorkloadSpec::BulkReceiver(BulkReceiverSpec::default());
    let mut parts = vec![server(0, 7_001, Transport::Tcp, sink)];
    let sender = BulkSenderSpec::default();
    let sender = WorkloadSpec::BulkSender(sender);
    parts.extend((1..9).map(|host| client(host, (0, 7_001), Transport::Tcp, sender.clone())));
    let to = Instant::from_micros(1_000_000);
    let (world, records) =
        Experiment { hosts: 9, to, switch_queue: 64, ..Experiment::default() }.play(&parts);
    assert!(world.lost(0) > 0);
    let mbit = records[0].counter(Counter::BytesReceived) * 8 / 1_000_000;
    assert!(mbit > 300, "{mbit} Mbit/s");
}
