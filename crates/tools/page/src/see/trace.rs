//! The timeline of the last run: rows of hosts around a moment, and what happened there.

use base::time::{Duration, Instant};
use bench::world::trace::{CoreSpan, HostTrace};
use model::machine::Cable;
use nic::moderation::{Moderation, Reason};
use nic::observer::Delivered;
use nic::processor::Activity;
use report::timeline::{Timeline, TimelineFlight, TimelineMoment, TimelineRow, TimelineSpan};
use serde::{Deserialize, Serialize};

/// Levels of packets in the row of a NIC.
const LEVELS: usize = 8;

/// Names of the two hosts.
const HOSTS: [&str; 2] = ["a", "b"];

/// Where a timeline is looked at.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Look {
    /// Microseconds since the measurement began.
    at_us: f64,
    /// Microseconds that the picture shows.
    span_us: f64,
    /// Goes to the next moment at which something happens (1), or to the one before (-1).
    #[serde(default)]
    step: i8,
    /// Pixels of the picture.
    width: f64,
}

/// What is seen there.
#[derive(Debug, Serialize)]
pub(crate) struct Seen {
    at_us: f64,
    /// The end of what was kept.
    end_us: f64,
    picture: String,
    /// What happens at this moment.
    says: Vec<String>,
    /// The setting of the host.
    setting: String,
    /// What decides under it, line by line, and whether it has decided here.
    algorithm: Vec<(&'static str, bool)>,
}

/// What happens at a moment: the number of a packet, an interrupt or a wake-up of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Arrival(usize),
    Completion(usize),
    Interrupt(usize),
    Wakeup(usize),
    Taken(usize),
}

/// A run that can be looked at.
#[derive(Debug)]
pub(crate) struct Trace {
    hosts: Vec<HostTrace>,
    /// The setting of each host.
    settings: [Moderation; 2],
    link: Cable,
    /// When the measurement began.
    begun: Instant,
    /// All that happens at the hosts, in order.
    all: Vec<(Instant, usize, Happening)>,
}

impl Trace {
    /// What happened at `hosts` under `settings`, from when a measurement has `begun`.
    pub(crate) fn new(
        hosts: Vec<HostTrace>,
        settings: [Moderation; 2],
        link: Cable,
        begun: Instant,
    ) -> Self {
        let mut all = Vec::new();
        for (host, trace) in hosts.iter().enumerate().take(HOSTS.len()) {
            for (number, packet) in trace.packets.iter().enumerate() {
                all.extend([
                    (packet.descriptor.arrived_at, host, Happening::Arrival(number)),
                    (packet.descriptor.completed_at, host, Happening::Completion(number)),
                    (packet.at, host, Happening::Taken(number)),
                ]);
            }
            let interrupts = trace.interrupts.iter().enumerate();
            all.extend(interrupts.map(|(number, it)| (it.at, host, Happening::Interrupt(number))));
            let wakes = |(_, it): &(usize, &CoreSpan)| {
                it.activity == Activity::Wakeup && it.ended > it.begun
            };
            let woken = trace.cores.iter().enumerate().filter(wakes);
            all.extend(woken.map(|(number, it)| (it.begun, host, Happening::Wakeup(number))));
        }
        all.retain(|(at, ..)| *at >= begun);
        all.sort_unstable();
        Self { hosts, settings, link, begun, all }
    }

