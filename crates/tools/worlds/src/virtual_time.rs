//! The virtual world: the same experiments on real Linux kernels, in virtual time.
//!
//! Hosts are User-Mode Linux guests. Time is the [calendar](lab::calendar)'s: computing takes
//! none, and what a result says depends on the experiment, the setting and the seed alone. What
//! this world cannot show is what things cost: CPU, and whatever comes of a host that is too slow.
//!
//! Guests are booted for every round. Nothing is sent to them while they run, since the moment
//! would differ from run to run: each follows a script (`script.rs`), and the NIC's settings
//! change by plans of the data plane.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lab::guest::protocol::{GuestEvent, OutputStream};
use lab::names;
use lab::snapshot::Snapshot;
use nic::moderation::Moderation;
use sys::privilege::Privilege;
use workload::Record;

use crate::guests::kernel_name;
use crate::script;
use crate::virtual_run::{VirtualRun, instant, with_usual_cable};
use crate::{host_settings, setup};
use bench::costs;
use bench::environment::{Environment, VIRTUAL};
use bench::experiment::{A, B, Plan, Role};
use bench::options::NicOptions;
use bench::records::AgentMessage;
use bench::slice::{MissingProgram, NotMeasured, Part, Slice};
use bench::world::World;

/// Where virtual rounds are played.
pub struct Virtual {
    options: NicOptions,
    environment: Environment,
    /// Whether a round has been captured: the next one begins at time zero again.
    captured: Cell<bool>,
    /// Whether the user knows that rounds take long.
    warned: Cell<bool>,
}

impl Virtual {
    /// The world that `options` describe; guests are booted for each round.
    pub fn new(options: &NicOptions, privilege: Privilege) -> Result<Self> {
        setup::mtu(options)?;
        let options = with_usual_cable(options);
        let kernel = lab::kernel::find(lab::kernel::Needs::VirtualTime)?;
        let environment = Environment {
            wait: "virtual time".to_owned(),
            interrupt_latency_us: Some(options.interrupt_latency.unwrap_or(0)),
            costs: costs::describe([A, B].map(|host| options.costs_of(host))),
            congestion_control: "cubic".to_owned(),
            kernel: kernel_name(&kernel),
            ..setup::environment(VIRTUAL, &options, privilege)?
        };
        Ok(Self { options, environment, captured: Cell::new(false), warned: Cell::new(false) })
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
        let scripts = (script::of(plan, &self.options)?, vec![A, B]);
        // Cable and ticks differ from round to round, as the guests do.
        let options = NicOptions { seed: Some(plan.seed), ..self.options.clone() };
        let mut run = VirtualRun::prepare(&names(2), &options, moderation, scripts, plan.seed)?;
        let go_at = script::go_at(&options);
        let moment = |seconds: f64| instant(go_at + Duration::from_secs_f64(seconds));
        let (begin, end) = (moment(plan.warmup_s), moment(plan.warmup_s + plan.duration_s));
        let before = run.snapshot_at(begin)?;
        if let Some(after) = change_to {
            run.set(moment(plan.warmup_s + plan.duration_s / 2.0), after)?;
        }
        let after = run.snapshot_at(end)?;
        if !self.warned.get() {
            run.watch_eta(moment(0.0), end);
        }
        let outputs = play(&mut run)?;
        self.warned.set(self.warned.get() || run.has_eta_reported());
        let snapshots = [taken(&before)?, taken(&after)?];
        setup::slice(snapshots, &options, (moderation, change_to), || records(plan, &outputs))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Plays to the end of time; what programs have written.
pub(crate) fn play(run: &mut VirtualRun) -> Result<Outputs> {
    let mut outputs = Outputs::new();
    run.play(&mut |guest, program, event| {
        outputs.entry((guest, program)).or_default().note(event);
    })?;
    Ok(outputs)
}

/// A snapshot whose moment has passed.
pub(crate) fn taken(snapshot: &Receiver<Snapshot>) -> Result<Snapshot> {
    snapshot.try_recv().context("virtual time ended before the measurement did")
}

/// What programs have written, by guest and program.
pub(crate) type Outputs = BTreeMap<(usize, u32), CapturedOutput>;

/// The most that is kept of an output, in bytes: records are shorter.
const MOST: usize = 16 << 20;

/// What one program has written, and how it ended.
#[derive(Debug, Default)]
pub(crate) struct CapturedOutput {
    out: Vec<u8>,
    err: Vec<u8>,
    pub(crate) end: Option<String>,
    /// There is no such program.
    pub(crate) is_missing: bool,
    pub(crate) succeeded: bool,
}

impl CapturedOutput {
    pub(crate) fn note(&mut self, event: GuestEvent) {
        match event {
            GuestEvent::Output(stream, bytes) => {
                let to = if stream == OutputStream::Output { &mut self.out } else { &mut self.err };
                to.extend(bytes.into_iter().take(MOST.saturating_sub(to.len())));
            }
            GuestEvent::Failed(errno) => {
                let error = std::io::Error::from_raw_os_error(errno);
                self.is_missing = error.kind() == std::io::ErrorKind::NotFound;
                self.end = Some(format!("could not be started: {error}"));
            }
            GuestEvent::Exited(status) => {
                self.succeeded = status.code() == 0;
                self.end = Some(format!("ended with status {}", status.code()));
            }
            _ => {}
        }
    }
}

/// What the agents of `plan` measured.
pub(crate) fn records(plan: &Plan, outputs: &Outputs) -> Result<Vec<(Part, Record)>> {
    let mut records = Vec::new();
    let nothing = CapturedOutput::default();
    for (host, settings) in &plan.settings {
        let output = outputs.get(&(*host, script::settings_program(plan))).unwrap_or(&nothing);
        let name = &names(host + 1)[*host];
        host_settings::check(name, settings, output.succeeded, &output.err)?;
    }
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
                ensure!(!output.is_missing, MissingProgram { program: name.to_owned() });
                let end = output.end.as_deref();
                ensure!(end.is_none(), "{name} on guest {host} {}", end.unwrap_or_default());
            }
        }
    }
    Ok(records)
}

