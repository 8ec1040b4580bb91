//! The options of every command, declared once: command-line flags, scenario keys and help text are
//! the same thing.
//!
//! Each option is optional. A scenario gives some, the command line gives others and wins, an
//! experiment's usual values fill in the rest.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, ensure};
use clap::builder::ValueParserFactory;
use hostside::processor::Costs;
use intel::Adapter;
use lab::wait::Waiting;
use nic::lanes::Lanes;
use nic::marker::Rules;
use nic::moderation::{MAX_RX_FRAMES, MAX_RX_USECS, Marks, Moderation, TimerKind};
use serde::{Deserialize, Deserializer};

use crate::applicability::{self, Declared, HostKind, Use, only_for, only_for_in, only_in};
use crate::costs::{CostSet, EachHost};
use crate::experiment::Experiment;
use crate::keys;
use crate::marks::MarkNames;
use crate::nic_kind::{DriverOption, NicKind};
use crate::polling::Polling;
use crate::suggestions::SuggestedValues;
use crate::world::WorldKind;

/// As the driver says, which is the usual setting where it can.
const DRIVER: Moderation = Moderation { timer: TimerKind::Driver, ..Moderation::DISABLED };

/// A value that is text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<T>(pub T);

impl<T: FromStr> FromStr for Text<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.parse().map(Self)
    }
}

impl<T: fmt::Display> fmt::Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What hosts are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Hosts {
    /// Network namespaces of this machine's kernel.
    #[default]
    Namespaces,
    /// User-Mode Linux: each has a kernel of its own, and its `ethtool -C` sets our NIC.
    Uml,
}

/// Some of the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Ports {
    /// Host a's.
    A,
    /// Host b's.
    B,
    /// Both, or all.
    #[value(alias = "all")]
    Both,
}

impl Ports {
    /// Their numbers, where there are `count` ports.
    #[must_use]
    pub fn numbers(self, count: usize) -> Range<usize> {
        match self {
            Self::A => 0..1,
            Self::B => 1..2,
            Self::Both => 0..count,
        }
    }
}

/// How many clients: one number, or each from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    first: u32,
    last: u32,
}

impl Clients {
    /// Each of them.
    pub fn each(self) -> impl Iterator<Item = u32> {
        self.first..=self.last
    }
}

impl FromStr for Clients {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |_| format!("`{text}` is neither a number nor a range such as 1..8");
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let first = first.parse().map_err(wrong)?;
        let last = last.trim_start_matches('=').parse().map_err(wrong)?;
        if (1..=last).contains(&first) && last <= 64 {
            Ok(Self { first, last })
        } else {
            Err(format!("`{text}`: clients are 1 to 64, the smaller number first"))
        }
    }
}

/// Those that take an option: all, where its line does not say.
macro_rules! takers {
    () => {
        applicability::ALL
    };
    ($takers:expr) => {
        $takers
    };
}

/// Declares a struct of optional settings: flags for `clap`, with them keys of scenarios, and who
/// takes which.
macro_rules! options {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$about:meta])* $field:ident: $type:ty $(=> $takers:expr)?,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, clap::Args)]
        #[command(mut_args = |arg| applicability::remark(arg, Self::DECLARED))]
        pub struct $name {
            $($(#[$about])* #[arg(long)] pub $field: Option<$type>,)*
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                keys::options(deserializer)
            }
        }

        impl $name {
            const DECLARED: &[Declared] = &[$((stringify!($field), takers!($($takers)?)),)*];

            /// These options, with those of `other` where none is given.
            #[must_use]
            pub fn or(self, other: Self) -> Self {
                Self { $($field: self.$field.or(other.$field),)* }
            }

            /// Refuses those that none of `uses` takes.
            ///
            /// # Errors
            /// The first of them, and who takes it.
            pub fn check_taken(&self, uses: &[Use]) -> anyhow::Result<()> {
                let is_given = [$(self.$field.is_some(),)*];
                let given = Self::DECLARED.iter().zip(is_given).filter(|(_, given)| *given);
                let given: Vec<_> = given.map(|(declared, _)| *declared).collect();
                applicability::check(&given, uses)
            }
        }
    };
}

