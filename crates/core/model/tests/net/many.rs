//! Many hosts: what is dropped adds up, what waits is small, and a seed is a run.

use base::time::Instant;
use model::frame::Frame;
use network::link::LinkSettings;
use nic::descriptor::Descriptor;
use workload::{
    Counter, PpsReceiverSpec, PpsSenderSpec, Record, RrClientSpec, RrServerSpec, Transport,
    WorkloadSpec,
};

use crate::support::{Experiment, Part, client, server};

const HOSTS: usize = 1_000;
const TO: Instant = Instant::from_micros(2_000);

/// Hosts that all send 10,000 datagrams a second to the first one.
fn incast() -> Vec<Part> {
    let sink = WorkloadSpec::PpsReceiver(PpsReceiverSpec::default());
    let sender = PpsSenderSpec { rate_per_s: Some(10_000), ..PpsSenderSpec::default() };
    let sender = WorkloadSpec::PpsSender(sender);
    let all = (1..HOSTS).map(|host| client(host, (0, 7_000), Transport::Udp, sender.clone()));
    [server(0, 7_000, Transport::Udp, sink)].into_iter().chain(all).collect()
}

fn sent(records: &[Record]) -> u64 {
    records.iter().map(|record| record.counter(Counter::DatagramsSent)).sum()
}

#[test]
fn what_a_thousand_hosts_send_to_one_arrives_or_is_counted_as_lost() {
    let faults = LinkSettings { loss_ppm: 20_000, ..LinkSettings::default() };
    let experiment = Experiment { hosts: HOSTS, to: TO, faults, ..Experiment::default() };
    let (mut world, records) = experiment.play(&incast());
    // What is on its way arrives: a port of the switch has a thousand frames at most.
    world.run(Instant::from_micros(10_000));
    assert_eq!(world.queued(), 0);
    let (polled, lost) = (world.hosts[0].polled, world.lost(0));
    assert_eq!(sent(&records), polled + lost + world.hosts[0].device.counters().ring_full);
    assert!(polled > 2_000 && lost > 10_000, "{polled} of {} arrive", sent(&records));
    assert!((1..HOSTS).all(|host| world.lost(host) == 0));
}

#[test]
fn a_frame_of_a_workload_that_waits_takes_less_than_a_kibibyte() {
    // A slot of a cable or a ring has a time or a descriptor beside the frame.
    let slot = size_of::<Frame>() + size_of::<Descriptor>();
    // Headers of UDP and a number, of TCP, of a message of MX and its first bytes; then filler.
    for (length, head) in [(1_514, 50), (1_514, 54), (9_014, 90)] {
        let mut bytes = vec![b'p'; length];
        bytes[..head].fill(1);
        let takes = slot + Frame::new(&bytes).head().len();
        assert!(takes < 256, "{takes} bytes for {length}");
    }
}

#[test]
fn a_seed_is_a_run_of_all_hosts_with_each_other() {
    let play = |seed| {
        let hosts = 20;
        let spec = RrClientSpec { think_us_max: 100, connections: hosts - 1, ..Default::default() };
        let mut parts = Vec::new();
        for host in 0..hosts {
            let answers = WorkloadSpec::RrServer(RrServerSpec::default());
            parts.push(server(host, 7_000, Transport::Udp, answers));
            let asks = WorkloadSpec::RrClient(spec.clone());
            let mut asker = client(host, (0, 7_000), Transport::Udp, asks);
            let others = (0..hosts).filter(|other| *other != host).collect();
            asker.binding = model::stack::net::Binding::Peers {
                hosts: others,
                port: 7_000,
                connections: hosts - 1,
            };
            parts.push(asker);
        }
        let (world, records) =
            Experiment { hosts, to: TO, seed, ..Experiment::default() }.play(&parts);
        assert!(records.iter().all(|record| record.counter(Counter::BytesReceived) > 100));
        (world.events(), records)
    };
    assert_eq!(play(1), play(1));
    assert_ne!(play(1).1, play(2).1);
}
