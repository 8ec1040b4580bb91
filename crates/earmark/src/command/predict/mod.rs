//! `earmark predict`: what settings would do to traffic that was captured.

mod input;
mod live;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base::quantity::Unit;
use clap::Args;
use forecast::{CaptureQuestion, GRIDS, USUAL, grid_timer, screen, tradeoff};
use nic::lanes::Lanes;
use nic::marker::Rules;
use nic::moderation::{Moderation, TimerKind};
use predict::{By, Prediction, Predictor};

use bench::costs::{CostSet, EachHost};
use bench::options::{NicOptions, Text, duration, whole};
use report::terminal::Width;
use report::{errln, json, outln};
use sys::files;
use sys::netlink::Netlink;

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
    /// Settings to compare, as `bench` has them
    #[arg(long, value_name = "SETTING,...", value_delimiter = ',', hide_possible_values = true)]
    #[arg(default_values_t = USUAL.map(|text| Text(text.parse::<Moderation>().expect("a setting"))))]
    compare: Vec<Text<Moderation>>,
    /// Which packets are marked: rules, first match wins; without it, small segments with PSH, and
    /// rules are proposed
    #[arg(long, value_name = "RULES")]
    mark: Option<Text<Rules>>,
    /// Which packets have a queue of their own under `lane`; without it, those that --mark names
    #[arg(long, value_name = "RULES")]
    lane: Option<Text<Lanes>>,
    /// Search rx-usecs and rx-frames of this timer, and print what nothing beats
    #[arg(long, value_name = "TIMER", num_args = 0..=1, default_missing_value = "delay")]
    #[arg(value_parser = GRIDS)]
    grid: Option<String>,
    /// By what holds are listed
    #[arg(long, value_name = "WHAT", default_value = "port", value_parser = ["port", "flow", "dscp", "rule"])]
    by: String,
    /// The host whose arrivals count; without it, the one at which the capture was made
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
    /// The interface of the capture, if it has several
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Rate of the wire in Mbit/s: undoes clumps as far as it proves them wrong
    #[arg(long, value_name = "MBIT", value_parser = whole::<u32>(Unit::Mbit, 1..=u32::MAX.into()))]
    link_rate: Option<u32>,
    /// Receive queues, over which packets go by their hash
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    queues: u16,
    /// Packets that a receive ring holds, as `ethtool -G rx`
    #[arg(long, default_value_t = 1_024, value_name = "PACKETS")]
    #[arg(value_parser = clap::value_parser!(u32).range(16..=65_536))]
    ring: u32,
    /// Nanoseconds of the host's processor for an interrupt
    #[arg(long, value_name = "NS")]
    interrupt_cost: Option<EachHost>,
    /// The same for each packet that it receives
    #[arg(long, value_name = "NS")]
    packet_cost: Option<EachHost>,
    /// The same for an interrupt that finds it idle, on top
    #[arg(long, value_name = "NS")]
    wakeup_cost: Option<EachHost>,
    /// For how many nanoseconds it is idle before it has to wake up
    #[arg(long, value_name = "NS")]
    idle_after: Option<EachHost>,
    /// Costs that were measured somewhere, where the options above say nothing
    #[arg(long, value_enum, value_name = "SET")]
    costs: Option<CostSet>,
    /// Seed of the phases of `periodic`
    #[arg(long, default_value_t = 1)]
    seed: u64,
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
    fn asked(&self) -> Result<CaptureQuestion> {
        let costs = NicOptions {
            interrupt_cost: self.interrupt_cost.clone(),
            packet_cost: self.packet_cost.clone(),
            wakeup_cost: self.wakeup_cost.clone(),
            idle_after: self.idle_after.clone(),
            costs: self.costs,
            ..NicOptions::default()
        };
        Ok(CaptureQuestion {
            compare: self.compare.iter().map(|Text(moderation)| *moderation).collect(),
            mark: self.mark.as_ref().map(|Text(rules)| rules.clone()),
            lane: self.lane.as_ref().map(|Text(lanes)| lanes.clone()),
            grid: self.grid.as_deref().and_then(grid_timer),
            by: self.by.parse::<By>().map_err(anyhow::Error::msg)?,
            host: self.host,
            interface: self.interface.clone(),
            link_rate_mbit: self.link_rate,
            queues: self.queues,
            ring: self.ring as usize,
            costs: costs.costs_of(0),
            seed: self.seed,
        })
    }

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
    let mut asked = args.asked()?;
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
            input::feed(&args.capture, &mut session)?;
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
