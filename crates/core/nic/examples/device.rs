//! Moderated interrupts for a NIC of your own, with a ring of your own: only the [`Vector`].
//!
//! | in your device | call |
//! |---|---|
//! | a frame came off the wire, its copy to the host begins | `packet_arrived` |
//! | the copy is done and the host can see it | `dma_completed`, then interrupt if it says so |
//! | `deadline()` has come (ask again after every call) | `advance`, then interrupt if it says so |
//! | the guest enabled interrupts (used-event, doorbell) | `rearm`, then interrupt if it says so |
//!
//! The host's part: once interrupted, take packets until there are none, then enable interrupts. No
//! more.

use std::collections::VecDeque;

use nic::descriptor::Descriptor;
use nic::moderation::{Interrupt, Unseen};
use nic::time::{Duration, Instant};
use nic::vector::Vector;

const DMA: Duration = Duration::from_micros(2);

struct Device {
    vector: Vector,
    in_flight: VecDeque<Descriptor>,
    /// What the host reads packets from.
    used: VecDeque<Descriptor>,
}

impl Device {
    fn frame_arrived(&mut self, now: Instant, marked: bool) {
        let packet = Descriptor { length: 64, marked, arrived_at: now, completed_at: now + DMA };
        self.vector.packet_arrived(now, &packet);
        self.in_flight.push_back(packet);
    }

    fn dma_done(&mut self, now: Instant) -> Interrupt {
        let packet = self.in_flight.pop_front()?;
        self.used.push_back(packet);
        self.vector.dma_completed(now, &packet, self.in_flight.len() as u32)
    }

    fn interrupts_enabled(&mut self, now: Instant) -> Interrupt {
        let unseen = Unseen {
            packets: self.used.len() as u32,
            marked: self.used.iter().filter(|packet| packet.marked).count() as u32,
            oldest: self.used.front().map(|packet| packet.completed_at),
            newest: self.used.back().map(|packet| packet.completed_at),
            dma_pending: self.in_flight.len() as u32,
            // Only for `itr`, which this device does not offer.
            taken: None,
        };
        self.vector.rearm(now, &unseen)
    }
}

/// A message of three frames, the last one marked; later a lone frame that nobody waits for.
const WIRE: [(u64, bool); 4] = [(0, false), (4, false), (8, true), (200, false)];

fn main() {
    for setting in ["delay:75", "marked:75"] {
        let moderation = setting.parse().expect("a setting");
        let vector = Vector::new(&moderation, Instant::ZERO);
        let mut device = Device { vector, in_flight: VecDeque::new(), used: VecDeque::new() };
        println!("{setting}");
        // A real device waits for the first of: a frame, a finished copy, `deadline()`. Here time
        // is a counter.
        for now in (0..300).map(Instant::from_micros) {
            for (_, marked) in WIRE.iter().filter(|(at, _)| Instant::from_micros(*at) == now) {
                device.frame_arrived(now, *marked);
            }
            let mut interrupt = None;
            while device.in_flight.front().is_some_and(|packet| packet.completed_at <= now) {
                interrupt = device.dma_done(now).or(interrupt);
            }
            interrupt = interrupt.or_else(|| device.vector.advance(now));
            while let Some(reason) = interrupt {
                let packets = device.used.drain(..).count();
                let at = now.as_nanos() / 1_000;
                println!("  {at:>4} us  interrupt ({reason}), packets: {packets}");
                interrupt = device.interrupts_enabled(now);
            }
        }
    }
}
