//! Blind tests of [`infer`]: cases drawn from seeds, a simulated path that hides them, and the
//! score.
//!
//! # Theory of operation
//!
//! A [`Case`] is a secret: settings of our NIC on either side, bulk beside the probes, decoys, and
//! obstacles that keep probes from showing anything. A [`World`] plays it in simulated time with
//! the real `nic` crate, the same strategies that hosts get; only the times of probes come out of
//! it. [`Score`] alone sees a verdict beside its case. One seed is one case, so every result can be
//! repeated.
//!
//! # Example
//!
//! ```
//! use blind::{Case, Score, probe};
//!
//! let case = Case::draw(300_100);
//! let verdict = probe(&case);
//! for score in Score::of(&case, &verdict) {
//!     println!("{}: {:?}", score.truth, score.outcome);
//! }
//! assert_eq!(probe(&case), verdict);
//! ```
//!
//! # Modules
//!
//! Private ones: `captured` (captures instead of probes), `case`, `decoy`, `obstacle` (what is
//! hidden), `world`, `path`, `receiver` (what plays it), `score`.

#![forbid(unsafe_code)]

mod captured;
mod case;
mod decoy;
mod obstacle;
mod path;
mod random;
mod receiver;
mod score;
mod world;

pub use captured::{CaptureDecoy, CaptureRating, CaptureScore, CapturedCase, GuestCase, Stamp};
pub use case::{Case, Deferral, Hold, ProbeKind};
pub use decoy::Decoy;
pub use obstacle::Obstacle;
pub use random::Gaps;
pub use score::{Rating, Score, Table};
pub use world::World;

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

use infer::{MeasuredTrain, Plan, Verdict};

/// Plays one case from the first probe to the verdict.
pub fn probe(case: &Case) -> Verdict {
    infer::judge(&hear(case))
}

/// Plays one case from the first probe to the last; what the probes hear.
pub fn hear(case: &Case) -> Vec<MeasuredTrain> {
    let mut world = World::new(case);
    let mut plan = Plan::new(world.abilities(), case.seed() ^ 0x9e37);
    while let Some(train) = plan.next_train() {
        let heard = world.send(train);
        plan.record(heard);
    }
    plan.heard().to_vec()
}

/// Plays the cases of `count` seeds from `first` on, as `draw` makes them ([`Case::draw`],
/// [`Case::draw_hindered`]), and scores them by seed.
pub fn play(first: u64, count: u64, draw: fn(u64) -> Case) -> Vec<Score> {
    let score = |seed| {
        let case = draw(seed);
        Score::of(&case, &probe(&case))
    };
    let seeds: Vec<u64> = (first..first + count).collect();
    each(&seeds, score).into_iter().flatten().collect()
}

/// What `of` makes of each seed, in their order, with all processors at work.
///
/// # Panics
/// If `of` does.
pub fn each<T: Send>(seeds: &[u64], of: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || -> Vec<(usize, T)> {
        let taken = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let seeds = taken.map_while(|at| Some((at, *seeds.get(at)?)));
        seeds.map(|(at, seed)| (at, of(seed))).collect()
    };
    let count = thread::available_parallelism().map_or(1, usize::from);
    let mut made: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        let join = |worker: ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        workers.into_iter().flat_map(join).collect()
    });
    made.sort_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, made)| made).collect()
}
