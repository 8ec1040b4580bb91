//! `--explain` and `--probe`: what is measured in the background between scrapes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base::quantity::Unit;
use clap::Args;

use bench::options::number;
use explain::own;
use exporter::background::{Background, Task};
use exporter::metric::Metric;
use exporter::stages;
use flows::histograms::FlowGrouping;
use infer::{Place, PlaceVerdict, Verdict};
use probe::fleet::Budget;
use probe::prober::Prober;
use probe::run::{self, Limits};
use report::output::error_line;
use report::progress::Progress;
use report::{errln, output};

/// For how long requests are followed, in seconds, and how many there are a second.
const EXPLAIN_SECONDS: f64 = 5.0;
const EXPLAIN_RATE: f64 = 500.0;

/// Packets a second that a probe sends, pauses between its trains included.
const PROBE_RATE: u32 = 1_000;

/// More hosts than this would be series without number.
const MAX_HOSTS: usize = 16;

/// What is measured, and how often.
#[derive(Args, Debug)]
pub(super) struct BackgroundArgs {
    /// Now and then, follow requests to this host, which runs an echo: stages as `earmark explain`
    /// has them, as histograms. It takes the rights of explain
    #[arg(long, value_name = "HOST", conflicts_with = "print")]
    explain: Option<String>,
    /// Seconds from one time to the next
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0, requires = "explain")]
    #[arg(value_parser = number(Unit::Seconds, 1.0..=86_400.0))]
    explain_every: f64,
    /// Follow all requests of this machine in the kernel: stages as `earmark explain` has them, as
    /// histograms by network device or by cgroup, for at most 1 % of a processor
    #[arg(long, value_name = "BY", value_enum, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "device", conflicts_with = "print")]
    stages: Option<StagesBy>,
    /// Now and then, probe these hosts: holds as `earmark probe` finds them, as histograms, and
    /// verdicts as counters
    #[arg(long, value_name = "HOST", value_delimiter = ',', conflicts_with = "print")]
    probe: Vec<String>,
    /// Seconds from one time to the next
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, requires = "probe")]
    #[arg(value_parser = number(Unit::Seconds, 1.0..=86_400.0))]
    probe_every: f64,
}

/// What stages are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum StagesBy {
    Device,
    Cgroup,
}

impl BackgroundArgs {
    /// Whether something is to be measured.
    pub(super) fn is_any(&self) -> bool {
        self.explain.is_some() || !self.probe.is_empty() || self.stages.is_some()
    }

    /// Refuses what makes no sense.
    pub(super) fn check(&self) -> Result<()> {
        let hosts = self.probe.len();
        ensure!(
            hosts <= MAX_HOSTS,
            "--probe takes {MAX_HOSTS} hosts at most, and these are {hosts}"
        );
        let is_named = |host: &String| !host.trim().is_empty();
        ensure!(
            self.probe.iter().chain(&self.explain).all(is_named),
            "--explain and --probe name hosts, and one of these names is empty"
        );
        Ok(())
    }

    /// Starts what is to be measured.
    pub(super) fn start(&self, background: &Background) -> Result<()> {
        if let Some(by) = self.stages {
            let grouping = match by {
                StagesBy::Device => FlowGrouping::Device,
                StagesBy::Cgroup => FlowGrouping::Cgroup,
            };
            stages::start(background, grouping, error_line)
                .context("follow requests (--stages)")?;
        }
        let explained = self.explain.iter().map(|host| {
            let every = self.explain_every;
            task(background, "--explain", host, every, Metric::ExplainRuns, explain)
        });
        let probed = self.probe.iter().map(|host| {
            task(background, "--probe", host, self.probe_every, Metric::ProbeRuns, probe)
        });
        let tasks: Vec<Task> = explained.chain(probed).collect();
        if !tasks.is_empty() {
            background.start(tasks).context("start the thread of --explain and --probe")?;
        }
        Ok(())
    }
}

/// A measurement of a host that is counted in `runs`; the first failure of several is printed.
fn task(
    background: &Background,
    option: &'static str,
    host: &str,
    every: f64,
    runs: Metric,
    measure: fn(&Background, &str) -> Result<()>,
) -> Task {
    let (background, host) = (background.clone(), host.to_owned());
    for outcome in ["done", "failed"] {
        background.count(runs, &[&host, outcome], 0);
    }
    let mut is_failing = false;
    let run = move || {
        let outcome = measure(&background, &host);
        background.count(runs, &[&host, if outcome.is_ok() { "done" } else { "failed" }], 1);
        if let (Err(error), false) = (&outcome, is_failing) {
            errln!("{option} {host}: {}; trying again in {every} s", output::message(error));
        }
        is_failing = outcome.is_err();
    };
    Task { every: Duration::from_secs_f64(every), run: Box::new(run) }
}

