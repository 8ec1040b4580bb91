//! `earmark mpirun`: a program of Debian's Open MPI on hosts of ours, and what it leaves behind.

use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{
    Directory, EARMARK, Ended, Running, Traced, compile_mpi, earmark, kill, needs, output,
    provider, refuses, run, unique,
};

/// Each rank sends its number around, says where it is, and ends as its arguments say.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
    static char block[200000];
    char host[64];
    int rank, ranks, sum;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    gethostname(host, sizeof host);
    for (int turn = 0; turn < 20; turn++) {
        memset(block, rank + turn, sizeof block);
        MPI_Sendrecv_replace(block, turn * 10000, MPI_CHAR, (rank + 1) % ranks, 7,
                             (rank + ranks - 1) % ranks, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int at = 0; at < turn * 10000; at++)
            if (block[at] != (char)((rank + ranks - 1) % ranks + turn)) MPI_Abort(MPI_COMM_WORLD, 9);
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d on %s: %d %s\n", rank, ranks, host, sum, getenv("EARMARK_TEST_WORD"));
    fflush(stdout);
    if (count > 2) { printf("ready\n"); fflush(stdout); sleep(1000); }
    MPI_Finalize();
    return count > 1 ? atoi(words[1]) : 0;
}
"#;

/// The program, compiled.
struct Compiled {
    directory: Directory,
    /// The launcher of its MPI, if that is not the one on the path.
    launcher: Option<String>,
}

impl Compiled {
    /// With the MPI that distributions have.
    #[track_caller]
    fn new() -> Self {
        Self::with("mpicc", None)
    }

    /// With that and those that the environment names, as for the tests of the provider.
    #[track_caller]
    fn with_each() -> Vec<Self> {
        let named = std::env::var("EARMARK_TEST_MPI").unwrap_or_default();
        let named = named.split(',').filter(|part| !part.is_empty());
        let others = named.map(|part| {
            let (_, programs) = part.split_once(':').expect("KIND:DIRECTORY");
            Self::with(&format!("{programs}/mpicc"), Some(format!("{programs}/mpiexec")))
        });
        std::iter::once(Self::new()).chain(others).collect()
    }

    #[track_caller]
    fn with(compiler: &str, launcher: Option<String>) -> Self {
        let compiled = Self { directory: Directory::new(), launcher };
        let source = compiled.directory.write("program.c", PROGRAM);
        compile_mpi(compiler, source.as_ref(), compiled.program().as_ref());
        compiled
    }

    fn program(&self) -> String {
        self.directory.file("program")
    }

    /// A command that runs the program.
    fn command(&self, options: &[&str], words: &[&str]) -> Command {
        let name = unique("mpi");
        let provider = provider();
        let provider = provider.to_str().unwrap();
        let mut command = earmark(&["mpirun", "--name", &name, "--provider", provider]);
        command.args(self.launcher.iter().flat_map(|path| ["--launcher", path]));
        command.args(options).arg("--").arg(self.program()).args(words);
        command.env("EARMARK_TEST_WORD", "through");
        command
    }

    #[track_caller]
    fn run(&self, options: &[&str], words: &[&str]) -> Ended {
        output(&mut self.command(options, words))
    }
}

