//! The live world: hosts made of namespaces, our NIC between them, real time.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use linux::capture::Capture;
use linux::dataplane::{DataPlane, Handle};
use linux::host::Host;
use linux::lab::{self, Lab, LabSettings};
use linux::plane::PortPlan;
use linux::played::PlayedDriver;
use linux::privilege::Privilege;
use linux::snapshot::Snapshot;
use linux::tap::Tap;
use linux::trace::Event;
use linux::wait::Waiting;
use nic::link::LinkSettings;
use nic::marker::Rules;
use nic::moderation::Moderation;
use nic::port::PortSettings;
use nic::queue::Dma;

use super::World;
use super::agents::Cast;
use crate::control;
use crate::environment::Environment;
use crate::experiment::Plan;
use crate::measurement::Slice;
use crate::options::{NicOptions, Ports, Text};

/// Which packets are marked where the user does not say: those of MX that ask for it, and short
/// pushed TCP segments, which is what requests and answers look like, and bulk data and
/// acknowledgements do not.
pub const USUAL_RULES: &str = "mx, tcp-psh & length<=512";

/// How often the players are looked after while they play.
const GLANCE: Duration = Duration::from_millis(100);

/// Hosts, a NIC, and a cable or a switch.
pub struct Live {
    // Dropped in this order: who asks the plane, the plane, and last the hosts whose TAPs it
    // reads.
    _control: control::server::Server,
    plane: Arc<Handle>,
    hosts: Vec<Host>,
    ports: Ports,
    environment: Environment,
    pcap: Option<PathBuf>,
}

impl Live {
    /// Builds the world that `options` describe, with that many hosts.
    ///
    /// # Errors
    /// If the options do not go together, or the system refuses a part of it.
    pub fn start(hosts: usize, options: &NicOptions, privilege: Privilege) -> Result<Self> {
        let usual = LabSettings::default();
        let queues = options.queues.unwrap_or(1);
        let mtu = options.mtu.unwrap_or(usual.mtu);
        let settings = LabSettings { names: lab::names(hosts), queues, mtu, ..usual };
        let Lab { taps, hosts, .. } = Lab::create(&settings)?;
        let mut congestion_control = String::new();
        for host in &hosts {
            congestion_control = choose_congestion_control(host)?;
        }
        let names: Vec<_> = taps.iter().map(|tap| tap.name().to_owned()).collect();
        let ports: Vec<_> = names.iter().map(String::as_str).collect();
        let capture =
            options.pcap.as_deref().map(|path| Capture::create(path, &ports)).transpose()?;
        let waiting = options.wait.as_ref().map_or_else(Waiting::default, |Text(wait)| *wait);
        let plans = plans(taps, options)?;
        let plane = Arc::new(Handle::start(plans, waiting, capture)?);
        let control = control::server::Server::start(options.name.as_deref(), &plane, &hosts)?;
        let environment = Environment {
            privilege: privilege.to_string(),
            wait: waiting.to_string(),
            mark: rules(options)?.to_string(),
            link: describe_link(options),
            congestion_control,
            ..Environment::read("live")
        };
        let ports = options.ports.unwrap_or(Ports::Both);
        Ok(Self { plane, _control: control, hosts, ports, environment, pcap: options.pcap.clone() })
    }

    /// The hosts.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Puts `moderation` into force on the ports that take it.
    ///
    /// # Errors
    /// If the data plane has ended.
    pub fn set(&self, moderation: Moderation) -> Result<()> {
        let numbers = self.ports.numbers(self.hosts.len());
        let set = move |plane: &mut DataPlane| {
            numbers.for_each(|number| plane.set_moderation(number, None, moderation));
        };
        Ok(self.plane.call(set)?)
    }

    /// What the NIC has counted so far.
    ///
    /// # Errors
    /// If the data plane has ended, or a port has vanished.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let snapshot = self.plane.call(|plane| plane.snapshot())?;
        for (port, host) in snapshot.ports.iter().zip(&self.hosts) {
            if let Some(reason) = &port.vanished {
                bail!(
                    "port {} has vanished ({reason}): its interface was deleted in host {}, or the host ended",
                    port.name,
                    host.name()
                );
            }
            if !host.is_alive() {
                bail!(
                    "host {} has ended: its holder, process {}, was killed",
                    host.name(),
                    host.pid()
                );
            }
        }
        Ok(snapshot)
    }

    /// The last events of each port.
    ///
    /// # Errors
    /// If the data plane has ended.
    pub fn events(&self) -> Result<Vec<Vec<Event>>> {
        Ok(self.plane.call(|plane| plane.plane().events())?)
    }

    fn play(&self, plan: &Plan, change_to: Option<Moderation>) -> Result<Slice> {
        let mut cast = Cast::start(&plan.players, &self.hosts)?;
        let begin = Instant::now();
        let until = |cast: &mut Cast, seconds: f64| {
            let end = Duration::from_secs_f64(seconds);
            // Whoever has failed will say so; nobody needs to wait for that.
            while begin.elapsed() < end && cast.is_well() {
                sleep(end.saturating_sub(begin.elapsed()).min(GLANCE));
            }
        };
        cast.go()?;
        until(&mut cast, plan.warmup_s);
        let before = self.snapshot()?;
        until(&mut cast, plan.warmup_s + plan.duration_s / 2.0);
        change_to.map_or(Ok(()), |after| self.set(after))?;
        until(&mut cast, plan.warmup_s + plan.duration_s);
        let nic = self.snapshot()?.since(&before);
        let seconds = nic.at.as_nanos() as f64 / 1e9;
        let records = cast.finish(Duration::from_secs_f64(plan.warmup_s + plan.duration_s))?;
        Ok(Slice { seconds, records, nic })
    }

    /// Ends the world; the capture, if there is one, is complete afterwards.
    ///
    /// # Errors
    /// If the capture could not be written.
    pub fn finish(self) -> Result<()> {
        let capture = self.plane.call(|plane| plane.plane().take_capture())?;
        finish_capture(capture, self.pcap.as_deref())
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
        // A host or a port that is gone explains whatever the agents complain of.
        self.play(plan, change_to).or_else(|error| self.snapshot().and(Err(error)))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        (*self).finish()
    }
}

