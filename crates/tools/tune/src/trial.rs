//! One trial: a workload is played under the setting that is in force, and measured.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow, ensure};
use lab::machine::Machine;
use workload::{Counter, Record};

use super::device::{Counted, TunedDevice};
use super::figures::{Figures, Metric};
use super::goal::Sense;
use super::output::{Locator, Measurand};
use super::peer::Code;
use super::peer::{LocalHost, RemoteHost};
use super::setting::{Setting, Value};
use super::workload::Workload;
use bench::experiment::{Plan, Site};
use bench::options::ExperimentOptions;
use sys::ctrl_c;
use worlds::agents::Players;

/// How often players and signals are looked after.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What is played.
pub enum Play {
    /// A workload of ours, with a far host.
    Workload {
        /// The experiment that is played.
        workload: Workload,
        /// Options of the experiment.
        options: Box<ExperimentOptions>,
        /// Connections that ask at once.
        clients: u32,
        /// Addresses and ports of the two hosts.
        site: Site,
        /// This host and the far one.
        hosts: Vec<Box<dyn Machine>>,
    },
    /// A command of the user's, and the number that counts of what it prints.
    Command(String, Measurand),
}

impl Play {
    /// A workload of ours, with a far host on which `earmark serve` runs with this pairing code.
    pub fn with_peer(
        workload: Workload,
        peer: &str,
        code: Code,
        options: ExperimentOptions,
        clients: u32,
    ) -> Result<Self> {
        let (there, here) = RemoteHost::find(peer, code)?;
        let site = workload.site(here, there.address.ip());
        let hosts: Vec<Box<dyn Machine>> = vec![Box::new(LocalHost), Box::new(there)];
        let options = Box::new(options);
        Ok(Self::Workload { workload, options, clients, site, hosts })
    }

    /// A command of the user's, which runs once to see what it prints: the number there that
    /// `named` finds, or that is without doubt the one that counts. If less or more of it is better
    /// is said by `better`, or by the program.
    pub fn of_command(
        command: &str,
        named: Option<&Locator>,
        better: Option<Sense>,
    ) -> Result<Self> {
        let output = output_of(command, false)?;
        let measurand = Measurand::choose(command, &output, named, better).map_err(|why| {
            let next =
                "name the number that counts with --metric 'REGEX' or --metric .PATH.IN.JSON";
            anyhow!("your command `{command}` printed {why}; {next}. It printed:\n{output}")
        })?;
        Ok(Self::Command(command.into(), measurand))
    }

    /// Makes sure that it can be played, before anything is changed.
    pub fn check(&self, device: &dyn TunedDevice) -> Result<()> {
        match self {
            Self::Workload { .. } => self.once(device, 0).map(drop),
            // It was run to see what it prints.
            Self::Command(..) => Ok(()),
        }
    }

    /// What it is, in words.
    pub fn name(&self) -> String {
        match self {
            Self::Workload { workload, .. } => workload.name(),
            Self::Command(command, _) => format!("`{command}`"),
        }
    }

    /// What counts of what a command prints.
    pub fn measurand(&self) -> Option<&Measurand> {
        match self {
            Self::Workload { .. } => None,
            Self::Command(_, measurand) => Some(measurand),
        }
    }

    /// Plays it once. Everything random follows from `seed`.
    pub fn once(&self, device: &dyn TunedDevice, seed: u64) -> Result<Figures> {
        match self {
            Self::Workload { workload, options, clients, site, hosts } => {
                play(&workload.plan(site, options, *clients, seed), hosts, device)
            }
            Self::Command(command, measurand) => run_command(command, measurand, device),
        }
    }
}

fn play(plan: &Plan, hosts: &[Box<dyn Machine>], device: &dyn TunedDevice) -> Result<Figures> {
    let mut running = Players::start(plan, hosts)?;
    let warmup = Duration::from_secs_f64(plan.warmup_s);
    let whole = warmup + Duration::from_secs_f64(plan.duration_s);
    let begin = Instant::now();
    let until = |running: &mut Players, end: Duration| -> Result<()> {
        while begin.elapsed() < end && running.is_well() {
            ctrl_c::check()?;
            sleep(end.saturating_sub(begin.elapsed()).min(POLL_INTERVAL));
        }
        Ok(ctrl_c::check()?)
    };
    let at_first = Meters::read(device)?;
    running.go()?;
    until(&mut running, warmup)?;
    let before = Meters::read(device)?;
    until(&mut running, whole)?;
    let after = Meters::read(device)?;
    let (mut figures, packets) = after.since(&before);
    let records = running.finish(whole).map_err(|error| match ctrl_c::check() {
        // A player that a signal has reached, too, is no failure of its own.
        Err(interruption) => interruption.into(),
        Ok(()) => error,
    })?;
    if packets == 0 {
        let records = records.iter().map(|(_, record)| record);
        // Players that were late to begin have ended after our time was over.
        let packets = Meters::read(device)?.since(&at_first).1;
        return Err(why_no_packet(records, packets, device));
    }
    figures.add(&records)?;
    Ok(figures)
}

/// Why the device received nothing while it was measured, and `packets` from the start of the
/// players to their end. Answers must have come by another way; without answers, nothing is known
/// of the way.
fn why_no_packet<'a>(
    mut records: impl Iterator<Item = &'a Record>,
    packets: u64,
    device: &dyn TunedDevice,
) -> Error {
    let counters = [Counter::Transactions, Counter::BytesReceived];
    let answered =
        records.any(|record| counters.iter().any(|counter| record.counter(*counter) > 0));
    if answered && packets == 0 {
        let name = &device.identity().name;
        return anyhow!(
            "no packet of the workload came through {name}: the way to the peer is another one \
             (look at: ip route get PEER)"
        );
    }
    anyhow!("no request was answered while it was measured; measure for longer: --duration")
}

