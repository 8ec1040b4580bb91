//! `earmark explain` of what programs do: one that is started for it, a process, a cgroup, or all
//! that a device receives.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, Result, ensure};
use flows::follower::{FlowDetail, FlowScope};
use flows::record::{FlowRole, TracedRequest, Transport};
use netdev::routes;
use sys::ctrl_c;

use super::cause::{Facts, Ranked};
use super::evidence::OwnHold;
use super::far::{FarHost, FarLook};
use super::following::{Account, Following};
use super::hold;
use super::report::{EndReason, Explained, Explanation, LeftOut, ProgramRun};
use super::signals::Signals;
use super::surroundings::{self, Quota};

/// Flows that are reported one by one, those with the most requests.
const FLOWS: usize = 5;
/// Requests of a flow that are kept at most: more do not make quantiles better.
const MOST: usize = 100_000;

/// What runs already and is explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunningSubject {
    /// A process, as numbered in this namespace, and what it starts.
    Process(u32),
    /// A cgroup and those below it, by its directory.
    Cgroup(PathBuf),
    /// All that a network device receives.
    Device(String),
}

/// Requests of one kind: to the same address, or to the same port of this host.
struct Group {
    role: FlowRole,
    /// By which device packets came; if by several, one of them.
    device: Option<String>,
    requests: Vec<TracedRequest>,
}

/// What was followed, by its subject.
#[derive(Default)]
struct Groups {
    by_subject: BTreeMap<String, Group>,
    devices: BTreeMap<u32, Option<String>>,
}

impl Groups {
    fn add(&mut self, request: TracedRequest) {
        let device = self.device(&request);
        self.add_as(subject(&request), device, request);
    }

    fn add_as(&mut self, subject: String, device: Option<String>, request: TracedRequest) {
        let role = request.role;
        let group = || Group { role, device, requests: Vec::new() };
        let group = self.by_subject.entry(subject).or_insert_with(group);
        if group.requests.len() < MOST {
            group.requests.push(request);
        }
    }

    fn device(&mut self, request: &TracedRequest) -> Option<String> {
        let flow = &request.flow;
        let known = || match surroundings::device_name(flow.device) {
            Some(name) => Some(name),
            None => routes::device(flow.local.ip(), flow.remote.ip()),
        };
        self.devices.entry(flow.device).or_insert_with(known).clone()
    }
}

/// Which requests belong together, for people: connections come and go, addresses stay.
fn subject(request: &TracedRequest) -> String {
    let flow = &request.flow;
    let name = match flow.transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
    };
    let remote = std::net::SocketAddr::new(flow.remote.ip().to_canonical(), flow.remote.port());
    match request.role {
        FlowRole::Asks => format!("{name} requests to {remote}"),
        FlowRole::Answers => {
            format!("{name} requests from {} to port {}", remote.ip(), flow.local.port())
        }
        FlowRole::Receives => {
            let program = &request.program;
            format!("{name} for {} (process {})", program.name, program.pid)
        }
    }
}

/// How programs are looked at.
#[derive(Debug)]
pub struct Look {
    /// For how many seconds at most.
    pub seconds: f64,
    /// A far host that follows the same requests.
    pub far: Option<FarHost>,
    /// Whether the stacks of user space are kept in which programs are blocked.
    pub stacks: bool,
}

impl Look {
    fn detail(&self) -> FlowDetail {
        FlowDetail { by_calls: false, stacks: self.stacks }
    }
}

