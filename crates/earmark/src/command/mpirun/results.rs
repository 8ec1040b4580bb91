//! What the NIC has counted while programs ran, as a table and as JSON.

use std::time::Duration;

use base::quantiles::median;
use lab::snapshot::{PortSnapshot, Snapshot};
use serde::Serialize;

use super::variables::Net;
use bench::environment::Environment;
use bench::ratio::{FIRST, Spread, legend};
use report::terminal::{Table, Width, number};

/// What `--json` writes.
#[derive(Debug, Serialize)]
pub(super) struct MpiResults {
    pub(super) mpi: String,
    pub(super) program: String,
    pub(super) ranks: usize,
    pub(super) results: Vec<SettingRuns>,
    pub(super) environment: Environment,
}

/// One setting and network, all runs.
#[derive(Debug, Default, Serialize)]
pub(super) struct SettingRuns {
    pub(super) setting: String,
    pub(super) net: &'static str,
    /// Medians over the runs.
    wall_s: Option<f64>,
    interrupts: Option<f64>,
    frames: Option<f64>,
    frames_per_interrupt: Option<f64>,
    marked: Option<f64>,
    runs: Vec<Run>,
}

/// One run of the program.
#[derive(Debug, Serialize)]
struct Run {
    exit_status: i32,
    wall_s: f64,
    interrupts: u64,
    frames: u64,
    marked: u64,
    hosts: Vec<HostRun>,
}

/// What one host's port has counted in a run.
#[derive(Debug, Serialize)]
struct HostRun {
    name: String,
    interrupts: u64,
    frames: u64,
    marked: u64,
    ring_full: u64,
}

impl SettingRuns {
    pub(super) fn new(setting: String, net: Net) -> Self {
        Self { setting, net: net.name(), ..Self::default() }
    }

    /// Adds a run in which the NIC counted `nic`.
    pub(super) fn add(&mut self, exit_status: i32, wall: Duration, nic: &Snapshot) {
        let host = |port: &PortSnapshot| HostRun {
            name: port.name.trim_end_matches('0').to_owned(),
            interrupts: port.counters.interrupts_total(),
            frames: port.counters.delivered,
            marked: port.counters.marked,
            ring_full: port.counters.ring_full,
        };
        let hosts: Vec<_> = nic.ports.iter().map(host).collect();
        let sum = |of: fn(&HostRun) -> u64| hosts.iter().map(of).sum();
        self.runs.push(Run {
            exit_status,
            wall_s: wall.as_secs_f64(),
            interrupts: sum(|host| host.interrupts),
            frames: sum(|host| host.frames),
            marked: sum(|host| host.marked),
            hosts,
        });
        self.wall_s = self.median(|run| run.wall_s);
        self.interrupts = self.median(|run| run.interrupts as f64);
        self.frames = self.median(|run| run.frames as f64);
        self.marked = self.median(|run| run.marked as f64);
        let both = self.frames.zip(self.interrupts.filter(|interrupts| *interrupts > 0.0));
        self.frames_per_interrupt = both.map(|(frames, interrupts)| frames / interrupts);
    }

    /// The median over the runs.
    fn median(&self, of: impl Fn(&Run) -> f64) -> Option<f64> {
        median(self.runs.iter().map(of))
    }

    /// The wall time as a multiple of that of `base`, run by run: both ran in the same turn.
    fn wall_ratio(&self, base: &Self, repeated: bool) -> String {
        if self.setting == base.setting {
            return FIRST.into();
        }
        let turns = self.runs.iter().zip(&base.runs);
        let spread = Spread::of(turns.map(|(of, to)| (of.wall_s, to.wall_s)));
        spread.map_or_else(String::new, |spread| spread.cell(repeated))
    }
}

/// A row for each setting and network that has run.
pub(super) fn table(results: &MpiResults, width: Width) -> String {
    let ran = || results.results.iter().filter(|case| !case.runs.is_empty());
    let Some(first) = ran().next() else { return String::new() };
    let hosts: Vec<_> =
        first.runs[0].hosts.iter().map(|host| format!("interrupts {}", host.name)).collect();
    let repeated = ran().any(|case| case.runs.len() > 1);
    let compared = ran().any(|case| case.setting != first.setting);
    let mut headers = vec![("setting", 0), ("net", 0), ("wall s", 0)];
    headers.extend(compared.then_some(("wall ratio", 1)));
    headers.extend(repeated.then_some(("min-max", 3)));
    headers.extend(hosts.iter().map(|host| (host.as_str(), 1)));
    headers.extend([("frames", 3), ("marked", 4), ("frames/int", 2)]);
    let mut table = Table::new(headers).with_more("--json FILE");
    for case in ran() {
        let mut row = vec![case.setting.clone(), case.net.into(), number(case.wall_s, 3)];
        if compared {
            let base = ran().find(|it| it.setting == first.setting && it.net == case.net);
            row.push(base.map_or_else(String::new, |base| case.wall_ratio(base, repeated)));
        }
        if repeated {
            let walls = Spread::of(case.runs.iter().map(|run| (run.wall_s, 1.0)));
            row.push(walls.map_or_else(String::new, |it| format!("{:.3}-{:.3}", it.min, it.max)));
        }
        for host in 0..hosts.len() {
            let interrupts = case.median(|run| run.hosts[host].interrupts as f64);
            row.push(number(interrupts, 0));
        }
        row.push(number(case.frames, 0));
        row.push(number(case.marked, 0));
        row.push(number(case.frames_per_interrupt, 1));
        table.add_row(row);
    }
    let runs = first.runs.len();
    let what = if repeated { format!("medians of {runs} runs") } else { "one run each".into() };
    let legend = if compared { legend(&first.setting, repeated) + " " } else { String::new() };
    let MpiResults { mpi, ranks, environment, .. } = results;
    let footer = format!(
        "\n{mpi}, {ranks} ranks; {what}, from the start of the launcher to its end, its own \
         frames included.\n{legend}NIC waits: {}. Marks: {}. Cable: {}. TCP: {}. {}.",
        environment.wait,
        environment.mark,
        environment.link,
        environment.congestion_control,
        environment.computer(),
    );
    table.fit(width) + &width.wrap(&footer)
}