fn explain(background: &Background, host: &str) -> Result<()> {
    let settings = own::Settings {
        host: host.to_owned(),
        port: None,
        udp: false,
        size: 64,
        rate: EXPLAIN_RATE,
        seconds: EXPLAIN_SECONDS,
    };
    let report = own::explain(&settings, None, &Progress::new(true), |stage, nanos| {
        let stage = serde_json::to_value(stage).unwrap_or_default();
        let labels = [host, stage.as_str().unwrap_or_default()];
        background.observe(Metric::ExplainStage, &labels, nanos as f64 / 1e9);
    })?;
    // Those that are too few for a table are in the histogram.
    ensure!(report.has_any(), "none of its answers was followed from end to end");
    Ok(())
}

fn probe(background: &Background, host: &str) -> Result<()> {
    let mut prober = Prober::find(host, None, None)?;
    let mut plan = run::plan(&prober, Limits::default());
    let budget = Budget::new(PROBE_RATE);
    run::run_paced(&mut prober, &mut plan, |packets| {
        budget.take(packets)?;
        background.pause();
        Ok(())
    })?;
    note(background, host, &infer::judge(plan.heard()));
    Ok(())
}

/// Notes the holds of a verdict, and what it says of each side.
fn note(background: &Background, host: &str, verdict: &Verdict) {
    for finding in &verdict.findings {
        let labels = [host, finding.place.name(), finding.family.name()];
        background.observe(Metric::ProbeHold, &labels, finding.usecs.value / 1e6);
    }
    // A hold of an unknown side says nothing of either.
    let is_unknown = verdict.at(Place::Unknown).is_some();
    let places = if is_unknown { vec![Place::Unknown] } else { vec![Place::Mine, Place::Theirs] };
    for place in places {
        let said = match verdict.verdict_at(place) {
            PlaceVerdict::Hold(_) => "hold",
            PlaceVerdict::NoHold { .. } => "no-hold",
            PlaceVerdict::CannotTell => "cannot-tell",
        };
        background.count(Metric::ProbeVerdicts, &[host, place.name(), said], 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exporter::sample::{Format, encode};
    use infer::{Family, Finding, Interval, Lengths, NoHold, Unclear, UnclearReason};

    /// The lines of what is noted of a verdict.
    fn noted(findings: Vec<Finding>, excluded: Vec<NoHold>) -> Vec<String> {
        let why = vec![UnclearReason::Noise];
        let lengths = Lengths::Both;
        let unclear = vec![Unclear { place: Place::Mine, lengths, below: None, why }];
        let verdict = Verdict {
            tried: lengths,
            findings,
            excluded,
            unclear,
            other_delays: Vec::new(),
            quantum: None,
            offset_bend: None,
            answered: (1, 1),
            reasons: Vec::new(),
        };
        let background = Background::default();
        note(&background, "h", &verdict);
        let text = encode(&background.samples(), Format::Plain);
        let is_short = |line: &&str| line.starts_with("earmark_") && !line.contains("_bucket");
        text.lines().filter(is_short).map(str::to_owned).collect()
    }

    fn hold(place: Place) -> Finding {
        Finding {
            place,
            lengths: Lengths::Both,
            family: Family::Delay,
            usecs: Interval { value: 75.0, low: 74.0, high: 76.0 },
            frames: None,
            bound: None,
            polls: None,
            lone_usecs: 75.0,
            confidence: 1.0,
            alike: Vec::new(),
            or_program: false,
        }
    }

    #[test]
    fn a_verdict_is_a_length_and_a_word_for_each_side() {
        let of = |side| format!("{{host=\"h\",side=\"{side}\",family=\"delay\"}}");
        let lengths = |side| {
            let of = of(side);
            let name = "earmark_probe_hold_seconds";
            vec![format!("{name}_sum{of} 0.000075"), format!("{name}_count{of} 1")]
        };
        let word = |side, verdict| {
            let of = format!("{{host=\"h\",side=\"{side}\",verdict=\"{verdict}\"}}");
            format!("earmark_probe_verdicts_total{of} 1")
        };
        let words = [word("mine", "cannot-tell"), word("theirs", "hold")];
        assert_eq!(
            noted(vec![hold(Place::Theirs)], Vec::new()),
            [lengths("theirs"), words.into()].concat()
        );
        let unknown = [lengths("unknown"), vec![word("unknown", "hold")]].concat();
        assert_eq!(noted(vec![hold(Place::Unknown)], Vec::new()), unknown);
        let none = NoHold { place: Place::Nowhere, lengths: Lengths::Both, above: 5.0 };
        let neither = [word("mine", "no-hold"), word("theirs", "no-hold")];
        assert_eq!(noted(Vec::new(), vec![none]), neither);
    }
}
