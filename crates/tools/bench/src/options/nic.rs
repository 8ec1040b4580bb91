//! The NIC, its cable, and what hosts are made of.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, ensure};
use base::quantity::Unit;
use base::time::Duration;
use base::waiting::Waiting;
use nic::lanes::Lanes;
use nic::marker::Rules;
use nic::moderation::{
    Coalesce, MAX_RX_FRAMES, MAX_RX_USECS, Marks, Moderation, Profile, TimerKind,
};
use nic::processor::Costs;
use serde::{Deserialize, Deserializer};

use super::values::{Text, number, whole};
use crate::applicability::{self, Declared, HostKind, Use, only_in};
use crate::costs::{CostSet, EachHost};
use crate::experiment::MAX_HOSTS;
use crate::keys;
use crate::nic_kind::{DriverOption, NicKind};
use crate::world::WorldKind;

/// As the driver says, which is the usual setting where it can.
const DRIVER: Moderation = Moderation { timer: TimerKind::Driver, ..Moderation::DISABLED };

/// What hosts are made of; in the model, how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hosts {
    /// Network namespaces of this machine's kernel.
    #[default]
    Namespaces,
    /// User-Mode Linux: each has a kernel of its own, and its `ethtool -C` sets our NIC.
    Uml,
    /// So many, 2 to [`MAX_HOSTS`].
    Count(u16),
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespaces => f.write_str("namespaces"),
            Self::Uml => f.write_str("uml"),
            Self::Count(count) => count.fmt(f),
        }
    }
}

impl FromStr for Hosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("namespaces", _) => Ok(Self::Namespaces),
            ("uml", _) => Ok(Self::Uml),
            (_, Ok(count)) if (2..=MAX_HOSTS).contains(&count) => Ok(Self::Count(count as u16)),
            _ => Err(format!("write namespaces, uml, or in the model a number, 2 to {MAX_HOSTS}")),
        }
    }
}

/// Some of the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Ports {
    /// Port of host a.
    A,
    /// Port of host b.
    B,
    /// Both, or all.
    #[value(alias = "all")]
    Both,
}

impl Ports {
    /// Their numbers, where there are `count` ports.
    pub fn numbers(self, count: usize) -> Range<usize> {
        match self {
            Self::A => 0..1,
            Self::B => 1..2,
            Self::Both => 0..count,
        }
    }
}

