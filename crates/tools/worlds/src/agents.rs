//! Agents and programs of one round, started in their hosts and spoken to over their pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::machine::Machine;
use workload::Record;

use crate::preload;
use bench::experiment::{Plan, Role};
use bench::records::AgentMessage;
use bench::slice::{MissingProgram, NotMeasured, Part};

/// How long an agent may take to be ready: it retries its connection for 5 s.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// How much longer than its run an agent may take to report.
const REPORT_WITHIN: Duration = Duration::from_secs(10);

/// How many lines of an agent wait to be read: it has two to say, *ready* and its record.
const LINES: usize = 4;

struct Agent {
    name: String,
    part: Part,
    server: bool,
    child: Child,
    orders: ChildStdin,
    messages: Receiver<String>,
}

/// The players of one round. Dropping it ends those that still run.
#[derive(Default)]
pub struct Players {
    agents: Vec<Agent>,
    programs: Vec<Program>,
}

struct Program {
    name: String,
    child: Child,
}

impl Players {
    /// Starts the players of `plan` in `hosts`, one after the other, and waits until each is ready.
    pub fn start(plan: &Plan, hosts: &[Box<dyn Machine>]) -> Result<Self> {
        let mut running = Self::default();
        for player in &plan.players {
            let host = &*hosts[player.host];
            match &player.role {
                Role::Agent(part, spec) => {
                    let mut agent =
                        Agent::start(host, *part, player.server, &serde_json::to_string(spec)?)?;
                    let ready = agent.ready();
                    running.agents.push(agent);
                    ready.map_err(|error| running.explain(error))?;
                }
                Role::Program(words) => {
                    let environment = preload::environment(plan.polling_of(player.host))?;
                    running.programs.push(Program::start(host, words, &environment)?);
                }
            }
        }
        Ok(running)
    }

    /// Says so if a program has ended, which explains whatever an agent complains of.
    fn explain(&mut self, error: anyhow::Error) -> anyhow::Error {
        for Program { name, child } in &mut self.programs {
            // Its connections end a moment before it does.
            let deadline = Instant::now() + Duration::from_millis(100);
            while Instant::now() < deadline {
                if let Ok(Some(status)) = child.try_wait() {
                    return error.context(format!("{name} has ended ({status}); was it killed?"));
                }
                sleep(Duration::from_millis(5));
            }
        }
        error
    }

    /// Lets all begin.
    pub fn go(&mut self) -> Result<()> {
        self.agents.iter_mut().try_for_each(|agent| agent.order("go"))
    }

    /// Whether no agent and no program has failed: all run, or have done their part.
    pub fn is_well(&mut self) -> bool {
        let agents = self.agents.iter_mut().map(|agent| &mut agent.child);
        let mut all = agents.chain(self.programs.iter_mut().map(|program| &mut program.child));
        let has_failed =
            |child: &mut Child| matches!(child.try_wait(), Ok(Some(status)) if !status.success());
        !all.any(has_failed)
    }

    /// Waits for the clients' records, at most `run` and a little, then asks the servers for
    /// theirs.
    pub fn finish(mut self, run: Duration) -> Result<Vec<(Part, Record)>> {
        self.records(run).map_err(|error| self.explain(error))
    }

    fn records(&mut self, run: Duration) -> Result<Vec<(Part, Record)>> {
        let mut records = Vec::new();
        for agent in self.agents.iter_mut().filter(|agent| !agent.server) {
            records.push((agent.part, agent.record(run + REPORT_WITHIN)?));
        }
        for agent in self.agents.iter_mut().filter(|agent| agent.server) {
            agent.order("stop")?;
            records.push((agent.part, agent.record(REPORT_WITHIN)?));
        }
        Ok(records)
    }
}

impl Drop for Players {
    fn drop(&mut self) {
        let agents = self.agents.iter_mut().map(|agent| &mut agent.child);
        let programs = self.programs.iter_mut().map(|program| &mut program.child);
        for child in agents.chain(programs) {
            // An agent that has reported has exited; then there is nothing to kill.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Agent {
    fn start(host: &dyn Machine, part: Part, server: bool, spec: &str) -> Result<Self> {
        let program = std::env::current_exe().context("find the earmark program itself")?;
        let name = format!("{part:?} on host {}", host.name()).to_lowercase();
        let mut command = host.command(program.as_os_str());
        command.args(["agent", spec]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = host.spawn(&mut command)?;
        let orders = child.stdin.take().expect("stdin is piped");
        let output = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (sender, messages) = sync_channel(LINES);
        std::thread::spawn(move || {
            let lines = output.split(b'\n').map_while(Result::ok);
            // A line that is no text is no end.
            let mut texts = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
            texts.try_for_each(|line| sender.send(line))
        });
        Ok(Self { name, part, server, child, orders, messages })
    }

    fn order(&mut self, word: &str) -> Result<()> {
        let written = writeln!(self.orders, "{word}").and_then(|()| self.orders.flush());
        if written.is_err() {
            // Its last message tells more than a broken pipe.
            self.message(Duration::from_millis(200))?;
            bail!("the agent {} ended before `{word}`", self.name);
        }
        Ok(())
    }

    fn ready(&mut self) -> Result<()> {
        match self.message(READY_WITHIN)? {
            AgentMessage::Ready { .. } => Ok(()),
            other => bail!("the agent {} said {other:?} instead of being ready", self.name),
        }
    }

    fn record(&mut self, within: Duration) -> Result<Record> {
        match self.message(within)? {
            AgentMessage::Record(record) => Ok(record),
            other => bail!("the agent {} said {other:?} instead of its record", self.name),
        }
    }

    fn message(&mut self, within: Duration) -> Result<AgentMessage> {
        let line = match self.messages.recv_timeout(within) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                let why = format!("the agent {} did not answer within {within:?}", self.name);
                return Err(NotMeasured(why).into());
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().context("wait for the agent")?;
                bail!("the agent {} ended ({status}) without its record; was it killed?", self.name)
            }
        };
        match AgentMessage::parse(&line) {
            Ok(AgentMessage::Error { message }) => {
                Err(NotMeasured(format!("{}: {message}", self.name)).into())
            }
            Ok(message) => Ok(message),
            Err(error) => bail!("the agent {} {error}", self.name),
        }
    }
}

impl Program {
    fn start(
        host: &dyn Machine,
        words: &[String],
        environment: &[(&'static str, String)],
    ) -> Result<Self> {
        let [program, arguments @ ..] = words else { bail!("no program to start") };
        let mut command = host.command(program.as_ref());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let child = host.spawn(&mut command).map_err(|refused| match refused.is_not_found() {
            true => MissingProgram { program: program.clone() }.into(),
            false => anyhow::Error::from(refused),
        })?;
        Ok(Self { name: format!("{program} on host {}", host.name()), child })
    }
}
