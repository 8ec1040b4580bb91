//! `earmark mx soak`: many simulated networks of endpoints, a seed each, held against a model.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use base::prng::Prng;
use clap::Args;
use serde::{Deserialize, Serialize};
use sim::drive::{self, RunReport};

use crate::command::merge::{Merging, print_shard};
use bench::environment::Environment;
use bench::shard::{Shard, ShardArgs};
use report::progress::Progress;
use report::{json, outln};
use worlds::sweep::{Merged, Results};

/// No soak has more seeds.
const MOST_SEEDS: u64 = 1 << 40;

/// Of so many seeds that fail it is kept what failed: of those with the smallest numbers.
const FAILURES: usize = 100;

/// Of each of them so many faults.
const FAULTS: usize = 5;

/// A seed that this divides is played twice, and must be the same.
const TWICE: u64 = 100;

#[derive(Args, Debug)]
pub(crate) struct SoakArgs {
    /// How many seeds
    #[arg(long, default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MOST_SEEDS))]
    seeds: u64,
    /// The first one; the others follow
    #[arg(long, default_value_t = 0, value_name = "SEED")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=u64::MAX / 2))]
    first_seed: u64,
    /// Threads [default: one for each processor that may be used]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1_024))]
    jobs: Option<u16>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    shard: ShardArgs,
}

/// What came of some seeds. It does not depend on their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tally {
    seeds: u64,
    failed: u64,
    failures: Vec<FailedSeed>,
    digest: u64,
    messages: u64,
    frames: u64,
    bytes: u64,
    arrived: u64,
    timeouts: u64,
    simulated_us: u64,
}

/// A seed that failed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailedSeed {
    seed: u64,
    faults: Vec<String>,
    /// How to repeat it.
    command: String,
}

/// What a process has soaked, and what it took: a shard's results.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Soaked {
    tally: Tally,
    environment: Environment,
    cpu_s: f64,
    wall_s: f64,
    peak_rss_kib: u64,
}

/// What is printed.
#[derive(Serialize)]
struct SoakOutcome {
    first_seed: u64,
    /// How many were played.
    seeds: u64,
    failed: u64,
    failures: Vec<FailedSeed>,
    /// Of all that happened: the same for the same seeds of the same Earmark, in any order.
    digest: String,
    messages: u64,
    frames: u64,
    bytes: u64,
    arrived: u64,
    timeouts: u64,
    simulated_s: f64,
    /// Of all shards together.
    cpu_s: f64,
    wall_s: f64,
    seeds_per_s: f64,
    /// Of the shard that took most.
    peak_rss_kib: u64,
    environment: Environment,
}

/// Plays what `args` ask for, or a shard of it, and prints it; the exit status is 1 if a seed
/// failed. That of a shard is 0: its failures are the merged result's.
pub(super) fn run(args: &SoakArgs) -> Result<ExitCode> {
    let soaked = soak(args, args.shard.shard.unwrap_or(Shard::WHOLE))?;
    if let Some(shard) = args.shard.shard {
        print_shard(shard, BTreeMap::new(), args.seeds, &soaked)?;
        return Ok(ExitCode::SUCCESS);
    }
    let outcome = soaked.sum_up(args);
    if args.json {
        json::print(&outcome)?;
    } else {
        outcome.print();
    }
    Ok(outcome.exit_code())
}

/// Makes one outcome of what the shards of `of` have; the exit status.
pub(crate) fn merge(of: &SoakArgs, merging: &Merging<'_>) -> Result<ExitCode> {
    let merged: Merged<Soaked> = merging.results()?;
    let mut all: Option<Soaked> = None;
    for (shard, soaked) in merged.shards {
        let cases = shard.count(of.seeds);
        ensure!(soaked.tally.seeds == cases, "shard {shard} has not the seeds that it should have");
        match &mut all {
            None => all = Some(soaked),
            Some(all) => all.add(soaked),
        }
    }
    let outcome = all.context("there is no shard")?.sum_up(of);
    merging.finish(&outcome, merged.partial.as_ref(), || outcome.print())?;
    Ok(outcome.exit_code())
}

fn soak(args: &SoakArgs, shard: Shard) -> Result<Soaked> {
    let (started, environment) = (Instant::now(), worlds::environment::read("model"));
    let jobs = args
        .jobs
        .map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
    let cases: u64 = shard.count(args.seeds);
    let progress = Progress::new(args.json);
    progress.start(cases);
    let (contents, next) = (sim::model::contents(), AtomicU64::new(0));
    let work = || {
        let mut tally = Tally::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = shard.cases(args.seeds).nth(number as usize) else { return tally };
            let seed = args.first_seed + case;
            progress.step(&format!("seed {seed}"));
            tally.add(Tally::of(seed, || drive::run(seed, contents.clone())));
        }
    };
    let mut tally = Tally::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            // Seeds that panic are counted; nothing else can.
            tally.add(worker.join().expect("a worker only counts"));
        }
    });
    progress.finish();
    Ok(Soaked {
        tally,
        environment,
        cpu_s: sys::clock::process_cpu_time().as_nanos() as f64 / 1e9,
        wall_s: started.elapsed().as_secs_f64(),
        peak_rss_kib: peak_rss_kib()?,
    })
}

