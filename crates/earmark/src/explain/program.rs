//! `earmark explain -- CMD`: the sockets of a real program, while it runs; and `earmark explain
//! DEV`: what a device receives, whoever it is for.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, Result, ensure};
use linux::clock;

use super::decode::Decoder;
use super::engine::{Path as Followed, Role};
use super::evidence::{Far, OwnHold};
use super::report::{Explained, Report, SCHEMA};
use super::sockets::{self, Names};
use super::summary::Collection;
use super::tracer::{Account, Target, Tracer};
use super::verdict::Case;
use super::{hold, stages};

/// Sockets that are told one by one, those with the most requests.
const SOCKETS: usize = 5;

/// Fewer requests than this are not worth a table.
const FEWEST: usize = 5;

/// Paths of one kind: through the same socket, asked or answered.
struct Group {
    role: Role,
    /// By which device packets came; if by several, one of them.
    device: Option<String>,
    paths: Collection,
}

/// Runs a program and explains its sockets until it ends, or `seconds` are over; then it runs on
/// untraced until it ends.
///
/// # Errors
/// If it cannot be started, or tracing is refused.
pub fn explain(words: &[std::ffi::OsString], seconds: f64) -> Result<(Report, ExitStatus)> {
    let program = words.first().context("name a program after --")?;
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut tracer = Tracer::open(Target::Program(name))?;
    let mut names = Names::default();
    let mut groups = BTreeMap::new();
    tracer.step(|_, _| {})?;
    let mut child = Command::new(program)
        .args(&words[1..])
        .spawn()
        .with_context(|| format!("start {}", program.to_string_lossy()))?;
    tracer.follow(child.id());
    let until = clock::now().as_nanos() + (seconds * 1e9) as u64;
    let mut status = None;
    while status.is_none() && clock::now().as_nanos() < until {
        let mut add = |decoder: &Decoder, path| collect(&mut groups, &mut names, decoder, path);
        tracer.step(&mut add)?;
        status = ended(&mut child)?;
    }
    let mut add = |decoder: &Decoder, path| collect(&mut groups, &mut names, decoder, path);
    let account = tracer.finish(&mut add);
    let status = match status {
        Some(status) => status,
        None => child.wait().context("wait for the program")?,
    };
    Ok((report(groups, account, None), status))
}

fn ended(child: &mut Child) -> Result<Option<ExitStatus>> {
    child.try_wait().context("look after the program")
}

/// Adds a path to those of its socket. A socket whose address others know to connect to answers,
/// and every other one asks.
fn collect(
    groups: &mut BTreeMap<String, Group>,
    names: &mut Names,
    decoder: &Decoder,
    path: Followed,
) {
    let who = (decoder.tid(path.task), path.fd);
    let known = names.of(path.socket, who, decoder.peer(path.socket));
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
///
/// # Errors
/// If there is no such device, or tracing is refused.
pub fn explain_device(device: &str, seconds: f64) -> Result<Report> {
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

fn report(groups: BTreeMap<String, Group>, account: Account, device: Option<&str>) -> Report {
    let packets_per_s = account.packets as f64 / account.traced_s.max(1e-9);
    let mut explained = Vec::new();
    let mut holds: BTreeMap<String, OwnHold> = BTreeMap::new();
    for (subject, Group { role, device, mut paths }) in groups {
        if paths.len() < FEWEST {
            continue;
        }
        let own_hold = match &device {
            Some(device) => holds.entry(device.clone()).or_insert_with(|| hold::of(device)).clone(),
            None => OwnHold::Unknown,
        };
        if role == Role::Asks {
            hold::split(&mut paths, &own_hold);
        }
        let Some(summary) = paths.summary() else { continue };
        let case = Case {
            summary: &summary,
            far: Far::Unknown,
            own_hold: &own_hold,
            device: device.as_deref(),
            role,
            handshakes: false,
            packets_per_s,
        };
        let verdict = case.verdict();
        explained.push(Explained { subject, role, verdict, summary });
    }
    explained.sort_by_key(|one| std::cmp::Reverse(one.summary.requests));
    explained.truncate(SOCKETS);
    let device = device.map(str::to_owned).or_else(|| {
        // All packets came by the same one.
        (holds.len() == 1).then(|| holds.keys().next().cloned()).flatten()
    });
    let own_hold = device.as_ref().and_then(|device| holds.remove(device));
    Report {
        schema: SCHEMA,
        device,
        own_hold: own_hold.unwrap_or(OwnHold::Unknown),
        references: None,
        sum_error: None,
        account,
        explained,
    }
}
