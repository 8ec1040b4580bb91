//! What programs on other hosts say, and files that others may have written, of any bytes.
//!
//! The first byte says which: an order for an agent, a line that an agent says, a shard of a sweep,
//! a scenario. What is read and written again is read as the same.

use std::path::Path;

use base::quantiles::Quantiles;
use bench::agent::AgentSpec;
use bench::compare;
use bench::experiment::Experiment;
use bench::options::{ExperimentOptions, NicOptions};
use bench::records::{AgentMessage, per_second};
use bench::scenario::{Run, Scenario};
use bench::turns::{Played, Turns};
use bench::world::WorldKind;
use workload::{Record, Timing};
use worlds::sweep::{OpenedFile, ShardFile};

/// Cases of an experiment that are looked at.
const CASES: u64 = 10_000;

/// Reads the bytes in the way that the first says.
pub(crate) fn replay(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    match kind % 4 {
        0 => order(&text),
        1 => line(&text),
        2 => shard(&text),
        _ => scenario(&text),
    }
}

fn order(text: &str) {
    let Ok(spec) = AgentSpec::parse(text) else { return };
    let again = serde_json::to_string(&spec).expect("it is plain data");
    assert_eq!(AgentSpec::parse(&again).as_ref(), Ok(&spec));
    let window = spec.window();
    assert!(window.start <= window.end);
    let _ = spec.mx();
    if let Ok(address) = spec.socket_address() {
        let spec = AgentSpec { address: Some(address.to_string()), ..spec };
        assert_eq!(spec.socket_address(), Ok(address));
    }
}

fn line(text: &str) {
    let Ok(message) = AgentMessage::parse(text) else { return };
    let again = serde_json::to_string(&message).expect("it is plain data");
    assert_eq!(AgentMessage::parse(&again).as_ref(), Ok(&message));
    if let AgentMessage::Record(record) = message {
        let mut sum = record.clone();
        sum.merge(&record);
        assert_eq!(sum.window_ns, 2 * record.window_ns);
        for (timing, distribution) in &record.distributions {
            assert_eq!(sum.distribution(*timing).count, 2 * distribution.count);
            figures(&sum, *timing);
        }
        for counter in record.counters.keys() {
            assert!(per_second(&sum, *counter).is_finite());
        }
    }
}

/// Quantiles are in order.
fn figures(record: &Record, timing: Timing) {
    let Some(it) = Quantiles::of(&record.distribution(timing)) else { return };
    let all = [it.min, it.p50, it.p90, it.p99, it.max];
    assert!(all.is_sorted() && it.mean.is_finite(), "{it:?}");
}

fn shard(text: &str) {
    let Ok(opened) = OpenedFile::parse(Path::new("shard"), text) else { return };
    let shard = opened.shard();
    assert!((1..=shard.of()).contains(&shard.index()));
    assert_eq!(shard.to_string().parse(), Ok(shard));
    let Ok(file) = serde_json::from_str::<ShardFile<Played>>(text) else { return };
    let again = serde_json::to_string(&file).expect("it is plain data");
    let same: ShardFile<Played> = serde_json::from_str(&again).expect("we have written it");
    assert_eq!((same.shard, &same.sweep), (file.shard, &file.sweep));
    assert_eq!(serde_json::to_string(&same).ok(), Some(again));
    let (experiment, nic) = (Experiment::TcpRr, NicOptions::default());
    let run = Run { experiment, world: None, nic, options: ExperimentOptions::default() };
    let turns = Turns::new(&run, WorldKind::Live, 0).expect("its options go together");
    if let Ok(played) = turns.merge(vec![(shard, file.results)]) {
        assert!(played.cases.len() as u64 <= turns.cases());
        if turns.are_complete(&played) {
            let _ = compare::of(&turns, played);
        }
    }
}

fn scenario(text: &str) {
    let Ok(scenario) = Scenario::parse(text) else { return };
    let runs = scenario.runs(None).expect("it has experiments");
    assert!(!runs.is_empty());
    for run in &runs {
        assert!(scenario.runs(Some(run.experiment)).is_ok_and(|some| !some.is_empty()));
        let _ = run.uses(None);
    }
    if let Ok(all) = Turns::of_runs(&runs, None) {
        let mut cases = 0_u64;
        for turns in &all {
            cases = cases.saturating_add(turns.cases());
            assert!(turns.cases() > CASES || turns.len() as u64 >= turns.cases());
        }
    }
}
