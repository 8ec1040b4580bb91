//! The virtual world: the same experiments on real Linux kernels, in virtual time.
//!
//! Hosts are User-Mode Linux guests. Time is the [calendar](linux::calendar)'s: computing takes
//! none, and what a result says depends on the experiment, the setting and the seed alone. What
//! this world cannot show is what things cost: CPU, and whatever comes of a host that is too slow.
//!
//! Guests are booted for every round. Nothing is told to them while they run, since the moment
//! would differ from run to run: each follows a [script](super::script), and the NIC's settings
//! change by plans of the data plane.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use linux::capture::Capture;
use linux::dataplane::{DataPlane, Handle};
use linux::guest::Guest;
use linux::guest::protocol::{Event, GUEST, Stream};
use linux::lab::names;
use linux::machine::Machine;
use linux::privilege::Privilege;
use linux::snapshot::Snapshot;
use nic::moderation::Moderation;
use nic::time::Instant;

use super::guests::{GuestTime, Guests, kernel_name};
use super::script::{self, GO_AT};
use super::{World, setup};
use crate::environment::{Environment, VIRTUAL};
use crate::experiment::{Plan, Role};
use crate::measurement::{Part, Slice};
use crate::options::{NicOptions, Ports};
use crate::records::{Message, Record};

/// How often, in real time, it is looked whether time has stopped for good.
const GLANCE: Duration = Duration::from_millis(100);

/// The cable where nobody says otherwise: gigabit Ethernet through a switch.
const USUAL_RATE_MBIT: u32 = 1_000;

/// Its latency in microseconds, each way.
const USUAL_LATENCY_US: u32 = 20;

/// Where virtual rounds are played.
pub struct Virtual {
    options: NicOptions,
    environment: Environment,
    /// Whether a round has been captured: the next one begins at time zero again.
    captured: Cell<bool>,
}

impl Virtual {
    /// The world that `options` describe; guests are booted for each round.
    ///
    /// # Errors
    /// If there is no kernel with virtual time, or the options do not go together.
    pub fn new(options: &NicOptions, privilege: Privilege) -> Result<Self> {
        let mut options = options.clone();
        options.link_rate.get_or_insert(USUAL_RATE_MBIT);
        options.link_latency.get_or_insert(USUAL_LATENCY_US);
        let kernel = crate::kernel::find(crate::kernel::Needs::VirtualTime)?;
        let environment = Environment {
            privilege: privilege.to_string(),
            wait: "virtual time".to_owned(),
            mark: setup::rules(&options)?.to_string(),
            link: setup::describe_link(&options),
            congestion_control: "cubic".to_owned(),
            kernel: kernel_name(&kernel),
            ..Environment::read(VIRTUAL)
        };
        Ok(Self { options, environment, captured: Cell::new(false) })
    }
}

