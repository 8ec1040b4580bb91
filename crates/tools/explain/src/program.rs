//! `earmark explain -- CMD`: the sockets of a real program, while it runs; and `earmark explain
//! DEV`: what a device receives, for all programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, ensure};
use sys::clock;

use super::decode::Decoder;
use super::engine::{Path as Followed, Role};
use super::event_requests::Target;
use super::evidence::{Far, OwnHold};
use super::report::{EndReason, Explained, Explanation, LeftOut, ProgramRun};
use super::signals::Signals;
use super::sockets::{self, Names};
use super::summary::Collection;
use super::tracer::{Account, Tracer};
use super::verdict::VerdictInput;
use super::{hold, stages};

/// Sockets that are reported one by one, those with the most requests.
const SOCKETS: usize = 5;

/// Paths of one kind: through the same socket, asked or answered.
struct Group {
    role: Role,
    /// By which device packets came; if by several, one of them.
    device: Option<String>,
    paths: Collection,
}

/// Runs a program and explains its sockets until it ends, `seconds` are over, or a signal asks this
/// process to end, which the program gets too. `print` has the report at that moment; then the
/// program runs on untraced until it ends.
pub fn explain(
    words: &[std::ffi::OsString],
    seconds: f64,
    print: impl FnOnce(&Explanation) -> Result<()>,
) -> Result<ExitStatus> {
    let program = words.first().context("name a program after --")?;
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut tracer = Tracer::open(Target::Program(name))?;
    tracer.plan(seconds);
    let mut names = Names::default();
    let mut groups = BTreeMap::new();
    // A signal from here on is the program's, too.
    let mut signals = Signals::watch()?;
    tracer.step(|_, _| {})?;
    let mut child = Command::new(program)
        .args(&words[1..])
        .spawn()
        .with_context(|| format!("start {}", program.to_string_lossy()))?;
    tracer.follow(child.id());
    let started = clock::now().as_nanos();
    let until = started + (seconds * 1e9) as u64;
    let (end, status) = loop {
        let mut add = |decoder: &Decoder, path| collect(&mut groups, &mut names, decoder, path);
        tracer.step(&mut add)?;
        let status = child.try_wait().context("look after the program")?;
        if status.is_some() {
            break (EndReason::Program, status);
        } else if signals.pass_on(&child)? {
            break (EndReason::Signal, None);
        } else if clock::now().as_nanos() >= until {
            break (EndReason::Duration, None);
        }
    };
    let lived_s = (clock::now().as_nanos() - started) as f64 / 1e9;
    let mut add = |decoder: &Decoder, path| collect(&mut groups, &mut names, decoder, path);
    let account = tracer.finish(&mut add);
    let mut report = report(groups, account, None);
    report.program = Some(ProgramRun { end, traced_for_s: lived_s });
    print(&report)?;
    match status {
        Some(status) => Ok(status),
        None => signals.until_end(&mut child),
    }
}

/// Adds a path to those of its socket. A socket whose address others know to connect to answers,
/// and every other one asks.
fn collect(
    groups: &mut BTreeMap<String, Group>,
    names: &mut Names,
    decoder: &Decoder,
    path: Followed,
) {
    let thread = (decoder.tid(path.task), path.fd);
    let known = names.of(path.socket, thread, decoder.peer(path.socket));
    let role = if known.answers { Role::Answers } else { Role::Asks };
    if path.role != role {
        return;
    }
    let Some(lengths) = stages::lengths(&path) else { return };
    let device = path.arrival.received.map(|_| decoder.device(path.arrival.device).to_owned());
    let group = || Group { role, device, paths: Collection::default() };
    groups.entry(known.name.clone()).or_insert_with(group).paths.add(lengths);
}

/// Traces what a device receives for some seconds.
pub fn explain_device(device: &str, seconds: f64) -> Result<Explanation> {
    ensure!(sockets::is_device(device), "there is no network device {device}; look: ip link");
    let mut tracer = Tracer::open(Target::Device(device.to_owned()))?;
    let mut by_task: BTreeMap<u32, (String, Collection)> = BTreeMap::new();
    let mut all = Collection::default();
    let mut add = |decoder: &Decoder, path: Followed| {
        let lengths = stages::lengths(&path);
        let here = decoder.device(path.arrival.device) == device;
        if let Some(lengths) = lengths.filter(|_| here) {
            all.add(lengths);
            let named = || (name_of(decoder.tid(path.task)), Collection::default());
            by_task.entry(path.task).or_insert_with(named).1.add(lengths);
        }
    };
    let until = clock::now().as_nanos() + (seconds * 1e9) as u64;
    while clock::now().as_nanos() < until {
        tracer.step(&mut add)?;
    }
    let account = tracer.finish(&mut add);
    let mut groups = BTreeMap::new();
    let everything = format!("Everything that {device} receives");
    groups.insert(
        everything,
        Group { role: Role::Receives, device: Some(device.to_owned()), paths: all },
    );
    if by_task.len() > 1 {
        for (name, paths) in by_task.into_values() {
            let name = format!("What {device} receives for {name}");
            let device = Some(device.to_owned());
            groups.insert(name, Group { role: Role::Receives, device, paths });
        }
    }
    Ok(report(groups, account, Some(device)))
}

fn name_of(tid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default();
    format!("{} (thread {tid})", if name.is_empty() { "?" } else { name.trim() })
}

fn report(groups: BTreeMap<String, Group>, account: Account, device: Option<&str>) -> Explanation {
    let packets_per_s = account.packets as f64 / account.traced_s.max(1e-9);
    let (mut explained, mut left_out) = (Vec::new(), LeftOut::default());
    let mut holds: BTreeMap<String, OwnHold> = BTreeMap::new();
    for (subject, Group { role, device, mut paths }) in groups {
        let own_hold = match &device {
            Some(device) => holds.entry(device.clone()).or_insert_with(|| hold::of(device)).clone(),
            None => OwnHold::Unknown,
        };
        if role == Role::Asks {
            hold::split(&mut paths, &own_hold);
        }
        let Some(summary) = paths.summary() else {
            left_out.add(paths.len());
            continue;
        };
        let case = VerdictInput {
            summary: &summary,
            far: Far::Unknown,
            own_hold: &own_hold,
            device: device.as_deref(),
            handshakes: false,
            packets_per_s,
        };
        let verdict = case.verdict();
        explained.push(Explained { subject, role, verdict, summary });
    }
    explained.sort_by_key(|one| std::cmp::Reverse(one.summary.requests));
    let rest = explained.split_off(SOCKETS.min(explained.len()));
    rest.iter().for_each(|one| left_out.add(one.summary.requests));
    let device = device.map(str::to_owned).or_else(|| {
        // All packets came by the same one.
        (holds.len() == 1).then(|| holds.keys().next().cloned()).flatten()
    });
    let own_hold = device.as_ref().and_then(|device| holds.remove(device));
    Explanation {
        device,
        own_hold: own_hold.unwrap_or(OwnHold::Unknown),
        references: None,
        sum_error: None,
        account,
        explained,
        left_out,
        program: None,
    }
}
