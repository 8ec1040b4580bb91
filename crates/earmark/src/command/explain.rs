//! `earmark explain`: where the time of a request goes.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::command::code;
use anyhow::{Result, bail};
use base::quantity::Unit;
use clap::Args;
use netdev::{Root, device_name};

use bench::options::{bytes, number};
use explain::report::Explanation;
use explain::{own, program, sockets};
use report::terminal::Width;
use report::{errln, json, outln};

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// A host that runs an echo, or a network device of this one
    #[arg(value_name = "HOST[:PORT]|DEV", required_unless_present = "program")]
    pub(crate) subject: Option<String>,
    /// For how many seconds; a program runs on after that, untraced
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    #[arg(value_parser = number(Unit::Seconds, 0.1..=86_400.0))]
    pub(crate) duration: f64,
    /// The port of the echo; that of `earmark echo` if nothing is said
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// Ask over UDP instead of TCP
    #[arg(long)]
    pub(crate) udp: bool,
    /// Bytes of a request
    #[arg(long, default_value_t = 64, value_name = "BYTES", value_parser = bytes)]
    pub(crate) size: usize,
    /// Requests a second, one at a time
    #[arg(long, default_value_t = 500.0, value_name = "PER_SECOND")]
    #[arg(value_parser = number(Unit::PerSecond, 1.0..=100_000.0))]
    pub(crate) rate: f64,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// A program, whose sockets are explained while it runs
    #[arg(last = true, conflicts_with = "subject", value_name = "CMD")]
    pub(crate) program: Vec<OsString>,
}

/// Does what `args` say; the exit status is that of the program, if one is run.
pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode> {
    let ExplainArgs { duration, rate, .. } = *args;
    if !args.program.is_empty() {
        let status = program::explain(&args.program, duration, |report| {
            // The program has standard output to itself, unless JSON was asked for.
            if args.json {
                return print(report, true);
            }
            errln!("{}", report.text(Width::of_output()));
            Ok(())
        })?;
        return Ok(ExitCode::from(code(status) as u8));
    }
    let Some(subject) = args.subject.as_deref() else { bail!("name a host, a device, or -- CMD") };
    let device = device_name(&Root::here(), subject);
    let report = if sockets::is_device(&device) {
        program::explain_device(&device, duration)?
    } else {
        let settings = own::Settings {
            host: subject.to_owned(),
            port: args.port,
            udp: args.udp,
            size: args.size,
            rate,
            seconds: duration,
        };
        own::explain(&settings, |_, _| {})?
    };
    print(&report, args.json)?;
    Ok(ExitCode::SUCCESS)
}

fn print(report: &Explanation, is_json: bool) -> Result<()> {
    if is_json {
        json::print(report)?;
    } else {
        outln!("{}", report.text(Width::of_output()).trim_end());
    }
    Ok(())
}
