//! `earmark exporter`: metrics of devices for Prometheus.

mod background;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base::quantity::Unit;
use clap::Args;

use bench::options::number;
use exporter::collector::Collector;
use exporter::metric::Metric;
use exporter::sample::{Format, Sample, encode};
use exporter::select::Selection;
use exporter::serve::{self, PORT};
use report::output::error_line;
use report::{errln, output};
use sys::files;
use tune::recover;

use background::BackgroundArgs;

#[derive(Args, Debug)]
pub(crate) struct ExporterArgs {
    /// Listen here instead of 127.0.0.1:7013
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["textfile", "print"])]
    listen: Option<SocketAddr>,
    /// Write a file for node_exporter's textfile collector instead: once, or again and again
    #[arg(long, value_name = "FILE", conflicts_with = "print")]
    textfile: Option<PathBuf>,
    /// Seconds until the file is written again
    #[arg(long, value_name = "SECONDS", requires = "textfile")]
    #[arg(value_parser = number(Unit::Seconds, 1.0..=86_400.0))]
    interval: Option<f64>,
    /// Print the metrics once instead
    #[arg(long)]
    print: bool,
    /// Only devices of this name, in which * and ? may stand for other characters; may be given
    /// more than once. Without it, those that `earmark show` lists
    #[arg(long, value_name = "NAME")]
    device: Vec<String>,
    /// No devices of this name, in which * and ? may stand for other characters; may be given
    /// more than once
    #[arg(long, value_name = "NAME")]
    exclude: Vec<String>,
    #[command(flatten)]
    background: BackgroundArgs,
}

/// Does what `args` say. It changes no device.
pub(crate) fn run(args: &ExporterArgs) -> Result<()> {
    args.background.check()?;
    ensure!(
        !args.background.is_any() || args.textfile.is_none() || args.interval.is_some(),
        "--explain, --probe and --stages take longer than a file that is written once; add --interval"
    );
    let selection = Selection::new(&args.device, &args.exclude)
        .context("--device, --exclude: patterns are those of a shell, as in eth* or enp?s0")?;
    if args.print {
        let mut collector = open(selection)?;
        output::bytes(encode(&collector.collect()?, Format::Plain).as_bytes());
        return Ok(());
    }
    if let Some(file) = &args.textfile {
        let collector = open(selection)?;
        args.background.start(&collector.background())?;
        return write(file, args.interval, collector);
    }
    let listeners = listeners(args.listen)?;
    let collector = open(selection)?;
    let devices = collector.devices()?;
    for listener in &listeners {
        let places = listener.local_addr().map(|at| format!("http://{at}/metrics"));
        errln!("metrics at {}", places.unwrap_or_else(|_| "an unknown address".into()));
    }
    match devices.len() {
        0 => errln!("there is no such device now; those that come are read"),
        _ => errln!("of {}; devices that come are read, too", devices.join(", ")),
    }
    args.background.start(&collector.background())?;
    match serve::run(listeners, collector, error_line)? {}
}

/// What reads the devices, and whether a change of one is overdue, where this user may know that.
fn open(selection: Selection) -> Result<Collector> {
    let overdue = || {
        let overdue = recover::overdue().map(|changes| changes as u64);
        overdue.map(|it| Sample::new(Metric::ChangesOverdue, &[], it)).into_iter().collect()
    };
    Ok(Collector::open(selection, error_line)?.with(overdue))
}

/// Where to listen: the sockets that systemd has passed, or `--listen`.
fn listeners(listen: Option<SocketAddr>) -> Result<Vec<TcpListener>> {
    let inherited = serve::inherited()?;
    ensure!(
        inherited.is_empty() || listen.is_none(),
        "systemd has passed sockets, so --listen has no meaning; leave it out, and change \
         ListenStream= of the .socket unit"
    );
    if !inherited.is_empty() {
        return Ok(inherited);
    }
    let address = listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
    Ok(vec![serve::listen(address)?])
}

/// Writes the file, once or for ever.
fn write(file: &Path, interval: Option<f64>, mut collector: Collector) -> Result<()> {
    if file.extension().is_none_or(|extension| extension != "prom") {
        errln!("{}: node_exporter reads files that end in .prom alone", file.display());
    }
    let mut write = || {
        let text = encode(&collector.collect()?, Format::Plain);
        // node_exporter is another user, whatever the umask of this one is.
        files::write_with(file, text.as_bytes(), Some(0o644)).with_context(|| {
            format!("write {}; make its directory, and let this user write there", file.display())
        })
    };
    write()?;
    let Some(interval) = interval else { return Ok(()) };
    let mut is_failing = false;
    loop {
        sleep(Duration::from_secs_f64(interval));
        let outcome = write();
        // The disk may be full for a while; node_exporter tells how old the file is.
        if let (Err(error), false) = (&outcome, is_failing) {
            errln!("{}; trying again", output::message(error));
        }
        is_failing = outcome.is_err();
    }
}
