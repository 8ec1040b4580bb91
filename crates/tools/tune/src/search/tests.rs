//! A search against the exhaustive one, on made-up NICs whose every figure is known.

use base::prng::Prng;

use super::*;
use crate::figures::Metric;
use crate::setting::{Change, Setting, State, Value};

/// A NIC, a host and a load.
#[derive(Clone, Copy, Debug)]
struct ModelNic {
    /// Round trip without any hold, in microseconds.
    base_us: f64,
    /// Packets in a microsecond.
    rate: f64,
    /// CPU time of an interrupt, in microseconds.
    interrupt_us: f64,
    /// CPU time of a packet.
    packet_us: f64,
    /// What of `rx-usecs` a packet waits on average: all (delay), half (periodic), less
    /// (throttle).
    share: f64,
    /// What adaptive moderation chooses.
    adaptive_us: f64,
    /// Noise, in thousandths.
    noise: u64,
}

impl ModelNic {
    fn drawn(random: &mut Prng, noise: u64) -> Self {
        let mut draw = |low: f64, high: f64| {
            let share = random.below(1_000_001) as f64 / 1e6;
            low * (high / low).powf(share)
        };
        Self {
            base_us: draw(20.0, 200.0),
            rate: draw(0.002, 0.5),
            interrupt_us: draw(0.5, 4.0),
            packet_us: draw(0.05, 0.6),
            share: draw(0.3, 1.0),
            adaptive_us: draw(2.0, 200.0),
            noise,
        }
    }

    /// The true figures under a setting.
    fn figures(&self, change: &Change) -> Figures {
        let adaptive = change.get(Setting::AdaptiveRx).and_then(Value::number) == Some(1);
        let usecs = change.number(Setting::RxUsecs).unwrap_or(30) as f64;
        let usecs = if adaptive { self.adaptive_us } else { usecs };
        let frames = change.number(Setting::RxFrames).filter(|frames| *frames > 0);
        let filled = frames.map_or(f64::INFINITY, |frames| frames as f64 / self.rate);
        let hold = usecs.min(filled);
        let interrupts = 1.0 / (1.0 / self.rate).max(hold + 1.0);
        let cpu = interrupts * self.interrupt_us + self.rate * self.packet_us;
        let queue = self.base_us * 0.3 * cpu / (1.05 - cpu.min(1.0));
        let p50 = self.base_us + queue + self.share * hold;
        let figures = [
            (Metric::P50, p50),
            (Metric::P99, 1.3 * p50 + 0.5 * hold),
            (Metric::Cpu, cpu),
            (Metric::Interrupts, interrupts * 1e6),
            (Metric::Transactions, 1e6 / p50),
        ];
        Figures(figures.into())
    }

    fn measured(&self, change: &Change, random: &mut Prng) -> Figures {
        let mut figures = self.figures(change);
        for (metric, value) in &mut figures.0 {
            // Tails are noisier.
            let noise = if *metric == Metric::P99 { 2 * self.noise } else { self.noise };
            let draws: u64 = (0..4).map(|_| random.below(2 * noise + 1)).sum();
            *value *= 1.0 + (draws as f64 / 4.0 - noise as f64) / 1_000.0;
        }
        figures
    }
}

fn space() -> Space {
    Space::of(&"adaptive-rx off rx-usecs 30 rx-frames 0".parse().unwrap(), 1_024)
}

/// Goals whose limits are somewhere within what the NIC can do.
fn goals(world: &ModelNic, space: &Space) -> Vec<Goal> {
    // A little beside what one of the settings does, as a round number would be.
    let middle = |metric| 1.03 * third(space, metric, &|change| world.figures(change));
    let (p99, cpu) = (middle(Metric::P99), middle(Metric::Cpu));
    let texts = [
        "min latency".to_owned(),
        "max transactions".to_owned(),
        format!("p99 < {p99:.3}us"),
        format!("min latency, cpu < {cpu:.5} cores"),
        format!("min interrupts, p99 < {p99:.3}us"),
    ];
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// What a third of all settings do not exceed.
fn third(space: &Space, metric: Metric, figures: &dyn Fn(&Change) -> Figures) -> f64 {
    let all = space.all();
    let mut values: Vec<f64> =
        all.iter().filter_map(|point| figures(&space.change(point)).get(metric)).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 3]
}