/// The record among what an agent wrote.
fn record(name: &str, output: &CapturedOutput) -> Result<Record> {
    for line in String::from_utf8_lossy(&output.out).lines() {
        match AgentMessage::parse(line) {
            Ok(AgentMessage::Record(record)) => return Ok(record),
            Ok(AgentMessage::Error { message }) => bail!(NotMeasured(format!("{name}: {message}"))),
            Ok(AgentMessage::Ready { .. }) => {}
            Err(error) => bail!("the agent {name} {error}"),
        }
    }
    let Some(end) = output.end.as_deref() else {
        let why = format!("the agent {name} was still at work when time ended");
        bail!(NotMeasured(why));
    };
    let stderr = String::from_utf8_lossy(&output.err);
    bail!("the agent {name} {end}, without its record {}", stderr.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::experiment::Experiment;
    use bench::options::ExperimentOptions;

    #[test]
    fn output_without_end_is_not_kept() {
        let mut output = CapturedOutput::default();
        for _ in 0..3 {
            output.note(GuestEvent::Output(OutputStream::Output, vec![0; MOST / 2 + 1]));
        }
        assert_eq!((output.out.len(), output.err.len()), (MOST, 0));
    }

    #[test]
    fn a_program_that_is_missing_is_named_with_its_package() {
        let plan = Experiment::Memcached.plan(&ExperimentOptions::default(), None, 1);
        let why = |errno: i32| {
            let mut outputs = Outputs::new();
            for part in script::parts(&plan) {
                let output = outputs.entry((part.host, part.program)).or_default();
                output.note(GuestEvent::Failed(errno));
            }
            records(&plan, &outputs).unwrap_err().to_string()
        };
        let missing = why(2);
        assert!(missing.starts_with("memcached is not installed"), "{missing}");
        assert!(missing.ends_with("; apt-get install memcached"), "{missing}");
        assert!(!why(13).contains("apt-get"), "it is there, and may not be run");
    }
}
