//! What a run leaves behind: processes, namespaces, sockets, interfaces, files.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{Directory, earmark, soon, soon_some, unique};

/// The kinds of namespaces that a host has of its own.
const NAMESPACES: [&str; 5] = ["net", "mnt", "pid", "uts", "ipc"];

/// Kills a process.
#[track_caller]
pub(crate) fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
}

/// The living processes of the machine.
pub(crate) fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The name of a process, or nothing if it is gone.
fn process_name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// The namespaces that a living process is in.
///
/// A dead one is in a PID namespace until the machine's process 1 has reaped it, whenever that is;
/// it has no command line any more.
fn namespaces(pid: u32) -> impl Iterator<Item = String> {
    let lives = fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| !words.is_empty());
    let kinds = if lives { &NAMESPACES[..] } else { &[] };
    kinds.iter().filter_map(move |kind| {
        let link = fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()?;
        Some(link.to_str()?.to_owned())
    })
}

/// A run that differs from everything else on the machine: a variable in the environment names
/// it, and all that it starts inherits it.
pub(crate) struct Traced {
    tag: String,
    directory: Directory,
    /// Network interfaces and mounted namespaces of the machine before the run.
    before: (BTreeSet<String>, BTreeSet<String>),
    namespaces: BTreeSet<String>,
}

impl Traced {
    pub(crate) fn new() -> Self {
        let (directory, before) = (Directory::new(), (interfaces(), mounted_namespaces()));
        Self { tag: unique("traced"), directory, before, namespaces: BTreeSet::new() }
    }

    /// The command with `arguments`, in a directory of its own.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = earmark(arguments);
        command.args(["--name", &self.tag]).current_dir(self.directory.path());
        command.env("EARMARK_TEST", &self.tag).env("TMPDIR", self.directory.path());
        command.stdin(Stdio::null());
        command
    }

    /// The name of the lab.
    pub(crate) fn name(&self) -> &str {
        &self.tag
    }

    /// The living processes of the run.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let ours = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let variable = format!("EARMARK_TEST={}", self.tag);
            environment.split(|byte| *byte == 0).any(|word| word == variable.as_bytes())
        };
        processes().into_iter().filter(ours).collect()
    }

    /// The process of the run that is called `name`, once there is one.
    #[track_caller]
    pub(crate) fn process(&self, name: &str) -> u32 {
        let find = || self.processes().into_iter().find(|pid| process_name(*pid) == name);
        soon_some(&format!("a process is called {name}"), find)
    }

    /// The agent on host a, once there is one: it is the last to be started.
    #[track_caller]
    pub(crate) fn client(&self) -> u32 {
        let net = |pid| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let host = net(self.process("earmark-a"));
        let is_client = |pid: &u32| process_name(*pid) == "earmark" && net(*pid) == host;
        let find = || self.processes().into_iter().find(is_client);
        soon_some("an agent runs on host a", find)
    }

    /// Notes the namespaces that the run has made so far; there are two hosts by now.
    #[track_caller]
    pub(crate) fn note(&mut self) {
        let ours: BTreeSet<String> = namespaces(std::process::id()).collect();
        let theirs = self.processes().into_iter().flat_map(namespaces);
        self.namespaces.extend(theirs.filter(|namespace| !ours.contains(namespace)));
        assert!(self.namespaces.len() >= 2 * NAMESPACES.len(), "{:?}", self.namespaces);
        assert!(self.has_socket(), "the lab has no control socket");
    }

    fn has_socket(&self) -> bool {
        let sockets = fs::read_to_string("/proc/net/unix").unwrap();
        sockets.lines().any(|line| line.ends_with(&format!("@earmark/lab/{}", self.tag)))
    }

    /// Requires that nothing of the run is left but `files` in its directory.
    #[track_caller]
    pub(crate) fn gone(&self, files: &[&str]) {
        soon("all processes of the run are gone", || self.processes().is_empty());
        soon("all namespaces of the run are empty", || {
            let mut left = processes().into_iter().flat_map(namespaces);
            !left.any(|namespace| self.namespaces.contains(&namespace))
        });
        soon("the control socket is gone", || !self.has_socket());
        assert_eq!((interfaces(), mounted_namespaces()), self.before);
        let files: BTreeSet<String> = files.iter().map(|&file| file.to_owned()).collect();
        assert_eq!(self.directory.names(), files);
    }
}

/// The network interfaces of the machine.
fn interfaces() -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/class/net").unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The mounts that keep a namespace alive.
fn mounted_namespaces() -> BTreeSet<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().filter(|line| line.contains(" - nsfs ")).map(str::to_owned).collect()
}