/// Runs a program and explains its requests until it ends, the time of `look` is over, or a signal
/// asks this process to end, which the program gets too. `each` has each request when it is known
/// to have ended; `print` has the report at the end of the look; then the program runs on, and is
/// followed no more, until it ends.
pub fn explain(
    words: &[OsString],
    look: Look,
    mut each: impl FnMut(&TracedRequest),
    print: impl FnOnce(&Explanation) -> Result<()>,
) -> Result<ExitStatus> {
    let program = words.first().context("name a program after --")?;
    let mut following = Following::start(&FlowScope::Children, None, look.detail())?;
    let mut groups = Groups::default();
    // A signal from here on is the program's, too.
    let mut signals = Signals::watch()?;
    let mut child = Command::new(program)
        .args(&words[1..])
        .spawn()
        .with_context(|| format!("start {}", program.to_string_lossy()))?;
    let mut add = |groups: &mut Groups, request: TracedRequest| {
        each(&request);
        groups.add(request);
    };
    let (before, mut quota) = (following.elapsed_s(), None);
    let (end, status) = loop {
        following.step(|request| add(&mut groups, request));
        if quota.is_none() && !groups.by_subject.is_empty() {
            quota = Quota::of(child.id());
        }
        if let Some(ended) = ended(&mut child, &mut signals)? {
            break ended;
        } else if following.elapsed_s() >= before + look.seconds {
            break (EndReason::Duration, None);
        }
    };
    let lived_s = following.elapsed_s() - before;
    let account = following.finish(|request| add(&mut groups, request));
    let far = look.far.map(FarLook::end);
    let mut report = report(groups.by_subject, account, None, quota.as_ref(), far);
    report.program = Some(ProgramRun { end, traced_for_s: lived_s });
    print(&report)?;
    match status {
        Some(status) => Ok(status),
        None => signals.until_end(&mut child),
    }
}

/// Why the look at a program ends now, if it does.
fn ended(
    child: &mut Child,
    signals: &mut Signals,
) -> Result<Option<(EndReason, Option<ExitStatus>)>> {
    let status = child.try_wait().context("look after the program")?;
    if status.is_some() {
        return Ok(Some((EndReason::Program, status)));
    }
    Ok(signals.pass_on(child)?.then_some((EndReason::Signal, None)))
}

/// Explains for the time of `look` what runs already, or until Ctrl-C. `each` has each request when
/// it is known to have ended.
pub fn explain_running(
    running: &RunningSubject,
    look: Look,
    mut each: impl FnMut(&TracedRequest),
) -> Result<Explanation> {
    let (scope, pid, quota) = match running {
        RunningSubject::Process(pid) => {
            let path = format!("/proc/{pid}");
            ensure!(Path::new(&path).exists(), "there is no process {pid}; look: ps -e");
            (FlowScope::Processes, Some(*pid), Quota::of(*pid))
        }
        RunningSubject::Cgroup(path) => {
            let root = Path::new("/sys/fs/cgroup");
            let quota = Quota::at(&root.join(path), root);
            (FlowScope::Cgroup(path.clone()), None, Some(quota))
        }
        RunningSubject::Device(device) => {
            let is_one = surroundings::is_device(device);
            ensure!(is_one, "there is no network device {device}; look: ip link");
            (FlowScope::Received, None, None)
        }
    };
    let wanted = match running {
        RunningSubject::Device(device) => Some(device.as_str()),
        RunningSubject::Process(_) | RunningSubject::Cgroup(_) => None,
    };
    ctrl_c::watch().context("take signals")?;
    let before = wanted.and_then(surroundings::packets);
    let mut groups = Groups::default();
    let mut add = |request: TracedRequest| match wanted {
        None => {
            each(&request);
            groups.add(request);
        }
        Some(device) if groups.device(&request).as_deref() == Some(device) => {
            each(&request);
            let (all, one) = (format!("All that {device} receives"), subject(&request));
            let one = format!("What {device} receives by {one}");
            groups.add_as(all, wanted.map(str::to_owned), request.clone());
            groups.add_as(one, wanted.map(str::to_owned), request);
        }
        Some(_) => {}
    };
    let mut following = Following::start(&scope, pid, look.detail())?;
    while following.elapsed_s() < look.seconds && !ctrl_c::is() {
        following.step(&mut add);
    }
    let account = following.finish(&mut add);
    let packets = wanted.and_then(surroundings::packets).zip(before);
    let per_s = packets.map(|(now, before)| now.saturating_sub(before) as f64 / account.elapsed_s);
    let mut by_subject = groups.by_subject;
    // One program has all of it.
    if wanted.is_some() && by_subject.len() == 2 {
        by_subject.pop_last();
    }
    let far = look.far.map(FarLook::end);
    Ok(report(by_subject, account, wanted.map(|device| (device, per_s)), quota.as_ref(), far))
}

