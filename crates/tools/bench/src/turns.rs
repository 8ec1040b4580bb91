//! What a comparison plays, in order, and what came of it.
//!
//! Settings have their turns in rounds, A B C A B C. A *case* is what one process has to play: in
//! virtual time, where every turn is exact whatever else is played, one turn; in real time a whole
//! round, since a figure is compared with those of the same round on the same machine.

use anyhow::{Result, bail, ensure};
use nic::moderation::Moderation;
use serde::{Deserialize, Serialize};

use crate::attempt::{CellRounds, attempt};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::experiment::{Crowd, Experiment, USUAL_SETTING};
use crate::options::{ExperimentOptions, NicOptions, Text};
use crate::parallel;
use crate::polling::{self, Polling};
use crate::scenario::Run;
use crate::shard::Shard;
use crate::slice::{NotMeasured, Slice};
use crate::world::{World, WorldKind};

/// How often each setting has its turn where several are compared.
const USUAL_ROUNDS: u32 = 3;

pub(crate) struct Cell {
    pub(crate) moderation: Moderation,
    pub(crate) clients: Option<u32>,
    /// Where that is compared, too.
    pub(crate) polling: Option<Polling>,
    /// Settings of the hosts' interfaces, where there are any.
    pub(crate) apply: Option<String>,
}

impl Cell {
    /// What is in force, as the user would write it.
    pub(crate) fn setting(&self, change_to: Option<Moderation>) -> String {
        let Self { moderation, polling, apply, .. } = self;
        let then = change_to.map(|after| format!(" then {after}")).unwrap_or_default();
        let polling = polling.map(|polling| format!(", {polling}")).unwrap_or_default();
        let apply = apply.as_ref().map(|apply| format!(", {apply}")).unwrap_or_default();
        format!("{moderation}{then}{polling}{apply}")
    }
}

/// All turns of an experiment.
pub struct Turns<'a> {
    pub(crate) experiment: Experiment,
    pub(crate) nic: &'a NicOptions,
    pub(crate) options: &'a ExperimentOptions,
    world: WorldKind,
    pub(crate) crowd: Crowd,
    pub(crate) cells: Vec<Cell>,
    rounds: u32,
    /// The number of its first case in the sweep.
    first: u64,
}

/// What a process has played of an experiment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Played {
    /// Where; nowhere without a case.
    pub environment: Option<Environment>,
    /// Seconds of real time.
    pub wall_s: f64,
    /// Each case, in order.
    pub cases: Vec<PlayedCase>,
    /// The user has ended it before all were played.
    #[serde(skip)]
    pub is_cut: bool,
    /// Why it was not played, where a program is missing: it has no case then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlayedCase {
    /// Its number in the sweep.
    pub case: u64,
    /// Each turn in order.
    pub turns: Vec<Result<Slice, NotMeasured>>,
}

impl<'a> Turns<'a> {
    /// Those of `run` in `world`; in a sweep, its cases are numbered from `first`.
    pub fn new(run: &'a Run, world: WorldKind, first: u64) -> Result<Self> {
        let Run { experiment, nic, options, .. } = run;
        experiment.check(options)?;
        let crowd = Crowd::of(*experiment, world, (nic, options))?;
        let cells = cells(nic, options, (*experiment, world))?;
        // In virtual time a round with the same seed is the same round.
        let repeats = cells.len() > 1 && world == WorldKind::Live;
        let rounds = options.rounds.unwrap_or(if repeats { USUAL_ROUNDS } else { 1 });
        Ok(Self { experiment: *experiment, nic, options, world, crowd, cells, rounds, first })
    }

