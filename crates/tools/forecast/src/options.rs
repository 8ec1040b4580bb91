//! The options of a question, as the command line and the page have them.

use core::net::IpAddr;

use anyhow::Result;
use base::quantity::Unit;
use bench::costs::{CostSet, EachHost};
use bench::options::{NicOptions, Text, whole};
use clap::Args;
use nic::lanes::Lanes;
use nic::marker::Rules;
use nic::moderation::Moderation;
use predict::By;

use crate::asked::{CaptureQuestion, GRIDS, USUAL, grid_timer};

/// What `earmark predict` is asked of a capture.
#[derive(Args, Debug)]
pub struct QuestionOptions {
    /// Settings to compare, as `bench` has them
    #[arg(long, value_name = "SETTING,...", value_delimiter = ',', hide_possible_values = true)]
    #[arg(default_values_t = USUAL.map(|text| Text(text.parse::<Moderation>().expect("a setting"))))]
    compare: Vec<Text<Moderation>>,
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
    /// Which packets are marked: rules, first match wins; without it, small segments with PSH, and
    /// rules are proposed
    #[arg(long, value_name = "RULES")]
    mark: Option<Text<Rules>>,
    /// Which packets have a queue of their own under `lane`; without it, those that --mark names
    #[arg(long, value_name = "RULES")]
    lane: Option<Text<Lanes>>,
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
}

impl QuestionOptions {
    /// What they ask.
    ///
    /// # Errors
    /// If holds cannot be listed by that.
    pub fn asked(&self) -> Result<CaptureQuestion> {
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
}
