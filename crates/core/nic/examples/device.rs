//! Moderated interrupts for a NIC of your own, with a ring of your own: only the [`Vector`].
//!
//! | in your device | call |
//! |---|---|
//! | a frame came off the wire, its copy to the host begins | `packet_arrived` |
//! | the copy is done and the host can see it | `dma_completed`, then interrupt if it says so |
//! | `deadline()` has come (ask again after every call) | `advance`, then interrupt if it says so |
//! | the guest enabled interrupts (used-event, doorbell) | `rearm`, then interrupt if it says so |

use std::collections::VecDeque;

use nic::descriptor::Descriptor;
use nic::moderation::{SettingError, Unseen};
use nic::time::{Duration, Instant};
use nic::vector::Vector;

const DMA: Duration = Duration::from_micros(2);

/// A message of three frames, the last one marked, and later a lone frame: when, and is it marked?
const WIRE: [(u64, bool); 4] = [(0, false), (4, false), (8, true), (200, false)];

fn main() -> Result<(), SettingError> {
    for setting in ["delay:75", "marked:75"] {
        println!("{setting}");
        let mut vector = Vector::new(setting.parse()?, Instant::ZERO);
        let (mut in_flight, mut used) = (VecDeque::<Descriptor>::new(), Vec::new());
        // A real device waits for the first of: a frame, a finished copy, `deadline()`.
        for now in (0..300).map(Instant::from_micros) {
            for (_, marked) in WIRE.into_iter().filter(|(at, _)| Instant::from_micros(*at) == now) {
                let completed_at = now + DMA;
                let packet = Descriptor { length: 64, marked, arrived_at: now, completed_at };
                vector.packet_arrived(now, &packet);
                in_flight.push_back(packet);
            }
            let mut interrupt = vector.advance(now);
            while in_flight.front().is_some_and(|packet| packet.completed_at <= now) {
                let Some(packet) = in_flight.pop_front() else { break };
                used.push(packet);
                interrupt =
                    vector.dma_completed(now, &packet, in_flight.len() as u32).or(interrupt);
            }
            // The host takes packets until there are none, and enables interrupts again.
            while let Some(reason) = interrupt {
                let (at, packets) = (now.as_nanos() / 1_000, used.drain(..).count());
                println!("  {at:>4} us  interrupt ({reason}), packets: {packets}");
                interrupt = vector.rearm(now, &Unseen::of(&used, in_flight.len() as u32));
            }
        }
    }
    Ok(())
}
