//! A command at work, and how it ended.

use std::io::{BufRead, BufReader, Read, pipe};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use signal_hook::consts::SIGINT;
use sys::signals::is_ignored;

use super::{EARMARK, PATIENCE, has, soon};

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// As a shell has it: 128 and the signal for a command that was killed.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let code = output.status.code();
        Self { code: code.unwrap_or_else(|| 128 + output.status.signal().unwrap()), stdout, stderr }
    }
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
        assert_eq!(self.code, 0, "{self:?}");
        self.printed_json()
    }

    /// The standard output as JSON, whatever the status.
    #[track_caller]
    pub(crate) fn printed_json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Requires success, and that standard output has all of `words`.
    #[track_caller]
    pub(crate) fn says(&self, words: &[&str]) {
        has(self.output(), words);
    }

    /// Requires a failure whose message has all of `words` in it and no trace of a panic.
    #[track_caller]
    pub(crate) fn refused(&self, words: &[&str]) {
        assert!(self.code == 1 || self.code == 2, "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        has(&self.stderr, words);
    }
}

/// A command at work, in a process group of its own; killed if the test fails on the way.
pub(crate) struct Running {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: Option<JoinHandle<()>>,
    /// What has come on standard error so far.
    errors: Arc<Mutex<String>>,
    /// The lines that were read from standard output.
    lines: String,
}

impl Running {
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        // A shell that starts tests with `&` has them ignore SIGINT, and a command would as well;
        // with a handler here, what is started has the usual one.
        if is_ignored(SIGINT) {
            signal_hook::flag::register(SIGINT, Arc::default()).unwrap();
        }
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
        Self { child, stdout, stderr: Some(stderr), errors, lines: String::new() }
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
    /// has printed, so that a test that waits for a line ends.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        if self.stdout.as_mut().unwrap().read_line(&mut line).unwrap() == 0 {
            let errors = self.errors();
            panic!("it ended, and had printed: {}{errors}", self.lines);
        }
        self.lines += &line;
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

    /// Its standard input, if that is piped.
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
            stdout: std::mem::take(&mut self.lines) + &reader.join().unwrap(),
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

/// The exit status that shells give to a program that SIGPIPE has ended.
pub(crate) const BROKEN_PIPE: i32 = 141;

/// Runs a command whose output goes into a pipe without a reader.
#[track_caller]
pub(crate) fn into_closed_pipe(command: &mut Command) -> Ended {
    let (_, writer) = pipe().unwrap();
    let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    child.wait_with_output().unwrap().into()
}

/// The command, started with SIGINT and SIGHUP ignored.
pub(crate) fn ignoring_signals(arguments: &[&str]) -> Running {
    let mut command = Command::new("env");
    command.args(["--default-signal=TERM", "--ignore-signal=INT,HUP", EARMARK]).args(arguments);
    Running::start(command.stdin(Stdio::piped()))
}

/// Whether a set of signals in `/proc/PID/status` has this one.
pub(crate) fn has_signal(run: &Running, set: &str, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(set)).unwrap();
    let set = u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap();
    set & 1 << (signal.as_raw() - 1) != 0
}
