//! Polls of NAPI instances, counted in the kernel by who polls (`bpf/polls.bpf.c`).

use std::collections::BTreeMap;

use aya::maps::{HashMap, MapData, MapError};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};

use super::FlowError;
use crate::kernel;

/// The programs of the kernel side, each with its tracepoint. That of polls comes last: it takes
/// what the others know.
const PROGRAMS: [(&str, &str); 3] =
    [("begins", "softirq_entry"), ("ends", "softirq_exit"), ("polled", "napi_poll")];

/// Who polls where no program does (`UNASKED` of the kernel side).
const UNASKED: u32 = u32::MAX;

/// What one poller of a NAPI instance has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollCount {
    /// Number of the instance.
    pub napi: u32,
    /// The process whose threads have polled, as numbered in this process's namespace, 0 if it is
    /// not in there; none: no program asked for the poll, but an interrupt, a timer, or a kernel
    /// thread.
    pub process: Option<u32>,
    /// How often it polled.
    pub polls: u64,
    /// Packets that it took.
    pub packets: u64,
}

/// Counts polls until it is dropped.
pub struct PollCounter {
    /// The programs are attached for as long as this is there.
    _ebpf: Ebpf,
    counts: HashMap<MapData, [u32; 2], [u64; 2]>,
    before: BTreeMap<[u32; 2], [u64; 2]>,
}

impl PollCounter {
    /// Begins to count.
    ///
    /// # Errors
    /// If the kernel has no BTF, or refuses the programs.
    pub fn start() -> Result<Self, FlowError> {
        let btf = kernel::types()?;
        let mut ebpf = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("namespace", &kernel::namespace()?, true)
            .load(include_bytes_aligned!("../bpf/polls.bpf.o"))
            .map_err(|cause| kernel::refused(&cause))?;
        for (name, tracepoint) in PROGRAMS {
            kernel::check(&mut ebpf, &btf, name, tracepoint)?;
            kernel::attach(&mut ebpf, name, tracepoint)?;
        }
        let counts = ebpf.take_map("counts").ok_or(FlowError::NoMap("counts"))?;
        let counts = HashMap::try_from(counts).map_err(|cause| of_map(&cause))?;
        Ok(Self { _ebpf: ebpf, counts, before: BTreeMap::new() })
    }

    /// What was counted since the last time.
    pub fn read(&mut self) -> Result<Vec<PollCount>, FlowError> {
        let mut now: BTreeMap<_, _> =
            self.counts.iter().collect::<Result<_, _>>().map_err(|cause| of_map(&cause))?;
        // What has stood still makes room: its program may have ended. A poll of this very moment
        // is lost.
        now.retain(|key, count| {
            let stays = self.before.get(key) != Some(count);
            stays || self.counts.remove(key).is_err()
        });
        let mut grown = Vec::new();
        for ([napi, process], [polls, packets]) in &now {
            let before = self.before.get(&[*napi, *process]).copied().unwrap_or_default();
            grown.push(PollCount {
                napi: *napi,
                process: Some(*process).filter(|process| *process != UNASKED),
                polls: polls - before[0],
                packets: packets - before[1],
            });
        }
        self.before = now;
        Ok(grown)
    }
}

fn of_map(cause: &MapError) -> FlowError {
    FlowError::Map(cause.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_may_count_where_the_kernel_describes_its_types() {
        match PollCounter::start() {
            Ok(mut counter) => drop(counter.read().unwrap()),
            Err(FlowError::NoTypes) => {}
            Err(error) => {
                assert!(matches!(error, FlowError::NotAllowed), "{error}");
                assert!(!rustix::process::geteuid().is_root(), "{error}");
            }
        }
    }
}
