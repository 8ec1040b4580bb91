//! What every world returns: one type for one experiment under one setting.
//!
//! The JSON form is versioned by [`report::json`]; `docs/json.md` describes it. Times are
//! microseconds, rates are per second, CPU is in cores (1.0 is one core, busy all the time).

use std::collections::BTreeMap;

use base::distribution::Distribution;
use nic::moderation::Reason;
use nic::processor::Activity;
use schemars::JsonSchema;
use serde::Serialize;
use workload::{Counter, Record, Series, Timing};

use crate::environment::Environment;
use crate::histogram::{self, Bin};
use crate::records::per_second;
use crate::slice::{Busy, NicRecord, NotMeasured, Part, PortRecord, Slice};

pub use base::quantiles::Quantiles;

/// CPU time per second, in cores.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct Cpu {
    /// The data-plane thread, without what it did for the hosts and without waiting.
    pub nic: f64,
    /// The data-plane thread spinning: waiting for a deadline or a frame without sleeping.
    pub nic_spin: f64,
    /// The hosts: their programs, and their receive path, which runs when a frame is handed to a
    /// TAP.
    pub host: f64,
    /// The part of `host` that is the receive path.
    pub host_receive: f64,
}

/// What one port has counted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PortMeasurement {
    /// The interface, such as `b0`.
    pub name: String,
    /// The setting in force at the end, of queue 0.
    pub setting: String,
    /// Packets that its host took.
    pub packets: u64,
    /// Those among them that were marked.
    pub marked: u64,
    /// Frames about which rules of lanes decided.
    pub steered: u64,
    /// Interrupts by reason.
    pub interrupts: BTreeMap<&'static str, u64>,
    /// Holds of its packets.
    pub hold_us: Option<Quantiles>,
    /// Frames dropped because the ring was full.
    pub ring_full: u64,
    /// Frames that the host's stack refused.
    pub refused: u64,
    /// Frames lost on the way to this port: on the links of the others, or in a switch.
    pub link_lost: u64,
    /// What its host's processor was busy with, where that was modelled.
    pub processor: Option<ProcessorShares>,
}

/// Parts of the time in which a host's processors were busy, where what they do costs time.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ProcessorShares {
    /// How many processors it has.
    pub processors: usize,
    /// Share of waking up.
    pub wakeup: f64,
    /// Share of taking interrupts.
    pub interrupt: f64,
    /// Share of receiving packets.
    pub receive: f64,
    /// Share of sending packets.
    pub send: f64,
    /// Working for programs.
    pub work: f64,
    /// Share of being idle.
    pub idle: f64,
}

impl ProcessorShares {
    fn of(busy: Busy, processors: usize, seconds: f64) -> Self {
        let capacity = processors as f64 * seconds * 1e9;
        let share = |activity: Activity| busy[activity as usize] as f64 / capacity;
        let all: f64 = Activity::ALL.into_iter().map(share).sum();
        Self {
            processors,
            wakeup: share(Activity::Wakeup),
            interrupt: share(Activity::Interrupt),
            receive: share(Activity::Receive),
            send: share(Activity::Send),
            work: share(Activity::Work),
            idle: (1.0 - all).max(0.0),
        }
    }
}

/// The four timestamps of NTP, before or after a change.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OneWayDelays {
    /// The setting of the changed port.
    pub setting: String,
    /// Round trip without the server's own time.
    pub round_trip_us: Option<Quantiles>,
    /// The request's way.
    pub request_us: Option<Quantiles>,
    /// The answer's way.
    pub response_us: Option<Quantiles>,
    /// How far the server's clock seems ahead; it is the same clock, so this is the error.
    pub offset_us: Option<Quantiles>,
    /// The medians of each round.
    pub rounds: Vec<OneWayMedians>,
}

/// The medians of [`OneWayDelays`] in one round.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct OneWayMedians {
    /// Round trip without the server's own time.
    pub round_trip_us: Option<f64>,
    /// The request's way.
    pub request_us: Option<f64>,
    /// The answer's way.
    pub response_us: Option<f64>,
    /// The error of the clock.
    pub offset_us: Option<f64>,
}

