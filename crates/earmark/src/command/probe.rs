//! `earmark probe`: what a round trip costs, and whose hold is in it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use infer::Heard;

use crate::probe::kind::{Asker, Kind};
use crate::probe::recording::{self, Origin};
use crate::probe::report::Report;
use crate::probe::run::{self, Limits};
use crate::say::{note, say};

/// What `earmark probe` takes.
#[derive(clap::Args, Debug)]
pub struct ProbeArgs {
    /// Whom to ask
    #[arg(required_unless_present = "replay")]
    host: Option<String>,
    /// Which echo; without it, the first that answers
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Its port
    #[arg(long)]
    port: Option<u16>,
    /// Send at most so many packets; trains that would send more are left out
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    count: u32,
    /// Never send faster than so many packets a second; short holds then do not show
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    rate: u32,
    /// Keep what was heard in a new file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Judge what a file of --record has, and send nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "kind", "port", "count", "rate", "record"])]
    replay: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Probes, or reads what another run heard, and says what it found.
///
/// # Errors
/// If nothing answers, or a file cannot be read or written.
pub fn run(args: &ProbeArgs) -> Result<()> {
    let (origin, heard) = match &args.replay {
        Some(path) => recording::read(path)?,
        None => ask(args)?,
    };
    if let Some(path) = &args.record {
        recording::write(path, &origin, &heard)?;
    }
    let report = Report::new(&origin, &heard, &infer::judge(&heard));
    if args.json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        report.print();
    }
    Ok(())
}

fn ask(args: &ProbeArgs) -> Result<(Origin, Vec<Heard>)> {
    let host = args.host.as_ref().context("whom to ask?")?;
    let mut asker = Asker::find(host, args.kind, args.port)?;
    let mut plan = run::plan(&asker, Limits { count: args.count, rate: args.rate });
    let (address, kind) = (asker.address, asker.kind().name());
    note!("probing {address} by {kind}: {} small packets in a few seconds", plan.packets());
    if asker.is_local() {
        note!("{address} is this host itself: no NIC is in between");
    }
    run::run(&mut asker, &mut plan, |_| {})?;
    Ok((Origin::new(address.to_string(), kind), plan.heard().to_vec()))
}
