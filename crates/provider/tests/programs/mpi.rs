//! MPI: `conformance.c`, compiled and started by each MPI that there is.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::hosts::{Hosts, NAMES, NETWORK, run};

/// How often the sending of a frame fails in the tests with loss.
const LOSS: (&str, &str) = ("EARMARK_FAULTS", "drop:100");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    OpenMpi4,
    OpenMpi5,
    Mpich,
}

struct Mpi {
    kind: Kind,
    /// Where its programs are; on the path if that is empty.
    programs: PathBuf,
}

impl Mpi {
    /// Those that distributions have, and those that the environment names.
    fn all() -> Vec<Self> {
        let named = std::env::var("EARMARK_TEST_MPI").unwrap_or_default();
        let more = named.split(',').filter(|part| !part.is_empty()).map(|part| {
            let (kind, programs) = part.split_once(':').expect("KIND:DIRECTORY");
            let kind = if kind == "mpich" { Kind::Mpich } else { Kind::OpenMpi5 };
            Self { kind, programs: programs.into() }
        });
        let packaged = Self { kind: Kind::OpenMpi4, programs: PathBuf::new() };
        std::iter::once(packaged).chain(more).collect()
    }

    fn compile(&self, hosts: &Hosts) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/conformance.c");
        let program = hosts.path(&format!("conformance-{:?}", self.kind));
        let mut compiler = Command::new(self.programs.join("mpicc"));
        run(compiler.arg("-O1").arg("-o").arg(&program).arg(source).arg("-pthread"));
        program
    }

    /// A command that starts so many ranks on each host; the program and its arguments follow.
    fn launch(&self, hosts: &Hosts, ranks: usize, variables: &[(&str, &str)]) -> Command {
        let all = (ranks * NAMES.len()).to_string();
        let places = NAMES.map(|name| format!("{name}:{ranks}")).join(",");
        let rsh = hosts.path("rsh");
        let program = if self.kind == Kind::Mpich { "mpiexec.hydra" } else { "mpirun" };
        let mut command = hosts.command(NAMES[0], self.programs.join(program));
        for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
            command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
        }
        match self.kind {
            Kind::OpenMpi4 => {
                command.args(["--host", &places, "-np", &all, "--bind-to", "none"]);
                command.args(["--mca", "plm_rsh_agent"]).arg(rsh);
                command.args(["--mca", "oob_tcp_if_include", NETWORK, "--mca", "pml", "cm"]);
                command.args(["--mca", "mtl", "ofi", "--mca", "osc", "^ucx"]);
                command.args(["--mca", "mtl_ofi_provider_include", "earmark"]);
            }
            Kind::OpenMpi5 => {
                command.args(["--host", &places, "-np", &all, "--bind-to", "none"]);
                command.args(["--prtemca", "plm_ssh_agent"]).arg(rsh);
                command.args(["--prtemca", "prte_if_include", "eth0", "--mca", "pml", "cm"]);
                command.args(["--mca", "mtl", "ofi"]);
                command.args(["--mca", "opal_common_ofi_provider_include", "earmark"]);
            }
            Kind::Mpich => {
                command.args(["-launcher", "ssh", "-launcher-exec"]).arg(rsh);
                command.args(["-hosts", &NAMES.join(","), "-ppn", &ranks.to_string()]);
                command.args(["-n", &all, "-bind-to", "none"]);
                command.args(["-genv", "MPIR_CVAR_CH4_NETMOD", "ofi"]);
                command.args(["-genv", "FI_PROVIDER", "earmark"]);
            }
        }
        let provider = hosts.path("provider").display().to_string();
        let own = [("FI_PROVIDER_PATH", &*provider), ("EARMARK_PORT", "packet:eth0")];
        for (name, value) in own.iter().chain(variables) {
            if self.kind == Kind::Mpich {
                command.args(["-genv", name, value]);
            } else {
                command.args(["-x", &format!("{name}={value}")]);
            }
        }
        command
    }
}

/// Runs the program with these arguments on every MPI, and sees that our endpoints were used.
fn conforms(ranks: usize, variables: &[(&str, &str)], arguments: &[&str]) {
    let hosts = Hosts::new();
    for mpi in Mpi::all() {
        let program = mpi.compile(&hosts);
        let variables = [&[("EARMARK_VERBOSE", "1")], variables].concat();
        let mut command = mpi.launch(&hosts, ranks, &variables);
        let text = run(command.arg(&program).args(arguments));
        assert!(text.contains("all passed"), "{command:?}: {text}");
        let endpoints = text.matches(" on packet:eth0, MTU").count();
        assert!(endpoints >= 2 * ranks, "{command:?}: {endpoints} endpoints: {text}");
    }
}

#[test]
fn conforms_between_two_hosts() {
    conforms(1, &[], &["short", "rma"]);
}

#[test]
fn conforms_with_two_ranks_on_each_host() {
    conforms(2, &[], &["short"]);
}

#[test]
fn conforms_with_loss() {
    conforms(1, &[LOSS], &["short"]);
}

#[test]
fn conforms_with_threads() {
    // Open MPI 4 as packaged has no MPI_THREAD_MULTIPLE for one-sided operations.
    conforms(1, &[], &["short", "threads"]);
}
