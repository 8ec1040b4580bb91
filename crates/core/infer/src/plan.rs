//! Which probes to send: trains, one after the other, each chosen from what the last ones showed.
//!
//! - *Lone* probes after long and uneven silences: the floor, and whether a lone packet waits.
//! - *Pairs* whose spacing is swept from microseconds to milliseconds: which packets join.
//! - *Dense* trains with random gaps: many releases, one right behind the other.
//! - *Sparse* trains, for holds too long for dense ones, and *bursts*, for frame limits.
//! - *Spaced* answers, where the far side lets them be asked for: a burst whose answers leave at
//!   random moments. Answers to anything else leave in step, if the far NIC holds requests for
//!   long, and then nothing varies on the way back.
//!
//! These alternate, so that whatever changes with time, two clocks' difference above all, does not
//! look like a difference between them. Two follow at the end:
//!
//! - A *ramp* of rising rate, which an adaptive NIC answers with longer holds.
//! - *Primed* pairs, where only round trips are known: a silent packet, then a probe.
//!
//! Where packets can be long, there is all of this but primed pairs once more with full segments,
//! in turns: what depends on length shows by what the two lengths show.
//!
//! The plan does no I/O: [`Plan::next`] says what to send, [`Plan::record`] takes the result.

use base::prng::Prng;
use base::time::Duration;

use crate::measured::MeasuredTrain;
use crate::side;
use crate::train::{Length, PlannedProbe, Purpose, Train};

/// What the probes can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Timestamps tell the two directions apart: the far host's in the answers, or those that my
    /// NIC gives them.
    pub stamps: bool,
    /// A packet can ask for no answer.
    pub silent: bool,
    /// A packet can ask for its answer later.
    pub waits: bool,
    /// A packet can be as long as the way takes, and so is its answer.
    pub full: bool,
    /// The most packets to send in all; 0: as many as the plan likes, some 6 000 of
    /// each length.
    pub most: u32,
    /// The least gap between two packets, to spare the network between.
    pub least_gap: Duration,
}

/// How many pairs there are: six of each factor of two in their spacing.
const PAIRS: u32 = 48;

/// The trains that alternate, and how many there are of each.
const ALTERNATING: [(Purpose, u32); 6] = [
    (Purpose::Lone, 40),
    (Purpose::Pair, PAIRS),
    (Purpose::Dense, 16),
    (Purpose::Sparse, 18),
    (Purpose::Burst, 24),
    (Purpose::Spaced, 24),
];

/// Spacings of pairs, in nanoseconds: from what a poll takes to more than the longest hold.
const SPACINGS: (u64, u64) = (5_000, 1_600_000);

/// Mean gaps in nanoseconds, taken in turns. Dense trains are closer than the holds in use, from a
/// few microseconds on; sparse ones go on to a quarter of the longest, so that its joiners and its
/// starters are both there.
const DENSE: [u64; 4] = [8_000, 16_000, 25_000, 40_000];
const SPARSE: [u64; 3] = [60_000, 120_000, 250_000];

/// As fast as it goes for short holds, and with gaps that exceed the noise.
const BURST: [u64; 2] = [1_500, 4_000];

/// Requests of spaced trains leave as fast as a poll takes them, and their answers at such means.
const SPACED: u64 = 2_000;
const ANSWERS: [u64; 4] = [25_000, 60_000, 120_000, 250_000];

/// Full segments are not sent closer than this, in nanoseconds: a link of one gigabit a second
/// takes 1538 bytes, all in all, in 12.3 us, and what waits for the link does not show what waits
/// for a NIC. Bursts of them are hardly slower.
const LEAST_FULL_GAP: Duration = Duration::from_nanos(12_500);
const FULL_BURST: [u64; 2] = [13_000, 18_000];

/// Gaps in a train. Dense and sparse ones take a few milliseconds at most, so that a lost train is
/// no great loss; bursts are longer than a limit of 64 frames.
const DENSE_GAPS: usize = 47;
const SPARSE_GAPS: usize = 23;
const BURST_GAPS: usize = 71;

/// DIM looks at the traffic every 64 interrupts, and takes a rate for higher that is by a tenth: 20
/// ms for each of twelve rates, each a fifth above the one before, from the slowest sparse train
/// on.
const RATES: u32 = 12;
const AT_A_RATE: u64 = 20_000_000;
const SLOWEST: f64 = 250_000.0;
const FASTER: f64 = 0.84;

/// Silence before a train in nanoseconds, and as much again at random, so that no tick is met in
/// step: longer than any hold, and than most idle states need to be entered.
const QUIET: u64 = 2_500_000;

/// How many primed pairs there are, when they are needed.
const PRIMED: u32 = 48;

/// What a train is for, which of its kind it is, and how long its packets are.
#[derive(Clone, Copy, Debug)]
struct Stage {
    purpose: Purpose,
    index: u32,
    length: Length,
}

/// A plan at work.
#[derive(Clone, Debug)]
pub struct Plan {
    abilities: Abilities,
    prng: Prng,
    order: Vec<Stage>,
    next: u32,
    sent: u32,
    heard: Vec<MeasuredTrain>,
    primed: Option<Vec<u64>>,
}

impl Plan {
    /// A plan whose random gaps come from `seed`.
    #[must_use]
    pub fn new(abilities: Abilities, seed: u64) -> Self {
        Self {
            abilities,
            prng: Prng::new(seed),
            order: order(abilities),
            next: 0,
            sent: 0,
            heard: Vec::new(),
            primed: None,
        }
    }

