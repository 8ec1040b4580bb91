//! Work for all cores, whose results come in the order of what was asked.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, anyhow};

/// What `work` makes of each of `items`, on as many threads as there are cores.
///
/// # Errors
/// If `work` panics.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Result<Vec<R>> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    if threads < 2 {
        // A browser starts none.
        return Ok(items.iter().map(work).collect());
    }
    let next = AtomicUsize::new(0);
    let some = || {
        let mut results = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else { return results };
            results.push((number, work(item)));
        }
    };
    let mut results = Vec::new();
    thread::scope(|scope| -> Result<()> {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(some)).collect();
        for thread in threads {
            results.extend(thread.join().map_err(|_| anyhow!("a run panicked"))?);
        }
        Ok(())
    })?;
    results.sort_by_key(|(number, _)| *number);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use anyhow::Result;
    use nic::moderation::Moderation;

    use super::*;
    use crate::environment::Environment;
    use crate::experiment::{Experiment, Plan};
    use crate::options::Hosts;
    use crate::shard::Shard;
    use crate::slice::{PortRecord, Slice};
    use crate::turns::{PlayedCase, Turns};
    use crate::world::fake;
    use crate::world::model::ModelWorld;
    use crate::world::{World, WorldKind};

    #[test]
    fn results_have_the_order_of_what_was_asked() {
        let items: Vec<u64> = (0..100).collect();
        let doubled: Vec<u64> = items.iter().map(|item| item * 2).collect();
        assert_eq!(map(&items, |item| item * 2).unwrap(), doubled);
        assert!(map(&[0; 0], |item: &u64| *item).unwrap().is_empty());
    }

    /// A world of which no rounds are played at once.
    struct OneThread(ModelWorld);

    impl World for OneThread {
        fn environment(&self) -> &Environment {
            self.0.environment()
        }

        fn round(&self, plan: &Plan, one: Moderation, two: Option<Moderation>) -> Result<Slice> {
            self.0.round(plan, one, two)
        }

        fn finish(self: Box<Self>) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_all_cores_play_is_what_one_plays() {
        for experiment in [Experiment::TcpRr, Experiment::MxPingpong] {
            let mut run = fake::run(&["delay:75", "disabled", "throttle:125"]);
            run.experiment = experiment;
            run.nic.hosts = Some(Hosts::Count(5));
            (run.options.warmup, run.options.duration) = (Some(0.0), Some(0.01));
            let turns = Turns::new(&run, WorldKind::Model, 0).unwrap();
            let world = || ModelWorld::new(&run.nic, Environment::of("model")).unwrap();
            let play =
                |world: Box<dyn World>| turns.play(Shard::WHOLE, || Ok(world), &()).unwrap().cases;
            let all = play(Box::new(world()));
            assert_eq!(all, play(Box::new(OneThread(world()))));
            assert_eq!(all.len() as u64, turns.cases());
            let ports = |case: &PlayedCase| case.turns[0].as_ref().unwrap().nic.ports.clone();
            let takes = |ports: Vec<PortRecord>| {
                ports.len() == 5 && ports.iter().all(|port| !port.interrupts.is_empty())
            };
            assert!(all.iter().all(|case| takes(ports(case))), "{}", experiment.name());
        }
    }
}