/// By how much the pick is worse than the best of all, both by their true figures: by its aim if it
/// is within the limits, and by how far it is beyond them if that is more.
fn distance(truth: &dyn Fn(&Point) -> Figures, goal: &Goal, space: &Space, pick: &Point) -> f64 {
    let all = space.all();
    let best = all.iter().map(truth).min_by(|a, b| goal.cost(a).total_cmp(&goal.cost(b))).unwrap();
    let pick = truth(pick);
    let excess = goal.excess(&pick) - goal.excess(&best);
    let aim = goal.aim_cost(&pick) - goal.aim_cost(&best);
    (excess.max(aim).exp() - 1.0).max(0.0)
}

/// A host with more to set than the receive timer: it defers interrupts itself, its completions
/// wait, kernel threads may poll.
#[derive(Clone, Copy, Debug)]
struct ModelHost {
    world: ModelNic,
    /// What a kernel thread adds to a round trip, and takes from the CPU time of a packet, in
    /// microseconds.
    thread_us: f64,
    thread_saves_us: f64,
    /// What of `tx-usecs` a round trip waits on average.
    completion_share: f64,
}

impl ModelHost {
    fn drawn(random: &mut Prng) -> Self {
        let world = ModelNic::drawn(random, 0);
        let mut draw = |low: u64, high: u64| (low + random.below(high - low)) as f64 / 1_000.0;
        let (thread_us, thread_saves_us) = (draw(500, 20_000), draw(0, 200));
        Self { world, thread_us, thread_saves_us, completion_share: draw(0, 300) }
    }

    /// The true figures under a setting. What the host defers adds to what the NIC holds: after a
    /// poll interrupts stay off for the timeout, and a packet comes at any moment within it.
    fn figures(&self, change: &Change) -> Figures {
        let number = |setting| change.number(setting).unwrap_or(0) as f64;
        let mut figures = self.world.figures(change);
        let deferred = number(Setting::GroFlushTimeout) / 1_000.0;
        let completion = number(Setting::TxUsecs);
        let threads = number(Setting::Threaded);
        let received = figures.get(Metric::Interrupts).unwrap() / 1e6;
        let polls = 1.0 / (1.0 / received).max(deferred);
        let sent = 1.0 / (1.0 / self.world.rate).max(completion + 1.0);
        let p50 = figures.get(Metric::P50).unwrap()
            + deferred / 2.0
            + threads * self.thread_us
            + self.completion_share * completion;
        let packet_us = self.world.packet_us + threads * (0.1 - self.thread_saves_us);
        let p99 = 1.3 * p50 + 0.5 * (deferred + number(Setting::RxUsecs));
        let cpu = (polls + sent) * self.world.interrupt_us + self.world.rate * packet_us;
        let values = [
            (Metric::P50, p50),
            (Metric::P99, p99),
            (Metric::P999, 1.2 * p99 + threads * self.thread_us),
            (Metric::Max, 2.0 * p99 + deferred),
            (Metric::Cpu, cpu.max(1e-3)),
            (Metric::Interrupts, (polls + sent) * 1e6),
            (Metric::Transactions, 1e6 / p50),
        ];
        figures.0.extend(values);
        figures
    }
}