options! {
    /// The NIC and the cable of a lab.
    NicOptions {
        /// Moderation, STRATEGY[:rx-usecs]: delay:75, marked:75, marked:75+gap:20, quiet:20/75,
        /// throttle:125, periodic:128, itr, adaptive, disabled; driver: as its registers say
        #[arg(short, value_name = "SETTING", hide_possible_values = true)]
        strategy: Text<Moderation>,
        /// Microseconds of the strategy's timer, as `ethtool -C rx-usecs`
        #[arg(value_name = "USECS", value_parser = whole::<u32>(Unit::Micros, 0..=MAX_RX_USECS.into()))]
        rx_usecs: u32,
        /// Interrupt at this many frames even before the timer, as `ethtool -C rx-frames`
        #[arg(value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_RX_FRAMES)))]
        rx_frames: u32,
        /// Which packets are marked: rules, first match wins, as in "tcp-psh & length<=512"
        #[arg(value_name = "RULES")]
        mark: Text<Rules>,
        /// Which packets have a queue of their own under the strategy `lane`: rules, each with its
        /// queue (else the last), as in "tcp-port=11211:1"
        #[arg(value_name = "RULES")]
        lane: Text<Lanes>,
        /// The ports that take the setting; the other one is `disabled`
        #[arg(value_enum)]
        ports: Ports,
        /// What the hosts are made of, namespaces or uml; in the model how many, 2 to 1000
        #[arg(value_name = "KIND|COUNT")]
        hosts: Hosts => only_in(&[HostKind::Namespaces, HostKind::Guests, HostKind::Model]),
        /// The NIC that guests find: virtio, or Intel's 82574L (e1000e), 82545GM (e1000) or
        /// adaptive virtual function (iavf)
        #[arg(value_enum)]
        nic: NicKind => only_in(applicability::GUESTS),
        /// Parameters of its driver, as in InterruptThrottleRate=8000,RxIntDelay=0
        #[arg(value_name = "NAME=VALUE", value_delimiter = ',')]
        driver_options: Vec<Text<DriverOption>> => only_in(applicability::GUESTS),
        /// Receive queues of each port
        #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
        queues: u16,
        /// The driver of a virtio device sets by which key and table packets are spread over its
        /// queues, as by `ethtool -X`
        #[arg(num_args = 0..=1, default_missing_value = "true")]
        rss: bool => only_in(applicability::VIRTIO),
        /// Packets that a receive ring holds, as `ethtool -G rx`; 1024 without it
        #[arg(value_parser = clap::value_parser!(u32).range(16..=65_536), value_name = "PACKETS")]
        ring: u32 => only_in(&[HostKind::Namespaces, HostKind::Model]),
        /// Microseconds from arrival until a frame is in host memory: what `stream` looks ahead
        #[arg(value_name = "USECS", value_parser = whole::<u32>(Unit::Micros, 0..=10_000))]
        dma_latency: u32,
        /// Microseconds from an interrupt until the host has it
        #[arg(value_name = "USECS", value_parser = whole::<u32>(Unit::Micros, 0..=1_000_000))]
        interrupt_latency: u32 => only_in(&[HostKind::Virtual]),
        /// Nanoseconds of a host's processor for an interrupt: for all hosts, or a's,b's
        #[arg(value_name = "NS")]
        interrupt_cost: EachHost => only_in(applicability::COSTED),
        /// The same for each packet that it receives
        #[arg(value_name = "NS")]
        packet_cost: EachHost => only_in(applicability::COSTED),
        /// The same for each packet that it sends
        #[arg(value_name = "NS")]
        send_cost: EachHost => only_in(applicability::COSTED),
        /// The same for an interrupt that finds it idle, on top
        #[arg(value_name = "NS")]
        wakeup_cost: EachHost => only_in(applicability::COSTED),
        /// For how many nanoseconds it is idle before it has to wake up
        #[arg(value_name = "NS")]
        idle_after: EachHost => only_in(applicability::COSTED),
        /// Costs that were measured somewhere, where the options above say nothing
        #[arg(value_enum, value_name = "SET")]
        costs: CostSet => only_in(applicability::COSTED),
        /// What hosts are like in the model: ideal, server, clovertown, e1000, bge, odroid or a
        /// file, with changes, as in clovertown,sleeps=false,interrupt=900
        #[arg(value_name = "NAME|FILE[,KEY=VALUE]")]
        machine: String => only_in(&[HostKind::Model]),
        /// How the NIC waits: sleep, precise (spin just before deadlines) or spin (a whole core)
        wait: Text<Waiting> => only_in(applicability::REAL),
        /// Transmit completions interrupt, too, as on a NIC with one vector for both
        #[arg(num_args = 0..=1, default_missing_value = "true")]
        transmit_interrupts: bool,
        /// Rate of the cable in Mbit/s; without it, as fast as the machine, or 1000 in virtual time
        #[arg(value_name = "MBIT", value_parser = whole::<u32>(Unit::Mbit, 1..=u32::MAX.into()))]
        link_rate: u32,
        /// Latency of the cable in microseconds, each way; without it none, or 20 in virtual time
        #[arg(value_name = "USECS", value_parser = whole::<u32>(Unit::Micros, 0..=10_000_000))]
        link_latency: u32,
        /// Frames that the cable loses, in percent
        #[arg(value_name = "PERCENT", value_parser = number(Unit::Percent, 0.0..=100.0))]
        link_loss: f64,
        /// Frames that the cable duplicates, in percent
        #[arg(value_name = "PERCENT", value_parser = number(Unit::Percent, 0.0..=100.0))]
        link_duplicate: f64,
        /// Frames that the cable lets others overtake, in percent
        #[arg(value_name = "PERCENT", value_parser = number(Unit::Percent, 0.0..=100.0))]
        link_reorder: f64,
        /// By how many microseconds an overtaken frame is late
        #[arg(value_name = "USECS", value_parser = whole::<u32>(Unit::Micros, 0..=10_000_000))]
        link_reorder_delay: u32,
        /// Seed of everything random
        seed: u64,
        /// Largest packet, in bytes, without the Ethernet header
        #[arg(value_name = "BYTES", value_parser = whole::<u32>(Unit::Bytes, 0..=u32::MAX.into()))]
        mtu: u32 => only_in(applicability::HOSTED),
        /// Write what crosses the ports to a pcapng file, with mark, hold and interrupt as comments
        #[arg(value_name = "FILE")]
        pcap: PathBuf => only_in(applicability::HOSTED),
        /// Name of the lab, for `earmark nic --lab`
        #[arg(value_name = "NAME")]
        name: String => only_in(applicability::HOSTED),
    }
}

impl NicOptions {
    /// Where hosts in `world` are, made as these options say.
    pub fn place(&self, world: WorldKind) -> HostKind {
        match (world, self.hosts.unwrap_or_default()) {
            (WorldKind::Virtual, _) => HostKind::Virtual,
            (WorldKind::Model, _) => HostKind::Model,
            (WorldKind::Live, Hosts::Uml) => HostKind::Guests,
            (WorldKind::Live, Hosts::Namespaces | Hosts::Count(_)) => HostKind::Namespaces,
        }
    }

    /// Whether they name a setting, in whole or in part.
    pub fn name_a_setting(&self) -> bool {
        self.strategy.is_some() || self.rx_usecs.is_some() || self.rx_frames.is_some()
    }

    /// What host `number` costs in virtual time.
    pub fn costs_of(&self, number: usize) -> Costs {
        let [interrupt, packet, send, wakeup, idle_after] =
            self.given_costs(number).map(Option::unwrap_or_default);
        Costs { interrupt, packet, send, wakeup, idle_after }
    }

