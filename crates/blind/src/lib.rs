//! Blind tests of [`infer`]: cases drawn from seeds, worlds that hide them, and the score.
//!
//! A [`Case`] is a secret: settings of our NIC on either side, bulk beside the probes, and decoys.
//! A [`World`] plays it in made-up time with the real `nic` crate, the same strategies that hosts
//! get; all that comes out of it are the times of probes. [`Score`] is the only place that sees a
//! verdict beside its case.
#![forbid(unsafe_code)]

mod case;
mod chance;
mod path;
mod score;
mod stage;
mod world;

pub use case::{Case, Decoy, Kind};
pub use chance::Gaps;
pub use score::{Score, Table};
pub use world::World;

use infer::{Plan, Verdict};

/// Plays one case from the first probe to the verdict.
#[must_use]
pub fn probe(case: &Case) -> Verdict {
    let mut world = World::new(case);
    let mut plan = Plan::new(world.abilities(), case.seed() ^ 0x9e37);
    while let Some(train) = plan.next_train() {
        let heard = world.send(train);
        plan.told(heard);
    }
    infer::judge(plan.heard())
}

/// Plays the cases of `count` seeds from `first` on, on two threads, and scores them by seed.
#[must_use]
pub fn play(first: u64, count: u64) -> Vec<Score> {
    let half = first + count / 2;
    let some = |seeds: std::ops::Range<u64>| -> Vec<Score> {
        let cases = seeds.map(Case::draw);
        cases.flat_map(|case| Score::of(&case, &probe(&case))).collect()
    };
    std::thread::scope(|scope| {
        let rest = scope.spawn(|| some(half..first + count));
        let mut scores = some(first..half);
        scores.extend(rest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        scores
    })
}
