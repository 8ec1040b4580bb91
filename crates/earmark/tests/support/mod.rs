//! What the tests of the command share: runs of it, labs to talk to, and what a run leaves behind.
#![allow(dead_code, unused_imports, reason = "each binary uses its own part")]

pub(crate) mod browser;
mod directory;
pub(crate) mod documents;
#[path = "../../src/help/examples.rs"]
pub(crate) mod examples;
mod lab;
pub(crate) mod needs;
pub(crate) mod remedies;
pub(crate) mod results;
mod running;
pub(crate) mod shards;
mod traced;
mod waiting;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

pub(crate) use directory::{Directory, unique};
pub(crate) use lab::{ENDLESS, Lab, in_network, lab_run, on_host, once_ready, own_echo, udp_echo};
pub(crate) use needs::needs;
pub(crate) use running::{
    BROKEN_PIPE, Ended, Running, has_signal, ignoring_signals, into_closed_pipe,
};
pub(crate) use traced::{Traced, kill, processes};
pub(crate) use waiting::{PATIENCE, soon, soon_some};

/// The command under test.
pub(crate) const EARMARK: &str = env!("CARGO_BIN_EXE_earmark");

/// A path below the root of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The text of a file of the repository.
#[track_caller]
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The command with `arguments`, with the signal dispositions of a terminal's programs: tests that
/// were started in the background or by `nohup` ignore signals, and what they start inherits that.
pub(crate) fn earmark(arguments: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,HUP,QUIT,TERM,PIPE", EARMARK]).args(arguments);
    command
}

/// Runs the command to its end.
#[track_caller]
pub(crate) fn run(arguments: &[&str]) -> Ended {
    Running::start(earmark(arguments).stdin(Stdio::null())).end()
}

/// The examples of help that need this, as lines of a shell.
pub(crate) fn example_lines(needs: examples::Needs) -> Vec<&'static str> {
    let such = examples::all().filter(|example| example.needs == needs);
    such.map(|example| example.line).collect()
}

/// Runs a line of a shell to its good end, in a directory of its own.
#[track_caller]
pub(crate) fn typed(line: &str) {
    let directory = Directory::new();
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("set -e -o pipefail; {AS_TYPED}\n{line}")]);
    shell.current_dir(directory.path()).env("HOME", directory.path());
    let ended = output(&mut shell);
    assert_eq!(ended.code, 0, "{line}: {ended:?}");
}

/// A shell's functions for the words that a user types.
pub(crate) const AS_TYPED: &str =
    concat!("earmark() { ", env!("CARGO_BIN_EXE_earmark"), " \"$@\"; }; sudo() { \"$@\"; };");

/// Runs the command with the words of a line, which are divided as a shell does.
#[track_caller]
pub(crate) fn run_line(line: &str) -> Ended {
    let words = shlex::split(line).unwrap_or_else(|| panic!("no words: {line}"));
    run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Requires of each line that the command refuses it, with these words.
#[track_caller]
pub(crate) fn refuses(cases: &[(&str, &[&str])]) {
    for (line, words) in cases {
        run_line(line).refused(words);
    }
}

/// Runs a command of any kind to its end.
#[track_caller]
pub(crate) fn output(command: &mut Command) -> Ended {
    Running::start(command.stdin(Stdio::null())).end()
}

/// Requires that a text has all of `words`.
#[track_caller]
pub(crate) fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no `{word}` in {text}");
    }
}

/// A TCP port of the loopback. It is bound, so the kernel assigns it to no other socket, and it
/// does not listen, so a server that sets `SO_REUSEADDR`, as servers do, may listen on it.
pub(crate) struct HeldPort {
    pub(crate) number: u16,
    _holder: OwnedFd,
}

impl HeldPort {
    pub(crate) fn new() -> Self {
        let holder = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        set_socket_reuseaddr(&holder, true).unwrap();
        bind(&holder, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = SocketAddr::try_from(getsockname(&holder).unwrap()).unwrap();
        Self { number: address.port(), _holder: holder }
    }
}

/// Compiles a program with an MPI's compiler, and into it what `finalize.c` says why.
#[track_caller]
pub(crate) fn compile_mpi(mpicc: &str, source: &Path, program: &Path) {
    let finalize = repository("crates/mx/provider/tests/programs/finalize.c");
    let mut mpicc = Command::new(mpicc);
    mpicc.args(["-O1", "-pthread", "-o"]).arg(program).arg(source).arg(finalize);
    output(&mut mpicc).output();
}

/// The directory into which cargo puts the provider that it builds with the tests.
#[track_caller]
pub(crate) fn provider() -> PathBuf {
    shared_library("libearmark_fi.so", "earmark-provider").parent().unwrap().to_owned()
}

/// A shared library that cargo builds with the tests, of a package.
#[track_caller]
pub(crate) fn shared_library(name: &str, package: &str) -> PathBuf {
    let library = std::env::current_exe().unwrap().with_file_name(name);
    assert!(library.exists(), "no {}; run: cargo build -p {package}", library.display());
    library
}
