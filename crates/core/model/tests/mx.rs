//! Workloads at endpoints of MX, on an ideal machine.

use base::time::{Duration, Instant};
use model::machine::Machine;
use model::stack::driver::WorkloadDriver;
use model::stack::mx::{EndpointSpec, MxStack, stacks};
use model::stack::mx_program::WorkloadProgram;
use model::world::{Settings, Simulation};
use mx::config::Config;
use network::link::LinkSettings;
use workload::{
    BulkReceiverSpec, BulkSenderSpec, Counter, Record, RrClientSpec, RrServerSpec, Timing,
    Transport, Window, WorkloadSpec,
};

const END: Instant = Instant::from_micros(50_000);

fn endpoint(host: usize, workload: &WorkloadSpec, bytes: u64, in_flight: usize) -> EndpointSpec {
    let window = Window { start: Instant::ZERO, end: END };
    let machine = workload.build(Transport::Mx.framing(), 1);
    let driver = WorkloadDriver::new(machine, window, WorkloadProgram::KEEPS, false);
    EndpointSpec {
        host,
        core: 0,
        endpoint: 1,
        config: Config { mtu: 9_000, ..Config::default() },
        peers: vec![1 - host],
        receives: (8, bytes),
        program: Box::new(WorkloadProgram::new(driver, (workload.connections(), 1), in_flight)),
    }
}

/// What two workloads record, each on a host of its own, whose messages have at most so many bytes.
fn converse(workloads: [&WorkloadSpec; 2], bytes: u64, in_flight: usize) -> [Record; 2] {
    let [first, second] = workloads;
    let endpoints = vec![endpoint(0, first, bytes, in_flight), endpoint(1, second, bytes, 0)];
    let stacks = stacks(2, &Machine::named("ideal").unwrap(), endpoints).unwrap();
    let settings = Settings {
        machine: Machine::named("ideal").unwrap(),
        hosts: Vec::new(),
        faults: LinkSettings::default(),
        switch_queue: 64,
        seed: 1,
    };
    let mut world: Simulation<MxStack> =
        Simulation::new(&settings, stacks.into_iter().map(|stack| (stack, ())));
    world.run(END);
    [0, 1].map(|host| {
        let program: &mut WorkloadProgram = world.hosts[host].stack.program(0).unwrap();
        assert_eq!(program.driver.failure(), None);
        program.driver.record(workloads[host], 0)
    })
}

#[test]
fn round_trips_of_several_connections_take_wire_and_latency() {
    let (request_bytes, response_bytes) = (0, 0);
    let client = RrClientSpec { request_bytes, response_bytes, ..RrClientSpec::default() };
    let server = RrServerSpec { request_bytes, response_bytes, compute_us: 0 };
    let server = WorkloadSpec::RrServer(server);
    for connections in [1, 3] {
        let client = WorkloadSpec::RrClient(RrClientSpec { connections, ..client.clone() });
        let [asked, answered] = converse([&client, &server], 0, 0);
        let latency = asked.distribution(Timing::Latency);
        // The shortest frame occupies the wire for 84 bytes' time, and travels for 20 us.
        assert_eq!(latency.min_ns, 2 * (672 + 20_000));
        assert_eq!(asked.counter(Counter::Lost), 0);
        let answers = asked.counter(Counter::MessagesReceived);
        assert!(answered.counter(Counter::MessagesReceived) - answers <= connections as u64);
        assert!(answers > 1_200 * connections as u64, "{answers}");
    }
}

#[test]
fn a_stream_has_transfers_and_fills_the_cable() {
    let chunk_bytes = 1 << 20;
    let sender =
        WorkloadSpec::BulkSender(BulkSenderSpec { chunk_bytes, ..BulkSenderSpec::default() });
    let receiver = WorkloadSpec::BulkReceiver(BulkReceiverSpec::default());
    let [sent, received] = converse([&sender, &receiver], chunk_bytes as u64, 2);
    let mbit = received.counter(Counter::MessageBytes) * 8 * 1_000 / END.as_nanos();
    assert!(mbit > 800, "{mbit} Mbit/s");
    assert!(sent.distribution(Timing::Transfer).count >= 4);
    let longest = Duration::from_nanos(sent.distribution(Timing::Transfer).max_ns as u64);
    assert!(longest < Duration::from_millis(20), "{longest}");
}