    /// What options say of it, be it nothing: of an interrupt, a packet that comes, one that is
    /// sent, waking up, and for how long it idles before.
    pub(crate) fn given_costs(&self, number: usize) -> [Option<Duration>; 5] {
        let set = self.costs.map(CostSet::costs);
        let one = |given: &Option<EachHost>, of: fn(&Costs) -> Duration| {
            let of_set = set.as_ref().map(of).filter(|cost| *cost > Duration::ZERO);
            given.as_ref().map(|it| it.of(number)).or(of_set)
        };
        [
            one(&self.interrupt_cost, |set| set.interrupt),
            one(&self.packet_cost, |set| set.packet),
            one(&self.send_cost, |set| set.send),
            one(&self.wakeup_cost, |set| set.wakeup),
            one(&self.idle_after, |set| set.idle_after),
        ]
    }

    /// The setting that `--strategy`, `--rx-usecs` and `--rx-frames` describe together.
    pub fn moderation(&self, usual: Moderation) -> anyhow::Result<Moderation> {
        let usual = if self.is_intel() { DRIVER } else { usual };
        let strategy = self.strategy.as_ref().map_or(usual, |Text(strategy)| *strategy);
        let (rx_usecs, rx_frames) = (self.rx_usecs, self.rx_frames);
        let change = Coalesce { rx_usecs, rx_frames, adaptive_rx: None };
        let moderation = strategy.coalesce(change, Profile::default())?;
        self.check(moderation)?;
        Ok(moderation)
    }

    /// The same, where it is the only setting: lanes that it does not have are refused.
    pub fn only_setting(&self, usual: Moderation) -> anyhow::Result<Moderation> {
        let moderation = self.moderation(usual)?;
        self.check_lane_is_used(&[moderation])?;
        Ok(moderation)
    }

    /// Whether guests find a NIC of Intel's.
    pub fn is_intel(&self) -> bool {
        self.nic.unwrap_or_default().is_intel()
    }

    /// The lanes in force under a setting.
    pub fn lanes(&self, moderation: Moderation) -> Lanes {
        let lanes = self.lane.as_ref().filter(|_| moderation.marks == Marks::Lane);
        lanes.map_or(Lanes::NONE, |Text(lanes)| lanes.clone())
    }

    /// Refuses lanes that none of `settings` has.
    pub fn check_lane_is_used(&self, settings: &[Moderation]) -> anyhow::Result<()> {
        ensure!(
            self.lane.is_none() || settings.iter().any(|setting| setting.marks == Marks::Lane),
            "--lane: no setting has lanes; name one that does, such as lane:75, or leave --lane out"
        );
        Ok(())
    }

    /// Refuses a setting that leaves to a driver what the NIC has no registers for, or whose lanes
    /// the ports cannot have.
    pub fn check(&self, moderation: Moderation) -> anyhow::Result<()> {
        ensure!(
            moderation.timer != TimerKind::Driver || self.is_intel(),
            "{moderation}: this NIC has no registers for its driver to write; name a strategy, or \
             give guests another one: --nic e1000e"
        );
        if moderation.marks != Marks::Lane {
            return Ok(());
        }
        let lanes = self.lanes(moderation);
        ensure!(
            !lanes.is_empty(),
            "{moderation}: which packets have a lane? Name them: --lane 'tcp-port=11211'"
        );
        lanes.check(self.queues.unwrap_or(1)).context("--lane: see --queues")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_wins_over_the_scenario() {
        let flags = NicOptions { rx_usecs: Some(50), ..NicOptions::default() };
        let scenario: NicOptions = toml::from_str("strategy = 'delay:393'\nqueues = 2").unwrap();
        let both = flags.or(scenario);
        assert_eq!(both.moderation(Moderation::DISABLED).unwrap().to_string(), "delay:50");
        assert_eq!(both.queues, Some(2));
    }

    #[test]
    fn hosts_are_of_a_kind_or_so_many() {
        let read = |text: &str| text.parse::<Hosts>();
        assert_eq!(read("uml"), Ok(Hosts::Uml));
        assert_eq!(read("1000"), Ok(Hosts::Count(1_000)));
        for wrong in ["1", "1001", "many", "-3", ""] {
            assert!(read(wrong).unwrap_err().contains("2 to 1000"), "{wrong}");
        }
    }

    #[test]
    fn a_cost_wins_over_the_set() {
        let text = "costs = 'paper'\npacket-cost = 500\nsend-cost = '0,7'";
        let options: NicOptions = toml::from_str(text).unwrap();
        let costs = options.costs_of(1);
        let [interrupt, packet, send] =
            [costs.interrupt, costs.packet, costs.send].map(Duration::as_nanos);
        assert_eq!((interrupt, packet, send), (191, 500, 7));
        assert!(options.costs_of(0).send == Duration::ZERO);
        // Nothing is a cost as well, and no cost that is not given.
        let free: NicOptions = toml::from_str("interrupt-cost = 0").unwrap();
        assert_eq!(free.given_costs(0)[..2], [Some(Duration::ZERO), None]);
    }
}
