//! What an experiment does, and for how long.

use std::str::FromStr;

use base::quantity::Unit;
use nic::moderation::Moderation;
use serde::{Deserialize, Deserializer};

use super::values::{Text, duration, seconds, whole};
use crate::applicability::{self, Declared, HostKind, Use, only_for, only_for_in, only_in};
use crate::experiment::{Experiment, MANY, Pattern};
use crate::keys;
use crate::marks::MarkNames;
use crate::polling::Polling;

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
const POLLED: &[&[E]] = &[ANSWERED, &[E::Mixed, E::Memcached]];
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

/// Ten seconds: no server works longer on a request, and no client thinks longer.
const LONGEST_WORK_US: u32 = 10_000_000;

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
        /// Which hosts talk where there are many: all to one, or all to all [default: incast]
        #[arg(value_enum)]
        pattern: Pattern => only_for_in(&[MANY], &[HostKind::Model]),
        /// Processes that send or ask on each host that does
        #[arg(value_parser = clap::value_parser!(u32).range(1..=5_000))]
        processes: u32 => only_for_in(&[MANY], &[HostKind::Model]),
        /// Processes of a server, which share its port: the next request is for one that is free
        #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
        workers: u32 => only_for_in(&[ANSWERED], &[HostKind::Model]),
        /// Requests a second, sent when due whatever the answers do; else one after the other
        #[arg(value_name = "PER_SECOND", value_parser = whole::<u32>(Unit::PerSecond, 1..=1_000_000))]
        rate: u32 => only_for(SCHEDULED),
        /// Bytes of a request
        #[arg(value_name = "BYTES", value_parser = whole::<u32>(Unit::Bytes, 1..=1_000_000))]
        request_bytes: u32 => only_for(SIZED),
        /// Bytes of an answer
        #[arg(value_name = "BYTES", value_parser = whole::<u32>(Unit::Bytes, 1..=1_000_000))]
        response_bytes: u32 => only_for(&[&[E::TcpRr, E::UdpRr, E::LoadedServer, E::Mixed]]),
        /// The client spins instead of sleeping: no wake-up of its own, and a core gone
        #[arg(num_args = 0..=1, default_missing_value = "true")]
        client_spin: bool => only_in(applicability::REAL),
        /// How hosts get at packets, to compare in turn: epoll (sleep), defer:USECS,
        /// busy:USECS, suspend:USECS, so-busy-poll:USECS, io-uring:USECS; in the model also
        /// threaded, threaded-busy
        #[arg(value_name = "MODES", value_delimiter = ',')]
        poll: Vec<Text<Polling>> => only_for_in(POLLED, applicability::POLLING),
        /// Settings of both hosts' interfaces, as `earmark apply` takes them; given several
        /// times, each in turn
        #[arg(value_name = "SETTINGS")]
        apply: Vec<String> => only_in(applicability::GUESTS),
        /// CPU work of the server for each request, in microseconds
        #[arg(value_name = "USECS", value_parser = whole::<u32>(Unit::Micros, 0..=LONGEST_WORK_US.into()))]
        compute: u32 => only_for(SERVED),
        /// A client waits up to this many microseconds, at random, before it asks again
        #[arg(value_name = "USECS", value_parser = whole::<u32>(Unit::Micros, 0..=LONGEST_WORK_US.into()))]
        think: u32 => only_for(CLOSED),
        /// Mbit/s of the bulk flow; without it, as fast as it goes
        #[arg(value_name = "MBIT", value_parser = whole::<u32>(Unit::Mbit, 1..=u32::MAX.into()))]
        bulk_rate: u32 => only_for(&[&[E::Bulk, E::Mixed, E::MxStream, E::MxMixed]]),
        /// Bytes that the bulk flow writes at a time
        #[arg(value_name = "BYTES", value_parser = whole::<u32>(Unit::Bytes, 1..=16_777_216))]
        bulk_chunk: u32 => only_for(&[&[E::Bulk, E::Mixed, E::MxMixed]]),
        /// Bytes of the memcached value
        #[arg(value_name = "BYTES", value_parser = whole::<u32>(Unit::Bytes, 1..=1_000_000))]
        value_bytes: u32 => only_for(&[&[E::Memcached]]),
        /// Payload bytes of the datagrams
        #[arg(value_name = "BYTES", value_parser = whole::<u32>(Unit::Bytes, 8..=65_507))]
        payload_bytes: u32 => only_for(&[&[E::Pps]]),
        /// Bytes of a message of MX, up to 4 MiB
        #[arg(value_name = "BYTES", value_parser = whole::<u32>(Unit::Bytes, 0..=4_194_304))]
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
}