/// The key figures of one round, from which spreads and ratios are made.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Round {
    /// Median latency of a round.
    pub latency_p50_us: Option<f64>,
    /// Round trips a second.
    pub transactions_per_s: Option<f64>,
    /// Goodput of the bulk flow.
    pub bulk_bits_per_s: Option<f64>,
    /// Interrupts a second, both hosts together.
    pub interrupts_per_s: Option<f64>,
    /// Messages of MX a second.
    pub messages_per_s: Option<f64>,
    /// Interrupts of both hosts for each message of MX.
    pub interrupts_per_message: Option<f64>,
    /// Why there are no figures, if there are none.
    pub not_measured: Option<String>,
}

/// One experiment under one setting.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Measurement {
    /// The setting, as the user would write it.
    pub setting: String,
    /// How many clients asked at once, where that was varied.
    pub clients: Option<u32>,
    /// Seconds measured, all rounds together.
    pub seconds: f64,
    /// From when a request was *due* to its answer; of one sent after the other, from when it was
    /// sent. None without requests.
    pub latency_us: Option<Quantiles>,
    /// Half of `latency_us`: what one message of MX takes. None except in ping-pongs.
    pub half_round_trip_us: Option<Quantiles>,
    /// From when a request was really sent to its answer. None unless on a schedule.
    pub service_us: Option<Quantiles>,
    /// Where `latency_us` clusters: bins of a sixteenth of an octave, without those that are empty.
    pub latency_histogram: Vec<Bin>,
    /// Answers a second.
    pub transactions_per_s: Option<f64>,
    /// Requests that were lost or not answered in time.
    pub lost: Option<u64>,
    /// Goodput of the bulk flow, at the receiver.
    pub bulk_bits_per_s: Option<f64>,
    /// Datagrams a second, at the receiver.
    pub datagrams_per_s: Option<f64>,
    /// Messages of MX a second, at their receivers.
    pub messages_per_s: Option<f64>,
    /// Bytes of them a second.
    pub message_bytes_per_s: Option<f64>,
    /// Interrupts of both hosts for each of them, where nothing else is on its way.
    pub interrupts_per_message: Option<f64>,
    /// Packets that programs received by busy polling, where that is compared.
    pub busy_polled: Option<u64>,
    /// Cores that programs of both hosts kept busy by polling, where they may for a time: all of
    /// each wait, up to that time.
    pub polling_cpu: Option<f64>,
    /// Interrupts of both hosts.
    pub interrupts: Option<u64>,
    /// The same, a second.
    pub interrupts_per_s: Option<f64>,
    /// The same, by reason.
    pub interrupts_by_reason: BTreeMap<&'static str, u64>,
    /// Packets that the hosts took.
    pub packets: Option<u64>,
    /// Packets for each interrupt.
    pub packets_per_interrupt: Option<f64>,
    /// From the end of a packet's DMA to its interrupt, of all packets; 0.001 if a poll under way
    /// found it.
    pub hold_us: Option<Quantiles>,
    /// How late the data plane woke for a deadline; none if it never waited.
    pub timer_overshoot_us: Option<Quantiles>,
    /// CPU time; in virtual time, computing takes none.
    pub cpu: Option<Cpu>,
    /// CPU time of a host's receive path and the NIC for each packet, in nanoseconds.
    pub receive_ns_per_packet: Option<f64>,
    /// The ports, in order.
    pub ports: Vec<PortMeasurement>,
    /// Before and after a change, where there was one; of `ntp`, the halves of the round trip.
    #[serde(rename = "halves")]
    pub one_way: Vec<OneWayDelays>,
    /// The rounds, in order.
    pub rounds: Vec<Round>,
    /// Where and how it was measured.
    pub environment: Environment,
    /// The distribution behind `latency_us`, for pictures.
    #[serde(skip)]
    pub latency: Distribution,
    /// What the asker has measured over time, for pictures: one for each round, if it kept any.
    #[serde(skip)]
    pub series: Vec<Series>,
}