use Experiment as E;

/// Round trips that an agent answers.
const ANSWERED: &[E] = &[E::TcpRr, E::UdpRr, E::LoadedServer];
/// Round trips one after the other, over MX.
const MX_ROUND_TRIPS: &[E] = &[E::MxPingpong, E::MxLargeAnatomy, E::MxMisorder];
/// Round trips of TCP, UDP or ICMP that ask for and get any number of bytes.
const SIZED: &[&[E]] = &[ANSWERED, &[E::Ping, E::Mixed]];
/// Experiments in which an agent answers.
const SERVED: &[&[E]] = &[ANSWERED, &[E::Mixed], MX_ROUND_TRIPS, &[E::MxMixed]];
/// Those with connections that ask.
const ASKING: &[&[E]] = &[ANSWERED, &[E::Ping, E::Mixed], MX_ROUND_TRIPS, &[E::MxMixed]];
/// Those of which all agents have sockets that can be polled.
const POLLED: &[&[E]] = &[ANSWERED, &[E::Mixed]];
/// Those that ask again when the answer is there, and not on a schedule of their own.
const CLOSED: &[&[E]] = &[ANSWERED, &[E::Ping, E::Memcached], MX_ROUND_TRIPS];
/// Those that can keep a schedule.
const SCHEDULED: &[&[E]] = &[
    ANSWERED,
    &[E::Ping, E::Ntp, E::Mixed, E::Pps, E::InvalidFrames],
    MX_ROUND_TRIPS,
    &[E::MxMixed],
];
/// Those whose latency is measured from answer to answer.
const TIMED: &[&[E]] =
    &[ANSWERED, &[E::Ping, E::Memcached, E::Ntp, E::Mixed], MX_ROUND_TRIPS, &[E::MxMixed]];
/// Those of MX.
const MX: &[&[E]] = &[MX_ROUND_TRIPS, &[E::MxStream, E::MxMixed]];

