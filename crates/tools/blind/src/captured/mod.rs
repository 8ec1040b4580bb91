//! Blind tests of what a capture tells of the hold that it went through.
//!
//! A [`CapturedCase`] is a secret: traffic of several flows, and either a setting of our NIC or a
//! decoy, which makes clumps without one. Only stamps, flows and lengths come out of it.

mod guests;
mod stamps;
mod traffic;

use infer::{Clumping, Clumps, Family};
use nic::moderation::{Moderation, TimerKind};

use crate::random::Random;
use traffic::Traffic;

pub use guests::GuestCase;

/// When a kernel stamped a packet, in nanoseconds; its flow, as a number; bytes of its frame.
pub type Stamp = (u64, u64, u32);

/// What clumps packets though no NIC holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureDecoy {
    /// Nothing does: an interrupt for each packet.
    Immediate,
    /// A sender that paces bursts.
    Paced,
    /// Two senders in step, of one period.
    InStep,
    /// Access to a medium that all flows wait for, as Wi-Fi's.
    Medium,
    /// A receiver that merges packets of a flow (GRO).
    Merged,
    /// A wire that is full.
    FullWire,
}

impl CaptureDecoy {
    const ALL: [Self; 6] =
        [Self::Immediate, Self::Paced, Self::InStep, Self::Medium, Self::Merged, Self::FullWire];
}

/// What is hidden in a capture.
#[derive(Clone, Debug)]
pub struct CapturedCase {
    seed: u64,
    setting: Moderation,
    decoy: Option<CaptureDecoy>,
}

/// How a capture was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureRating {
    /// The family, or that there is no hold.
    Right,
    /// Another family, or none where there is a hold.
    Wrong,
    /// A hold, and no family.
    NoFamily,
    /// That the capture cannot tell.
    CannotTell,
    /// A hold where there is none.
    Accused,
}

/// A score beside its secret.
#[derive(Clone, Debug)]
pub struct CaptureScore {
    /// Seed of the case.
    pub seed: u64,
    /// The setting, or the decoy.
    pub truth: String,
    /// Whether it is a decoy.
    pub is_decoy: bool,
    /// How it was judged.
    pub rating: CaptureRating,
    /// What was said.
    pub said: Clumping,
    /// By which part of itself the length is wrong, where there is one to compare.
    pub length_error: Option<f64>,
}

impl CapturedCase {
    /// The case of a seed: two in five are decoys.
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0xca97);
        if random.is(0.4) {
            let decoy = random.one(&CaptureDecoy::ALL);
            return Self { seed, setting: Moderation::DISABLED, decoy: Some(decoy) };
        }
        let timers =
            [TimerKind::Delay, TimerKind::Throttle, TimerKind::Periodic, TimerKind::Adaptive];
        let timer = random.one(&timers);
        let rx_usecs = if timer == TimerKind::Adaptive { 0 } else { random.whole(10, 300) };
        Self { seed, setting: Moderation { timer, rx_usecs, ..Moderation::DISABLED }, decoy: None }
    }

    /// What a kernel stamps.
    pub fn stamps(&self) -> Vec<Stamp> {
        let mut random = Random::new(self.seed);
        let arrivals = Traffic::draw(&mut random, self.decoy).arrivals(&mut random);
        stamps::taken(arrivals, self.setting, self.decoy, &mut random)
    }

    /// Judges the capture, and scores what is said.
    pub fn score(&self) -> CaptureScore {
        let mut clumps = Clumps::default();
        for (at, flow, bytes) in self.stamps() {
            clumps.add(at, flow, bytes);
        }
        let said = clumps.judge();
        let rating = rating(&said, self.setting);
        let usecs = f64::from(self.setting.rx_usecs);
        let length_error = match &said {
            Clumping::Held { hold, .. } if usecs > 0.0 => Some((hold.value - usecs).abs() / usecs),
            _ => None,
        };
        let truth = self.decoy.map_or(self.setting.to_string(), |decoy| format!("{decoy:?}"));
        let is_decoy = self.decoy.is_some();
        CaptureScore { seed: self.seed, truth, is_decoy, rating, said, length_error }
    }
}

/// How far what was said is so.
fn rating(said: &Clumping, setting: Moderation) -> CaptureRating {
    let family = match setting.timer {
        TimerKind::Delay => Some(Family::Delay),
        TimerKind::Throttle => Some(Family::Throttle),
        TimerKind::Periodic => Some(Family::Periodic),
        TimerKind::Adaptive => Some(Family::Adaptive),
        _ => None,
    };
    match (said, family) {
        (Clumping::Unclear { .. }, _) => CaptureRating::CannotTell,
        (Clumping::Held { .. }, None) => CaptureRating::Accused,
        (Clumping::Free { .. } | Clumping::Wire { .. }, None) => CaptureRating::Right,
        (Clumping::Held { family: None, .. }, Some(_)) => CaptureRating::NoFamily,
        (Clumping::Held { family: said, .. }, truth) if *said == truth => CaptureRating::Right,
        _ => CaptureRating::Wrong,
    }
}
