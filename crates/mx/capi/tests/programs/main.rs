//! The C API as C programs see it: the header compiles, the example runs, and calls mean what the
//! manual says. The tests between hosts need root.

mod manual;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// How the header and the programs have to compile: without a word.
const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"];

pub(crate) fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A directory with the library under the names by which linkers and programs look for it.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let library = test.with_file_name("libearmark_capi.so");
    assert!(library.exists(), "no {}; run: cargo build -p earmark-capi", library.display());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lib");
    std::fs::create_dir_all(&directory).unwrap();
    for name in ["libearmark.so", "libearmark.so.0"] {
        // Tests run at once, and a link that is there is as good.
        let _ = std::os::unix::fs::symlink(&library, directory.join(name));
    }
    directory
}

fn compile(source: &str, name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let directory = libraries();
    let mut compiler = Command::new("cc");
    compiler.args(STRICT).arg("-std=c99").arg("-I").arg(here("include"));
    compiler.arg("-o").arg(&program).arg(here(source)).arg("-L").arg(&directory);
    compiler.args(["-learmark", "-pthread"]).arg(format!("-Wl,-rpath,{}", directory.display()));
    run(&mut compiler);
    program
}

fn limited(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "60"]).arg(program);
    command
}

#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; the programs of the tests: cargo xtask peers")
    });
    let text = all_of(&output);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

fn all_of(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn header_compiles_as_c_and_as_cpp() {
    for (compiler, standard, language) in
        [("cc", "-std=c99", "c"), ("cc", "-std=c11", "c"), ("c++", "-std=c++11", "c++")]
    {
        let mut command = Command::new(compiler);
        command.args(STRICT).args([standard, "-x", language, "-fsyntax-only"]);
        run(command.arg(here("tests/programs/header.c")).arg("-I").arg(here("include")));
    }
}

#[test]
fn example_runs_within_a_process() {
    let program = compile("examples/pingpong.c", "pingpong-alone");
    let text = run(limited(&program).arg("udp:127.0.0.1"));
    assert_eq!(text.matches("us one way").count(), 5, "{text}");
}

#[test]
fn example_refuses_what_it_cannot_open_and_says_why() {
    let program = compile("examples/pingpong.c", "pingpong-refused");
    let output = limited(&program).arg("tcp:eth0").output().unwrap();
    let text = all_of(&output);
    assert!(!output.status.success() && text.contains("use packet:IFACE"), "{text}");
}

#[test]
fn calls_mean_what_the_manual_says() {
    let program = compile("tests/programs/semantics.c", "semantics");
    let text = run(limited(&program).arg("udp:127.0.0.1"));
    assert!(text.contains("all passed"), "{text}");
}

#[test]
fn valgrind_has_nothing_to_say() {
    let program = compile("tests/programs/small.c", "small");
    let mut valgrind = limited(Path::new("valgrind"));
    // Its threads have to have their turns, or who looks again and again starves the others.
    valgrind.args(["--quiet", "--fair-sched=yes", "--leak-check=full", "--error-exitcode=9"]);
    let text = run(valgrind.arg(program).arg("udp:127.0.0.1"));
    assert_eq!(text, "all passed\n");
}

/// Namespaces with a veth pair in them, which go when the test does: `va` and `vb` are its ends.
#[test]
fn example_runs_between_two_interfaces() {
    let program = compile("examples/pingpong.c", "pingpong-veth");
    let script = "ip link set lo up && ip link add va type veth peer name vb && \
                  ip link set va up && ip link set vb up && echo ready && \
                  \"$0\" packet:vb";
    let mut outside = Command::new("setpriv");
    outside.args(["--pdeathsig", "KILL", "unshare", "--net", "timeout", "60", "sh", "-c", script]);
    let mut server = outside.arg(&program).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let first = lines.next().expect("no namespace of its own; run the tests as root").unwrap();
    assert_eq!(first, "ready");
    let waiting = lines.next().unwrap().unwrap();
    let address = waiting.strip_prefix("waiting at ").unwrap();
    let mut client = Command::new("nsenter");
    client.args(["-t", &server.id().to_string(), "-n", "timeout", "50"]).arg(&program);
    let text = run(client.args(["packet:va", address]));
    assert_eq!(text.matches("us one way").count(), 5, "{text}");
    assert!(server.wait().unwrap().success());
}

#[test]
fn semantics_hold_on_an_interface() {
    let program = compile("tests/programs/semantics.c", "semantics-veth");
    let script = "ip link set lo up && ip link add va type veth peer name vb && \
                  ip link set va up && ip link set vb up && exec \"$0\" packet:va packet:vb";
    let mut command = Command::new("unshare");
    command.args(["--net", "timeout", "60", "sh", "-c", script]).arg(&program);
    let text = run(&mut command);
    assert!(text.contains("all passed"), "{text}");
}