#[test]
fn deferral_threads_and_completions_are_found_in_twelve_trials() {
    let state = "rx-usecs 30 rx-frames 0 tx-usecs 0 gro-flush-timeout 0 napi-defer-hard-irqs 0 \
                 threaded off";
    let space = Space::of(&state.parse().unwrap(), 1_024);
    assert_eq!((space.axes.len(), space.usual_trials()), (5, 12));
    let mut distances = Vec::new();
    for seed in 0..25 {
        let host = ModelHost::drawn(&mut Prng::new(seed));
        let figures = |change: &Change| host.figures(change);
        let tails = ["min p99.9", "min max", "min latency", "min interrupts", "min cpu"];
        let limits = [Metric::P999, Metric::Max].map(|metric| {
            let limit = 1.03 * third(&space, metric, &figures);
            format!("min interrupts, {metric} < {limit:.3}us")
        });
        for text in tails.into_iter().chain(limits.iter().map(String::as_str)) {
            let goal: Goal = text.parse().unwrap();
            let budget = Budget { trials: space.usual_trials(), rounds: 1, finals: 0 };
            let truth = |point: &Point| figures(&space.change(point));
            let mut measure = |point: &Point| Ok(truth(point));
            let found = search(&space, &goal, Method::Guided(budget), None, &mut measure).unwrap();
            assert!(found.trials.len() <= 12, "seed {seed}, {goal}");
            let pick = &found.trials[found.best].point;
            let (distance, pick) = (distance(&truth, &goal, &space, pick), space.change(pick));
            distances.push((distance, format!("seed {seed}, {goal}: {pick}")));
        }
    }
    are_near(distances, 97);
}

/// Of 100 picks, `most` are nearly as good as the best.
fn are_near(mut distances: Vec<(f64, String)>, most: usize) {
    distances.sort_by(|a, b| a.0.total_cmp(&b.0));
    let within = distances.iter().filter(|(distance, _)| *distance <= 0.05).count();
    let worst = &distances[distances.len() - 12..];
    assert!(within * 100 >= distances.len() * most, "{within} of {}: {worst:#?}", distances.len());
}

/// Distances of many searches; none may take more trials than it has.
fn distances(worlds: u64, noise: u64) -> Vec<(f64, String)> {
    let mut distances = Vec::new();
    let space = space();
    for seed in 0..worlds {
        let mut random = Prng::new(seed);
        let world = ModelNic::drawn(&mut random, noise);
        for goal in goals(&world, &space) {
            let mut measure = |point: &Point| Ok(world.measured(&space.change(point), &mut random));
            let found =
                search(&space, &goal, Method::Guided(Budget::USUAL), None, &mut measure).unwrap();
            assert!(found.trials.len() <= Budget::USUAL.trials, "seed {seed}, {goal}");
            let pick = &found.trials[found.best].point;
            let truth = |point: &Point| world.figures(&space.change(point));
            let (distance, pick) = (distance(&truth, &goal, &space, pick), space.change(pick));
            distances.push((distance, format!("seed {seed}, {goal}: {pick}")));
        }
    }
    distances
}

#[test]
fn without_noise_the_best_is_found_and_in_spite_of_noise_nearly() {
    are_near(distances(25, 0), 97);
    are_near(distances(12, 60), 94);
}

#[test]
fn a_limit_of_frames_that_does_nothing_is_not_picked() {
    let space = space();
    let mut with_frames = Vec::new();
    for seed in 0..100 {
        let mut random = Prng::new(seed);
        // Eight frames take longer than the longest hold.
        let world = ModelNic { rate: 0.007, ..ModelNic::drawn(&mut random, 60) };
        let goal = "min latency, interrupts < 3000".parse().unwrap();
        let mut measure = |point: &Point| Ok(world.measured(&space.change(point), &mut random));
        let found =
            search(&space, &goal, Method::Guided(Budget::USUAL), None, &mut measure).unwrap();
        let pick = space.change(&found.trials[found.best].point);
        with_frames.extend(pick.number(Setting::RxFrames).map(|_| format!("seed {seed}: {pick}")));
    }
    assert!(with_frames.len() <= 5, "{}: {with_frames:?}", with_frames.len());
}

#[test]
fn what_is_the_same_stays_as_it_is() {
    let space = space();
    let goal: Goal = "min latency".parse().unwrap();
    let mut random = Prng::new(1);
    let mut measure = |_: &Point| {
        let value = 100.0 + random.below(3) as f64;
        Ok(Figures([(Metric::P50, value)].into()))
    };
    let found = search(&space, &goal, Method::Guided(Budget::USUAL), None, &mut measure).unwrap();
    let pick = space.change(&found.trials[found.best].point);
    let p50 = found.trials[found.best].mean().get(Metric::P50).unwrap();
    assert!(pick.to_string() == "rx-usecs 30" || p50 < 101.0, "{pick}: {p50}");
}