fn report(
    groups: BTreeMap<String, Group>,
    account: Account,
    wanted: Option<(&str, Option<f64>)>,
    quota: Option<&Quota>,
    far: Option<FarLook>,
) -> Explanation {
    let packets_per_s = wanted.and_then(|(_, per_s)| per_s);
    let (mut explained, mut left_out) = (Vec::new(), LeftOut::default());
    let mut holds: BTreeMap<String, OwnHold> = BTreeMap::new();
    let throttled_us = quota.map(Quota::since_us);
    for (subject, Group { role, device, requests }) in groups {
        let own_hold = match &device {
            Some(device) => holds.entry(device.clone()).or_insert_with(|| hold::of(device)).clone(),
            None => OwnHold::Unknown,
        };
        let in_all: u32 = requests.iter().map(|request| request.counts.segments_in).sum();
        let mut ranked = Ranked::new(requests);
        if role == FlowRole::Asks {
            hold::split(&mut ranked, &own_hold);
        }
        let facts = Facts {
            device: device.as_deref(),
            own_hold: &own_hold,
            far: None,
            far_hold_up_to_us: None,
            throttled_us,
            slow_start_after_idle: surroundings::slow_start_after_idle(),
            frequency: surroundings::frequency(),
            packets_per_s: packets_per_s
                .unwrap_or_else(|| f64::from(in_all) / account.elapsed_s.max(1e-9)),
        };
        let far = far.as_ref().filter(|_| role == FlowRole::Asks);
        match Explained::new(subject, role, &ranked, &facts, far) {
            Some(one) => explained.push(one),
            None => left_out.add(ranked.len()),
        }
    }
    explained.sort_by_key(|one| std::cmp::Reverse(one.table.requests));
    let rest = explained.split_off(FLOWS.min(explained.len()));
    rest.iter().for_each(|one| left_out.add(one.table.requests));
    let device = wanted.map(|(device, _)| device.to_owned()).or_else(|| {
        // All packets came by the same one.
        (holds.len() == 1).then(|| holds.keys().next().cloned()).flatten()
    });
    let own_hold = device.as_ref().and_then(|device| holds.remove(device));
    Explanation {
        device,
        own_hold: own_hold.unwrap_or(OwnHold::Unknown),
        references: None,
        ways: Vec::new(),
        sum_error: None,
        account,
        explained,
        left_out,
        program: None,
        with: far.map(|far| far.summary),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::checks::request;
    use flows::record::FlowStage;

    #[test]
    fn a_request_is_one_of_its_schema() {
        let one = request(1, &[(FlowStage::FarUnacked, 100), (FlowStage::Connect, 1)]);
        report::json::checks::conforms(&one);
        let json = serde_json::to_value(one).unwrap();
        assert_eq!(json["stages"]["far-unacked"], 100_000);
    }

    #[test]
    fn requests_are_grouped_by_the_address_that_stays() {
        let mut one = request(1, &[(FlowStage::FarUnacked, 100)]);
        one.flow.local = "10.9.0.1:41000".parse().unwrap();
        one.flow.remote = "10.9.0.2:7".parse().unwrap();
        assert_eq!(subject(&one), "TCP requests to 10.9.0.2:7");
        one.flow.remote = "[::ffff:10.9.0.2]:7".parse().unwrap();
        assert_eq!(subject(&one), "TCP requests to 10.9.0.2:7");
        one.role = FlowRole::Answers;
        (one.flow.local, one.flow.remote) = (one.flow.remote, one.flow.local);
        assert_eq!(subject(&one), "TCP requests from 10.9.0.1 to port 7");
        (one.role, one.flow.transport) = (FlowRole::Receives, Transport::Udp);
        assert_eq!(subject(&one), "UDP for x (process 1)");
    }
}
