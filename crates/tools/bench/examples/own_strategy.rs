//! A moderation strategy from outside of Earmark, beside two of its own: a token bucket, in guests
//! in virtual time, whose results repeat exactly.
//!
//! ```console
//! $ cargo run --release -p earmark-bench --example own_strategy
//! ```

use anyhow::Result;
use bench::compare::{open, run};
use bench::experiment::Experiment;
use bench::options::{ExperimentOptions, NicOptions, Text};
use bench::scenario::Run;
use bench::turns::Turns;
use bench::world::WorldKind;
use nic::descriptor::Descriptor;
use nic::moderation::{
    BoxedModerator, Interrupt, Moderation, Moderator, ModeratorFactory, Reason, Unseen,
};
use nic::time::{Duration, Instant};
use report::progress::Progress;

/// Up to `burst` interrupts at once, and one more every `interval`.
#[derive(Clone, Debug)]
struct TokenBucket {
    burst: u32,
    interval: Duration,
    tokens: u32,
    filled_at: Instant,
    expires: Option<Instant>,
}

impl TokenBucket {
    fn wanted(&mut self, now: Instant, reason: Reason) -> Interrupt {
        while self.tokens < self.burst && self.filled_at + self.interval <= now {
            self.tokens += 1;
            self.filled_at += self.interval;
        }
        if self.tokens > 0 {
            return Some(reason);
        }
        self.expires = Some(self.filled_at + self.interval);
        None
    }
}

impl Moderator for TokenBucket {
    fn dma_completed(&mut self, now: Instant, _: &Descriptor, _: u32) -> Interrupt {
        self.wanted(now, Reason::Frames)
    }

    fn timer_expired(&mut self, now: Instant) -> Interrupt {
        self.expires.take().and_then(|_| self.wanted(now, Reason::Timer))
    }

    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        self.expires = None;
        unseen.oldest.and_then(|_| self.wanted(now, Reason::Rearm))
    }

    fn interrupt_raised(&mut self, now: Instant) {
        if self.tokens == self.burst {
            self.filled_at = now;
        }
        self.tokens = self.tokens.saturating_sub(1);
        self.expires = None;
    }

    fn deadline(&self) -> Option<Instant> {
        self.expires
    }
}

#[derive(Debug)]
struct TokenBuckets;

impl ModeratorFactory for TokenBuckets {
    fn name(&self) -> &'static str {
        "token-bucket"
    }

    fn build(&self, _: &Moderation, now: Instant) -> Box<dyn BoxedModerator> {
        let (burst, interval) = (4, Duration::from_micros(100));
        Box::new(TokenBucket { burst, interval, tokens: burst, filled_at: now, expires: None })
    }
}

fn main() -> Result<()> {
    let settings =
        ["disabled".parse()?, "throttle:100".parse()?, Moderation::custom(&TokenBuckets)];
    let options = ExperimentOptions {
        compare: Some(settings.map(Text).to_vec()),
        duration: Some(0.1),
        ..Default::default()
    };
    let (experiment, nic) = (Experiment::TcpRr, NicOptions::default());
    let asked = Run { experiment, world: None, nic, options };
    let world = open(WorldKind::Virtual, &asked.nic, WorldKind::privilege([WorldKind::Virtual])?)?;
    let turns = Turns::new(&asked, WorldKind::Virtual, 0)?;
    let comparison = run(&turns, world, &Progress::new(true))?;
    for ratio in &comparison.ratios {
        println!(
            "{}: {} is {:.2} times {}",
            ratio.figure.title(),
            ratio.of,
            ratio.spread.median,
            ratio.to
        );
    }
    Ok(())
}
