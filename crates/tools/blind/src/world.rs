//! A made-up world around a case: two hosts with clocks of their own, and a wire.

use base::time::Duration;
use infer::{Abilities, Far, Length, MeasuredTrain, Probe, Train};

use crate::case::{Case, ProbeKind};
use crate::decoy::Decoy;
use crate::obstacle::{Bucket, Obstacle};
use crate::path::Path;
use crate::random::Random;
use crate::receiver::{Costs, Receiver};

/// How long an answer is waited for, in nanoseconds.
const TIMEOUT: f64 = 8e6;

/// What a link takes longer for a full segment, in nanoseconds: one gigabit a second.
const FULL_TAKES: f64 = 12e3;

/// A clock with an offset and a drift of its own.
#[derive(Clone, Copy)]
struct Clock {
    offset: f64,
    rate: f64,
}

impl Clock {
    fn draw(random: &mut Random) -> Self {
        Self { offset: random.between(0.0, 1e12), rate: 1.0 + random.between(-4e-5, 4e-5) }
    }

    fn read(self, at: f64) -> u64 {
        (at * self.rate + self.offset) as u64
    }
}

/// A world in which one case is true.
pub struct World {
    kind: ProbeKind,
    waits: bool,
    there: Path,
    back: Path,
    theirs: Receiver,
    mine: Receiver,
    server: f64,
    server_free: f64,
    scheduler: Option<(f64, f64)>,
    decoy: Option<Decoy>,
    obstacle: Option<Obstacle>,
    bucket: Option<Bucket>,
    far_clock: Clock,
    /// Of my NIC, if it stamps.
    nic_clock: Option<Clock>,
    now: f64,
    random: Random,
}

impl World {
    /// Builds the world of `case`; what else is random in it comes from the case's seed.
    pub fn new(case: &Case) -> Self {
        let mut random = Random::new(case.seed().wrapping_mul(0x9e6c_63d0_876a_3f6b) ^ 0x3a1d);
        let jitter = 50.0 * 20.0_f64.powf(random.share());
        let mut costs = || Costs {
            interrupt: random.between(100.0, 800.0),
            jitter,
            packet: random.between(200.0, 1_500.0),
        };
        let (their_costs, my_costs) = (costs(), costs());
        let latency = random.between(5e3, 2e5);
        // Decoys of a core sit on one side, or on both.
        let sides = random.whole(0, 2);
        let core = case
            .decoy
            .filter(|decoy| matches!(decoy, Decoy::Waking { .. } | Decoy::BusyCore { .. }));
        let path =
            case.decoy.filter(|decoy| matches!(decoy, Decoy::Queue { .. } | Decoy::First { .. }));
        let mut other = |number| {
            Random::new(case.seed() ^ (u64::from(random.whole(0, u32::MAX - 1)) << 8) ^ number)
        };
        let obstacle = case.obstacle;
        let loaded = obstacle.and_then(Obstacle::core);
        let their_core = loaded.or(core.filter(|_| sides != 1));
        let my_core = loaded.or(core.filter(|_| sides != 0));
        let stalls = obstacle.and_then(Obstacle::path);
        let theirs =
            Receiver::new((case.theirs, case.rules), their_costs, their_core, case.bulk, other(1));
        let mine = Receiver::new((case.mine, case.rules), my_costs, my_core, case.bulk, other(2));
        let there = Path::new(latency, jitter, stalls.or(path), other(3));
        let back = Path::new(latency, jitter, stalls, other(4));
        let usual = random.between(1e3, 8e3);
        Self {
            kind: case.kind,
            waits: case.waits,
            there,
            back,
            theirs,
            mine,
            server: if let Some(Decoy::SlowServer { takes }) = case.decoy {
                takes * 1e3
            } else {
                usual
            },
            server_free: 0.0,
            scheduler: match case.decoy {
                Some(Decoy::Scheduler { share, scale }) => Some((share, scale * 1e3)),
                _ => obstacle.and_then(Obstacle::scheduler),
            },
            decoy: case.decoy,
            obstacle,
            bucket: Bucket::of(obstacle),
            far_clock: Clock::draw(&mut random),
            nic_clock: case.nic_stamps.then(|| Clock::draw(&mut random)),
            now: 1e7,
            random,
        }
    }

