//! `earmark probe`: what a round trip costs, and whose hold is in it.

use anyhow::Result;

use crate::probe::kind::{Asker, Kind};
use crate::probe::report::Report;
use crate::probe::run::{self, Limits};
use crate::say::{note, say};

/// What `earmark probe` takes.
#[derive(clap::Args, Debug)]
pub struct ProbeArgs {
    /// Whom to ask
    host: String,
    /// Which echo; without it, the first that answers
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Its port
    #[arg(long)]
    port: Option<u16>,
    /// Send at most so many packets; what is left out is the end of the plan
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    count: u32,
    /// Never send faster than so many packets a second; short holds then do not show
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    rate: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Probes, and says what it found.
///
/// # Errors
/// If nothing answers.
pub fn run(args: &ProbeArgs) -> Result<()> {
    let mut asker = Asker::find(&args.host, args.kind, args.port)?;
    let mut plan = run::plan(&asker, Limits { count: args.count, rate: args.rate });
    let (address, kind) = (asker.address, asker.kind().name());
    note!("probing {address} by {kind}: {} small packets in a few seconds", plan.packets());
    if asker.is_local() {
        note!("{address} is this host itself: no NIC is in between");
    }
    run::run(&mut asker, &mut plan, |_| {})?;
    let report = Report::new(&asker, plan.heard(), &infer::judge(plan.heard()));
    if args.json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        report.print();
    }
    Ok(())
}
