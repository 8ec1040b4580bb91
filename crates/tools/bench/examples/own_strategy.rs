//! A moderation strategy from outside of Earmark, beside two of its own, in the model: the results
//! repeat exactly, and no rights are needed.
//!
//! ```console
//! $ cargo run --release -p earmark-bench --example own_strategy
//! ```

use bench::compare::run;
use bench::environment::Environment;
use bench::experiment::Experiment;
use bench::options::{ExperimentOptions, NicOptions, Text};
use bench::scenario::Run;
use bench::turns::Turns;
use bench::world::WorldKind;
use bench::world::model::ModelWorld;
use nic::descriptor::Descriptor;
use nic::moderation::{
    BoxedModerator, Interrupt, Moderation, Moderator, ModeratorFactory, Reason, Unseen,
};
use nic::time::{Duration, Instant};

const WAIT: Duration = Duration::from_micros(20);

/// Interrupts at the second packet that waits, or [`WAIT`] after the first.
#[derive(Clone, Debug, Default)]
struct Pairs(Option<Instant>);

impl Moderator for Pairs {
    fn dma_completed(&mut self, now: Instant, _: &Descriptor, _: u32) -> Interrupt {
        self.0.replace(now + WAIT).map(|_| Reason::Frames)
    }

    fn timer_expired(&mut self, _: Instant) -> Interrupt {
        Some(Reason::Timer)
    }

    fn host_rearmed(&mut self, _: Instant, unseen: &Unseen) -> Interrupt {
        self.0 = unseen.oldest.map(|oldest| oldest + WAIT);
        (unseen.packets > 1).then_some(Reason::Rearm)
    }

    fn interrupt_raised(&mut self, _: Instant) {
        self.0 = None;
    }

    fn deadline(&self) -> Option<Instant> {
        self.0
    }
}

#[derive(Debug)]
struct PairsFactory;

impl ModeratorFactory for PairsFactory {
    fn name(&self) -> &'static str {
        "pairs"
    }

    fn build(&self, _: &Moderation, _: Instant) -> Box<dyn BoxedModerator> {
        Box::new(Pairs::default())
    }
}

fn main() -> anyhow::Result<()> {
    let settings = ["disabled".parse()?, "delay:20".parse()?, Moderation::custom(&PairsFactory)];
    let compare = Some(settings.map(Text).to_vec());
    let options = ExperimentOptions { compare, duration: Some(0.1), ..Default::default() };
    let (experiment, nic) = (Experiment::Mixed, NicOptions::default());
    let asked = Run { experiment, world: None, nic, options };
    let world = ModelWorld::new(&asked.nic, Environment::of("model"))?;
    let turns = Turns::new(&asked, WorldKind::Model, 0)?;
    let ratios = run(&turns, Box::new(world), &())?.ratios;
    for ratio in ratios.iter().filter(|ratio| ratio.to == "disabled") {
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
