//! `--stages`: where the time of all requests of this machine goes, always.
//!
//! The kernel side keeps histograms of stages by device or cgroup; a thread reads them each
//! `PERIOD`. The kernel measures what that costs meanwhile. Where it is more than `SHARE` of
//! one processor, requests are followed in windows, with rests between them that are as long as it
//! takes; `earmark_stages_followed_seconds_total` says for how long they were.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::{self, sleep};
use std::time::{Duration, Instant, SystemTime};

use flows::FlowError;
use flows::follower::{FlowDetail, FlowFollower, FlowScope};
use flows::histograms::{FlowGrouping, SlowestRequest, StageHistogram};
use flows::record::FlowRole;
use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, SocketType, socket};
use sys::clock;

use crate::background::Background;
use crate::metric::Metric;
use crate::sample::{BucketExemplar, Value};

/// How often histograms are read.
const PERIOD: Duration = Duration::from_secs(5);

/// The first window: what following costs on this machine is not known before.
const FIRST: Duration = Duration::from_millis(500);

/// What following may cost the kernel, of one processor.
const SHARE: f64 = 0.01;

/// The longest rest: after it a machine may have become quieter.
const LONGEST_REST: Duration = Duration::from_secs(300);

/// Cgroups whose names are looked for, at most, and how deep.
const MAX_CGROUPS: usize = 20_000;
const CGROUPS: &str = "/sys/fs/cgroup";
/// The number of the root of all cgroups.
const ROOT_CGROUP: u64 = 1;