/// The most memory that this process has had, in KiB.
fn peak_rss_kib() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status").context("read /proc/self/status")?;
    let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    peak.and_then(|peak| peak.parse().ok()).context("read VmHWM in /proc/self/status")
}

impl Tally {
    /// What comes of one seed, which `play` plays.
    fn of(seed: u64, play: impl Fn() -> RunReport) -> Self {
        let played = || {
            catch_unwind(AssertUnwindSafe(&play)).map_err(|panic| {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text =
                    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                format!("it panicked: {text}")
            })
        };
        let (faults, report) = match played() {
            Ok(report) if seed.is_multiple_of(TWICE) && played().ok().as_ref() != Some(&report) => {
                (vec!["it is not the same when it is played once more".to_owned()], Some(report))
            }
            Ok(report) => (report.faults.clone(), Some(report)),
            Err(why) => (vec![why], None),
        };
        let mut tally = Self { seeds: 1, ..Self::default() };
        if !faults.is_empty() {
            let command = format!("earmark mx soak --first-seed {seed} --seeds 1");
            let faults = faults.into_iter().take(FAULTS).collect();
            (tally.failed, tally.failures) = (1, vec![FailedSeed { seed, faults, command }]);
        }
        if let Some(RunReport { hash, counts, messages, took, .. }) = report {
            tally.digest = Prng::new(hash.wrapping_add(seed)).next_u64();
            tally.messages = messages as u64;
            (tally.frames, tally.bytes) = (counts.sent, counts.sent_bytes);
            (tally.arrived, tally.timeouts) = (counts.arrived, counts.expired);
            tally.simulated_us = took.as_micros();
        }
        tally
    }

    /// Adds other seeds.
    fn add(&mut self, other: Self) {
        self.digest = self.digest.wrapping_add(other.digest);
        for (sum, one) in [
            (&mut self.seeds, other.seeds),
            (&mut self.failed, other.failed),
            (&mut self.messages, other.messages),
            (&mut self.frames, other.frames),
            (&mut self.bytes, other.bytes),
            (&mut self.arrived, other.arrived),
            (&mut self.timeouts, other.timeouts),
            (&mut self.simulated_us, other.simulated_us),
        ] {
            *sum = sum.saturating_add(one);
        }
        self.failures.extend(other.failures);
        self.failures.sort_unstable();
        self.failures.truncate(FAILURES);
    }
}

impl Results for Soaked {
    fn repeats(&self, other: &Self) -> bool {
        self.tally == other.tally
    }
}

impl Soaked {
    fn add(&mut self, other: Self) {
        self.tally.add(other.tally);
        self.cpu_s += other.cpu_s;
        self.wall_s += other.wall_s;
        self.peak_rss_kib = self.peak_rss_kib.max(other.peak_rss_kib);
    }

    fn sum_up(self, args: &SoakArgs) -> SoakOutcome {
        let Self { tally, environment, cpu_s, wall_s, peak_rss_kib } = self;
        let Tally { seeds, failed, failures, digest, messages, .. } = tally;
        SoakOutcome {
            first_seed: args.first_seed,
            seeds,
            failed,
            failures,
            digest: format!("{digest:016x}"),
            messages,
            frames: tally.frames,
            bytes: tally.bytes,
            arrived: tally.arrived,
            timeouts: tally.timeouts,
            simulated_s: tally.simulated_us as f64 / 1e6,
            cpu_s,
            wall_s,
            seeds_per_s: seeds as f64 / wall_s,
            peak_rss_kib,
            environment,
        }
    }
}

impl SoakOutcome {
    fn exit_code(&self) -> ExitCode {
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn print(&self) {
        let Self { first_seed, seeds, failed, failures, messages, frames, .. } = self;
        outln!("{seeds} seeds from {first_seed} on, {failed} of them failed");
        for FailedSeed { seed, faults, command } in failures {
            outln!("seed {seed}; again: {command}");
            faults.iter().for_each(|fault| outln!("  {fault}"));
        }
        if failures.len() < *failed as usize {
            outln!("and {} more", *failed as usize - failures.len());
        }
        outln!(
            "{messages} messages in {frames} frames, {:.1} s of simulated time, digest {}",
            self.simulated_s,
            self.digest
        );
        outln!(
            "{:.1} s of CPU time, {:.2} ms a seed; {:.0} seeds a second of {:.1} s; {} KiB of memory",
            self.cpu_s,
            self.cpu_s * 1e3 / (*seeds).max(1) as f64,
            self.seeds_per_s,
            self.wall_s,
            self.peak_rss_kib
        );
    }
}
