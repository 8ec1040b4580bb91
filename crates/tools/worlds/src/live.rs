//! The live world: hosts made of namespaces, our NIC between them, real time.

use std::fs;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use hostside::trace::PortEvent;
use lab::capture::Capture;
use lab::dataplane::Handle;
use lab::host::Host;
use lab::machine::Machine;
use lab::napi::NapiDriver;
use lab::plane::PortPlan;
use lab::snapshot::Snapshot;
use lab::tap::Tap;
use lab::wait::Waiting;
use lab::{self, Lab, LabSettings};
use nic::moderation::Moderation;
use sys::ctrl_c::{self, Interrupted};
use sys::privilege::Privilege;

use crate::agents::Players;
use crate::guests::{GuestTime, Guests, kernel_name};
use crate::host_settings::Applied;
use crate::setup;
use bench::environment::Environment;
use bench::experiment::Plan;
use bench::options::{Hosts, NicOptions, Ports, Text};
use bench::slice::Slice;
use bench::world::World;
use bench::world::setup::streams;
use lab::control;

const BOOT_WITHIN: Duration = Duration::from_secs(60);

/// How often the players are looked after while they play.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Hosts, a NIC, and a cable or a switch.
pub struct Live {
    // Dropped in this order: who asks the plane, the plane, and last the hosts whose TAPs it
    // reads.
    _control: control::Server,
    plane: Arc<Handle>,
    machines: Vec<Box<dyn Machine>>,
    options: NicOptions,
    environment: Environment,
}

/// The hosts of either kind, with their NIC.
struct Testbed {
    machines: Vec<Box<dyn Machine>>,
    plane: Arc<Handle>,
    control: control::Server,
    congestion_control: String,
    /// That of the guests; namespaces share this machine's.
    kernel: Option<String>,
}

impl Testbed {
    fn namespaces(names: Vec<String>, options: &NicOptions) -> Result<Self> {
        let usual = LabSettings::default();
        let queues = options.queues.unwrap_or(1);
        let mtu = options.mtu.unwrap_or(usual.mtu);
        let Lab { taps, hosts, .. } = Lab::create(&LabSettings { names, queues, mtu, ..usual })?;
        let mut congestion_control = String::new();
        for host in &hosts {
            congestion_control = choose_congestion_control(host)?;
        }
        let plane = start_plane(plans(taps, options)?, options)?;
        let control = control::Server::start(options.name.as_deref(), &plane, &hosts)?;
        let machines = hosts.into_iter().map(|host| Box::new(host) as Box<dyn Machine>).collect();
        Ok(Self { machines, plane, control, congestion_control, kernel: None })
    }

    fn guests(
        names: &[String],
        options: &NicOptions,
        moderation: Option<Moderation>,
    ) -> Result<Self> {
        let guests = Guests::prepare(names, options, moderation, GuestTime::Real)?;
        let plane = start_plane(guests.plans, options)?;
        let control = control::Server::start(options.name.as_deref(), &plane, &[])?;
        let mut booted = guests.boot_list.boot()?;
        let mut machines: Vec<Box<dyn Machine>> = Vec::new();
        for guest in &mut booted {
            guest.await_ready(BOOT_WITHIN)?;
        }
        machines.extend(booted.into_iter().map(|guest| Box::new(guest) as Box<dyn Machine>));
        // That of the configuration which our kernels, and Debian's, are built with.
        let congestion_control = "cubic".to_owned();
        let kernel = Some(kernel_name(&guests.kernel));
        Ok(Self { machines, plane, control, congestion_control, kernel })
    }
}

pub(crate) fn start_plane(plans: Vec<PortPlan>, options: &NicOptions) -> Result<Arc<Handle>> {
    let names: Vec<&str> = plans.iter().map(|plan| plan.name.as_str()).collect();
    let capture = options.pcap.as_deref().map(|path| Capture::create(path, &names)).transpose()?;
    Ok(Arc::new(Handle::start(plans, waiting(options), capture)?))
}

fn waiting(options: &NicOptions) -> Waiting {
    options.wait.as_ref().map_or_else(Waiting::default, |Text(wait)| *wait)
}

impl Live {
    /// Builds the world that `options` describe, with that many hosts.
    pub fn start(hosts: usize, options: &NicOptions, privilege: Privilege) -> Result<Self> {
        Self::with_setting(hosts, options, None, privilege)
    }

    /// The same, with `moderation` in force; drivers of guests know of it.
    pub fn with_setting(
        hosts: usize,
        options: &NicOptions,
        moderation: Option<Moderation>,
        privilege: Privilege,
    ) -> Result<Self> {
        setup::in_real_time(options)?;
        let names = lab::names(hosts);
        let Testbed { machines, plane, control, congestion_control, kernel } =
            match options.hosts.unwrap_or_default() {
                Hosts::Namespaces => Testbed::namespaces(names, options)?,
                Hosts::Count(count) => bail!(
                    "--hosts {count}: that is for bench --world model; say what they are made of: \
                     namespaces or uml"
                ),
                Hosts::Uml => Testbed::guests(&names, options, moderation)?,
            };
        let machine = setup::environment("live", options, privilege)?;
        let environment = Environment {
            wait: waiting(options).to_string(),
            nice: plane.nice(),
            congestion_control,
            kernel: kernel.unwrap_or(machine.kernel),
            ..machine
        };
        let options = options.clone();
        let live = Self { _control: control, plane, machines, options, environment };
        moderation.map_or(Ok(()), |moderation| live.set(moderation))?;
        Ok(live)
    }

