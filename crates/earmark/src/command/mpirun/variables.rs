//! What an MPI finds in its environment: which network it is to use.

use super::launcher::{LauncherKind, Mpi};
use report::outln;
use report::shell::quoted;

/// Names and values.
pub(super) type Variables = Vec<(&'static str, String)>;

/// What carries the messages of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Net {
    /// MX, through our provider for libfabric
    #[default]
    Earmark,
    /// The MPI's own TCP, over the same NIC
    Tcp,
}

impl Net {
    /// As it is typed.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Earmark => "earmark",
            Self::Tcp => "tcp",
        }
    }
}

/// Open MPI over our provider. `osc/ucx` as packaged fails on every network.
const OPEN_MPI: [(&str, &str); 5] = [
    ("OMPI_MCA_pml", "cm"),
    ("OMPI_MCA_mtl", "ofi"),
    ("OMPI_MCA_osc", "^ucx"),
    ("OMPI_MCA_mtl_ofi_provider_include", "earmark"),
    ("OMPI_MCA_opal_common_ofi_provider_include", "earmark"),
];

/// MPICH over our provider.
const MPICH: [(&str, &str); 1] = [("MPIR_CVAR_CH4_NETMOD", "ofi")];

/// What MPIs need to send over our provider, which is in `directory`.
fn over_provider(mpi: Mpi, directory: &str) -> Variables {
    let mut variables =
        vec![("FI_PROVIDER_PATH", directory.to_owned()), ("FI_PROVIDER", "earmark".to_owned())];
    let owned = |(name, value): (&'static str, &str)| (name, value.to_owned());
    if mpi != Mpi::Mpich {
        variables.extend(OPEN_MPI.map(owned));
    }
    if mpi != Mpi::Openmpi {
        variables.extend(MPICH.map(owned));
    }
    variables
}

/// What a rank needs on a host of the lab whose interface is `interface`.
pub(super) fn in_lab(
    kind: LauncherKind,
    net: Net,
    has_ofi: bool,
    interface: &str,
    provider: &str,
) -> Variables {
    let mpi = if kind == LauncherKind::Hydra { Mpi::Mpich } else { Mpi::Openmpi };
    if net == Net::Earmark {
        let mut variables = over_provider(mpi, provider);
        variables.push(("EARMARK_PORT", format!("packet:{interface}")));
        return variables;
    }
    // Segments in shared memory go where nothing is left of them.
    let (shared, files) = match kind {
        LauncherKind::OpenMpi4 => ("vader", "OMPI_MCA_btl_vader_backing_directory"),
        _ => ("sm", "OMPI_MCA_btl_sm_backing_directory"),
    };
    let text = |name, value: &str| (name, value.to_owned());
    match kind {
        LauncherKind::OpenMpi4 | LauncherKind::OpenMpi5 => vec![
            text("OMPI_MCA_pml", "ob1"),
            text("OMPI_MCA_osc", "^ucx"),
            ("OMPI_MCA_btl", format!("tcp,self,{shared}")),
            text("OMPI_MCA_btl_tcp_if_include", interface),
            text(files, "/run"),
        ],
        LauncherKind::Hydra if has_ofi => vec![
            text("MPIR_CVAR_CH4_NETMOD", "ofi"),
            text("FI_PROVIDER", "tcp"),
            text("FI_TCP_IFACE", interface),
        ],
        LauncherKind::Hydra => {
            vec![text("UCX_TLS", "tcp,self,sm"), text("UCX_NET_DEVICES", interface)]
        }
    }
}

/// Prints the environment for a launcher of the user's own.
pub(super) fn print(mpi: Mpi, directory: &str) {
    outln!("# Earmark for MPI. In a shell: eval \"$(earmark mpirun --print-env)\"");
    outln!("# The directory has to be there on every host.");
    for (name, value) in over_provider(mpi, directory) {
        outln!("export {name}={}", quoted(&value));
    }
    outln!("# Where frames travel, if a host has more than one Ethernet interface that is up;");
    outln!("# without CAP_NET_RAW, udp:eth0:");
    outln!("# export EARMARK_PORT=packet:eth0");
    if mpi != Mpi::Mpich {
        outln!("# Open MPI takes variables to other hosts if they are named:");
        outln!("#   mpirun -x FI_PROVIDER_PATH -x FI_PROVIDER --host a,b -np 2 ./program");
        outln!("# Slurm takes them all:");
        outln!("#   srun --mpi=pmix -N 2 ./program");
    }
    if mpi != Mpi::Openmpi {
        outln!("# MPICH takes them all, and so does Slurm:");
        outln!("#   mpiexec -hosts a,b -ppn 1 -n 2 ./program");
        outln!("#   srun --mpi=pmi2 -N 2 ./program");
    }
}