options! {
    /// The NIC and the cable of a lab.
    NicOptions {
        /// Moderation, STRATEGY[:rx-usecs]: delay:75, marked:75, marked:75+gap:20, quiet:20/75,
        /// throttle:125, periodic:128, itr, adaptive, disabled; driver: as its registers say
        #[arg(short, value_name = "SETTING", hide_possible_values = true)]
        strategy: Text<Moderation>,
        /// Microseconds of the strategy's timer, as `ethtool -C rx-usecs`
        #[arg(value_name = "USECS", value_parser = up_to(MAX_RX_USECS))]
        rx_usecs: u32,
        /// Interrupt at this many frames even before the timer, as `ethtool -C rx-frames`
        #[arg(value_name = "FRAMES", value_parser = up_to(MAX_RX_FRAMES))]
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
        /// What the hosts are made of
        #[arg(value_enum)]
        hosts: Hosts => only_in(&[HostKind::Namespaces, HostKind::Guests]),
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
        /// Packets that a receive ring holds, as `ethtool -G rx`
        #[arg(value_parser = clap::value_parser!(u32).range(16..=65_536), value_name = "PACKETS")]
        ring: u32 => only_in(&[HostKind::Namespaces]),
        /// Microseconds from arrival until a frame is in host memory: what `stream` looks ahead
        #[arg(value_name = "USECS", value_parser = clap::value_parser!(u32).range(..=10_000))]
        dma_latency: u32,
        /// Microseconds from an interrupt until the host has it
        #[arg(value_name = "USECS", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
        interrupt_latency: u32 => only_in(&[HostKind::Virtual]),
        /// Nanoseconds of a host's processor for an interrupt: for all hosts, or a's,b's
        #[arg(value_name = "NS")]
        interrupt_cost: EachHost => only_in(&[HostKind::Virtual]),
        /// The same for each packet that it receives
        #[arg(value_name = "NS")]
        packet_cost: EachHost => only_in(&[HostKind::Virtual]),
        /// The same for each packet that it sends
        #[arg(value_name = "NS")]
        send_cost: EachHost => only_in(&[HostKind::Virtual]),
        /// The same for an interrupt that finds it idle, on top
        #[arg(value_name = "NS")]
        wakeup_cost: EachHost => only_in(&[HostKind::Virtual]),
        /// For how many nanoseconds it is idle before it has to wake up
        #[arg(value_name = "NS")]
        idle_after: EachHost => only_in(&[HostKind::Virtual]),
        /// Costs that were measured somewhere, where the options above say nothing
        #[arg(value_enum, value_name = "SET")]
        costs: CostSet => only_in(&[HostKind::Virtual]),
        /// How the NIC waits: sleep, precise (spin just before deadlines) or spin (a whole core)
        wait: Text<Waiting> => only_in(applicability::REAL),
        /// Transmit completions interrupt, too, as on a NIC with one vector for both
        #[arg(num_args = 0..=1, default_missing_value = "true")]
        transmit_interrupts: bool,
        /// Rate of the cable in Mbit/s; without it, as fast as the machine, or 1000 in virtual time
        #[arg(value_name = "MBIT", value_parser = link_rate)]
        link_rate: u32,
        /// Latency of the cable in microseconds, each way; without it none, or 20 in virtual time
        #[arg(value_name = "USECS", value_parser = clap::value_parser!(u32).range(..=10_000_000))]
        link_latency: u32,
        /// Frames that the cable loses, in percent
        #[arg(value_name = "PERCENT", value_parser = percent)]
        link_loss: f64,
        /// Frames that the cable duplicates, in percent
        #[arg(value_name = "PERCENT", value_parser = percent)]
        link_duplicate: f64,
        /// Frames that the cable lets others overtake, in percent
        #[arg(value_name = "PERCENT", value_parser = percent)]
        link_reorder: f64,
        /// By how many microseconds an overtaken frame is late
        #[arg(value_name = "USECS", value_parser = clap::value_parser!(u32).range(..=10_000_000))]
        link_reorder_delay: u32,
        /// Seed of everything random
        seed: u64,
        /// Largest packet, in bytes, without the Ethernet header
        #[arg(value_name = "BYTES")]
        mtu: u32,
        /// Write what crosses the ports to a pcapng file, with mark, hold and interrupt as comments
        #[arg(value_name = "FILE")]
        pcap: PathBuf,
        /// Name of the lab, for `earmark nic --lab`
        #[arg(value_name = "NAME")]
        name: String,
    }
}

