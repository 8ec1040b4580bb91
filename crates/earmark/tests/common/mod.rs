//! What the tests of the command share: runs of it, labs to talk to, and what a run leaves behind.
//!
//! They need root, or the rights that `earmark lab` needs, and `/dev/net/tun`.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod mpi;
pub(crate) mod packaged;
pub(crate) mod port;
pub(crate) mod virtual_bench;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

/// The command under test.
pub(crate) const EARMARK: &str = env!("CARGO_BIN_EXE_earmark");

/// No run of these tests takes this long; one that does hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// The kinds of namespaces that a host has of its own.
const NAMESPACES: [&str; 5] = ["net", "mnt", "pid", "uts", "ipc"];

/// A name that no other test of any run uses.
pub(crate) fn unique(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// An empty directory that goes away with this value.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(unique("earmark-test"));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it, as text.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file; its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.file(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Copies a program into it; its path.
    ///
    /// By a process of its own: a child that another thread has just forked keeps what this process
    /// writes open until it begins its program, and "Text file busy" would be the answer.
    pub(crate) fn program(&self, name: &str, from: Stdio) -> String {
        let path = self.file(name);
        let mut copy = Command::new("install");
        let ended = copy.args(["-m", "755", "/dev/stdin", &path]).stdin(from).status();
        assert!(ended.unwrap().success(), "install {path}");
        path
    }

    /// Writes a script that can be executed; its path.
    pub(crate) fn script(&self, name: &str, text: &str) -> String {
        let source = self.write(&format!("{name}.source"), text);
        self.program(name, fs::File::open(source).unwrap().into())
    }

    /// The names of its files.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// As a shell tells it: 128 and the signal for a command that was killed.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The standard output of a command that must have succeeded.
    #[track_caller]
    pub(crate) fn output(&self) -> &str {
        assert_eq!(self.code, 0, "{self:?}");
        &self.stdout
    }

    /// The standard output of a command that must have succeeded, as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.output()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Requires a failure whose message has all of `words` in it and no trace of a panic.
    #[track_caller]
    pub(crate) fn refused(&self, words: &[&str]) {
        assert!(self.code == 1 || self.code == 2, "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "no `{word}` in {self:?}");
        }
    }
}

/// The command with `arguments`, with the signal dispositions of a terminal's programs: tests that
/// were started in the background or by `nohup` ignore signals, and what they start inherits that.
pub(crate) fn earmark(arguments: &[&str]) -> Command {
    needs("env", "coreutils");
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,HUP,QUIT,TERM,PIPE", EARMARK]).args(arguments);
    command
}

/// Runs the command to its end.
#[track_caller]
pub(crate) fn run(arguments: &[&str]) -> Ended {
    Running::start(earmark(arguments).stdin(Stdio::null())).end()
}

/// Runs a command of any kind to its end.
#[track_caller]
pub(crate) fn output(command: &mut Command) -> Ended {
    Running::start(command.stdin(Stdio::null())).end()
}

/// Runs a lab of its own name with `options`; the exit status is that of the commands on a and b.
#[track_caller]
pub(crate) fn lab_run(options: &[&str]) -> Ended {
    let name = unique("run");
    let mut arguments = vec!["lab", "run", "--name", &name];
    arguments.extend(options);
    run(&arguments)
}

/// Requires a program; the failure is the command that installs it.
#[track_caller]
pub(crate) fn needs(program: &str, package: &str) {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let found = path.split(':').any(|directory| Path::new(directory).join(program).exists());
    assert!(found, "{program} is needed for this test: apt-get install {package}");
}

