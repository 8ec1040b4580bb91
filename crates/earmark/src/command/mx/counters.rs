//! `earmark mx counters`: what running endpoints have counted.

use std::io;

use anyhow::{Context, Result, bail};
use clap::Args;
use mx_io::discovery::{Peers, Target};
use mx_io::report::{EndpointReport, ask, running};

use report::{errln, json, outln};

#[derive(Args, Debug)]
pub(crate) struct CountersArgs {
    /// The endpoint: MAC/ENDPOINT, or ADDR:PORT/ENDPOINT; without it, all of this network
    /// namespace
    address: Option<Target>,
    /// Also what each endpoint is doing: peers and requests, as SIGUSR1 makes it print
    #[arg(long)]
    dump: bool,
    /// Also counters that are 0
    #[arg(long)]
    all: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CountersArgs) -> Result<()> {
    let reports = match &args.address {
        Some(target) => {
            // Endpoints of this host are looked at by address.
            let address = target.known(&Peers::default()).with_context(|| {
                format!("look at MX endpoint {target}: give its address, MAC/ENDPOINT")
            })?;
            let address = address.to_string();
            let report = ask(&address).map_err(|error| not_there(&address, error))?;
            vec![report]
        }
        None => listed()?.iter().filter_map(|address| look_at(address)).collect(),
    };
    if reports.is_empty() {
        bail!(
            "no MX endpoint that serves its counters runs in this network namespace; start one: \
             earmark mx perf --port packet:IFACE"
        );
    }
    if args.json {
        json::print_list("endpoints", &reports)?;
    } else {
        reports.iter().for_each(|report| show(report, args));
    }
    Ok(())
}

fn listed() -> Result<Vec<String>> {
    running().context("list MX endpoints: read /proc/net/unix")
}

/// Why an endpoint does not answer, and what to do.
fn not_there(address: &str, error: io::Error) -> anyhow::Error {
    let what = format!("look at MX endpoint {address}");
    if error.kind() == io::ErrorKind::PermissionDenied {
        return anyhow::Error::new(error).context(what);
    }
    let known = listed().map_or_else(|_| String::new(), |known| known.join(", "));
    let known = if known.is_empty() { "none".to_owned() } else { known };
    anyhow::Error::new(error).context(format!(
        "{what}: it does not run in this network namespace, or does not serve its counters \
         (mx_io::report::serve); those that do: {known}"
    ))
}

/// What an endpoint answers, if it does. One of another user is only named.
fn look_at(address: &str) -> Option<EndpointReport> {
    match ask(address) {
        Ok(report) => Some(report),
        Err(error) => {
            errln!("MX endpoint {address} is left out: {error}");
            None
        }
    }
}

fn show(report: &EndpointReport, args: &CountersArgs) {
    outln!("endpoint {} of process {}:", report.address, report.pid);
    for (name, count) in report.counters.iter().filter(|(_, count)| args.all || *count > 0) {
        outln!("  {name}: {count}");
    }
    if args.dump {
        outln!("{}", report.dump.trim_end());
    }
}