impl Round {
    /// Those of what was measured in one.
    pub fn of(slice: &Slice) -> Self {
        let asker = slice.record(Part::Asker).or_else(|| slice.record(Part::MessageSource));
        let messages = slice.messages().map(|messages| messages as f64);
        let alone = slice.messages_alone().map(|messages| messages as f64);
        let recorded = |timing| asker.and_then(|record| record.distributions.get(timing));
        let latency = LATENCIES.iter().find_map(recorded);
        Self {
            latency_p50_us: latency.and_then(Quantiles::of).map(|quantiles| quantiles.p50),
            transactions_per_s: slice.rate(Part::Asker, Counter::Transactions),
            bulk_bits_per_s: slice
                .rate(Part::BulkSink, Counter::BytesReceived)
                .map(|bytes| bytes * 8.0),
            interrupts_per_s: Some(slice.nic.interrupts() as f64 / slice.seconds),
            messages_per_s: messages.map(|messages| messages / slice.seconds),
            interrupts_per_message: alone
                .and_then(|messages| ratio(slice.nic.interrupts() as f64, messages)),
            not_measured: None,
        }
    }
}

/// The latency of an experiment: the first of these that its record has. NTP's round trip leaves
/// the server's own time out; it is the latency all the same, as is the transfer of a message.
const LATENCIES: [Timing; 3] = [Timing::Latency, Timing::RoundTrip, Timing::Transfer];

/// All rounds of one setting, ready to be summed up.
#[derive(Debug)]
pub struct Rounds<'a> {
    /// The setting, as the user would write it.
    pub setting: String,
    /// How many clients, where that was varied.
    pub clients: Option<u32>,
    /// The rounds that were measured.
    pub slices: &'a [Slice],
    /// Those that were not, by their numbers from 0, ascending.
    pub missed: &'a [(usize, NotMeasured)],
    /// Half a round trip is what people compare.
    pub reports_half: bool,
}

impl Rounds<'_> {
    /// Sums the rounds up.
    pub fn measurement(&self, environment: Environment) -> Measurement {
        let seconds: f64 = self.slices.iter().map(|slice| slice.seconds).sum();
        let asker = self.merged(Part::Asker);
        let source = self.merged(Part::MessageSource);
        let timed = asker.as_ref().or(source.as_ref());
        let latency = LATENCIES.map(|timing| distribution(timed, timing));
        let latency = latency.into_iter().find(|latency| latency.count > 0).unwrap_or_default();
        let nic = self.nic();
        let interrupts = nic.interrupts();
        let packets: u64 = nic.ports.iter().map(|port| port.delivered).sum();
        let any = !self.slices.is_empty();
        let cpu = (any && environment.measures_cpu()).then(|| self.cpu(&nic, seconds));
        let receive = cpu.map(|cpu| (cpu.host_receive + cpu.nic) * seconds * 1e9);
        let messages = self.total(Slice::messages);
        let bytes = messages.map(|_| self.sum(|slice| slice.counted(Counter::MessageBytes)) as f64);
        let alone = self.total(Slice::messages_alone);
        let latency_us = Quantiles::of(&latency);
        let asked = asker.as_ref().map(|asker| per_second(asker, Counter::Transactions));
        let polls = |counter| self.total(|slice| slice.polls(counter));
        let missed = |counter| asker.as_ref().map_or(0, |asker| asker.counter(counter));
        Measurement {
            setting: self.setting.clone(),
            clients: self.clients,
            seconds,
            latency_us,
            half_round_trip_us: latency_us.filter(|_| self.reports_half).map(Quantiles::half),
            service_us: Quantiles::of(&distribution(asker.as_ref(), Timing::Service)),
            latency_histogram: histogram::bins(&latency),
            transactions_per_s: asked,
            lost: any.then(|| missed(Counter::Lost) + missed(Counter::Unanswered)),
            bulk_bits_per_s: self
                .merged(Part::BulkSink)
                .map(|sink| per_second(&sink, Counter::BytesReceived) * 8.0),
            datagrams_per_s: self
                .merged(Part::Counter)
                .map(|counter| per_second(&counter, Counter::DatagramsReceived)),
            messages_per_s: messages.map(|messages| messages / seconds),
            message_bytes_per_s: bytes.map(|bytes| bytes / seconds),
            interrupts_per_message: alone.and_then(|alone| ratio(interrupts as f64, alone)),
            busy_polled: polls(Counter::BusyPolled).map(|packets| packets as u64),
            polling_cpu: polls(Counter::PollingNanos).map(|nanos| nanos / (seconds * 1e9)),
            interrupts: any.then_some(interrupts),
            interrupts_per_s: ratio(interrupts as f64, seconds),
            interrupts_by_reason: by_reason(|reason| {
                nic.ports.iter().map(|port| port.interrupts_for(reason)).sum()
            }),
            packets: any.then_some(packets),
            packets_per_interrupt: ratio(packets as f64, interrupts as f64),
            hold_us: Quantiles::of(&nic.holds()),
            timer_overshoot_us: Quantiles::of(&nic.overshoot),
            cpu,
            receive_ns_per_packet: receive.and_then(|receive| ratio(receive, packets as f64)),
            ports: ports(&nic, seconds),
            one_way: Vec::new(),
            rounds: self.rounds(),
            environment,
            latency,
            series: self.series(),
        }
    }

    fn rounds(&self) -> Vec<Round> {
        let mut rounds: Vec<Round> = self.slices.iter().map(Round::of).collect();
        for (number, why) in self.missed {
            let round = Round { not_measured: Some(why.0.clone()), ..Round::default() };
            rounds.insert(*number, round);
        }
        rounds
    }

    /// The sum over all rounds, if there is anything to add.
    fn total(&self, of: impl Fn(&Slice) -> Option<u64>) -> Option<f64> {
        let mut each = self.slices.iter().filter_map(of).peekable();
        each.peek()?;
        Some(each.sum::<u64>() as f64)
    }

    fn sum(&self, of: impl Fn(&Slice) -> u64) -> u64 {
        self.slices.iter().map(of).sum()
    }

    fn merged(&self, part: Part) -> Option<Record> {
        let mut records = self.slices.iter().filter_map(|slice| slice.record(part));
        let mut sum = records.next()?.clone();
        records.for_each(|record| sum.merge(record));
        Some(sum)
    }

    fn series(&self) -> Vec<Series> {
        let asker = self.slices.iter().filter_map(|slice| slice.record(Part::Asker));
        asker.filter_map(|record| record.series.clone()).collect()
    }

    fn nic(&self) -> NicRecord {
        let mut slices = self.slices.iter().map(|slice| &slice.nic);
        let mut sum = slices.next().cloned().unwrap_or_default();
        slices.for_each(|nic| sum.merge(nic));
        sum
    }

    fn cpu(&self, nic: &NicRecord, seconds: f64) -> Cpu {
        let cores = |nanos: u64| nanos as f64 / (seconds * 1e9);
        let receive = cores(nic.delivering_ns);
        let programs =
            cores(self.sum(|slice| slice.records.iter().map(|(_, record)| record.cpu_ns).sum()));
        let thread = cores(nic.cpu_ns);
        // A spin that was pre-empted took time but no CPU, so the rest may come out below nothing.
        let nic_spin = cores(nic.spun_ns).min(thread - receive);
        let nic = thread - receive - nic_spin;
        Cpu { nic, nic_spin, host: programs + receive, host_receive: receive }
    }
}

