//! Project automation: `cargo xtask ci` is what continuous integration runs, and nothing else.

mod bench;
mod bpf;
mod ci;
mod dist;
mod drivers;
mod figures;
mod header;
mod install;
mod kernel;
mod kernels;
mod mpi;
mod page;
mod peers;
mod repo;
mod shell;
mod suite;
mod tidy;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Automation of the project Earmark.
#[derive(Parser)]
#[command(name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    task: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Everything that must hold before a change lands, in order; names all that failed at the end
    Ci,
    /// Finds the programs that the tests need, gets what is missing, and runs a command with them
    Peers(peers::Options),
    /// Finds the kernel that guests run, or builds it: about four minutes, once
    Kernel,
    /// Boots kernels of distributions in QEMU, each of which follows requests; takes minutes
    /// without KVM
    Kernels(kernels::Options),
    /// Holds the table of what drivers mean against the sources of a kernel
    Drivers(drivers::Options),
    /// Runs the tests of MPI with Open MPI 5 and MPICH, too, which it gets with pip
    Mpi,
    /// House rules that no compiler checks: layers, sizes, forbidden words, links
    Tidy,
    /// Makes the object that follows requests in the kernel; with --check says whether it is stale
    Bpf(bpf::Options),
    /// Makes the page of one file: the engine in WebAssembly, its scripts, its styles
    Page(page::Options),
    /// Writes the header of the C API from its Rust; with --check says whether it is stale
    Header(header::Options),
    /// Installs the C API below a prefix: libraries, header, man pages, pkg-config
    Install(install::Options),
    /// Makes packages, tarball, SBOM and crates in target/dist, and tries them on a bare machine
    Dist(dist::Options),
    /// Runs a command where a directory is the root of everything (dist starts this)
    #[command(hide = true)]
    Within(dist::within::Options),
    /// Checks licences and sources of all dependencies by deny.toml
    Licences,
    /// Runs what the documentation quotes of virtual time, and names the figures that are stale
    Figures,
    /// Measures what a packet costs, or a bench or a scenario by its name, into docs/results
    Bench(bench::Options),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Subcommands::Ci => ci::run(),
        Subcommands::Peers(options) => peers::run(&options),
        Subcommands::Kernel => kernel::ensure(),
        Subcommands::Kernels(options) => kernels::run(&options),
        Subcommands::Drivers(options) => drivers::run(&options),
        Subcommands::Mpi => mpi::run(),
        Subcommands::Tidy => tidy::run(),
        Subcommands::Bpf(options) => bpf::run(&options),
        Subcommands::Page(options) => page::run(&options),
        Subcommands::Header(options) => header::run(&options),
        Subcommands::Install(options) => install::run(&options),
        Subcommands::Dist(options) => dist::run(&options),
        Subcommands::Within(options) => dist::within::run(&options),
        Subcommands::Licences => tools::check_dependencies(),
        Subcommands::Figures => figures::check(),
        Subcommands::Bench(options) => bench::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("  because: {cause}");
            }
            ExitCode::FAILURE
        }
    }
}
