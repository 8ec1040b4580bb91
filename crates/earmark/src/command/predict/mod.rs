//! `earmark predict`: what settings would do to traffic that was captured.

mod live;

use std::fs::File;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use forecast::{QuestionOptions, screen, tradeoff};
use nic::moderation::TimerKind;
use predict::{Prediction, Predictor};

use bench::options::duration;
use report::terminal::Width;
use report::{errln, json, outln};
use sys::netlink::Netlink;
use sys::{ctrl_c, files};

#[derive(Args, Debug)]
pub(crate) struct PredictArgs {
    /// A capture (pcap or pcapng, also compressed), - for standard input, or a device,
    /// such as eth0, whose packets are captured
    #[arg(value_name = "CAPTURE|DEVICE")]
    capture: PathBuf,
    /// Of a device: seconds of the capture, in which only headers are kept
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS", value_parser = duration)]
    seconds: f64,
    /// Of a device: write the capture to this file, too
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    #[command(flatten)]
    question: QuestionOptions,
    /// Write a page with table and picture
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Draw holds against interrupts, or host load where hosts cost time, into an SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl PredictArgs {
    /// The device, if it is one and no file of that name is there.
    fn device(&self) -> Option<&str> {
        let name = self.capture.to_str()?;
        let is_name = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
        let is_device = |name| Netlink::open().is_ok_and(|kernel| kernel.link(name).is_ok());
        (is_name && !self.capture.exists() && is_device(name)).then_some(name)
    }
}

/// Predicts, and prints what comes of it.
pub(crate) fn run(args: &PredictArgs) -> Result<ExitCode> {
    let device = args.device();
    let mut asked = args.question.asked()?;
    if device.is_some() {
        // What `tune` is to try first comes from a grid.
        asked.grid.get_or_insert(TimerKind::Delay);
    }
    let mut session = Predictor::new(asked.question()?)?;
    match device {
        Some(device) => {
            let lasts = Duration::from_secs_f64(args.seconds);
            live::feed(device, lasts, args.write.as_deref(), &mut session)?;
        }
        None => {
            ensure!(args.write.is_none(), "--write is for a device; this is a capture already");
            let what = || format!("read {}", args.capture.display());
            let check = || Ok(ctrl_c::check()?);
            forecast::feed(open(&args.capture)?, &mut session, check).with_context(what)?;
        }
    }
    let what = || format!("predict from {}", args.capture.display());
    let prediction = session.finish().with_context(what)?;
    write(args, &prediction)?;
    if args.json {
        json::print(&prediction)?;
    } else {
        outln!("{}", screen(&prediction, device, Width::of_output()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The bytes of a file, or of standard input.
fn open(path: &Path) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(stdin()));
    }
    let file = File::open(path).with_context(|| {
        format!("open {}; make a capture with: tcpdump -i eth0 -s 96 -w FILE", path.display())
    })?;
    Ok(Box::new(file))
}

/// Writes the page and the picture, if they are asked for.
fn write(args: &PredictArgs, prediction: &Prediction) -> Result<()> {
    if let Some(path) = &args.svg {
        let drawn = tradeoff(prediction).svg();
        files::write(path, drawn.as_bytes())
            .with_context(|| format!("write {}", path.display()))?;
    }
    if let Some(path) = &args.report {
        let name = args.capture.file_name().map_or_else(|| "-".into(), |it| it.to_string_lossy());
        let page =
            report::render(&forecast::report(&name, prediction)).context("draw the report")?;
        files::write(path, page.as_bytes()).with_context(|| format!("write {}", path.display()))?;
        errln!("report: {}", path.display());
    }
    Ok(())
}