#[test]
fn a_search_that_cannot_measure_says_so() {
    let (space, goal) = (space(), "min latency".parse().unwrap());
    let mut measure = |_: &Point| anyhow::bail!("the cable is out");
    let error =
        search(&space, &goal, Method::Guided(Budget::USUAL), None, &mut measure).unwrap_err();
    assert_eq!(error.to_string(), "the cable is out");
    let mut nothing = |_: &Point| Ok(Figures::default());
    search(&space, &goal, Method::Guided(Budget::USUAL), None, &mut nothing).unwrap();
    let empty = Space::of(&State::default(), 9);
    search(&empty, &goal, Method::Guided(Budget::USUAL), None, &mut nothing).unwrap();
}

#[test]
fn doubt_shrinks_with_rounds_and_is_of_shared_rounds_only() {
    let goal: Goal = "min latency".parse().unwrap();
    let trial = |values: &[f64], from: u32| Trial {
        point: Point::Special(0),
        rounds: (from..)
            .zip(values)
            .map(|(round, value)| (round, Figures([(Metric::P50, *value)].into())))
            .collect(),
    };
    // A machine that drifts: each round is slower, and the second one a tenth more in each.
    let (a, b) = (trial(&[100.0, 150.0, 200.0], 0), trial(&[110.0, 165.0, 220.0], 0));
    let doubt = compare(&b, &a, &goal).unwrap();
    assert!((doubt.low - 1.1_f64.ln()).abs() < 1e-4 && (doubt.high - doubt.low).abs() < 1e-4);
    assert!(compare(&a, &trial(&[1.0], 7), &goal).is_none());
    let noisy = trial(&[90.0, 180.0, 190.0], 0);
    let doubt = compare(&noisy, &a, &goal).unwrap();
    assert!(doubt.low < 0.0 && doubt.high > 0.0, "{doubt:?}");
}

/// Searches with a model that expects what `expected` has of each NIC: how far picks are from the
/// best, and how many settings were tried until one was as good as the pick.
fn guided(mut expected: impl FnMut(&ModelNic) -> Option<ModelNic>) -> (Vec<(f64, String)>, usize) {
    let space = space();
    let (mut distances, mut trials) = (Vec::new(), 0);
    for seed in 0..12 {
        let world = ModelNic::drawn(&mut Prng::new(seed), 0);
        let model = expected(&world);
        let expect = |point: &Point| Some(model?.figures(&space.change(point)));
        for goal in goals(&world, &space) {
            let truth = |point: &Point| world.figures(&space.change(point));
            let mut measure = |point: &Point| Ok(truth(point));
            let method = Method::Guided(Budget { rounds: 1, finals: 0, ..Budget::USUAL });
            let found = search(&space, &goal, method, Some(&expect), &mut measure).unwrap();
            let cost = |trial: &Trial| goal.cost(&truth(&trial.point));
            let best = cost(&found.trials[found.best]);
            trials += 1 + found.trials.iter().take_while(|it| cost(it) > best + SAME).count();
            assert!(found.expected.iter().all(|it| it.is_some() == model.is_some()));
            let pick = &found.trials[found.best].point;
            let distance = distance(&truth, &goal, &space, pick);
            distances.push((distance, format!("seed {seed}, {goal}: {}", space.change(pick))));
        }
    }
    (distances, trials)
}

#[test]
fn a_model_finds_the_best_early_and_one_that_is_wrong_costs_no_pick() {
    let (near, without) = guided(|_| None);
    are_near(near, 95);
    // It knows neither the way to the far host nor what adaptive moderation chooses.
    let likely = |world: &ModelNic| ModelNic {
        base_us: world.base_us * 1.3,
        adaptive_us: 30.0,
        interrupt_us: world.interrupt_us * 0.8,
        ..*world
    };
    let (near, with) = guided(|world| Some(likely(world)));
    are_near(near, 95);
    assert!(with * 8 <= without * 7, "{with} trials, and without a model {without}");
    // Another NIC, host and load.
    let mut random = Prng::new(99);
    let (near, _) = guided(|_| Some(ModelNic::drawn(&mut random, 0)));
    are_near(near, 95);
}