impl World for Virtual {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn round(
        &self,
        plan: &Plan,
        moderation: Moderation,
        change_to: Option<Moderation>,
    ) -> Result<Slice> {
        ensure!(
            self.options.pcap.is_none() || !self.captured.replace(true),
            "a capture of virtual time holds one round: give --pcap one setting and one round"
        );
        let scripts = script::of(plan, 2)?;
        let mut stage = Stage::prepare(&names(2), &self.options, scripts, plan.seed)?;
        stage.set(Instant::ZERO, moderation)?;
        let moment = |seconds: f64| instant(GO_AT + Duration::from_secs_f64(seconds));
        let (begin, end) = (moment(plan.warmup_s), moment(plan.warmup_s + plan.duration_s));
        let before = stage.snapshot_at(begin)?;
        if let Some(after) = change_to {
            stage.set(moment(plan.warmup_s + plan.duration_s / 2.0), after)?;
        }
        let after = stage.snapshot_at(end)?;
        stage.boot()?;
        let outputs = stage.play()?;
        let stopped = "virtual time ended before the measurement did";
        let before = before.try_recv().context(stopped)?;
        let nic = after.try_recv().context(stopped)?.since(&before);
        let seconds = nic.at.as_nanos() as f64 / 1e9;
        Ok(Slice { seconds, records: records(plan, &outputs)?, nic })
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// A moment since the calendar's beginning.
fn instant(since: Duration) -> Instant {
    Instant::from_nanos(since.as_nanos() as u64)
}

/// What programs have said, by guest and program.
type Outputs = BTreeMap<(usize, u32), Output>;

/// What one program has said, and how it ended.
#[derive(Debug, Default)]
struct Output {
    out: Vec<u8>,
    err: Vec<u8>,
    end: Option<String>,
}

/// Guests, their NIC and their calendar, for one run.
struct Stage {
    // Dropped in this order: the guests end before their NIC does.
    guests: Vec<Guest>,
    plane: Handle,
    boot_list: Option<super::guests::BootList>,
    ports: Ports,
    pcap: Option<PathBuf>,
}

impl Stage {
    fn prepare(
        names: &[String],
        options: &NicOptions,
        scripts: Vec<Vec<linux::guest::protocol::Cue>>,
        seed: u64,
    ) -> Result<Self> {
        let guests = Guests::prepare(names, options, GuestTime::Virtual { scripts, seed })?;
        let ports: Vec<&str> = guests.plans.iter().map(|plan| plan.name.as_str()).collect();
        let pcap = options.pcap.clone();
        let capture = pcap.as_deref().map(|path| Capture::create_virtual(path, &ports));
        let plane = Handle::start_virtual(guests.plans, guests.calendar, capture.transpose()?)?;
        let ports = options.ports.unwrap_or(Ports::Both);
        let boot_list = Some(guests.boot_list);
        Ok(Self { guests: Vec::new(), plane, boot_list, ports, pcap })
    }

    fn boot(&mut self) -> Result<()> {
        if let Some(list) = self.boot_list.take() {
            self.guests = list.boot()?;
        }
        Ok(())
    }

    /// Puts `moderation` into force on the ports that take it, at a moment to come.
    fn set(&self, at: Instant, moderation: Moderation) -> Result<()> {
        let ports = self.ports;
        self.plane.at(at, move |plane| {
            let numbers = ports.numbers(plane.plane().len());
            numbers.for_each(|number| plane.set_moderation(number, None, moderation));
        })?;
        Ok(())
    }

    fn snapshot_at(&self, at: Instant) -> Result<Receiver<Snapshot>> {
        Ok(self.plane.at(at, |plane: &mut DataPlane| plane.snapshot())?)
    }

    /// Lets the guests play until all have ended; what their programs said.
    fn play(&mut self) -> Result<Outputs> {
        let mut outputs = Outputs::new();
        for number in 0..self.guests.len() {
            loop {
                match self.guests[number].events().recv_timeout(GLANCE) {
                    Ok((GUEST, _)) => {}
                    Ok((program, event)) => {
                        note(outputs.entry((number, program)).or_default(), event);
                    }
                    Err(RecvTimeoutError::Timeout) => self.check()?,
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        }
        self.check()?;
        let capture = self.plane.call(|plane| plane.plane().take_capture())?;
        setup::finish_capture(capture, self.pcap.as_deref())?;
        Ok(outputs)
    }

    /// Whether time can still go on.
    fn check(&self) -> Result<()> {
        let Some(why) = self.plane.call(|plane| plane.failure().map(str::to_owned))? else {
            return Ok(());
        };
        let mut text = why;
        for guest in &self.guests {
            for message in guest.messages() {
                let _ = write!(text, "\n  {}: {message}", guest.name());
            }
        }
        bail!(text)
    }
}

fn note(output: &mut Output, event: Event) {
    match event {
        Event::Output(Stream::Output, bytes) => output.out.extend(bytes),
        Event::Output(Stream::Error, bytes) => output.err.extend(bytes),
        Event::Failed(errno) => {
            let error = std::io::Error::from_raw_os_error(errno);
            output.end = Some(format!("could not be started: {error}"));
        }
        Event::Exited(status) => output.end = Some(format!("ended with status {}", status.code())),
        _ => {}
    }
}

/// What the agents of `plan` measured.
fn records(plan: &Plan, outputs: &Outputs) -> Result<Vec<(Part, Record)>> {
    let mut records = Vec::new();
    let nothing = Output::default();
    for part in script::parts(plan) {
        let output = outputs.get(&(part.host, part.program)).unwrap_or(&nothing);
        let host = &names(part.host + 1)[part.host];
        match &part.player.role {
            Role::Agent(role, _) => {
                let name = format!("{role:?} on guest {host}").to_lowercase();
                records.push((*role, record(&name, output)?));
            }
            Role::Program(words) => {
                let name = words.first().map_or("", String::as_str);
                let end = output.end.as_deref();
                ensure!(end.is_none(), "{name} on guest {host} {}", end.unwrap_or_default());
            }
        }
    }
    Ok(records)
}

/// The record among what an agent said.
fn record(name: &str, output: &Output) -> Result<Record> {
    for line in String::from_utf8_lossy(&output.out).lines() {
        match serde_json::from_str(line) {
            Ok(Message::Record(record)) => return Ok(record),
            Ok(Message::Error { message }) => bail!("{name}: {message}"),
            Ok(Message::Ready { .. }) => {}
            Err(error) => bail!("the agent {name} said `{line}`: {error}"),
        }
    }
    let end = output.end.as_deref().unwrap_or("was still at work when time ended");
    let said = String::from_utf8_lossy(&output.err);
    bail!("the agent {name} {end}, without its record {}", said.trim())
}
