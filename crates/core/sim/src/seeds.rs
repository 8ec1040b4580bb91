//! What differs from seed to seed.
//!
//! Each seed draws which settings, faults and habits it has at all, and only then how much of them:
//! a run with everything at once hides what happens with one thing alone (Groce and others,
//! "Swarm testing", 2012).

use base::prng::Prng;
use base::time::Duration;
use mx::config::{Config, ContextBits};

use crate::network::Wires;

/// What a seed decides.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How many hosts there are.
    pub hosts: usize,
    /// Settings of all endpoints.
    pub config: Config,
    /// Rates and faults of the network.
    pub wires: Wires,
    /// What applications do, and how long they do it.
    pub habits: Habits,
    /// Numbers of 32 bits begin so long before they wrap.
    pub wraps_after: Option<u32>,
}

/// What applications do.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Things that are done, in all.
    pub actions: u32,
    /// The time in which they are done.
    pub span: Duration,
    /// Messages are at most so long.
    pub longest: u64,
    /// Each of these in a million actions.
    pub synchronous_ppm: u32,
    /// Receives from anybody.
    pub any_source_ppm: u32,
    /// Receives that look at few bits.
    pub wide_mask_ppm: u32,
    /// Receives that are too short.
    pub short_ppm: u32,
    /// Receives against sends.
    pub receive_ppm: u32,
    /// Probes, followed by a receive.
    pub probe_ppm: u32,
    /// Claims of messages.
    pub claim_ppm: u32,
    /// Receives that are cancelled.
    pub cancel_ppm: u32,
    /// Messages to oneself.
    pub self_ppm: u32,
    /// Endpoints that start again.
    pub restart_ppm: u32,
    /// Endpoints that close.
    pub close_ppm: u32,
    /// Cuts between two hosts.
    pub cut_ppm: u32,
    /// Hosts that sleep for a while.
    pub sleep_ppm: u32,
}

impl Habits {
    /// Whether connections may be lost at all.
    pub(crate) const fn are_peaceful(&self) -> bool {
        self.restart_ppm == 0 && self.close_ppm == 0 && self.cut_ppm == 0
    }
}

/// One of these.
fn one_of<T: Copy>(random: &mut Prng, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

/// Mostly zero, otherwise below `most`.
fn sometimes(random: &mut Prng, of: u64, most: u64) -> u32 {
    if random.below(of) == 0 { 1 + random.below(most) as u32 } else { 0 }
}

impl Setup {
    /// What this seed decides.
    pub fn new(seed: u64) -> Self {
        let random = &mut Prng::new(seed);
        let hosts = match random.below(10) {
            0 => 7 + random.below(10) as usize,
            1..=4 => 2,
            _ => 3 + random.below(3) as usize,
        };
        let mut config = config(random);
        let habits = habits(random);
        let mut wires = wires(random, &config);
        let wraps = random.below(3) == 0;
        let wraps_after = wraps.then(|| random.below(50) as u32);
        if random.below(15) == 0 {
            // Nothing finds damage: all one may expect is that no host panics or keeps too much.
            (config.crc, wires.hostile, wires.damage_ppm) = (false, true, 30_000);
        }
        Self { hosts, config, wires, habits, wraps_after }
    }
}

fn config(random: &mut Prng) -> Config {
    let defaults = Config::default();
    let small_max = one_of(random, &[0, 32, 128, 128, 512]);
    let resend_min = Duration::from_micros(one_of(random, &[200, 1_000, 1_000, 5_000]));
    let bits = one_of(random, &[0, 0, 1, 4]);
    let odd = random.below(2) == 0;
    let config = Config {
        mtu: one_of(random, &[576, 1500, 1500, 9000]),
        crc: random.below(3) == 0,
        small_max,
        eager_max: one_of(random, &[u32::from(small_max), 4_096, 32_768, 32_768, 100_000]),
        context: ContextBits { bits, shift: one_of(random, &[0, 3, 8]) },
        peer_timeout: Duration::from_millis(one_of(random, &[500, 2_000, 5_000])),
        resend_min,
        ..defaults
    };
    if !odd {
        return config;
    }
    Config {
        window: one_of(random, &[8, 9, 32, 256]),
        blocks: one_of(random, &[1, 2, 4, 16]),
        pull_window: one_of(random, &[32, 64, 256, 1024]),
        peer_credit: one_of(random, &[0, 100, 5_000, 40_000, 1 << 20]),
        unexpected_bytes: one_of(random, &[0, 50_000, 256 << 20]),
        unexpected_messages: one_of(random, &[1, 3, 20, 1 << 20]),
        early_bytes: one_of(random, &[0, 3_000, 100_000, 16 << 20]),
        ack_every: one_of(random, &[1, 2, 16, 128]),
        ack_delay: Duration::from_micros(one_of(random, &[0, 50, 250, 2_000])),
        ..config
    }
}

fn wires(random: &mut Prng, config: &Config) -> Wires {
    let none = random.below(4) == 0;
    let fault = |random: &mut Prng, most| if none { 0 } else { sometimes(random, 2, most) };
    Wires {
        rate_mbit: one_of(random, &[0, 1_000, 10_000, 10_000]),
        latency: Duration::from_micros(one_of(random, &[1, 20, 20, 300])),
        queue: one_of(random, &[16, 128, 128, 1_000]),
        loss_ppm: fault(random, 100_000),
        duplicate_ppm: fault(random, 100_000),
        reorder_ppm: fault(random, 100_000),
        reorder_delay: Duration::from_micros(one_of(random, &[10, 100, 3_000])),
        damage_ppm: fault(random, if config.crc { 50_000 } else { 10_000 }),
        hostile: false,
        jitter: Duration::from_micros(fault(random, 200).into()),
    }
}

fn habits(random: &mut Prng) -> Habits {
    let violent = random.below(3) == 0;
    let rarely = |random: &mut Prng| if violent { sometimes(random, 3, 40_000) } else { 0 };
    Habits {
        actions: 30 + random.below(170) as u32,
        span: Duration::from_millis(one_of(random, &[1, 20, 200, 1_000])),
        longest: one_of(random, &[10, 200, 5_000, 40_000, 300_000, 1 << 20]),
        synchronous_ppm: sometimes(random, 2, 400_000),
        any_source_ppm: sometimes(random, 2, 900_000),
        wide_mask_ppm: sometimes(random, 2, 900_000),
        short_ppm: sometimes(random, 2, 300_000),
        receive_ppm: 300_000 + random.below(300_000) as u32,
        probe_ppm: sometimes(random, 3, 200_000),
        claim_ppm: sometimes(random, 3, 200_000),
        cancel_ppm: sometimes(random, 3, 200_000),
        self_ppm: sometimes(random, 3, 200_000),
        restart_ppm: rarely(random),
        close_ppm: rarely(random),
        cut_ppm: rarely(random),
        sleep_ppm: sometimes(random, 4, 20_000),
    }
}