options! {
    /// What an experiment does, and for how long.
    ExperimentOptions {
        /// Seconds measured, for each setting and round
        #[arg(value_name = "SECONDS", value_parser = duration)]
        duration: f64,
        /// Seconds before that do not count
        #[arg(value_name = "SECONDS", value_parser = seconds)]
        warmup: f64,
        /// How often each setting has its turn (A B A B ...)
        #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
        rounds: u32,
        /// Settings to compare, in turn, as in delay:75,disabled,marked:75
        #[arg(value_name = "SETTINGS", value_delimiter = ',', hide_possible_values = true)]
        compare: Vec<Text<Moderation>>,
        /// Connections that ask at once; a range such as 1..8 measures each
        clients: Text<Clients> => only_for(ASKING),
        /// Requests a second, sent when due whatever the answers do; else one after the other
        #[arg(value_name = "PER_SECOND", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        rate: u32 => only_for(SCHEDULED),
        /// Bytes of a request
        #[arg(value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        request_bytes: u32 => only_for(SIZED),
        /// Bytes of an answer
        #[arg(value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        response_bytes: u32 => only_for(&[&[E::TcpRr, E::UdpRr, E::LoadedServer, E::Mixed]]),
        /// The client spins instead of sleeping: no wake-up of its own, and a core gone
        #[arg(num_args = 0..=1, default_missing_value = "true")]
        client_spin: bool => only_in(applicability::REAL),
        /// How hosts get at packets, to compare in turn: epoll (sleep), defer:USECS,
        /// busy:USECS, suspend:USECS, so-busy-poll:USECS
        #[arg(value_name = "MODES", value_delimiter = ',')]
        poll: Vec<Text<Polling>> => only_for_in(POLLED, applicability::GUESTS),
        /// Settings of both hosts' interfaces, as `earmark apply` takes them; given several
        /// times, each in turn
        #[arg(value_name = "SETTINGS")]
        apply: Vec<String> => only_in(applicability::GUESTS),
        /// CPU work of the server for each request, in microseconds
        #[arg(value_name = "USECS", value_parser = up_to(LONGEST_WORK_US))]
        compute: u32 => only_for(SERVED),
        /// A client waits up to this many microseconds, at random, before it asks again
        #[arg(value_name = "USECS", value_parser = up_to(LONGEST_WORK_US))]
        think: u32 => only_for(CLOSED),
        /// Mbit/s of the bulk flow; without it, as fast as it goes
        #[arg(value_name = "MBIT", value_parser = clap::value_parser!(u32).range(1..))]
        bulk_rate: u32 => only_for(&[&[E::Bulk, E::Mixed, E::MxStream, E::MxMixed]]),
        /// Bytes that the bulk flow writes at a time
        #[arg(value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
        bulk_chunk: u32 => only_for(&[&[E::Bulk, E::Mixed, E::MxMixed]]),
        /// Bytes of the memcached value
        #[arg(value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        value_bytes: u32 => only_for(&[&[E::Memcached]]),
        /// Payload bytes of the datagrams
        #[arg(value_name = "BYTES", value_parser = clap::value_parser!(u32).range(8..=65_507))]
        payload_bytes: u32 => only_for(&[&[E::Pps]]),
        /// Bytes of a message of MX, up to 4 MiB
        #[arg(value_name = "BYTES", value_parser = clap::value_parser!(u32).range(..=4_194_304))]
        size: u32 => only_for(MX),
        /// Messages of MX that are on their way at once
        #[arg(value_name = "MESSAGES", value_parser = clap::value_parser!(u32).range(1..=4_096))]
        in_flight: u32 => only_for(&[&[E::MxStream, E::MxMixed]]),
        /// Frames that MX marks: all, none, all-rendezvous (all but those), small+pull, all+halfway
        #[arg(value_name = "MARKS")]
        mx_marks: Text<MarkNames> => only_for(MX),
        /// By how many frames the mark of an MX message comes too early
        #[arg(value_name = "FRAMES", value_parser = clap::value_parser!(u16).range(..=255))]
        mx_misorder: u16 => only_for(MX),
        /// Halfway through, change to this setting, and report before and after
        #[arg(value_name = "SETTING", hide_possible_values = true)]
        change_to: Text<Moderation> => only_for(TIMED),
    }
}

impl NicOptions {
    /// Where hosts in `world` are, made as these options say.
    #[must_use]
    pub fn place(&self, world: WorldKind) -> HostKind {
        match (world, self.hosts.unwrap_or_default()) {
            (WorldKind::Virtual, _) => HostKind::Virtual,
            (WorldKind::Live, Hosts::Uml) => HostKind::Guests,
            (WorldKind::Live, Hosts::Namespaces) => HostKind::Namespaces,
        }
    }
}

/// Ten seconds: no server works longer on a request, and no client thinks longer.
const LONGEST_WORK_US: u32 = 10_000_000;

fn up_to(most: u32) -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(..=i64::from(most))
}

impl ValueParserFactory for Text<Moderation> {
    type Parser = SuggestedValues<Self>;

    fn value_parser() -> SuggestedValues<Self> {
        SuggestedValues::new(Moderation::STRATEGIES.to_vec())
    }
}

