//! MPIs, and how each starts ranks on the hosts, over which network.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::hosts::{Hosts, NAMES, NETWORK, run};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MpiImplementation {
    OpenMpi4,
    OpenMpi5,
    Mpich,
}

pub(crate) struct Mpi {
    pub(crate) kind: MpiImplementation,
    /// Where its programs are; on the path if that is empty.
    pub(crate) programs: PathBuf,
}

impl Mpi {
    pub(crate) fn all() -> Vec<Self> {
        let named = std::env::var("EARMARK_TEST_MPI").unwrap_or_default();
        let more = named.split(',').filter(|part| !part.is_empty()).map(|part| {
            let (kind, programs) = part.split_once(':').expect("KIND:DIRECTORY");
            let kind = if kind == "mpich" {
                MpiImplementation::Mpich
            } else {
                MpiImplementation::OpenMpi5
            };
            Self { kind, programs: programs.into() }
        });
        std::iter::once(Self::packaged()).chain(more).collect()
    }

    pub(crate) fn packaged() -> Self {
        Self { kind: MpiImplementation::OpenMpi4, programs: PathBuf::new() }
    }

    /// Compiles a program that is beside the tests.
    pub(crate) fn compile(&self, hosts: &Hosts, name: &str) -> PathBuf {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let parts = [name, "finalize"].map(|part| sources.join(part).with_extension("c"));
        let program = hosts.path(&format!("{name}-{:?}", self.kind));
        let mut compiler = Command::new(self.programs.join("mpicc"));
        run(compiler.arg("-O1").arg("-o").arg(&program).args(parts).arg("-pthread"));
        program
    }

    /// A command that starts so many ranks on each host; the program and its arguments follow.
    pub(crate) fn launch(
        &self,
        hosts: &Hosts,
        start: (Net, usize),
        variables: &[(&str, &str)],
    ) -> Command {
        self.launch_on(hosts, &NAMES, start, variables)
    }

    /// As [`launch`](Self::launch), on some of the hosts, the first of which is the first.
    pub(crate) fn launch_on(
        &self,
        hosts: &Hosts,
        names: &[&str],
        (net, ranks): (Net, usize),
        variables: &[(&str, &str)],
    ) -> Command {
        let all = (ranks * names.len()).to_string();
        let places: Vec<_> = names.iter().map(|name| format!("{name}:{ranks}")).collect();
        let places = places.join(",");
        let rsh = hosts.path("rsh");
        let program =
            if self.kind == MpiImplementation::Mpich { "mpiexec.hydra" } else { "mpirun" };
        let mut command = hosts.command(NAMES[0], self.programs.join(program));
        for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
            command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
        }
        match self.kind {
            MpiImplementation::OpenMpi4 => {
                command.args(["--host", &places, "-np", &all, "--bind-to", "none"]);
                command.args(["--mca", "plm_rsh_agent"]).arg(rsh);
                command.args(["--mca", "oob_tcp_if_include", NETWORK]);
            }
            MpiImplementation::OpenMpi5 => {
                command.args(["--host", &places, "-np", &all, "--bind-to", "none"]);
                command.args(["--prtemca", "plm_ssh_agent"]).arg(rsh);
                command.args(["--prtemca", "prte_if_include", "eth0"]);
            }
            MpiImplementation::Mpich => {
                command.args(["-launcher", "ssh", "-launcher-exec"]).arg(rsh);
                command.args(["-hosts", &names.join(","), "-ppn", &ranks.to_string()]);
                command.args(["-n", &all, "-bind-to", "none"]);
            }
        }
        command.args(net.options(self.kind));
        let provider = hosts.path("provider").display().to_string();
        let own = [("FI_PROVIDER_PATH", &*provider), ("EARMARK_PORT", "packet:eth0")];
        let own = own.iter().filter(|_| net == Net::Earmark);
        for (name, value) in own.chain(variables) {
            if self.kind == MpiImplementation::Mpich {
                command.args(["-genv", name, value]);
            } else {
                command.args(["-x", &format!("{name}={value}")]);
            }
        }
        command
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Net {
    /// The provider of this crate.
    Earmark,
    #[allow(dead_code, reason = "the figures compare")]
    Tcp,
    /// The MPI's own shared memory, within a host.
    #[allow(dead_code, reason = "the figures compare")]
    Vader,
    /// UCX over TCP.
    #[allow(dead_code, reason = "the figures compare")]
    Ucx,
    /// libfabric's `tcp;ofi_rxm`: messages over connections.
    #[allow(dead_code, reason = "the figures compare")]
    Rxm,
}

impl Net {
    fn options(self, kind: MpiImplementation) -> Vec<&'static str> {
        let provider = match self {
            Self::Earmark => "earmark",
            Self::Tcp | Self::Rxm | Self::Vader | Self::Ucx => "tcp",
        };
        match (kind, self) {
            (MpiImplementation::Mpich, _) => {
                vec!["-genv", "MPIR_CVAR_CH4_NETMOD", "ofi", "-genv", "FI_PROVIDER", provider]
            }
            (_, Self::Tcp) => {
                let tcp = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"];
                [&tcp[..], &["--mca", "btl_tcp_if_include", "eth0"]].concat()
            }
            (_, Self::Ucx) => {
                let any = ["--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"];
                let tcp = ["-x", "UCX_TLS=tcp,self", "-x", "UCX_NET_DEVICES=eth0"];
                [&["--mca", "pml", "ucx"][..], &any, &tcp].concat()
            }
            (_, Self::Vader) => vec!["--mca", "pml", "ob1", "--mca", "btl", "vader,self"],
            (_, _) => {
                let include = match kind {
                    MpiImplementation::OpenMpi4 => "mtl_ofi_provider_include",
                    _ => "opal_common_ofi_provider_include",
                };
                let ofi = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "osc", "^ucx"];
                [&ofi[..], &["--mca", include, provider]].concat()
            }
        }
    }
}