    /// What probes can do here.
    pub fn abilities(&self) -> Abilities {
        let (most, least_gap) = match self.obstacle {
            Some(Obstacle::Spacing { nanos }) => (0, nanos),
            Some(Obstacle::Few { count, nanos }) => (count, nanos),
            _ => (0, 0),
        };
        Abilities {
            stamps: self.kind == ProbeKind::Stamped || self.nic_clock.is_some(),
            silent: self.kind != ProbeKind::Plain,
            waits: self.waits,
            // An NTP server has four timestamps and short answers.
            full: self.kind != ProbeKind::Stamped || self.waits,
            most,
            least_gap: Duration::from_nanos(least_gap),
        }
    }

    /// Plays a train until all answers are there or lost.
    pub fn send(&mut self, train: Train) -> MeasuredTrain {
        let begin = self.now + train.quiet.as_nanos() as f64;
        let takes = if train.length == Length::Full { FULL_TAKES } else { 0.0 };
        let sent: Vec<f64> =
            train.sends.iter().map(|send| begin + send.at.as_nanos() as f64).collect();
        let last = train.sends.iter().map(|send| send.at + send.wait).max().unwrap_or_default();
        let end = begin + last.as_nanos() as f64 + TIMEOUT;
        // What is held for longer than the train is waited for comes in the next one.
        let base = (train.number as usize) << 16;
        let of_this = |number: usize| number.checked_sub(base).filter(|at| *at < sent.len());
        let arrivals: Vec<_> = sent
            .iter()
            .enumerate()
            .map(|(at, sent)| (self.there.carry(*sent + takes), base + at))
            .collect();
        let mut far = vec![None; sent.len()];
        let mut answers = Vec::new();
        let mut received = self.theirs.run(&arrivals, train.length, end);
        let is_asked = |number: usize| of_this(number).is_some_and(|at| !train.sends[at].silent);
        received.retain(|(_, number)| is_asked(*number));
        let taken = self.gathered(&received);
        for ((at, number), taken) in received.into_iter().zip(taken) {
            let index = number - base;
            if self.bucket.as_mut().is_some_and(|bucket| !bucket.take(at)) {
                continue;
            }
            let answered = self.serve(taken) + train.sends[index].wait.as_nanos() as f64;
            far[index] = Some((at, answered));
            answers.push((answered, number));
        }
        answers.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut by_nic = vec![None; sent.len()];
        for (at, number) in &mut answers {
            *at = self.back.carry(*at + takes);
            if let (Some(index), Some(clock)) = (of_this(*number), self.nic_clock) {
                by_nic[index] = Some(clock.read(*at));
            }
        }
        let mut heard = vec![None; sent.len()];
        for (at, number) in self.mine.run(&answers, train.length, end) {
            if let Some(index) = of_this(number) {
                heard[index] = Some(at);
            }
        }
        self.now = end;
        let stamped = self.kind == ProbeKind::Stamped;
        let probe = |number: usize| Probe {
            sent: sent[number] as u64,
            received: heard[number].map(|at: f64| at as u64),
            nic: by_nic[number].filter(|_| heard[number].is_some()),
            far: far[number].filter(|_| stamped && heard[number].is_some()).map(
                |(received, sent)| Far {
                    received: self.far_clock.read(received),
                    sent: self.far_clock.read(sent),
                },
            ),
            silent: train.sends[number].silent,
        };
        let probes = (0..sent.len()).map(probe).collect();
        MeasuredTrain { train, probes }
    }

    /// When the far program takes each request: it may gather some.
    fn gathered(&self, received: &[(f64, usize)]) -> Vec<f64> {
        let Some(Decoy::Gathering { count, longest }) = self.decoy else {
            return received.iter().map(|(at, _)| *at).collect();
        };
        let (mut taken, mut rest) = (Vec::new(), received);
        while let Some((first, _)) = rest.first() {
            let end = first + longest * 1e3;
            let together =
                rest.iter().take(count as usize).take_while(|(at, _)| *at <= end).count();
            let is_full = together == count as usize;
            let at = if is_full { rest[together - 1].0 } else { end };
            taken.extend(std::iter::repeat_n(at, together));
            rest = &rest[together..];
        }
        taken
    }

    /// When the far program has answered what its kernel received at `at`.
    fn serve(&mut self, at: f64) -> f64 {
        let late = match self.scheduler {
            // A Pareto tail, bounded: no sleep is endless.
            Some((share, scale)) if self.random.is(share) => {
                (scale / (1.0 - self.random.share()).powf(0.7)).min(3e6)
            }
            _ => 0.0,
        };
        let begins = self.server_free.max(at + late);
        self.server_free = begins + self.server * self.random.between(0.95, 1.05);
        self.server_free
    }
}
