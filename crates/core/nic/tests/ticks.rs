//! Where the ticks of a free-running clock stand when traffic begins follows from a seed.

use nic::port::{Port, PortSettings};
use nic::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_micros(128);

/// When each of four queues interrupts for its first packet, which comes at once.
fn first_ticks(tick_seed: Option<u64>) -> Vec<Instant> {
    let moderation = "periodic:128".parse().unwrap();
    let settings = PortSettings { queues: 4, moderation, tick_seed, ..PortSettings::default() };
    let mut port = Port::new(settings, Instant::ZERO);
    for source in 0..64_u8 {
        // IPv4 without ports: receive-side scaling takes the addresses.
        let mut frame = vec![0; 60];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[17] = 46;
        frame[23] = 1;
        frame[29] = source;
        port.receive(Instant::ZERO, frame).unwrap();
    }
    port.advance(Instant::ZERO, &mut ());
    port.queues().iter().map(|queue| queue.deadline().unwrap()).collect()
}

#[test]
fn phases_follow_from_the_seed() {
    assert_eq!(first_ticks(None), [Instant::ZERO + PERIOD; 4]);
    let ticks = first_ticks(Some(7));
    assert_eq!(ticks, first_ticks(Some(7)));
    assert_ne!(ticks, first_ticks(Some(8)));
    assert!(ticks.iter().all(|tick| *tick <= Instant::ZERO + PERIOD), "{ticks:?}");
    assert_ne!(ticks[0], ticks[1], "each queue has a clock of its own");
}
