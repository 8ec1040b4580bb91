//! Measurements that cost something: taken in the background, seldom, and one at a time.
//!
//! One thread runs the tasks in turn. A scrape never waits for them: it gets what they have found
//! so far. They wait for it: [`Background::pause`] returns while no devices are being read. After a
//! task the thread rests until all CPU time of this process since the task began is at most
//! `SHARE` of the time that has passed, so that a short period costs no more than that.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use prometheus_client::metrics::histogram::Histogram;
use sys::clock::process_cpu_time;
use sys::seed::seed;

use crate::metric::{Kind, Metric};
use crate::sample::{Sample, Value};

/// The most of a processor that tasks use: half of the one per cent that the exporter may.
const SHARE: f64 = 0.005;

type Series = (Metric, Vec<String>);

/// What is found, and when devices are read. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Background {
    found: Arc<Mutex<BTreeMap<Series, Value>>>,
    reading: Arc<Mutex<()>>,
}

/// A measurement that is taken again and again.
pub struct Task {
    /// From the begin of one to the begin of the next.
    pub every: Duration,
    /// Measures, and notes what it finds in a [`Background`].
    pub run: Box<dyn FnMut() + Send>,
}

impl Background {
    /// Adds to a counter; 0 lets it begin, so that its first increase is seen.
    pub fn count(&self, metric: Metric, labels: &[&str], more: u64) {
        let mut found = lock(&self.found);
        let value = found.entry(key(metric, labels)).or_insert(Value::Count(0));
        if let Value::Count(count) = value {
            *count += more;
        }
    }

    /// Adds to a counter with a fraction.
    pub fn add(&self, metric: Metric, labels: &[&str], more: f64) {
        let mut found = lock(&self.found);
        let value = found.entry(key(metric, labels)).or_insert(Value::Number(0.0));
        if let Value::Number(number) = value {
            *number += more;
        }
    }

    /// Replaces a value.
    pub fn set(&self, metric: Metric, labels: &[&str], value: Value) {
        lock(&self.found).insert(key(metric, labels), value);
    }

    /// Adds a value to a histogram.
    ///
    /// # Panics
    /// If the metric is none.
    pub fn observe(&self, metric: Metric, labels: &[&str], value: f64) {
        let Kind::Histogram(bounds) = metric.family().kind else {
            panic!("{metric:?} is no histogram");
        };
        let mut found = lock(&self.found);
        let new = || Value::Histogram(Histogram::new(bounds.iter().copied()));
        if let Value::Histogram(histogram) = found.entry(key(metric, labels)).or_insert_with(new) {
            histogram.observe(value);
        }
    }

    /// Waits while devices are being read.
    pub fn pause(&self) {
        drop(lock(&self.reading));
    }

    /// Devices are being read until this is dropped.
    pub(crate) fn reading(&self) -> MutexGuard<'_, ()> {
        lock(&self.reading)
    }

    /// What was found so far.
    pub fn samples(&self) -> Vec<Sample> {
        let sample = |((metric, labels), value): (&Series, &Value)| Sample {
            metric: *metric,
            labels: labels.clone(),
            value: value.clone(),
        };
        lock(&self.found).iter().map(sample).collect()
    }

    /// Starts the thread that runs `tasks`, each for the first time as soon as the others let it.
    pub fn start(&self, tasks: Vec<Task>) -> io::Result<()> {
        let background = self.clone();
        let run = move || run(&background, tasks);
        thread::Builder::new().name("earmark-samples".into()).spawn(run)?;
        Ok(())
    }
}

fn run(background: &Background, mut tasks: Vec<Task>) {
    let now = Instant::now();
    let mut due = vec![now; tasks.len()];
    while let Some(next) = (0..tasks.len()).min_by_key(|&task| due[task]) {
        sleep(due[next].saturating_duration_since(Instant::now()));
        background.pause();
        let (begin, cpu) = (Instant::now(), process_cpu_time());
        (tasks[next].run)();
        let spent = Duration::from_nanos(process_cpu_time().as_nanos() - cpu.as_nanos());
        due[next] = begin + varied(tasks[next].every, seed());
        sleep((begin + rest_until(spent)).saturating_duration_since(Instant::now()));
    }
}

/// How long after a begin the CPU time that was spent is `SHARE` of the time.
fn rest_until(spent: Duration) -> Duration {
    spent.div_f64(SHARE)
}

/// Up to a tenth more or less: hosts that started together do not probe another one together.
fn varied(every: Duration, random: u64) -> Duration {
    every.mul_f64(0.9 + 0.2 * (random as f64 / u64::MAX as f64))
}

fn key(metric: Metric, labels: &[&str]) -> Series {
    debug_assert_eq!(labels.len(), metric.family().labels.len(), "{metric:?}");
    (metric, labels.iter().map(|&label| label.to_owned()).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::sample::{Format, encode};

    #[test]
    fn what_is_found_adds_up_and_is_exported_in_base_units() {
        let background = Background::default();
        background.count(Metric::ProbeRuns, &["h", "failed"], 0);
        background.count(Metric::ProbeRuns, &["h", "done"], 1);
        background.clone().count(Metric::ProbeRuns, &["h", "done"], 1);
        for hold in [75e-6, 75e-6, 2.0] {
            background.observe(Metric::ProbeHold, &["h", "theirs", "delay"], hold);
        }
        let text = encode(&background.samples(), Format::Plain);
        let hold = "earmark_probe_hold_seconds";
        let of = "host=\"h\",side=\"theirs\",family=\"delay\"";
        for line in [
            "earmark_probe_runs_total{host=\"h\",outcome=\"failed\"} 0".to_owned(),
            "earmark_probe_runs_total{host=\"h\",outcome=\"done\"} 2".to_owned(),
            format!("# TYPE {hold} histogram"),
            format!("{hold}_bucket{{{of},le=\"5e-05\"}} 0"),
            format!("{hold}_bucket{{{of},le=\"0.0001\"}} 2"),
            format!("{hold}_bucket{{{of},le=\"+Inf\"}} 3"),
            format!("{hold}_count{{{of}}} 3"),
            format!("{hold}_sum{{{of}}} 2.00015"),
        ] {
            assert!(text.lines().any(|it| it == line), "no `{line}` in\n{text}");
        }
    }

    #[test]
    fn tasks_rest_until_their_share_is_kept_and_hosts_drift_apart() {
        assert_eq!(rest_until(Duration::from_millis(50)), Duration::from_secs(10));
        let every = Duration::from_secs(100);
        assert_eq!(varied(every, 0), Duration::from_secs(90));
        assert_eq!(varied(every, u64::MAX), Duration::from_secs(110));
    }

    #[test]
    fn tasks_take_turns_and_wait_for_a_reading() {
        let background = Background::default();
        let reading = background.reading();
        let (sender, receiver) = mpsc::channel();
        let task = |name: &'static str| {
            let sender = sender.clone();
            Task {
                every: Duration::ZERO,
                run: Box::new(move || {
                    let _ = sender.send(name);
                }),
            }
        };
        background.start(vec![task("one"), task("two")]).unwrap();
        // A task that began in spite of the reading would be here before it ends.
        sleep(Duration::from_millis(20));
        assert!(receiver.try_recv().is_err());
        drop(reading);
        let first = Duration::from_secs(60);
        let got = [(); 3].map(|()| receiver.recv_timeout(first).unwrap());
        assert_eq!(got, ["one", "two", "one"]);
    }
}
