//! When the kernel of a host stamps what comes off the wire: behind the NIC's hold, packet by
//! packet as it polls.

use base::time::{Duration, Instant};
use nic::descriptor::Descriptor;
use nic::moderation::{Moderation, Phase};
use nic::queue::Queue;

use crate::random::Random;

use super::traffic::OffWire;
use super::{CaptureDecoy, Stamp};

/// The longest packet that merging makes.
const MERGED: u32 = 65_000;

/// Nanoseconds, flow and bytes of each packet, as a capture has them.
pub(super) fn taken(
    arrivals: Vec<OffWire>,
    setting: Moderation,
    decoy: Option<CaptureDecoy>,
    random: &mut Random,
) -> Vec<Stamp> {
    let arrivals = match decoy {
        Some(CaptureDecoy::Medium) => aired(arrivals, random),
        _ => arrivals,
    };
    let stamped = received(&arrivals, setting, random);
    if decoy == Some(CaptureDecoy::Merged) { merged(&stamped) } else { stamped }
}

/// Packets that wait until their host may send, and then come all at once: an aggregate.
fn aired(arrivals: Vec<OffWire>, random: &mut Random) -> Vec<OffWire> {
    let (mut next, mut aired) = (0.0, Vec::new());
    let mean = random.between(0.5e-3, 6e-3);
    let mut within = 0.0;
    for (at, flow, bytes) in arrivals {
        if at > next {
            // Contention, and how long the one before was on the air.
            next = at.max(next + 1e-4) + random.exponential(mean) * random.between(0.3, 1.0);
            within = 0.0;
        }
        within += 0.4e-6;
        aired.push((next + within, flow, bytes));
    }
    aired.sort_by(|a, b| a.0.total_cmp(&b.0));
    aired
}

/// A host that takes an interrupt after some time, and needs some for each packet.
fn received(arrivals: &[OffWire], setting: Moderation, random: &mut Random) -> Vec<Stamp> {
    let phase = Phase((random.share() * f64::from(u32::MAX)) as u32);
    let mut queue: Queue<(u64, u32)> = Queue::in_phase(0, 4_096, setting, phase, Instant::ZERO);
    let (latency, each) = (random.between(0.8, 4.0), random.between(0.15, 0.7));
    let mut stamps = Vec::new();
    // When the host polls next, while it does.
    let mut polls: Option<Instant> = None;
    let mut arrivals = arrivals.iter().peekable();
    loop {
        let off_wire = arrivals.peek().map(|it| Instant::from_nanos((it.0 * 1e9) as u64));
        let due = [off_wire, queue.deadline(), polls].into_iter().flatten().min();
        let Some(now) = due else { return stamps };
        if off_wire == Some(now)
            && let Some((_, flow, length)) = arrivals.next()
        {
            let (length, arrived_at) = (*length, now);
            let packet = Descriptor { length, marked: false, arrived_at, completed_at: now };
            // Who finds no room is dropped, as on any host.
            let _: Result<(), _> = queue.arrive(now, packet, (*flow, length));
        }
        queue.advance(now, &mut ());
        if polls == Some(now) {
            let mut at = now;
            let count = queue.poll(now, 64, &mut (), |_, (flow, bytes)| {
                at += nanos(each * random.between(0.7, 1.6));
                stamps.push((at.as_nanos(), flow, bytes));
            });
            polls = (count > 0).then_some(at + nanos(0.1));
            if count == 0 {
                queue.rearm(now, &mut ());
            }
        }
        if queue.take_interrupt() {
            let late = if random.is(0.01) { random.between(1.0, 20.0) } else { 0.0 };
            polls = Some(now + nanos(latency * random.between(0.8, 1.3) + late));
        }
    }
}

fn nanos(us: f64) -> Duration {
    Duration::from_nanos((us * 1e3) as u64)
}

/// Packets of a flow that follow each other within a poll are one.
pub(super) fn merged(stamped: &[Stamp]) -> Vec<Stamp> {
    let mut merged: Vec<Stamp> = Vec::new();
    for (at, flow, bytes) in stamped {
        match merged.last_mut() {
            Some(last) if last.1 == *flow && at - last.0 < 15_000 && last.2 + bytes < MERGED => {
                last.2 += bytes;
            }
            _ => merged.push((*at, *flow, *bytes)),
        }
    }
    merged
}
