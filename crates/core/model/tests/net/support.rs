//! Programs on hosts of an ideal machine.

use base::time::Instant;
use model::device::NicSettings;
use model::machine::{Costs, Machine};
use model::napi::NapiSettings;
use model::stack::Process;
use model::stack::driver::WorkloadDriver;
use model::stack::net::{Binding, NetStack, ProgramSpec, stacks};
use model::world::{Settings, Simulation};
use network::link::LinkSettings;
use nic::lanes::Lanes;
use workload::{
    Framing, MemcachedServer, Record, RrServerSpec, Transport, Window, Workload, WorkloadSpec,
};

/// A workload on a host.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) host: usize,
    pub(crate) transport: Transport,
    pub(crate) binding: Binding,
    pub(crate) workload: WorkloadSpec,
    pub(crate) build: fn(&WorkloadSpec, Framing, u64) -> Box<dyn Workload>,
}

/// A server of a workload at a port.
pub(crate) fn server(host: usize, port: u16, transport: Transport, workload: WorkloadSpec) -> Part {
    Part { host, transport, binding: Binding::Port(port), workload, build: WorkloadSpec::build }
}

/// A client of the server at a port of another host.
pub(crate) fn client(
    host: usize,
    to: (usize, u16),
    transport: Transport,
    workload: WorkloadSpec,
) -> Part {
    let connections = workload.connections();
    let binding = Binding::Peers { hosts: vec![to.0], port: to.1, connections };
    Part { host, transport, binding, workload, build: WorkloadSpec::build }
}

/// A memcached server, which has no specification of its own.
pub(crate) fn memcached(host: usize, port: u16) -> Part {
    let nominal = WorkloadSpec::RrServer(RrServerSpec::default());
    let build = |_: &WorkloadSpec, _, _| Box::new(MemcachedServer::new()) as Box<dyn Workload>;
    Part { build, ..server(host, port, Transport::Tcp, nominal) }
}

/// Hosts, what is between them, and for how long programs run.
pub(crate) struct Experiment {
    pub(crate) machine: Machine,
    pub(crate) moderation: &'static str,
    /// Rules of lanes; with them, NICs have two queues.
    pub(crate) lanes: Option<&'static str>,
    pub(crate) faults: LinkSettings,
    pub(crate) switch_queue: usize,
    pub(crate) hosts: usize,
    /// When programs begin, from which the window counts.
    pub(crate) begins: Instant,
    /// How all hosts but the first one poll.
    pub(crate) napi: NapiSettings,
    /// The first moment that counts, and the first one that does not.
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    pub(crate) seed: u64,
}

impl Default for Experiment {
    fn default() -> Self {
        Self {
            machine: Machine::named("ideal").unwrap(),
            moderation: "disabled",
            lanes: None,
            faults: LinkSettings::default(),
            switch_queue: 256,
            hosts: 2,
            begins: Instant::ZERO,
            napi: NapiSettings::default(),
            from: Instant::ZERO,
            to: Instant::from_micros(20_000),
            seed: 1,
        }
    }
}

impl Experiment {
    /// The simulation at the end of the window, and what each part has recorded.
    pub(crate) fn play(&self, parts: &[Part]) -> (Simulation<NetStack>, Vec<Record>) {
        let program = |(number, part): (usize, &Part)| {
            let framing = part.transport.framing();
            let workload = (part.build)(&part.workload, framing, self.seed + number as u64);
            let window = Window { start: self.from, end: self.to };
            ProgramSpec {
                host: part.host,
                process: Process { core: number % self.machine.cores, blocks: true },
                transport: part.transport,
                binding: part.binding.clone(),
                driver: WorkloadDriver::new(workload, window, usize::MAX, false)
                    .beginning_at(self.begins),
            }
        };
        let programs = parts.iter().enumerate().map(program).collect();
        let nic = NicSettings {
            moderation: self.moderation.parse().unwrap(),
            lanes: self.lanes.map_or(Lanes::NONE, |lanes| lanes.parse().unwrap()),
            queues: if self.lanes.is_some() { 2 } else { 1 },
            ..NicSettings::default()
        };
        let costs: Costs = self.machine.constants.costs;
        let settings = Settings {
            machine: self.machine.clone(),
            hosts: vec![(nic.clone(), costs), (NicSettings { napi: self.napi, ..nic }, costs)],
            faults: self.faults.clone(),
            switch_queue: self.switch_queue,
            seed: self.seed,
        };
        let stacks = stacks(self.hosts, self.seed, programs);
        let mut world = Simulation::new(&settings, stacks.into_iter().map(|stack| (stack, ())));
        world.run(self.to + self.begins.since(Instant::ZERO));
        let mut numbers = vec![0; self.hosts];
        let mut records = Vec::new();
        for part in parts {
            let driver = world.hosts[part.host].stack.driver(numbers[part.host]).unwrap();
            numbers[part.host] += 1;
            assert_eq!(driver.failure(), None, "{:?}", part.workload);
            records.push(driver.record(&part.workload, 0));
        }
        (world, records)
    }
}