#[track_caller]
fn lines(ended: &Ended) -> Vec<&str> {
    let mut lines: Vec<_> = ended.output().lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn program_runs_over_earmark_and_over_tcp() {
    needs!("mpicc", "mpirun");
    for program in Compiled::with_each() {
        let json = program.directory.file("counted.json");
        let options = ["--strategy", "marked:75", "--mark", "mx", "--net", "earmark,tcp"];
        let ended = program.run(&[&options[..], &["--json", &json]].concat(), &[]);
        let (a, b) = ("rank 0 of 2 on a: 1 through", "rank 1 of 2 on b: 1 through");
        assert_eq!(lines(&ended), [a, a, b, b], "{ended:?}");
        assert!(ended.stderr.contains("interrupts b"), "{ended:?}");
        let text = std::fs::read_to_string(&json).unwrap();
        let counted: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&counted["schema_version"], &counted["ranks"]), (&2.into(), &2.into()));
        assert!(counted["mpi"].as_str().unwrap().contains("MPI"), "{text}");
        for (number, net) in ["earmark", "tcp"].into_iter().enumerate() {
            let result = &counted["results"][number];
            assert_eq!((&result["net"], &result["setting"]), (&net.into(), &"marked:75".into()));
            for host in result["runs"][0]["hosts"].as_array().unwrap() {
                // Only frames of MX have this mark.
                assert_eq!(host["marked"].as_u64() > Some(0), net == "earmark", "{text}");
                assert!(host["interrupts"].as_u64() > Some(0), "{text}");
            }
            assert!(result["frames"].as_f64() > Some(1000.0), "{text}");
        }
    }
}

#[test]
fn settings_have_their_turns() {
    needs!("mpicc", "mpirun");
    let program = Compiled::new();
    let options = ["-n", "3", "--compare", "marked:75,delay:75", "--repeat", "2"];
    let ended = program.run(&options, &[]);
    let said = lines(&ended);
    assert_eq!(said.len(), 12, "{ended:?}");
    assert_eq!(said.iter().filter(|line| line.contains("of 3 on a: 3")).count(), 8, "{ended:?}");
    for part in ["3/4: marked:75, earmark", "4/4: delay:75", "medians of 2 runs"] {
        assert!(ended.stderr.contains(part), "no `{part}` in {ended:?}");
    }
}

#[test]
fn exit_status_is_that_of_the_program() {
    needs!("mpicc", "mpirun");
    let program = Compiled::new();
    let ended = program.run(&["--compare", "marked:75,delay:75"], &["3"]);
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(!ended.stderr.contains("2/2"), "the first failure is the end: {ended:?}");
}

#[test]
fn nothing_is_left_whatever_ends_it() {
    needs!("mpicc", "mpirun");
    let program = Compiled::new();
    for signal in [Signal::INT, Signal::KILL] {
        let mut traced = Traced::new();
        let provider = provider();
        let mut command = traced.command(&["mpirun", "--provider", provider.to_str().unwrap()]);
        let mut run = Running::start(command.arg("--").arg(program.program()).args(["0", "wait"]));
        run.await_line("ready");
        traced.note();
        if signal == Signal::INT {
            run.signal_group(signal);
        } else {
            run.signal(signal);
        }
        let ended = run.end();
        assert_ne!(ended.code, 0, "{signal:?}: {ended:?}");
        traced.gone(&[]);
    }
}

#[test]
fn works_without_root() {
    needs!("mpicc", "mpirun");
    let program = Compiled::new();
    // An unprivileged user may not reach into the directories of others.
    let script = "set -e; mount -t tmpfs -o mode=755 tmpfs /mnt; mkdir -m 777 /mnt/home; \
                  cp \"$@\" /mnt; mknod /mnt/tun c 10 200; chmod 666 /mnt/tun; \
                  mount --bind /mnt/tun /dev/net/tun; cd /mnt/home; exec setpriv --reuid 65534 \
                  --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all \
                  env HOME=/mnt/home /mnt/earmark mpirun --provider /mnt /mnt/program";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh", EARMARK, &program.program()]);
    command.arg(provider().join("libearmark_fi.so")).env("EARMARK_TEST_WORD", "through");
    let ended = output(&mut command);
    let expected = ["rank 0 of 2 on a: 1 through", "rank 1 of 2 on b: 1 through"];
    assert_eq!(lines(&ended), expected, "{ended:?}");
    assert!(ended.stderr.contains("user namespace"), "{ended:?}");
}

#[test]
fn killed_host_is_named() {
    needs!("mpicc", "mpirun");
    let program = Compiled::new();
    let mut traced = Traced::new();
    let provider = provider();
    let mut command = traced.command(&["mpirun", "--provider", provider.to_str().unwrap()]);
    let mut run = Running::start(command.arg(program.program()).args(["0", "wait"]));
    run.await_line("ready");
    traced.note();
    kill(traced.process("earmark-b"));
    run.end().refused(&["host b has ended"]);
    traced.gone(&[]);
}