/// Follows all requests of this machine from now on; `report` prints a line when that has failed.
///
/// # Errors
/// If this kernel, or the rights of this process, do not allow it.
pub fn start(
    background: &Background,
    grouping: FlowGrouping,
    report: fn(std::fmt::Arguments<'_>),
) -> Result<(), StagesError> {
    let mut follower = FlowFollower::open(&FlowScope::Everything(grouping), FlowDetail::default())?;
    let cost = FlowFollower::measure_cost()?;
    follower.start()?;
    let mut stages =
        Stages { follower, background: background.clone(), grouping, names: BTreeMap::new() };
    let run = move || {
        let _cost = cost;
        if let Err(error) = stages.run() {
            report(format_args!("--stages: {error}; it has ended"));
        }
    };
    thread::Builder::new().name("earmark-stages".into()).spawn(run)?;
    Ok(())
}

/// Why requests cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum StagesError {
    /// The kernel side does not work.
    #[error(transparent)]
    Flows(#[from] FlowError),
    /// There is no thread.
    #[error("start the thread of --stages")]
    Thread(#[from] io::Error),
}

struct Stages {
    follower: FlowFollower,
    background: Background,
    grouping: FlowGrouping,
    /// Of devices and cgroups, as far as they were looked for.
    names: BTreeMap<u64, String>,
}

impl Stages {
    fn run(&mut self) -> Result<(), FlowError> {
        let (mut length, mut spent) = (FIRST, 0);
        loop {
            let began = Instant::now();
            sleep(length);
            let on = began.elapsed();
            let all = self.follower.cost().iter().map(|(_, _, nanos)| nanos).sum::<u64>();
            let cost = Duration::from_nanos(all.saturating_sub(spent));
            spent = all;
            let rest = rest_after(on, cost);
            if rest > Duration::ZERO {
                self.follower.stop()?;
            }
            self.publish(on, cost)?;
            if rest > Duration::ZERO {
                sleep(rest);
                self.follower.start()?;
            }
            // A window that is long would cost much before its rest begins.
            length = if rest > PERIOD { FIRST } else { PERIOD };
        }
    }

    fn publish(&mut self, on: Duration, cost: Duration) -> Result<(), FlowError> {
        let background = self.background.clone();
        background.add(Metric::StagesFollowed, &[], on.as_secs_f64());
        background.add(Metric::StagesKernelCpu, &[], cost.as_secs_f64());
        let counts = self.follower.counts();
        let lost = [("requests", counts.lost_records), ("sockets", counts.lost_flows)];
        for (what, count) in lost {
            background.set(Metric::StagesLeftOut, &[what], Value::Count(count));
        }
        for histogram in self.follower.histograms()? {
            let StageHistogram { group, role, stage, sum, counts, slowest } = &histogram;
            let name = self.name(*group);
            let (device, cgroup) = match self.grouping {
                FlowGrouping::Device => (name.as_str(), ""),
                FlowGrouping::Cgroup => ("", name.as_str()),
            };
            let role = match role {
                FlowRole::Asks => "asks",
                FlowRole::Answers => "answers",
                FlowRole::Receives => "receives",
            };
            let exemplar = slowest.as_ref().map(exemplar);
            let value =
                Value::Buckets { sum: *sum as f64 / 1e9, counts: counts.to_vec(), exemplar };
            match stage.map(|stage| serde_json::to_value(stage).unwrap_or_default()) {
                None => background.set(Metric::Request, &[device, cgroup, role], value),
                Some(stage) => {
                    let stage = stage.as_str().unwrap_or_default();
                    background.set(Metric::Stage, &[device, cgroup, role, stage], value);
                }
            }
        }
        Ok(())
    }

    /// The name of a device or a cgroup; its number where it has none in sight.
    fn name(&mut self, group: u64) -> String {
        if let Some(name) = self.names.get(&group) {
            return name.clone();
        }
        let name = match self.grouping {
            FlowGrouping::Device => device_name(group as u32),
            FlowGrouping::Cgroup => {
                self.names.extend(cgroups(Path::new(CGROUPS)));
                // Where the second version is not mounted, all programs are in its root.
                let root = (group == ROOT_CGROUP).then(|| "/".to_owned());
                self.names.get(&group).cloned().or(root)
            }
        };
        let name = name.unwrap_or_else(|| group.to_string());
        self.names.entry(group).or_insert(name).clone()
    }
}

/// The slowest request of the last minute, with the time of day.
fn exemplar(slowest: &SlowestRequest) -> BucketExemplar {
    let ago = clock::now().as_nanos().saturating_sub(slowest.end) as f64 / 1e9;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    BucketExemplar {
        labels: vec![("program", slowest.name.clone()), ("pid", slowest.pid.to_string())],
        value: slowest.nanos as f64 / 1e9,
        at: (now.as_secs_f64() - ago).max(0.0),
    }
}

/// For how long nothing may be followed after a window that has cost so much.
fn rest_after(on: Duration, cost: Duration) -> Duration {
    cost.div_f64(SHARE).saturating_sub(on).min(LONGEST_REST)
}

fn device_name(index: u32) -> Option<String> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    index_to_name(any, index).ok()
}

/// The paths of all cgroups by the inodes of their directories, which are their numbers.
fn cgroups(root: &Path) -> BTreeMap<u64, String> {
    let (mut found, mut left) = (BTreeMap::new(), vec![PathBuf::from(root)]);
    while let Some(path) = left.pop().filter(|_| found.len() < MAX_CGROUPS) {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            let below = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            found.insert(metadata.ino(), format!("/{below}"));
            let inner = fs::read_dir(&path).into_iter().flatten().flatten();
            left.extend(inner.map(|entry| entry.path()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_keep_the_share_and_quiet_machines_have_none() {
        let second = Duration::from_secs(1);
        assert_eq!(rest_after(second, Duration::from_millis(10)), Duration::ZERO);
        assert_eq!(rest_after(second, Duration::from_millis(30)), 2 * second);
        assert_eq!(rest_after(second, 100 * second), LONGEST_REST);
    }

    #[test]
    fn cgroups_are_found_by_their_numbers() {
        let directory = std::env::temp_dir().join(format!("earmark-stages-{}", std::process::id()));
        let inner = directory.join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let number = fs::metadata(&inner).unwrap().ino();
        let found = cgroups(&directory);
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!((found[&number].as_str(), found.len()), ("/a/b", 3));
    }
}