fn run_command(command: &str, measurand: &Measurand, device: &dyn TunedDevice) -> Result<Figures> {
    let prefers = suspends(device);
    let before = Meters::read(device)?;
    let output = output_of(command, prefers)?;
    // It may well be about packets that are sent, or that somebody else receives.
    let after = Meters::read(device)?;
    let (mut figures, packets) = after.since(&before);
    let polled = after.polled.zip(before.polled).filter(|_| prefers && packets > 0);
    if let Some((now, then)) = polled {
        let share = now.saturating_sub(then) as f64 / packets as f64;
        figures.0.insert(Metric::Polled, share.min(1.0));
    }
    let value = measurand.read(&output).map_err(|why| {
        anyhow!("your command `{command}` printed {why}, where at first {}", measurand.in_words())
    })?;
    ensure!(value >= 0.0, "your command `{command}` printed {value}; it has to be 0 or more");
    figures.0.insert(Metric::Value, value);
    Ok(figures)
}

/// Whether the setting in force suspends interrupts while a server polls.
fn suspends(device: &dyn TunedDevice) -> bool {
    let state = device.read_with(&[Setting::IrqSuspendTimeout]).unwrap_or_default();
    state.get(Setting::IrqSuspendTimeout).and_then(Value::number).is_some_and(|it| it > 0)
}

/// What switches it on in a server, for `libearmark-poll.so` and for commands of the user's.
pub(crate) const PREFERS: &str = "EARMARK_PREFER_BUSY_POLL";

fn output_of(command: &str, prefers: bool) -> Result<String> {
    let mut shell = Command::new("sh");
    shell.env(PREFERS, u8::from(prefers).to_string());
    shell.args(["-c", command]).stdin(Stdio::null()).stderr(Stdio::inherit());
    let ended = shell.output().context("start sh, for your command")?;
    ctrl_c::check()?;
    ensure!(ended.status.success(), "your command `{command}` failed ({})", ended.status);
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

struct Meters {
    at: Instant,
    counted: Counted,
    busy_s: f64,
    /// Packets that programs of this network have taken by polls of their own.
    polled: Option<u64>,
}

impl Meters {
    fn read(device: &dyn TunedDevice) -> Result<Self> {
        let counted = device.counted()?;
        let polled = sys::busy_poll::packets(std::process::id());
        Ok(Self { at: Instant::now(), counted, busy_s: busy_s()?, polled })
    }

    /// The figures of the time between, and how many packets were received.
    fn since(&self, before: &Self) -> (Figures, u64) {
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        let mut figures = Figures::default();
        figures.0.insert(Metric::Cpu, (self.busy_s - before.busy_s).max(0.0) / seconds);
        if let (Some(now), Some(then)) = (self.counted.interrupts, before.counted.interrupts) {
            figures.0.insert(Metric::Interrupts, now.wrapping_sub(then) as f64 / seconds);
        }
        (figures, self.counted.packets.wrapping_sub(before.counted.packets))
    }
}

/// CPU time of this machine so far, all processors and programs together, in seconds.
fn busy_s() -> Result<f64> {
    const FILE: &str = "/proc/stat";
    let text = std::fs::read_to_string(FILE).with_context(|| format!("read {FILE}"))?;
    let ticks = rustix::param::clock_ticks_per_second().max(1) as f64;
    busy_ticks(&text).map(|busy| busy as f64 / ticks).with_context(|| format!("understand {FILE}"))
}

/// The first line of `/proc/stat` (`Documentation/filesystems/proc.rst`): user, nice, system, idle,
/// iowait, irq, softirq, and others that are part of these or another machine's.
fn busy_ticks(text: &str) -> Option<u64> {
    let mut words = text.lines().next()?.split_whitespace();
    if words.next()? != "cpu" {
        return None;
    }
    let ticks: Vec<u64> = words.take(7).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [user, nice, system, _idle, _iowait, irq, softirq] = ticks[..] else { return None };
    Some(user + nice + system + irq + softirq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeDevice;

    #[test]
    fn busy_time_is_all_but_idling_and_what_others_took() {
        let text = "cpu  10 20 30 4000 500 6 7 800 900 1000\ncpu0 1 2\n";
        assert_eq!(busy_ticks(text), Some(73));
        for wrong in ["", "cpu", "cpu0 1 2 3 4 5 6 7", "cpu a b c d e f g", "cpu 1 2 3"] {
            assert_eq!(busy_ticks(wrong), None, "{wrong}");
        }
        assert!(busy_s().unwrap() > 0.0);
    }

    #[test]
    fn a_command_is_measured_by_the_number_that_was_chosen() {
        let device = FakeDevice::new("eth0", "rx-usecs 3");
        let value = |command: &str| -> Result<Option<f64>> {
            let play = Play::of_command(command, None, None)?;
            play.check(&device)?;
            Ok(play.once(&device, 1)?.get(Metric::Value))
        };
        assert_eq!(value("echo 7 requests; echo 1.5").unwrap(), Some(1.5));
        for (command, words) in [
            ("echo 7 requests in 1.5 seconds", "--metric"),
            ("exit 3", "failed (exit status: 3)"),
            ("echo -5", "has to be 0 or more"),
        ] {
            let error = value(command).unwrap_err().to_string();
            assert!(error.contains(words), "{command}: {error}");
        }
        let Play::Command(_, measurand) = Play::of_command("echo 5", None, None).unwrap() else {
            panic!("a command")
        };
        let error = run_command("echo none", &measurand, &device).unwrap_err().to_string();
        assert!(error.contains("printed no number") && error.contains("at first"), "{error}");
    }
}
