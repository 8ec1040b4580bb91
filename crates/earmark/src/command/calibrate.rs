//! `earmark calibrate`: what hosts of this machine cost, as options of virtual time and as a
//! machine of the model.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use sys::privilege::become_capable;

use bench::ratio::Spread;
use report::progress::Progress;
use report::shell::quoted;
use report::terminal::{Table, Width, number};
use report::{json, outln};
use sys::files::{self, writable};
use worlds::calibrate::{self, Calibration};

#[derive(Args, Debug)]
pub(crate) struct CalibrateArgs {
    /// Seconds measured, for each of six measurements of a round
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = bench::options::duration)]
    duration: f64,
    /// Rounds, of which the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Also write what was measured as a machine for `bench --world model --machine FILE`
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Measures, and prints constants and options.
pub(crate) fn run(args: &CalibrateArgs) -> Result<()> {
    let privilege = become_capable()?;
    // Now rather than in a minute and a half.
    if let Some(path) = &args.machine {
        writable(path, MACHINE_BYTES).with_context(|| cannot_write(path))?;
    }
    let progress = Progress::new(args.json);
    let calibration = calibrate::run(args.duration, args.rounds, privilege, &progress)?;
    if let Some(path) = &args.machine {
        let text = calibration.machine();
        files::write(path, text.as_bytes()).with_context(|| cannot_write(path))?;
    }
    if args.json {
        return json::print(&calibration);
    }
    let width = Width::of_output();
    outln!("{}", table(&calibration).fit(width));
    outln!("\n{}", width.wrap(&words(&calibration, args.rounds)));
    outln!("\n  {}", calibration.options());
    if let Some(path) = &args.machine {
        let file = quoted(&path.to_string_lossy());
        outln!("\nTo use it: earmark bench tcp-rr --world model --machine {file}");
    }
    Ok(())
}

/// The space that the file of a machine may take.
const MACHINE_BYTES: usize = 16 << 10;

fn cannot_write(path: &Path) -> String {
    format!("write {}; choose another place with --machine", path.display())
}

fn table(calibration: &Calibration) -> Table {
    let mut table =
        Table::new([("cost on this machine", 0), ("ns", 0), ("least", 1), ("greatest", 1)]);
    let Calibration { invalid_frames, datagrams, send_ns, cores, .. } = calibration;
    let thousand =
        |it: Spread| Spread { median: it.median * 1e3, min: it.min * 1e3, max: it.max * 1e3 };
    let rows: [(&str, Option<Spread>); 9] = [
        ("interrupt, frames that are dropped", invalid_frames.interrupt_ns),
        ("packet, frames that are dropped", Some(invalid_frames.packet_ns)),
        ("interrupt, datagrams", datagrams.interrupt_ns),
        ("packet, datagrams up to their socket", Some(datagrams.packet_ns)),
        ("sent frame", Some(*send_ns)),
        ("wake-up of a thread that slept in a read", Some(cores.wake_ns)),
        ("system call that reads a byte of a socket", Some(cores.call_ns)),
        ("copy of 1000 bytes", Some(thousand(cores.copy_ns_per_byte))),
        ("cache line, from core to core", cores.line_ns),
    ];
    for (name, spread) in rows {
        let [median, min, max] = [|it: Spread| it.median, |it: Spread| it.min, |it: Spread| it.max]
            .map(|of| number(spread.map(of), 0));
        table.add_row([name.to_owned(), median, min, max]);
    }
    table
}

fn words(calibration: &Calibration, rounds: u32) -> String {
    let environment = &calibration.environment;
    let interrupt = calibration.invalid_frames.interrupt_ns;
    let doubt = if interrupt.is_none_or(|ns| ns.min <= 0.0) {
        " In a round an interrupt seemed to cost nothing: the machine was too busy to tell; repeat \
         it when nothing else runs."
    } else {
        ""
    };
    let missed = calibration.missed.first().map_or_else(String::new, |first| {
        format!(
            " Measurements without figures: {}; first {} under {}: {}.",
            calibration.missed.len(),
            first.experiment,
            first.setting,
            first.why
        )
    });
    format!(
        "Medians of {rounds} rounds, on {} x {}, load {:.2}.{missed}{doubt} For \
         `earmark bench --world virtual`:",
        environment.cpus, environment.cpu_model, environment.load_average,
    )
}