    /// What is seen at a moment.
    pub(crate) fn look(&self, look: Look) -> Seen {
        let asked = self.begun + Duration::from_nanos((look.at_us.max(0.0) * 1e3).round() as u64);
        let next = match look.step {
            1.. => self.all.iter().find(|(at, ..)| *at > asked),
            0 => None,
            _ => self.all.iter().rev().find(|(at, ..)| *at < asked),
        };
        let at = next.map_or(asked, |(at, ..)| *at);
        let here = self.all.iter().filter(|it| it.0 == at);
        let mut reasons = here.clone().filter_map(|(_, host, what)| match what {
            Happening::Interrupt(number) => {
                Some((*host, self.hosts[*host].interrupts[*number].reason))
            }
            _ => None,
        });
        let reason = reasons.next_back();
        let host = reason.or(here.clone().next().map(|it| (it.1, Reason::Rearm)));
        let setting = self.settings[host.map_or(HOSTS.len() - 1, |(host, _)| host)];
        let decides = |reasons: &[Reason]| reason.is_some_and(|(_, it)| reasons.contains(&it));
        let algorithm = setting.algorithm().map(|(line, reasons)| (line, decides(reasons)));
        let at_us = self.us(at);
        let mut says: Vec<String> =
            here.map(|(_, host, what)| self.sentence(*host, *what)).collect();
        if says.is_empty() {
            says.push("nothing happens at this moment".into());
        }
        Seen {
            at_us,
            end_us: self.all.last().map_or(0.0, |it| self.us(it.0)),
            picture: self.picture((at_us, look.span_us.clamp(1.0, 1e6)), look.width),
            says,
            setting: setting.to_string(),
            algorithm: algorithm.collect(),
        }
    }

    fn sentence(&self, host: usize, what: Happening) -> String {
        let (trace, name) = (&self.hosts[host], HOSTS[host]);
        let bytes = |packet: usize| {
            let descriptor = &trace.packets[packet].descriptor;
            let mark = if descriptor.marked { "a marked packet" } else { "a packet" };
            format!("{mark} of {} bytes", descriptor.length)
        };
        match what {
            Happening::Arrival(number) => format!("{name}: {} arrives", bytes(number)),
            Happening::Completion(number) => {
                format!("{name}: {} is in memory{}", bytes(number), waits(&trace.packets[number]))
            }
            Happening::Taken(number) => format!("{name}: a poll takes {}", bytes(number)),
            Happening::Interrupt(number) => {
                let interrupt = &trace.interrupts[number];
                let (packets, reason) = (interrupt.packets, interrupt.reason);
                format!("{name}: the NIC interrupts, packets: {packets}, reason: {reason}")
            }
            Happening::Wakeup(number) => {
                let CoreSpan { core, begun, ended, .. } = trace.cores[number];
                let takes = ended.since(begun).as_nanos() as f64 / 1e3;
                format!("{name}: core {core} wakes up, which takes {takes:.1} us")
            }
        }
    }

    fn us(&self, at: Instant) -> f64 {
        at.as_nanos() as f64 / 1e3 - self.begun.as_nanos() as f64 / 1e3
    }

    fn picture(&self, (at_us, span_us): (f64, f64), width: f64) -> String {
        let us = (at_us - span_us * 0.3, at_us + span_us * 0.7);
        let summary = format!(
            "What happened from {:.1} to {:.1} us of the measurement, at hosts a and b",
            us.0, us.1
        );
        let mut timeline = Timeline { summary, width, us, cursor_us: at_us, ..Timeline::default() };
        let mut nics = Vec::new();
        for (host, trace) in self.hosts.iter().enumerate().take(HOSTS.len()) {
            let cores = self.cores(host, trace, &timeline);
            let nic = self.nic(host, trace, &timeline);
            let rows = &mut timeline.rows;
            // The NICs face each other.
            if host == 0 {
                rows.extend(cores);
                nics.push(rows.len());
                rows.push(nic);
            } else {
                nics.push(rows.len());
                rows.push(nic);
                rows.extend(cores);
            }
        }
        timeline.flights = self.flights(&nics, &timeline);
        timeline.inline()
    }