fn link_rate(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => {
            Err("over a cable of 0 Mbit/s nothing passes; for one that is no limit, leave it \
                      out, or in virtual time give --link-rate 4294967295"
                .into())
        }
        Ok(rate) => Ok(rate),
        Err(_) => Err("a rate is a whole number of Mbit/s, 1 to 4294967295".into()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if (0.0..=100.0).contains(&value) { Ok(value) } else { Err("a percentage is 0 to 100".into()) }
}

/// A span in seconds.
///
/// # Errors
/// If it is not a number, or not one of 0 to 86400.
pub fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if (0.0..=86_400.0).contains(&value) { Ok(value) } else { Err("seconds are 0 to 86400".into()) }
}

/// Seconds in which something can happen.
pub fn duration(text: &str) -> Result<f64, String> {
    let value = seconds(text)?;
    if value >= 0.01 { Ok(value) } else { Err("a measurement takes 0.01 seconds or more".into()) }
}

impl NicOptions {
    /// Whether they name a setting, in whole or in part.
    pub fn name_a_setting(&self) -> bool {
        self.strategy.is_some() || self.rx_usecs.is_some() || self.rx_frames.is_some()
    }

    /// What host `number` costs in virtual time.
    #[must_use]
    pub fn costs_of(&self, number: usize) -> Costs {
        let set = self.costs.map(CostSet::costs).unwrap_or_default();
        let one =
            |given: &Option<EachHost>, usual| given.as_ref().map_or(usual, |it| it.of(number));
        Costs {
            interrupt: one(&self.interrupt_cost, set.interrupt),
            packet: one(&self.packet_cost, set.packet),
            send: one(&self.send_cost, set.send),
            wakeup: one(&self.wakeup_cost, set.wakeup),
            idle_after: one(&self.idle_after, set.idle_after),
        }
    }

    /// The setting that `--strategy`, `--rx-usecs` and `--rx-frames` describe together.
    ///
    /// # Errors
    /// If they do not go together.
    pub fn moderation(&self, usual: Moderation) -> anyhow::Result<Moderation> {
        let usual = if self.adapter().is_some() { DRIVER } else { usual };
        let mut moderation = self.strategy.as_ref().map_or(usual, |Text(strategy)| *strategy);
        if let Some(rx_usecs) = self.rx_usecs {
            moderation = moderation.with_rx_usecs(rx_usecs)?;
        }
        if let Some(rx_frames) = self.rx_frames {
            moderation = moderation.with_rx_frames(rx_frames)?;
        }
        self.check(moderation)?;
        Ok(moderation)
    }

    /// The same, where it is the only setting: lanes that it does not have are refused.
    ///
    /// # Errors
    /// If they do not go together.
    pub fn only_setting(&self, usual: Moderation) -> anyhow::Result<Moderation> {
        let moderation = self.moderation(usual)?;
        self.check_lane_is_used(&[moderation])?;
        Ok(moderation)
    }

    /// The NIC of Intel's that guests find, if it is one.
    #[must_use]
    pub fn adapter(&self) -> Option<Adapter> {
        self.nic.unwrap_or_default().adapter()
    }

    /// The lanes in force under a setting.
    #[must_use]
    pub fn lanes(&self, moderation: Moderation) -> Lanes {
        let lanes = self.lane.as_ref().filter(|_| moderation.marks == Marks::Lane);
        lanes.map_or(Lanes::NONE, |Text(lanes)| lanes.clone())
    }

    /// Refuses lanes that none of `settings` has.
    ///
    /// # Errors
    /// If there are such.
    pub fn check_lane_is_used(&self, settings: &[Moderation]) -> anyhow::Result<()> {
        ensure!(
            self.lane.is_none() || settings.iter().any(|setting| setting.marks == Marks::Lane),
            "--lane: no setting has lanes; name one that does, such as lane:75, or leave --lane out"
        );
        Ok(())
    }

