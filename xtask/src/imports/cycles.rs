//! Files that import each other.

use std::collections::VecDeque;
use std::fmt;

use super::graph::{Imports, Names};

/// A group of files each of which imports every other, directly or through others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// All files of the group, sorted.
    pub files: Vec<String>,
    /// A shortest way round: each step from a file to the next, the last back to the first.
    pub steps: Vec<Step>,
    /// Every import from one file of the group to another.
    pub imports: Vec<Step>,
}

/// What one file imports from another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The file that imports.
    pub from: String,
    /// The file that defines.
    pub to: String,
    /// What is imported, and where first.
    pub names: Names,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.names.values().min().unwrap_or(&1);
        let names: Vec<_> = self.names.keys().map(String::as_str).collect();
        write!(f, "{}:{line} imports {} of {}", self.from, names.join(", "), self.to)
    }
}

/// The files that import each other, each group once, in the order of their first files.
pub(crate) fn cycles(imports: &Imports) -> Vec<Cycle> {
    let mut next = vec![Vec::new(); imports.files.len()];
    for &(from, to) in imports.edges.keys() {
        next[from].push(to);
    }
    let ways: Vec<_> = (0..next.len()).map(|from| ways(&next, from)).collect();
    let mut seen = vec![false; next.len()];
    let mut groups = Vec::new();
    for file in 0..next.len() {
        if seen[file] || ways[file][file].is_none() {
            continue;
        }
        let joined = |other: usize| ways[file][other].is_some() && ways[other][file].is_some();
        let group: Vec<_> = (0..next.len()).filter(|&other| joined(other)).collect();
        for &member in &group {
            seen[member] = true;
        }
        let round = group.iter().map(|&member| round(&ways[member], member));
        let shortest = round.min_by_key(Vec::len).unwrap_or_default();
        let mut files: Vec<_> = group.iter().map(|&file| imports.files[file].clone()).collect();
        files.sort();
        let to = shortest.iter().cycle().skip(1);
        let steps = shortest.iter().zip(to).map(|(&from, &to)| step(imports, from, to)).collect();
        let inside = imports.edges.keys();
        let inside = inside.filter(|(from, to)| group.contains(from) && group.contains(to));
        let inside = inside.map(|&(from, to)| step(imports, from, to)).collect();
        groups.push(Cycle { files, steps, imports: inside });
    }
    groups.sort_by(|one: &Cycle, other| one.files.cmp(&other.files));
    groups
}

/// For each file that can be reached from `start` in one step or more: the file before it.
fn ways(next: &[Vec<usize>], start: usize) -> Vec<Option<usize>> {
    let mut before = vec![None; next.len()];
    let mut waiting = VecDeque::from([start]);
    while let Some(at) = waiting.pop_front() {
        for &to in &next[at] {
            if before[to].is_none() {
                before[to] = Some(at);
                waiting.push_back(to);
            }
        }
    }
    before
}

/// The shortest way from `start` back to it, without the end.
fn round(before: &[Option<usize>], start: usize) -> Vec<usize> {
    let mut way = Vec::new();
    let mut at = before[start];
    while let Some(file) = at {
        way.push(file);
        at = if file == start { None } else { before[file] };
    }
    way.reverse();
    way
}

fn step(imports: &Imports, from: usize, to: usize) -> Step {
    Step {
        from: imports.files[from].clone(),
        to: imports.files[to].clone(),
        names: imports.edges.get(&(from, to)).cloned().unwrap_or_default(),
    }
}
