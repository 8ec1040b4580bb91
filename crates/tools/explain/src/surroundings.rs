//! What is known beside the requests: devices, quotas, settings. From `/proc` and `/sys`.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, SocketType, socket};

/// Whether there is a network device of this name.
pub fn is_device(name: &str) -> bool {
    !name.contains('/')
        && (packets(name).is_some() || Path::new("/sys/class/net").join(name).exists())
}

/// How many packets a device has received.
pub(crate) fn packets(device: &str) -> Option<u64> {
    packets_in(&fs::read_to_string("/proc/net/dev").ok()?, device)
}

fn packets_in(table: &str, device: &str) -> Option<u64> {
    let mut rows = table.lines().filter_map(|line| line.split_once(':'));
    let (_, counters) = rows.find(|(name, _)| name.trim() == device)?;
    counters.split_whitespace().nth(1)?.parse().ok()
}

/// The name of a device of this network.
pub(crate) fn device_name(index: u32) -> Option<String> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    index_to_name(any, index).ok()
}

/// Whether a pause resets the congestion window.
pub(crate) fn slow_start_after_idle() -> Option<bool> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_slow_start_after_idle").ok()?;
    Some(text.trim() != "0")
}

/// The highest frequency that a processor may have now, as a share of what it can: the least of
/// all processors.
pub(crate) fn frequency() -> Option<f64> {
    let policies = fs::read_dir("/sys/devices/system/cpu/cpufreq").ok()?.flatten();
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<f64>().ok();
    let share = |policy: fs::DirEntry| {
        let top = number(policy.path().join("cpuinfo_max_freq")).filter(|top| *top > 0.0)?;
        Some(number(policy.path().join("scaling_max_freq"))? / top)
    };
    policies.filter_map(share).min_by(f64::total_cmp)
}

/// The cgroups whose quotas of processors a process has to keep, and for how long they were
/// throttled so far.
#[derive(Clone, Debug)]
pub(crate) struct Quota {
    groups: Vec<PathBuf>,
    /// Microseconds when it was first looked at.
    before: f64,
}

impl Quota {
    /// Those of a process, as numbered in this namespace.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let (root, path) = controller(&text)?;
        let leaf = Path::new(root).join(path.trim_start_matches('/'));
        Some(Self::at(&leaf, Path::new(root)))
    }

    /// That of a cgroup, by its directory, and of those above it.
    pub(crate) fn at(leaf: &Path, root: &Path) -> Self {
        let groups = leaf.ancestors().take_while(|path| path.starts_with(root));
        let mut quota = Self { groups: groups.map(Path::to_owned).collect(), before: 0.0 };
        quota.before = quota.throttled_us();
        quota
    }

    /// Microseconds since it was first looked at.
    pub(crate) fn since_us(&self) -> f64 {
        (self.throttled_us() - self.before).max(0.0)
    }

    fn throttled_us(&self) -> f64 {
        let texts = self.groups.iter().map(|path| fs::read_to_string(path.join("cpu.stat")));
        texts.filter_map(|text| throttled_us(&text.ok()?)).sum()
    }
}

/// Where the CPU controller is mounted, and the path of a group in it, by `/proc/PID/cgroup`.
fn controller(text: &str) -> Option<(&'static str, &str)> {
    let rows = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let has = |names: &str| names.split(',').any(|name| name == "cpu");
    match rows().find(|(names, _)| has(names)) {
        Some((_, path)) => Some(("/sys/fs/cgroup/cpu", path)),
        None => {
            rows().find(|(names, _)| names.is_empty()).map(|(_, path)| ("/sys/fs/cgroup", path))
        }
    }
}

/// Microseconds by a `cpu.stat` of either version.
fn throttled_us(text: &str) -> Option<f64> {
    let field = |name: &str| {
        let rows = text.lines().filter_map(|line| line.split_once(' '));
        rows.into_iter().find(|(it, _)| *it == name)?.1.trim().parse::<f64>().ok()
    };
    field("throttled_usec").or_else(|| Some(field("throttled_time")? / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_those_of_the_device() {
        let table =
            "Inter-|   Receive\n face |bytes    packets errs\n    lo:  100   7 0\n  lo2: 1 9 0\n";
        assert_eq!((packets_in(table, "lo"), packets_in(table, "lo2")), (Some(7), Some(9)));
        assert_eq!(packets_in(table, "eth0"), None);
    }

    #[test]
    fn quota_is_that_of_the_controller_for_processors() {
        let mixed = "5:cpuset:/a\n4:cpu,cpuacct:/b/c\n0::/d\n";
        assert_eq!(controller(mixed), Some(("/sys/fs/cgroup/cpu", "/b/c")));
        assert_eq!(controller("0::/d\n"), Some(("/sys/fs/cgroup", "/d")));
        assert_eq!(controller("5:cpuset:/a\n"), None);
        let old = "nr_periods 4\nnr_throttled 2\nthrottled_time 1500000\n";
        assert_eq!(throttled_us(old), Some(1_500.0));
        assert_eq!(throttled_us("usage_usec 9\nthrottled_usec 70\n"), Some(70.0));
        assert_eq!(throttled_us("usage_usec 9\n"), None);
    }
}