    /// A row for each core that does something.
    fn cores(&self, host: usize, trace: &HostTrace, shown: &Timeline) -> Vec<TimelineRow> {
        let busy = trace.cores.iter().filter(|span| span.ended > span.begun);
        let mut used: Vec<usize> = busy.map(|span| span.core).collect();
        used.sort_unstable();
        used.dedup();
        let row = |core: usize| {
            let own =
                trace.cores.iter().filter(|span| span.core == core && span.ended > span.begun);
            let spans = own.filter_map(|span| {
                let us = (self.us(span.begun), self.us(span.ended));
                if !shown.shows(us) {
                    return None;
                }
                let (class, what, level) = match span.activity {
                    Activity::Interrupt => ("handler", "handler of an interrupt", 0),
                    Activity::Receive => ("poll", "poll", 0),
                    Activity::Wakeup => ("wakeup", "wake-up", 1),
                    Activity::Work | Activity::Send => ("program", "program", 0),
                };
                let text = format!("{what}, {:.3} us", us.1 - us.0);
                Some(TimelineSpan { us, class, level, text })
            });
            let name = format!("{} core {core}", HOSTS[host]);
            TimelineRow { name, levels: 2, spans: spans.collect(), moments: Vec::new() }
        };
        used.into_iter().map(row).collect()
    }

    /// The row of a NIC: of each packet DMA and hold, and the interrupts.
    fn nic(&self, host: usize, trace: &HostTrace, shown: &Timeline) -> TimelineRow {
        let mut free = [f64::NEG_INFINITY; LEVELS];
        let mut spans = Vec::new();
        for packet in &trace.packets {
            let arrived = self.us(packet.descriptor.arrived_at);
            let completed = self.us(packet.descriptor.completed_at);
            let seen = completed + packet.hold.as_nanos() as f64 / 1e3;
            if !shown.shows((arrived, seen)) {
                continue;
            }
            let level = free.iter().position(|free| *free <= arrived).unwrap_or(LEVELS - 1);
            free[level] = seen.max(arrived + 0.01);
            let mark = if packet.descriptor.marked { "dma marked" } else { "dma" };
            let length = packet.descriptor.length;
            let dma = ("DMA", mark, (arrived, completed));
            let hold = (seen > completed).then_some(("hold", "hold", (completed, seen)));
            for (what, class, us) in std::iter::once(dma).chain(hold) {
                if shown.shows(us) {
                    let text = format!("{length} bytes: {what}, {:.3} us", us.1 - us.0);
                    spans.push(TimelineSpan { us, class, level, text });
                }
            }
        }
        let moments = trace.interrupts.iter().filter_map(|it| {
            let us = self.us(it.at);
            let text = || format!("interrupt for {} packets: {}", it.packets, it.reason);
            let moment = || TimelineMoment { us, class: "interrupt", text: text() };
            shown.shows((us, us)).then(moment)
        });
        let levels = 1 + spans.iter().map(|span| span.level).max().unwrap_or(0);
        let name = format!("{} NIC", HOSTS[host]);
        TimelineRow { name, levels, spans, moments: moments.collect() }
    }

    /// Packets on their way: each has left the other host as long before as the cable takes.
    fn flights(&self, nics: &[usize], shown: &Timeline) -> Vec<TimelineFlight> {
        let mut flights = Vec::new();
        for (host, trace) in self.hosts.iter().enumerate().take(nics.len()) {
            let (Some(&to), Some(&from)) = (nics.get(host), nics.get(1 - host)) else { continue };
            for packet in &trace.packets {
                let length = packet.descriptor.length;
                let on_wire = self.link.on_wire(length as usize).as_nanos() as f64 / 1e3;
                let takes = on_wire + f64::from(self.link.latency_ns) / 1e3;
                let arrived = self.us(packet.descriptor.arrived_at);
                let us = (arrived - takes, arrived);
                if !shown.shows(us) {
                    continue;
                }
                let class = if packet.descriptor.marked { "marked" } else { "plain" };
                let text = format!("{length} bytes on the cable, {takes:.3} us");
                flights.push(TimelineFlight { rows: (from, to), us, class, text });
            }
        }
        flights
    }
}

/// What follows when the DMA of a packet has completed.
fn waits(packet: &Delivered) -> String {
    match packet.interrupt {
        None => ", and a poll is going to find it without an interrupt".into(),
        Some(_) if packet.hold == Duration::ZERO => String::new(),
        Some(interrupt) => format!(
            ", and the NIC holds it for {:.1} us, until an interrupt, reason: {}",
            packet.hold.as_nanos() as f64 / 1e3,
            interrupt.reason
        ),
    }
}