/// Completes a capture, if there is one, and says where it is.
///
/// # Errors
/// If it could not be written.
pub(super) fn finish_capture(capture: Option<Capture>, path: Option<&Path>) -> Result<()> {
    let Some(capture) = capture else { return Ok(()) };
    let missed = capture.finish()?;
    eprintln!("capture: {}", path.unwrap_or(Path::new("")).display());
    if missed > 0 {
        eprintln!("{missed} frames are missing from it: the disk was too slow");
    }
    Ok(())
}

/// Gives a host cubic, or reno, whatever this machine prefers: BBR, for one, paces by timers of its
/// own. Returns what is in force, since a sandbox may not let us change it.
fn choose_congestion_control(host: &Host) -> Result<String> {
    const FILE: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
    let chosen = host.enter_net(|| {
        // Kernels may keep cubic from other namespaces than their first one; reno is everybody's.
        let _ = fs::write(FILE, "cubic").or_else(|_| fs::write(FILE, "reno"));
        fs::read_to_string(FILE)
    })?;
    Ok(chosen.map_or_else(|_| "unknown".into(), |name| name.trim().to_owned()))
}

/// The marking rules that `options` name, or the usual ones.
///
/// # Errors
/// Never for rules that have been parsed; the usual ones are.
pub fn rules(options: &NicOptions) -> Result<Rules> {
    match &options.mark {
        Some(Text(rules)) => Ok(rules.clone()),
        None => USUAL_RULES.parse().context("the usual marking rules"),
    }
}

fn plans(taps: Vec<Tap>, options: &NicOptions) -> Result<Vec<PortPlan>> {
    let rules = rules(options)?;
    let plan = |(number, tap): (u64, Tap)| PortPlan {
        name: tap.name().to_owned(),
        settings: PortSettings {
            queues: options.queues.unwrap_or(1),
            ring: options.ring.unwrap_or(1_024) as usize,
            moderation: Moderation::DISABLED,
            rules: rules.clone(),
            dma: Dma { latency: micros(options.dma_latency), ..Dma::default() },
            transmit_interrupts: options.transmit_interrupts.unwrap_or(false),
        },
        link: link(options, number),
        host: Box::new(PlayedDriver::new(tap)),
    };
    Ok((0..).zip(taps).map(plan).collect())
}

/// The cable in one direction; each direction has a stream of random numbers of its own.
fn link(options: &NicOptions, direction: u64) -> LinkSettings {
    let ppm = |percent: Option<f64>| (percent.unwrap_or(0.0) * 10_000.0).round() as u32;
    LinkSettings {
        rate_mbit: options.link_rate,
        latency: micros(options.link_latency),
        loss_ppm: ppm(options.link_loss),
        duplicate_ppm: ppm(options.link_duplicate),
        reorder_ppm: ppm(options.link_reorder),
        reorder_delay: micros(options.link_reorder_delay.or(Some(100))),
        seed: options.seed.unwrap_or(1) * 2 + direction,
    }
}

/// A span that an option gives in microseconds; none without it.
fn micros(value: Option<u32>) -> nic::time::Duration {
    nic::time::Duration::from_micros(value.unwrap_or(0).into())
}

fn describe_link(options: &NicOptions) -> String {
    let rate = options.link_rate.map_or("any rate".into(), |rate| format!("{rate} Mbit/s"));
    let mut text = format!("{rate}, latency {} us", options.link_latency.unwrap_or(0));
    let faults = [
        ("loss", options.link_loss),
        ("duplication", options.link_duplicate),
        ("reordering", options.link_reorder),
    ];
    for (name, percent) in faults {
        if let Some(percent) = percent.filter(|percent| *percent > 0.0) {
            text += &format!(", {name} {percent} %");
        }
    }
    text
}