    /// The hosts, by number.
    pub fn machines(&self) -> &[Box<dyn Machine>] {
        &self.machines
    }

    /// Puts `moderation` into force on the ports that take it.
    pub fn set(&self, moderation: Moderation) -> Result<()> {
        self.set_ports(self.options.ports.unwrap_or(Ports::Both), moderation)
    }

    /// Puts `moderation` into force on `ports`, whatever the options say.
    pub fn set_ports(&self, ports: Ports, moderation: Moderation) -> Result<()> {
        let lanes = self.options.lanes(moderation);
        Ok(self.plane.call(move |plane| setup::set(plane, ports, moderation, &lanes))?)
    }

    /// What the NIC has counted so far.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let snapshot = self.plane.call(|plane| plane.snapshot())?;
        for (port, machine) in snapshot.ports.iter().zip(&self.machines) {
            if let Some(reason) = &port.vanished {
                bail!(
                    "port {} has vanished ({reason}): its interface was deleted in host {}, or the host ended",
                    port.name,
                    machine.name()
                );
            }
            if let Some(end) = machine.end() {
                bail!("host {} has ended: {end}", machine.name());
            }
            if let Some(why) = port.attachment.as_ref().and_then(|guest| guest.lost.as_ref()) {
                bail!("port {} has lost guest {}: {why}", port.name, machine.name());
            }
        }
        Ok(snapshot)
    }

    /// The last events of each port.
    pub fn events(&self) -> Result<Vec<Vec<PortEvent>>> {
        Ok(self.plane.call(|plane| plane.plane().events())?)
    }

    fn play(
        &self,
        plan: &Plan,
        moderation: Moderation,
        change_to: Option<Moderation>,
    ) -> Result<Slice> {
        let applied = Applied::new(&self.machines, &plan.settings)?;
        let slice = self.play_on(plan, moderation, change_to);
        applied.undo()?;
        slice
    }

    fn play_on(
        &self,
        plan: &Plan,
        moderation: Moderation,
        change_to: Option<Moderation>,
    ) -> Result<Slice> {
        let mut running = Players::start(plan, &self.machines)?;
        let begin = Instant::now();
        let until = |running: &mut Players, seconds: f64| {
            let end = Duration::from_secs_f64(seconds);
            // An agent that has failed says so; there is no need to wait any longer.
            while begin.elapsed() < end && running.is_well() {
                ctrl_c::check()?;
                sleep(end.saturating_sub(begin.elapsed()).min(POLL_INTERVAL));
            }
            Ok::<_, Interrupted>(())
        };
        running.go()?;
        until(&mut running, plan.warmup_s)?;
        let before = self.snapshot()?;
        until(&mut running, plan.warmup_s + plan.duration_s / 2.0)?;
        change_to.map_or(Ok(()), |after| self.set(after))?;
        until(&mut running, plan.warmup_s + plan.duration_s)?;
        let after = self.snapshot()?;
        let records = running.finish(Duration::from_secs_f64(plan.warmup_s + plan.duration_s))?;
        setup::slice([before, after], &self.options, (moderation, change_to), || Ok(records))
    }

    /// Ends the world; the capture, if there is one, is complete afterwards.
    pub fn finish(self) -> Result<()> {
        setup::finish_capture(&self.plane, self.options.pcap.as_deref())
    }
}

impl World for Live {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn round(
        &self,
        plan: &Plan,
        moderation: Moderation,
        change_to: Option<Moderation>,
    ) -> Result<Slice> {
        self.set(moderation)?;
        // What is random in a round is the round's, whatever was played before.
        let seeds = streams(plan.seed);
        self.plane.call(|plane| plane.plane().reseed_links(seeds))?;
        // A host or a port that is gone explains whatever the agents complain of.
        self.play(plan, moderation, change_to).or_else(|error| self.snapshot().and(Err(error)))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        (*self).finish()
    }
}

/// Gives a host cubic, or reno, whatever this machine prefers: BBR, for one, paces by timers of its
/// own. Returns what is in force, since a sandbox may not let us change it.
fn choose_congestion_control(host: &Host) -> Result<String> {
    const FILE: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
    let chosen = host.enter_net(|| {
        // Kernels may keep cubic from other namespaces than their first one; all have reno.
        let _ = fs::write(FILE, "cubic").or_else(|_| fs::write(FILE, "reno"));
        fs::read_to_string(FILE)
    })?;
    Ok(chosen.map_or_else(|_| "unknown".into(), |name| name.trim().to_owned()))
}

fn plans(taps: Vec<Tap>, options: &NicOptions) -> Result<Vec<PortPlan>> {
    let plan = |(number, tap): (usize, Tap)| {
        let name = tap.name().to_owned();
        setup::port_plan(options, number, name, Box::new(NapiDriver::new(tap)))
    };
    taps.into_iter().enumerate().map(plan).collect()
}
