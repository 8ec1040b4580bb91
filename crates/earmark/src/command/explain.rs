//! `earmark explain`: where the time of a request goes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::command::code;
use anyhow::{Context, Result, ensure};
use base::quantity::Unit;
use clap::Args;
use netdev::{Root, device_name};

use bench::options::{bytes, number};
use explain::far::{FarHost, LONGEST};
use explain::own;
use explain::program::{self, Look, RunningSubject};
use explain::report::Explanation;
use explain::surroundings::is_device;
use flows::record::TracedRequest;
use report::progress::Progress;
use report::terminal::Width;
use report::{errln, json, outln};
use sys::ctrl_c;
use tune::peer::CodeArgs;

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// A host that runs an echo, or a network device of this one
    #[arg(value_name = "HOST[:PORT]|DEV", required_unless_present_any = ["program", "pid", "cgroup"])]
    pub(crate) subject: Option<String>,
    /// A process that runs, and what it starts
    #[arg(long, value_name = "PID", conflicts_with_all = ["subject", "program", "cgroup"])]
    pub(crate) pid: Option<u32>,
    /// A cgroup and those below it: a directory of /sys/fs/cgroup
    #[arg(long, value_name = "DIR", conflicts_with_all = ["subject", "program"])]
    pub(crate) cgroup: Option<PathBuf>,
    /// For how many seconds; a program runs on after that, and is followed no more
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
    /// The far host of the requests, on which `earmark serve --explain` runs: its stages come into
    /// the same table
    #[arg(id = "peer", long = "with", value_name = "HOST")]
    pub(crate) with: Option<String>,
    #[command(flatten)]
    pub(crate) code: CodeArgs,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the stack of user space in which a program waits longest, where it is blocked
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Print each request of a program or a device, as a line of JSON, instead of a report
    #[arg(long, conflicts_with = "json")]
    pub(crate) each: bool,
    /// A program, whose sockets are explained while it runs
    #[arg(last = true, conflicts_with = "subject", value_name = "CMD")]
    pub(crate) program: Vec<OsString>,
}

impl ExplainArgs {
    /// What runs already and is to be explained, if it is that.
    fn running(&self) -> Option<RunningSubject> {
        if let Some(pid) = self.pid {
            return Some(RunningSubject::Process(pid));
        }
        if let Some(path) = &self.cgroup {
            return Some(RunningSubject::Cgroup(path.clone()));
        }
        let device = device_name(&Root::here(), self.subject.as_deref()?);
        is_device(&device).then_some(RunningSubject::Device(device))
    }

    /// Has the far host follow requests, if one is named.
    fn far(&self) -> Result<Option<FarHost>> {
        let Some(host) = &self.with else { return Ok(None) };
        ensure!(
            self.duration <= LONGEST,
            "--with: a far host follows requests for {LONGEST} s at most; choose a shorter --duration"
        );
        ensure!(!self.udp, "--with is of TCP: sequence numbers join what both hosts have followed");
        tune::peer::following(host, self.code.code()?, self.duration).map(Some)
    }

    fn look(&self) -> Result<Look> {
        Ok(Look { seconds: self.duration, far: self.far()?, stacks: self.stacks })
    }
}

/// Asks a host.
fn ask(args: &ExplainArgs) -> Result<Explanation> {
    ensure!(!args.stacks, "--stacks is of programs and devices: of -- CMD, --pid, --cgroup, DEV");
    ensure!(!args.each, "--each is of programs and devices: of -- CMD, --pid, --cgroup, DEV");
    let host = args.subject.clone().context("name a host, a device, or -- CMD")?;
    let settings = own::Settings {
        host,
        port: args.port,
        udp: args.udp,
        size: args.size,
        rate: args.rate,
        seconds: args.duration,
    };
    ctrl_c::watch().context("take signals")?;
    own::explain(&settings, args.far()?, &Progress::new(args.json), |_, _| {})
}

/// Does what `args` say; the exit status is that of the program, if one is run.
pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode> {
    let each = |request: &TracedRequest| {
        if args.each {
            json::print_line(request).expect("a record has no keys but text");
        }
    };
    if !args.program.is_empty() {
        let status = program::explain(&args.program, args.look()?, each, |report| {
            // The program has standard output to itself, unless JSON was asked for.
            if args.json {
                return print(report, true);
            } else if args.each {
                return Ok(());
            }
            errln!("{}", report.text(Width::of_output()));
            Ok(())
        })?;
        return Ok(ExitCode::from(code(status) as u8));
    }
    let report = match args.running() {
        Some(running) => {
            let is_device = matches!(running, RunningSubject::Device(_));
            ensure!(
                !is_device || args.with.is_none(),
                "--with is of requests that this host asks: of HOST, -- CMD, --pid, --cgroup"
            );
            program::explain_running(&running, args.look()?, each)?
        }
        None => ask(args)?,
    };
    if args.each {
        return Ok(ExitCode::SUCCESS);
    }
    if ctrl_c::is() {
        errln!("interrupted: this is what was seen until then");
    }
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
