//! `earmark mx stream`: how many messages go one way when several are under way.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::session::{EndArgs, Partner, Session, Task};

use bench::options::bytes;
use report::{json, outln};

#[derive(Args, Debug)]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    at: EndArgs,
    /// Bytes of each message
    #[arg(long, default_value_t = 1024, value_name = "BYTES", value_parser = bytes)]
    size: usize,
    /// Messages that are under way at a time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    depth: u16,
    /// How many messages
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// A send ends when its message was received, not before
    #[arg(long)]
    synchronous: bool,
    /// Print the result as JSON
    #[arg(long, requires = "peer")]
    json: bool,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Rate {
    size: usize,
    depth: u16,
    count: u64,
    /// From the first message to the word that all have come.
    seconds: f64,
    messages_per_s: f64,
    /// Millions of bytes a second.
    mb_per_s: f64,
}

/// Measures, or receives from those who do.
pub(super) fn run(args: &StreamArgs) -> Result<()> {
    Session::run(&args.at, |session, peer| {
        let rate = measure(session, peer, args)?;
        if args.json {
            return json::print(&rate);
        }
        let Rate { size, depth, count, seconds, messages_per_s, mb_per_s } = rate;
        outln!("{count} messages of {size} bytes, {depth} at a time: {seconds:.3} s");
        outln!("{messages_per_s:.0} messages/s, {mb_per_s:.1} MB/s");
        Ok(())
    })
}

fn measure(session: &Session, peer: &Partner, args: &StreamArgs) -> Result<Rate> {
    let StreamArgs { size, depth, count, synchronous, .. } = *args;
    let seconds =
        session.send_all(peer, &Task { size, count, depth: depth.into(), synchronous })?;
    let messages_per_s = count as f64 / seconds;
    let mb_per_s = messages_per_s * size as f64 / 1e6;
    Ok(Rate { size, depth, count, seconds, messages_per_s, mb_per_s })
}
