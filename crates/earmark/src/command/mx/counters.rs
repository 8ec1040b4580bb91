//! `earmark mx counters`: what running endpoints have counted.

use anyhow::{Context, Result, bail};
use clap::Args;
use mx_io::discovery::{Peers, Target};
use mx_io::report::{Report, ask, running};

use report::{outln, output};

/// What `earmark mx counters` takes.
#[derive(Args, Debug)]
pub struct CountersArgs {
    /// The endpoint: MAC/ENDPOINT, or ADDR:PORT/ENDPOINT; without it, all of this network
    /// namespace
    address: Option<Target>,
    /// Also what each endpoint is doing: peers and requests, as SIGUSR1 makes it print
    #[arg(long)]
    dump: bool,
    /// Also counters that are 0
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints counters.
pub(super) fn run(args: &CountersArgs) -> Result<()> {
    let list = || running().context("list MX endpoints: read /proc/net/unix");
    let reports = match &args.address {
        Some(target) => {
            // Whoever runs on this host is looked at by its address.
            let address = target.known(&Peers::default()).with_context(|| {
                format!("look at MX endpoint {target}: give its address, MAC/ENDPOINT")
            })?;
            let address = address.to_string();
            let report = ask(&address).with_context(|| {
                let known = list().map_or_else(|_| String::new(), |known| known.join(", "));
                let known = if known.is_empty() { "none".to_owned() } else { known };
                format!(
                    "look at MX endpoint {address}: it does not run in this network namespace, or \
                     does not serve its counters (mx_io::report::serve); those that do: {known}"
                )
            })?;
            vec![report]
        }
        None => list()?.iter().filter_map(|address| ask(address).ok()).collect(),
    };
    if reports.is_empty() {
        bail!(
            "no MX endpoint that serves its counters runs in this network namespace; start one: \
             earmark mx perf --port packet:IFACE"
        );
    }
    if args.json {
        outln!("{}", serde_json::to_string_pretty(&reports)?);
    } else {
        reports.iter().for_each(|report| show(report, args));
    }
    Ok(())
}

fn show(report: &Report, args: &CountersArgs) {
    outln!("endpoint {} of process {}:", report.address, report.pid);
    for (name, count) in report.counters.iter().filter(|(_, count)| args.all || *count > 0) {
        outln!("  {name}: {count}");
    }
    if args.dump {
        output::bytes(report.dump.as_bytes());
    }
}
