//! What was measured in turns, by how far apart the cores were.
//!
//! A virtual machine's cores may share a cache at one time and be in different parts of a chip at
//! another, and every stack is slower then by another factor. `figures.c` measures before and after
//! each figure what it takes until the other core has a cache line. A figure during which that has
//! changed belongs to neither state, and ratios are of figures of one round and one state.

use std::collections::BTreeMap;

use base::quantiles::median;
use serde_json::{Value, json};

/// The states, and a line that takes so many ns belongs to the second. Some 30 to 45 and 150 to 215
/// were seen.
const STATES: [&str; 2] = ["near", "far"];
const FAR_NS: f64 = 95.0;

/// The turns of one figure, by net.
#[derive(Default)]
pub(crate) struct Turns(BTreeMap<&'static str, Vec<Turn>>);

struct Turn {
    round: usize,
    /// Its place in [`STATES`]; none if it has changed.
    state: Option<usize>,
    value: f64,
}

impl Turns {
    /// Adds what a net has reached, with what a line took before and after it.
    pub(crate) fn add(&mut self, net: &'static str, round: usize, value: f64, line_ns: &[f64]) {
        let is_far = |ns: &f64| *ns >= FAR_NS;
        let far = line_ns.iter().filter(|ns| is_far(ns)).count();
        let state = [(0, 0), (line_ns.len(), 1)].into_iter().find(|(count, _)| *count == far);
        let state = state.map(|(_, state)| state);
        self.0.entry(net).or_default().push(Turn { round, state, value });
    }

    /// Every state with what the nets have reached in it, and how `ours` compares with each.
    pub(crate) fn states(&self, ours: &str) -> Value {
        let states = STATES.iter().enumerate().filter_map(|(state, name)| {
            let of = |net| self.of_state(net, state);
            let all: Vec<_> = self.0.keys().map(|net| (*net, of(net))).collect();
            let values: BTreeMap<_, _> =
                all.iter().filter_map(|(net, turns)| Some((*net, spread(turns)?))).collect();
            let ours: BTreeMap<_, _> = of(ours).into_iter().collect();
            let ratios = all.iter().filter_map(|(net, turns)| {
                let both = turns.iter().filter_map(|(round, theirs)| {
                    ours.get(round).map(|our| (*round, our / theirs))
                });
                Some((*net, spread(&both.collect::<Vec<_>>())?))
            });
            let ratios: BTreeMap<_, _> = ratios.collect();
            (!values.is_empty()).then(|| (*name, json!({ "values": values, "ratios": ratios })))
        });
        json!(states.collect::<BTreeMap<_, _>>())
    }

    /// How many figures were measured while the state changed.
    pub(crate) fn changed(&self) -> usize {
        self.0.values().flatten().filter(|turn| turn.state.is_none()).count()
    }

    fn of_state(&self, net: &str, state: usize) -> Vec<(usize, f64)> {
        let turns = self.0.get(net).map_or(&[][..], Vec::as_slice);
        let of_state = turns.iter().filter(|turn| turn.state == Some(state));
        of_state.map(|turn| (turn.round, turn.value)).collect()
    }
}

/// The median, the least, the most, and of how many turns.
fn spread(turns: &[(usize, f64)]) -> Option<Value> {
    let mut sorted: Vec<f64> = turns.iter().map(|(_, value)| *value).collect();
    sorted.sort_by(f64::total_cmp);
    let (least, most) = (sorted.first()?, sorted.last()?);
    let median = median(sorted.iter().copied());
    Some(json!({ "median": median, "least": least, "most": most, "turns": sorted.len() }))
}