    /// The next train; nothing when enough has been heard. One that would send too much is left
    /// out.
    pub fn next_train(&mut self) -> Option<Train> {
        let most = if self.abilities.most == 0 { u32::MAX } else { self.abilities.most };
        loop {
            let number = self.next;
            let stage = self.stage(number)?;
            self.next += 1;
            let train = self.build(number, stage);
            let sent = self.sent + train.sends.len() as u32;
            if sent <= most {
                self.sent = sent;
                return Some(train);
            }
        }
    }

    /// What came of the last train.
    pub fn record(&mut self, heard: MeasuredTrain) {
        self.heard.push(heard);
    }

    /// Everything heard so far.
    #[must_use]
    pub fn heard(&self) -> &[MeasuredTrain] {
        &self.heard
    }

    /// About how many packets the whole plan sends.
    #[must_use]
    pub fn packets(&self) -> u32 {
        let mut plan = Self::new(self.abilities, 0);
        core::iter::from_fn(|| plan.next_train()).map(|train| train.sends.len() as u32).sum()
    }

    fn stage(&self, number: u32) -> Option<Stage> {
        let number = number as usize;
        if let Some(stage) = self.order.get(number) {
            return Some(*stage);
        }
        let after = (number - self.order.len()) as u32;
        let wanted = self.abilities.silent && !self.abilities.stamps;
        let ramp = |length| Some(Stage { purpose: Purpose::Ramp, index: 0, length });
        let primed = after.checked_sub(1 + u32::from(self.abilities.full));
        match (after, primed) {
            (0, _) => ramp(Length::Short),
            (1, None) => ramp(Length::Full),
            (_, Some(index @ 0..PRIMED)) if wanted => {
                Some(Stage { purpose: Purpose::Primed, index, length: Length::Short })
            }
            _ => None,
        }
    }

    fn build(&mut self, number: u32, stage: Stage) -> Train {
        let Stage { purpose, index, length } = stage;
        let (burst, least_gap) = match length {
            Length::Short => (BURST, self.abilities.least_gap),
            Length::Full => (FULL_BURST, self.abilities.least_gap.max(LEAST_FULL_GAP)),
        };
        let quiet = Duration::from_nanos(QUIET + self.prng.below(QUIET));
        let gaps = match purpose {
            Purpose::Lone => Vec::new(),
            Purpose::Pair => vec![swept(index, PAIRS, SPACINGS)],
            Purpose::Dense => self.random_gaps(DENSE_GAPS, in_turn(&DENSE, index)),
            Purpose::Sparse => self.random_gaps(SPARSE_GAPS, in_turn(&SPARSE, index)),
            Purpose::Burst => self.random_gaps(BURST_GAPS, in_turn(&burst, index)),
            Purpose::Spaced => self.random_gaps(SPARSE_GAPS, SPACED),
            Purpose::Ramp => self.ramp(),
            Purpose::Primed => {
                let gaps = self.primed.get_or_insert_with(|| side::gaps(&self.heard));
                vec![gaps[index as usize % gaps.len()]]
            }
        };
        let (mut at, mut wait) = (Duration::ZERO, Duration::ZERO);
        let mut sends = vec![PlannedProbe { at, silent: purpose == Purpose::Primed, wait }];
        for gap in gaps {
            at = at + Duration::from_nanos(gap).max(least_gap);
            if purpose == Purpose::Spaced {
                wait = wait + Duration::from_nanos(self.random_gap(in_turn(&ANSWERS, index)));
            }
            sends.push(PlannedProbe { at, silent: false, wait });
        }
        Train { number, purpose, length, quiet, sends }
    }

    /// Exponential gaps: every spacing occurs, and none repeats.
    fn random_gaps(&mut self, count: usize, mean: u64) -> Vec<u64> {
        (0..count).map(|_| self.random_gap(mean)).collect()
    }

    fn random_gap(&mut self, mean: u64) -> u64 {
        let share = (self.prng.below(1 << 32) as f64 + 0.5) / (1_u64 << 32) as f64;
        (-share.ln() * mean as f64) as u64
    }

    /// Rates that rise, as DIM sees them.
    fn ramp(&mut self) -> Vec<u64> {
        let mut gaps = Vec::new();
        let mut mean = SLOWEST;
        for _ in 0..RATES {
            let mut left = AT_A_RATE;
            while left > 0 {
                let gap = self.random_gap(mean as u64);
                gaps.push(gap);
                left = left.saturating_sub(gap);
            }
            mean *= FASTER;
        }
        gaps
    }
}

/// Those of each kind evenly over the whole, a lone one first: it is the first packet of all.
fn order(abilities: Abilities) -> Vec<Stage> {
    let kind = |(purpose, count): (Purpose, u32)| {
        (0..count).flat_map(move |index| {
            let shift = if purpose == Purpose::Lone { 0 } else { 1 };
            // Of the whole, without fractions.
            let at = (2 * index + shift) * 1_000_000 / (2 * count);
            let lengths = Length::ALL
                .into_iter()
                .filter(move |length| *length == Length::Short || abilities.full);
            lengths.map(move |length| (at, Stage { purpose, index, length }))
        })
    };
    let kinds = ALTERNATING.into_iter();
    let kinds = kinds.filter(|(purpose, _)| abilities.waits || *purpose != Purpose::Spaced);
    let mut order: Vec<_> = kinds.flat_map(kind).collect();
    order.sort_by_key(|(at, _)| *at);
    order.into_iter().map(|(_, stage)| stage).collect()
}

/// One of several, each in its turn.
fn in_turn(of: &[u64], index: u32) -> u64 {
    of[index as usize % of.len()]
}

/// The `index`-th of `count` values between two ends, evenly by ratio.
fn swept(index: u32, count: u32, (from, to): (u64, u64)) -> u64 {
    let ratio = to as f64 / from as f64;
    (from as f64 * ratio.powf(f64::from(index) / f64::from(count - 1))) as u64
}
