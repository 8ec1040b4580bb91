//! `earmark mx`: endpoints of MX: measurements, simulations, and what runs.

mod counters;
mod info;
mod peers;
mod perf;
mod session;
pub(crate) mod soak;
mod stream;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// The Wireshark dissector.
const DISSECTOR: &str = include_str!("../../../../../dissector/mx.lua");

#[derive(Debug, Subcommand)]
pub(crate) enum MxCommand {
    /// Measure round trips between two endpoints: without --peer, answer those who do
    Perf(perf::PerfArgs),
    /// Measure how many messages go from one endpoint to another
    Stream(stream::StreamArgs),
    /// Play simulated networks of endpoints, a seed each, and hold them against a model
    ///
    /// Each seed is a number of hosts with settings, habits and a network of its own that loses,
    /// doubles, delays and damages frames. A seed is the same run everywhere. The exit status is 1
    /// if one fails; the line that repeats it is printed.
    Soak(soak::SoakArgs),
    /// What a port offers, and what is missing
    Info(info::InfoArgs),
    /// List the hosts on a segment that have endpoints, by name
    Peers(peers::PeersArgs),
    /// What running endpoints have counted
    Counters(counters::CountersArgs),
    /// Print the Wireshark dissector: earmark mx dissector > ~/.local/lib/wireshark/plugins/mx.lua
    Dissector,
}

/// Does what the command says; the exit status.
pub(crate) fn run(command: &MxCommand) -> Result<ExitCode> {
    match command {
        MxCommand::Perf(args) => perf::run(args)?,
        MxCommand::Stream(args) => stream::run(args)?,
        MxCommand::Soak(args) => return soak::run(args),
        MxCommand::Info(args) => info::run(args)?,
        MxCommand::Peers(args) => peers::run(args)?,
        MxCommand::Counters(args) => counters::run(args)?,
        MxCommand::Dissector => report::output::bytes(DISSECTOR.as_bytes()),
    }
    Ok(ExitCode::SUCCESS)
}