    /// The turns of each of `runs`, in the world that `chosen` is or its own, as one sweep.
    pub fn of_runs(runs: &'a [Run], chosen: Option<WorldKind>) -> Result<Vec<Self>> {
        let mut first = 0;
        let mut all = Vec::new();
        for run in runs {
            let turns = Self::new(run, chosen.or(run.world).unwrap_or_default(), first)?;
            first += turns.cases();
            all.push(turns);
        }
        Ok(all)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.cells.len() * self.rounds as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many cases they are.
    pub fn cases(&self) -> u64 {
        (self.len() / self.turns_of_case()) as u64
    }

    /// The world that they are for.
    pub fn world(&self) -> WorldKind {
        self.world
    }

    fn turns_of_case(&self) -> usize {
        match self.world {
            WorldKind::Live => self.cells.len(),
            WorldKind::Virtual | WorldKind::Model => 1,
        }
    }

    fn cases_of(&self, shard: Shard) -> impl Iterator<Item = u64> {
        (self.first..self.first + self.cases()).filter(move |case| shard.has(*case))
    }

    /// Round and cell of each turn of a case.
    fn turns_in(&self, case: u64) -> impl Iterator<Item = (u32, usize)> {
        let each = self.turns_of_case();
        let from = (case - self.first) as usize * each;
        let cells = self.cells.len();
        (from..from + each).map(move |turn| ((turn / cells) as u32, turn % cells))
    }

    /// Plays the cases that `shard` has, in the world that `open` opens if there are any. Where
    /// `caller` ends it, what was played until then is kept.
    pub fn play(
        &self,
        shard: Shard,
        open: impl FnOnce() -> Result<Box<dyn World>>,
        caller: &dyn Caller,
    ) -> Result<Played> {
        let own: Vec<u64> = self.cases_of(shard).collect();
        if own.is_empty() {
            return Ok(Played::default());
        }
        let started = caller.seconds();
        let world = open()?;
        caller.start((own.len() * self.turns_of_case()) as u64);
        let mut cases: Vec<PlayedCase> = Vec::new();
        // A round at a time.
        for own in own.chunks(self.cells.len() / self.turns_of_case()) {
            let played: Result<Vec<_>> = match world.parallel() {
                Some(world) => parallel::map(own, |case| self.play_case(world, *case, caller))?
                    .into_iter()
                    .collect(),
                None => own.iter().map(|case| self.play_case(&*world, *case, caller)).collect(),
            };
            cases.extend(played?.into_iter().filter(|case| !case.turns.is_empty()));
            if shard == Shard::WHOLE && cases.len() * self.turns_of_case() == self.cells.len() {
                refuse_silent_round(&cases)?;
            }
        }
        caller.finish();
        if cases.is_empty() {
            caller.check()?;
        }
        let environment = Some(world.environment().clone());
        world.finish()?;
        let (wall_s, is_cut) = (caller.seconds() - started, caller.check().is_err());
        Ok(Played { environment, wall_s, cases, is_cut, left_out: None })
    }

    /// Plays the turns of one case, as far as `caller` lets it.
    fn play_case(&self, world: &dyn World, case: u64, caller: &dyn Caller) -> Result<PlayedCase> {
        let change_to = self.options.change_to.as_ref().map(|Text(after)| *after);
        let seed = self.nic.seed.unwrap_or(1);
        let mut turns = Vec::new();
        for (round, cell) in self.turns_in(case) {
            let cell = &self.cells[cell];
            let Cell { moderation, clients, .. } = *cell;
            caller.step(&format!("{}, {}", self.experiment.name(), cell.setting(change_to)));
            let seed = seed.wrapping_add(u64::from(round));
            let plan = self.experiment.plan(self.options, clients, seed);
            let settings = cell.apply.as_deref().unwrap_or_default();
            let plan = plan.with(cell.polling.unwrap_or_default(), settings);
            match attempt(caller, world, &plan.spread(&self.crowd)?, moderation, change_to)? {
                Some(came) => turns.push(came),
                None => break,
            }
        }
        Ok(PlayedCase { case, turns })
    }

    /// What came of each cell. Turns that were not played have no figures.
    pub(crate) fn rounds_of_cells(&self, played: Played) -> Vec<CellRounds> {
        let Played { cases, is_cut, .. } = played;
        let mut turns: Vec<_> = (0..self.len()).map(|_| None).collect();
        for PlayedCase { case, turns: of_case } in cases {
            for ((round, cell), turn) in self.turns_in(case).zip(of_case) {
                turns[round as usize * self.cells.len() + cell] = Some(turn);
            }
        }
        let mut cells: Vec<_> = self.cells.iter().map(|_| CellRounds::default()).collect();
        for (number, turn) in turns.into_iter().enumerate() {
            // Those after the user's end are none.
            if turn.is_none() && is_cut {
                continue;
            }
            let missing = || Err(NotMeasured("the shard that has it is missing".into()));
            let (round, cell) = (number / self.cells.len(), number % self.cells.len());
            cells[cell].keep(round as u32, turn.unwrap_or_else(missing));
        }
        cells
    }

    /// What several shards have played, as one would have.
    pub fn merge(&self, shards: Vec<(Shard, Played)>) -> Result<Played> {
        let mut merged = Played::default();
        let mut parts = Vec::new();
        for (shard, played) in shards {
            self.check(shard, &played)?;
            merged.wall_s += played.wall_s;
            merged.left_out = merged.left_out.or_else(|| played.left_out.clone());
            parts.push(played);
        }
        // What one host has not played is not the same experiment on the others.
        if merged.left_out.is_some() {
            return Ok(merged);
        }
        parts.retain(|played| !played.cases.is_empty());
        // The one that played the first case says when it began.
        parts.sort_by_key(|played| played.cases[0].case);
        for played in parts {
            let environment = merged.environment.get_or_insert_with(|| {
                played.environment.clone().expect("checked: who has cases has an environment")
            });
            let other = played.environment.as_ref();
            if let Some(what) = other.and_then(|other| environment.difference(other)) {
                bail!("{}: shards were run in different worlds: {what}", self.experiment.name());
            }
            merged.cases.extend(played.cases);
        }
        merged.cases.sort_by_key(|case| case.case);
        Ok(merged)
    }

    /// Whether all cases have been played.
    pub fn are_complete(&self, played: &Played) -> bool {
        played.cases.len() as u64 == self.cases()
    }

    /// Refuses what a shard of this cannot have played.
    fn check(&self, shard: Shard, played: &Played) -> Result<()> {
        if played.left_out.is_some() && played.cases.is_empty() {
            return Ok(());
        }
        let numbers = played.cases.iter().map(|case| case.case);
        let is_whole = numbers.eq(self.cases_of(shard))
            && played.cases.iter().all(|case| case.turns.len() == self.turns_of_case())
            && (played.cases.is_empty() || played.environment.is_some());
        let slices = played.cases.iter().flat_map(|case| &case.turns).flatten();
        ensure!(
            is_whole && slices.clone().all(Slice::is_sound),
            "{}: shard {shard} has not the results that its cases have; run it again",
            self.experiment.name()
        );
        Ok(())
    }
}

impl Played {
    /// Whether a shard that is run once more may return `other`.
    pub fn repeats(&self, other: &Self) -> bool {
        let worlds = self.environment.as_ref().zip(other.environment.as_ref());
        let is_same = self.cases == other.cases && self.left_out == other.left_out;
        is_same && worlds.is_none_or(|(one, two)| one.difference(two).is_none())
    }
}

/// Ends a run whose first round has no figures at all, instead of trying it again and again.
fn refuse_silent_round(cases: &[PlayedCase]) -> Result<()> {
    let mut turns = cases.iter().flat_map(|case| &case.turns);
    match turns.clone().next() {
        Some(Err(why)) if turns.all(Result::is_err) => Err(why.clone().into()),
        _ => Ok(()),
    }
}

fn cells(
    nic: &NicOptions,
    options: &ExperimentOptions,
    run: (Experiment, WorldKind),
) -> Result<Vec<Cell>> {
    let settings = match &options.compare {
        Some(settings) => {
            ensure!(
                !nic.name_a_setting(),
                "--compare names whole settings: drop --strategy, --rx-usecs, --rx-frames"
            );
            let settings: Vec<_> = settings.iter().map(|Text(setting)| *setting).collect();
            settings.iter().try_for_each(|setting| nic.check(*setting))?;
            settings
        }
        None => vec![nic.moderation(USUAL_SETTING)?],
    };
    let after = options.change_to.as_ref().map(|Text(after)| *after);
    after.map_or(Ok(()), |after| nic.check(after))?;
    nic.check_lane_is_used(&settings.iter().copied().chain(after).collect::<Vec<_>>())?;
    let clients: Vec<_> = match &options.clients {
        Some(Text(range)) => range.each().map(Some).collect(),
        None => vec![None],
    };
    let pollings: Vec<_> = match &options.poll {
        Some(pollings) => pollings.iter().map(|Text(polling)| Some(*polling)).collect(),
        None => vec![None],
    };
    polling::check(nic, run, &pollings)?;
    let applied = match &options.apply {
        Some(applied) => applied.iter().cloned().map(Some).collect(),
        None => vec![None],
    };
    let mut cells = Vec::new();
    for &clients in &clients {
        for &moderation in &settings {
            for &polling in &pollings {
                let cell = |apply| Cell { moderation, clients, polling, apply };
                cells.extend(applied.iter().cloned().map(cell));
            }
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare;
    use crate::experiment::Plan;
    use crate::slice::{NicRecord, PortRecord};
    use crate::world::fake::{self, Fake};
    use base::distribution::Distribution;

    /// A round that depends on its plan and its setting; some have no figures.
    fn play(plan: &Plan, setting: Moderation) -> Result<Slice> {
        let usecs = i64::from(setting.rx_usecs) + plan.seed as i64;
        ensure!(usecs % 7 != 0, NotMeasured(format!("{usecs} is a seventh")));
        let values = Distribution::exactly((1..5).map(|n| [n * 1_000 * usecs, n]));
        let port = |name: &str| PortRecord {
            name: name.into(),
            setting: setting.to_string(),
            delivered: plan.seed,
            interrupts: [("timer".to_owned(), plan.seed)].into(),
            holds: values.clone(),
            ..PortRecord::default()
        };
        let ports = vec![port("a0"), port("b0")];
        let nic = NicRecord { cpu_ns: plan.seed, delivering_ns: 1, ports, ..NicRecord::default() };
        Ok(Slice { seconds: 1.0 / 3.0, ..fake::slice(plan.seed * 10, values, nic) })
    }

    fn run() -> Run {
        let mut run = fake::run(&["delay:75", "delay:10", "throttle:125"]);
        run.options.clients = Some(Text("1..2".parse().unwrap()));
        run
    }

    /// What a shard has played, once through its file.
    fn played(turns: &Turns<'_>, shard: &str, environment: &Environment) -> (Shard, Played) {
        let shard = shard.parse().unwrap();
        let world = Fake { environment: environment.clone(), play };
        let open = || Ok(Box::new(world) as Box<dyn World>);
        let played = turns.play(shard, open, &()).unwrap();
        let text = serde_json::to_string(&played).unwrap();
        (shard, serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn any_number_of_shards_has_the_comparison_of_one() {
        let (run, environment) = (run(), Environment::of("live"));
        for (world, cases) in [(WorldKind::Live, 4), (WorldKind::Virtual, 24)] {
            for first in [0, 5] {
                let turns = Turns::new(&run, world, first).unwrap();
                assert_eq!((turns.cases(), turns.len()), (cases, 24));
                let one = compare::of(&turns, played(&turns, "1/1", &environment).1).unwrap();
                let one = serde_json::to_value(one).unwrap();
                assert!(one["results"][0]["rounds"].to_string().contains("is a seventh"));
                for of in [2, 3, 7, 30] {
                    let shard = |index| played(&turns, &format!("{index}/{of}"), &environment);
                    let merged = turns.merge((1..=of).rev().map(shard).collect()).unwrap();
                    assert!(turns.are_complete(&merged));
                    let merged = compare::of(&turns, merged).unwrap();
                    assert_eq!(serde_json::to_value(merged).unwrap(), one, "{of} shards");
                }
            }
        }
    }

    #[test]
    fn in_real_time_a_round_stays_whole() {
        let (run, environment) = (run(), Environment::of("live"));
        let turns = Turns::new(&run, WorldKind::Live, 0).unwrap();
        let (_, second) = played(&turns, "2/3", &environment);
        assert_eq!(second.cases.iter().map(|case| case.case).collect::<Vec<_>>(), [1]);
        assert_eq!(second.cases[0].turns.len(), 6, "three settings and two numbers of clients");
    }

    #[test]
    fn missing_turns_are_not_measured() {
        let (run, environment) = (run(), Environment::of("virtual"));
        let turns = Turns::new(&run, WorldKind::Virtual, 0).unwrap();
        let merged = turns.merge(vec![played(&turns, "1/3", &environment)]).unwrap();
        assert!(!turns.are_complete(&merged));
        let partial = compare::of(&turns, merged).unwrap();
        assert!(partial.results[0].latency_us.is_some() && partial.results[1].latency_us.is_none());
        let why = partial.results[1].rounds[3].not_measured.as_deref();
        assert_eq!(why, Some("the shard that has it is missing"));
    }

    #[test]
    fn shards_of_different_worlds_are_not_merged() {
        let run = run();
        let refused = |kind, world: &str, change: fn(&mut Environment)| {
            let turns = Turns::new(&run, kind, 0).unwrap();
            let (one, mut other) = (Environment::of(world), Environment::of(world));
            change(&mut other);
            let shards = vec![played(&turns, "1/2", &one), played(&turns, "2/2", &other)];
            turns.merge(shards).err().map(|error| error.to_string())
        };
        let moment: fn(&mut Environment) = |it| (it.date, it.load_average) = ("".into(), 99.0);
        let machine: fn(&mut Environment) = |it| it.cpu_model = "another".into();
        let kernel: fn(&mut Environment) = |it| it.kernel = "another".into();
        assert_eq!(refused(WorldKind::Live, "live", moment), None);
        assert_eq!(refused(WorldKind::Virtual, "virtual", machine), None);
        let why = refused(WorldKind::Live, "live", machine).unwrap();
        assert!(why.starts_with("tcp-rr: shards were run in different worlds: cpu model"), "{why}");
        assert!(refused(WorldKind::Virtual, "virtual", kernel).unwrap().contains("kernel"));
    }

    #[test]
    fn results_that_no_shard_of_it_has_are_refused() {
        let (run, environment) = (run(), Environment::of("virtual"));
        let turns = Turns::new(&run, WorldKind::Virtual, 0).unwrap();
        let changes: [fn(&mut Played); 6] = [
            |played| drop(played.cases.pop()),
            |played| played.cases[1].case += 1,
            |played| played.cases[0].turns.clear(),
            |played| played.environment = None,
            |played| played.cases[0].turns[0].as_mut().unwrap().nic.ports.clear(),
            |played| played.cases[0].turns[0].as_mut().unwrap().nic.ports[1].holds.count += 1,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let (shard, mut wrong) = played(&turns, "1/2", &environment);
            change(&mut wrong);
            let error = turns.merge(vec![(shard, wrong)]).map(drop).unwrap_err().to_string();
            assert!(error.contains("shard 1/2 has not the results"), "{number}: {error}");
        }
    }
}
