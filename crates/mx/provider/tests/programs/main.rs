//! Programs that know libfabric or MPI, and nothing of Earmark, between two hosts.
//!
//! They need root and the packages that `cargo xtask peers` installs. `EARMARK_TEST_MPI` names
//! further MPIs, such as `openmpi:/opt/ompi/bin,mpich:/opt/mpich/bin`; `cargo xtask mpi` gets two.

mod hosts;
mod launch;
mod libfabric;
mod mpi;