fn by_reason(count: impl Fn(Reason) -> u64) -> BTreeMap<&'static str, u64> {
    Reason::ALL.into_iter().map(|reason| (reason.name(), count(reason))).collect()
}

fn ports(nic: &NicRecord, seconds: f64) -> Vec<PortMeasurement> {
    let port = |port: &PortRecord| PortMeasurement {
        name: port.name.clone(),
        setting: port.setting.clone(),
        packets: port.delivered,
        marked: port.marked,
        steered: port.steered,
        interrupts: by_reason(|reason| port.interrupts_for(reason)),
        hold_us: Quantiles::of(&port.holds),
        ring_full: port.ring_full,
        refused: port.refused,
        link_lost: port.link_lost,
        processor: port.busy_ns.map(|busy| ProcessorShares::of(busy, port.cores, seconds)),
    };
    nic.ports.iter().map(port).collect()
}

impl Measurement {
    /// The part of the time in which the busiest host's processor was not idle, where that was
    /// modelled.
    pub fn busiest_host(&self) -> Option<f64> {
        let busy = self.ports.iter().filter_map(|port| Some(1.0 - port.processor?.idle));
        busy.max_by(f64::total_cmp)
    }
}

fn distribution(record: Option<&Record>, timing: Timing) -> Distribution {
    record.map(|record| record.distribution(timing)).unwrap_or_default()
}

fn ratio(amount: f64, of: f64) -> Option<f64> {
    (of > 0.0).then(|| amount / of)
}