#[test]
fn environment_is_printed_for_launchers_of_others() {
    needs!("mpicc", "mpirun");
    let directory = Directory::new();
    directory.write("libearmark-fi.so", "");
    let base = ["mpirun", "--print-env", "--provider", directory.path().to_str().unwrap()];
    let all = run(&base);
    let path = format!("export FI_PROVIDER_PATH={}\n", directory.path().display());
    let (openmpi, mpich) = ("export OMPI_MCA_pml=cm\n", "export MPIR_CVAR_CH4_NETMOD=ofi\n");
    for part in [&path, openmpi, mpich, "srun --mpi=pmix", "srun --mpi=pmi2"] {
        assert!(all.output().contains(part), "no `{part}` in {all:?}");
    }
    let mpich = run(&[&base[..], &["--mpi", "mpich"]].concat());
    assert!(!mpich.output().contains("OMPI"), "{mpich:?}");
    // A shell takes it.
    let script = format!("{}\nexec printenv FI_PROVIDER", all.output());
    assert_eq!(output(Command::new("sh").args(["-ec", &script])).output(), "earmark\n");
}

/// A launcher that says this of its version.
fn launcher(directory: &Directory, says: &str) -> String {
    directory.script("launcher", &format!("#!/bin/sh\necho '{says}'\n"))
}

#[test]
fn bad_input_is_refused_with_the_next_step() {
    let directory = Directory::new();
    let place = directory.path().to_str().unwrap();
    let text = directory.write("text", "no program");
    run(&["mpirun", &text]).refused(&["cannot be executed", "chmod +x"]);
    let missing = ["no provider", place, "cargo build", "--provider DIR"];
    run(&["mpirun", "--provider", place, "true"]).refused(&missing);
    refuses(&[
        ("mpirun -- /no/such", &["no program /no/such", "compile it"]),
        ("mpirun no-such-program", &["no program no-such-program", "./no-such-program"]),
        ("mpirun --launcher /no/such true", &["/no/such", "which mpirun"]),
        ("mpirun --launcher /bin/true true", &["no launcher that is known", "Open MPI"]),
        ("mpirun --hosts uml true", &["--hosts uml", "leave it out"]),
        ("mpirun -s marked --compare delay:75 true", &["--compare", "drop --strategy"]),
        ("mpirun -n 0 true", &["--ranks", "1..=1024"]),
        ("mpirun --nodes 27 true", &["--nodes", "1..=26"]),
        ("mpirun --net udp true", &["earmark, tcp"]),
        ("mpirun --json /no/such/file --net tcp true", &["/no/such/file", "another place"]),
        ("mpirun", &["PROGRAM"]),
    ]);
}

#[test]
fn missing_mpis_are_named_with_what_has_them() {
    needs!("mpicc", "mpirun");
    let mut without = Command::new(EARMARK);
    output(without.args(["mpirun", "/bin/true"]).env("PATH", "/nowhere")).refused(&[
        "no MPI on $PATH",
        "openmpi-bin",
        "--launcher",
    ]);
    let mut without = Command::new(EARMARK);
    output(without.args(["mpirun", "--mpi", "mpich", "/bin/true"]).env("PATH", "/nowhere"))
        .refused(&["no MPICH on $PATH", "pip install mpich"]);
    let directory = Directory::new();
    let debian = "HYDRA build details:\n Version: 4.0.2\n Configure: --with-device=ch4:ucx --x";
    let path = launcher(&directory, debian);
    run(&["mpirun", "--launcher", &path, "/bin/true"]).refused(&[
        "MPICH 4.0.2",
        "not built with libfabric",
        "pip install mpich",
        "--net tcp",
    ]);
    run(&["mpirun", "--mpi", "openmpi", "--launcher", &path, "/bin/true"])
        .refused(&["is of MPICH 4.0.2", "drop --mpi"]);
}