/// Runs a script in a network namespace of its own, with a pair of devices, `one` and `two`, and a
/// TAP device, `tap`. None of the machine's can be reached from there.
#[track_caller]
pub(crate) fn in_network(state: &Directory, script: &str) -> Ended {
    needs("ip", "iproute2");
    let script = format!(
        "set -e; mount -t sysfs sysfs /sys
         ip link add one type veth peer name two; ip link set one up; ip link set two up
         ip tuntap add tap mode tap; ip link set tap up
         earmark() {{ {EARMARK} \"$@\"; }}
         {script}"
    );
    let mut command = Command::new("unshare");
    command.current_dir(state.path());
    command.args(["--net", "--mount", "sh", "-c", &script]);
    output(command.env("EARMARK_STATE_DIR", state.path()))
}

/// A TCP server in Python, at an address and a port, which sends without end to all who connect.
/// The file `endless` is there when it listens.
pub(crate) const ENDLESS: &str = "import socket, sys, threading
door = socket.create_server((sys.argv[1], int(sys.argv[2])))
open('endless', 'w').close()
def send(far):
    try:
        while True: far.sendall(bytes(65536))
    except OSError: pass
while True: threading.Thread(target=send, args=(door.accept()[0],), daemon=True).start()
";

/// A command at work, in a process group of its own; killed if the test fails on the way.
pub(crate) struct Running {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: Option<JoinHandle<()>>,
    /// What has come on standard error so far.
    errors: Arc<Mutex<String>>,
    said: String,
}

impl Running {
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().map(BufReader::new);
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let errors = Arc::new(Mutex::new(String::new()));
        let read = Arc::clone(&errors);
        let stderr = thread::spawn(move || {
            let mut line = Vec::new();
            while stderr.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                *read.lock().unwrap() += &String::from_utf8_lossy(&std::mem::take(&mut line));
            }
        });
        Self { child, stdout, stderr: Some(stderr), errors, said: String::new() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the command alone.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends a signal to the command and all that it started, as a terminal does.
    pub(crate) fn signal_group(&self, signal: Signal) {
        kill_process_group(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The next line of standard output. A command that ends instead fails the test with what it
    /// said, so who waits for a certain line does not wait for ever.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        if self.stdout.as_mut().unwrap().read_line(&mut line).unwrap() == 0 {
            let errors = self.errors();
            panic!("it ended, and had said: {}{errors}", self.said);
        }
        self.said += &line;
        line.trim_end().to_owned()
    }

    /// Reads lines until one is `expected`.
    #[track_caller]
    pub(crate) fn await_line(&mut self, expected: &str) {
        while self.line() != expected {}
    }

    /// Waits until `expected` stands on standard error.
    #[track_caller]
    pub(crate) fn await_error(&self, expected: &str) {
        soon(expected, || self.errors.lock().unwrap().contains(expected));
    }

    /// All that came on standard error, once that is closed.
    pub(crate) fn errors(&mut self) -> String {
        self.stderr.take().unwrap().join().unwrap();
        self.errors.lock().unwrap().clone()
    }

    /// Whether it has ended already.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// What one can write to, if standard input is piped.
    pub(crate) fn input(&mut self) -> &mut ChildStdin {
        self.child.stdin.as_mut().unwrap()
    }

    /// Waits for the end, and kills what does not end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        drop(self.child.stdin.take());
        let mut stdout = self.stdout.take().unwrap();
        let reader = thread::spawn(move || {
            let mut text = String::new();
            let _ = stdout.read_to_string(&mut text);
            text
        });
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begin.elapsed() < PATIENCE, "it hangs");
            thread::sleep(Duration::from_millis(5));
        };
        Ended {
            code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap()),
            stdout: std::mem::take(&mut self.said) + &reader.join().unwrap(),
            stderr: self.errors(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A lab with a shell on host a that does what it is told.
pub(crate) struct Lab {
    name: String,
    run: Running,
}

impl Lab {
    /// Starts a lab with `options`, and waits until its shell answers.
    #[track_caller]
    pub(crate) fn start(options: &[&str]) -> Self {
        let name = unique("lab");
        let mut command = earmark(&["lab", "run", "--name", &name, "--on", "a", "exec sh"]);
        let mut run = Running::start(command.args(options).stdin(Stdio::piped()));
        writeln!(run.input(), "echo ready").unwrap();
        run.await_line("ready");
        Self { name, run }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs a script on host a; its status, and all that it wrote.
    #[track_caller]
    pub(crate) fn ask(&mut self, script: &str) -> (i32, String) {
        writeln!(self.run.input(), "{{ {script}\n}} 2>&1 </dev/null; echo \"= $?\"").unwrap();
        let mut text = String::new();
        loop {
            let line = self.run.line();
            if let Some(status) = line.strip_prefix("= ") {
                return (status.parse().unwrap(), text);
            }
            text = text + &line + "\n";
        }
    }

    /// Runs `earmark nic` outside of the lab.
    #[track_caller]
    pub(crate) fn nic(&self, arguments: &[&str]) -> Ended {
        let mut command = vec!["nic", "--lab", &self.name];
        command.extend(arguments);
        run(&command)
    }

    /// Changes settings, which must work.
    #[track_caller]
    pub(crate) fn set(&self, arguments: &[&str]) {
        let mut command = vec!["set"];
        command.extend(arguments);
        self.nic(&command).output();
    }

    /// What `nic show --json` says.
    #[track_caller]
    pub(crate) fn show(&self) -> Value {
        self.nic(&["show", "--json"]).json()
    }

    /// What a few pings from a to b took, in milliseconds, the shortest first.
    #[track_caller]
    pub(crate) fn pings_ms(&mut self) -> Vec<f64> {
        needs("ping", "iputils-ping");
        // So far apart that no request shares another one's hold, even if the machine is busy.
        // With a deadline it waits for five answers, and not only for two more round trips.
        let (status, text) = self.ask("ping -n -c 5 -i 0.1 -w 60 b");
        assert_eq!(status, 0, "{text}");
        ping_times_ms(&text)
    }

    /// Ends the lab by ending its shell.
    #[track_caller]
    pub(crate) fn end(self) -> Ended {
        self.run.end()
    }
}

/// A command that echoes datagrams, on IPv4 alone, by no code of ours; it makes a file once it
/// listens.
pub(crate) fn udp_echo(port: u16, ready: &str) -> String {
    format!(
        "exec python3 -c 'import socket as s\n\
         u=s.socket(s.AF_INET,s.SOCK_DGRAM)\nu.bind((\"\",{port}))\n\
         open(\"{ready}\",\"w\").write(\"ready\")\n\
         while 1:\n d,a=u.recvfrom(99)\n u.sendto(d,a)'"
    )
}

/// Our own echo; it writes to a file once it listens.
pub(crate) fn own_echo(ready: &str) -> String {
    format!("exec {EARMARK} echo 2>{ready}")
}

/// A command that begins once that file says something: a busy machine takes its time to start the
/// far host's command.
pub(crate) fn once_ready(ready: &str, command: &str) -> String {
    format!("until [ -s {ready} ]; do sleep 0.02; done; {command}")
}

/// What the pings took whose output this is, in milliseconds, the shortest first.
///
/// A packet that a host sends on its own, as IPv6 does, may begin a hold, and one ping wait less
/// for it: whoever asks for a hold looks at the middle one.
#[track_caller]
pub(crate) fn ping_times_ms(text: &str) -> Vec<f64> {
    let times = text.split("time=").skip(1).map(|rest| rest.split(' ').next().unwrap());
    let mut times: Vec<f64> = times.map(|time| time.parse().unwrap()).collect();
    assert!(times.len() >= 3, "{text}");
    times.sort_by(f64::total_cmp);
    times
}

/// Waits until `condition` holds; long enough for a machine that does something else, too.
#[track_caller]
pub(crate) fn soon(what: &str, condition: impl Fn() -> bool) {
    soon_some(what, || condition().then_some(()));
}

/// Waits until there is something to `find`.
#[track_caller]
fn soon_some<T>(what: &str, find: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The living processes of the machine.
pub(crate) fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The name of a process, or nothing if it is gone.
pub(crate) fn process_name(pid: u32) -> String {
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

/// A run that can be told from everything else on the machine: a variable in the environment names
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

/// How often each queue held a packet for each time in ns, as a capture says of both ports.
pub(crate) fn holds(path: &str) -> BTreeMap<(u16, u64), usize> {
    let bytes = fs::read(path).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let mut holds = BTreeMap::new();
    for comment in text.split("hold=").skip(1) {
        let number = |text: &str| -> Option<u64> {
            text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        let (micros, rest) = comment.split_once('.').unwrap();
        let queue = rest.split_once("queue=").and_then(|(_, queue)| number(queue));
        let (Some(micros), Some(nanos), Some(queue)) = (number(micros), number(rest), queue) else {
            panic!("no hold in {}", comment.get(..80).unwrap_or(comment));
        };
        *holds.entry((queue as u16, micros * 1_000 + nanos)).or_default() += 1;
    }
    holds
}