    /// Refuses a setting that leaves to a driver what the NIC has no registers for, or whose lanes
    /// the ports cannot have.
    ///
    /// # Errors
    /// If it does.
    pub fn check(&self, moderation: Moderation) -> anyhow::Result<()> {
        ensure!(
            moderation.timer != TimerKind::Driver || self.adapter().is_some(),
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
    fn ranges_are_inclusive() {
        let each =
            |text: &str| text.parse::<Clients>().map(|range| range.each().collect::<Vec<_>>());
        assert_eq!(each("3"), Ok(vec![3]));
        assert_eq!(each("1..4"), Ok(vec![1, 2, 3, 4]));
        assert_eq!(each("1..=2"), Ok(vec![1, 2]));
        for wrong in ["0", "8..1", "1..65", "many"] {
            assert!(each(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_command_line_wins_over_the_scenario() {
        let flags = NicOptions { rx_usecs: Some(50), ..NicOptions::default() };
        let scenario: NicOptions = toml::from_str("strategy = 'delay:393'\nqueues = 2").unwrap();
        let both = flags.or(scenario);
        assert_eq!(both.moderation(Moderation::DISABLED).unwrap().to_string(), "delay:50");
        assert_eq!(both.queues, Some(2));
    }

    #[test]
    fn a_cost_wins_over_the_set() {
        let text = "costs = 'paper'\npacket-cost = 500\nsend-cost = '0,7'";
        let options: NicOptions = toml::from_str(text).unwrap();
        let costs = options.costs_of(1);
        let [interrupt, packet, send] =
            [costs.interrupt, costs.packet, costs.send].map(base::time::Duration::as_nanos);
        assert_eq!((interrupt, packet, send), (191, 500, 7));
        assert!(options.costs_of(0).send == base::time::Duration::ZERO);
    }

    #[test]
    fn a_scenario_writes_numbers_without_quotes() {
        let options: ExperimentOptions = toml::from_str("clients = 3").unwrap();
        assert_eq!(options.clients.unwrap().0.each().collect::<Vec<_>>(), [3]);
        let error = toml::from_str::<ExperimentOptions>("clients = true").unwrap_err().to_string();
        assert!(error.contains("a range such as 1..8"), "{error}");
    }

    #[test]
    fn a_scenario_takes_what_flags_take() {
        let nic: NicOptions = toml::from_str("ports = 'all'\ntransmit-interrupts = true").unwrap();
        assert_eq!((nic.ports, nic.transmit_interrupts), (Some(Ports::Both), Some(true)));
        let text =
            "compare = ['disabled', 'delay:75+frames:8']\nduration = 8.0\nclient-spin = false";
        let options: ExperimentOptions = toml::from_str(text).unwrap();
        assert_eq!(options.compare.unwrap().len(), 2);
        assert_eq!((options.duration, options.client_spin), (Some(8.0), Some(false)));
        for wrong in ["queues = 0", "link-loss = 101.0", "link-rate = 0", "mtu = 1.5", "seed = -1"]
        {
            let error = toml::from_str::<NicOptions>(wrong).unwrap_err().to_string();
            let (key, _) = wrong.split_once(' ').unwrap();
            assert!(error.contains(&format!("--{key}")), "{wrong}: {error}");
            assert!(!error.contains("--help"), "{wrong}: {error}");
        }
        for wrong in ["duration = nan", "duration = -5.0", "rounds = 0", "compare = []"] {
            assert!(toml::from_str::<ExperimentOptions>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_scenario_with_an_unknown_key_is_refused() {
        let error = toml::from_str::<NicOptions>("rx_usec = 5").unwrap_err().to_string();
        assert!(error.contains("unknown key `rx_usec`; there are strategy, rx-usecs,"), "{error}");
        let error = toml::from_str::<NicOptions>("strategy = 'dealy'").unwrap_err().to_string();
        assert!(error.contains("no such strategy"), "{error}");
    }
}
