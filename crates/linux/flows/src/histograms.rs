//! Stages of all requests of this machine as histograms, which the kernel side keeps.

use aya::Ebpf;
use aya::maps::PerCpuHashMap;

use crate::FlowError;
use crate::raw;
use crate::record::{FlowRole, FlowStage};

/// Stages of a group, and buckets of each, as `struct histograms` of `bpf/flows.bpf.c` has them.
const STAGES: usize = 32;
/// How many buckets a histogram has: the first is up to 1,024 ns, each further one twice as long,
/// the last without end.
pub const BUCKETS: usize = 24;
/// The place of whole requests among the stages.
const WHOLE: usize = 31;

/// What requests are grouped by, as its `enum grouping` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlowGrouping {
    /// By the index of the device that the last packet came by.
    Device = 1,
    /// By the number of the cgroup of the program.
    Cgroup = 2,
}

/// How long a stage has taken in the requests of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageHistogram {
    /// The index of the device, or the number of the cgroup.
    pub group: u64,
    /// This host's side of the requests.
    pub role: FlowRole,
    /// Which stage; `None`: the whole of the requests.
    pub stage: Option<FlowStage>,
    /// All of it, in nanoseconds.
    pub sum: u64,
    /// How many are in each bucket.
    pub counts: [u64; BUCKETS],
    /// The slowest request of the last minute; of whole requests alone.
    pub slowest: Option<SlowestRequest>,
}

/// The slowest request of a group in the last minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowestRequest {
    /// How long it took, in nanoseconds.
    pub nanos: u64,
    /// When it ended, in nanoseconds of `CLOCK_MONOTONIC`.
    pub end: u64,
    /// The process, as numbered in the first PID namespace.
    pub pid: u32,
    /// The name of its thread.
    pub name: String,
}

/// Words of sums and counts; length, end, process and name of the slowest request follow.
const COUNTED: usize = STAGES * (1 + BUCKETS);
type Values = [u64; COUNTED + 5];

/// Those of all groups that had requests.
pub(crate) fn read(ebpf: &Ebpf) -> Result<Vec<StageHistogram>, FlowError> {
    let map = ebpf.map("histograms").ok_or(FlowError::NoMap("histograms"))?;
    let error = |cause: aya::maps::MapError| FlowError::Map(cause.to_string());
    let map: PerCpuHashMap<_, [u64; 2], Values> = PerCpuHashMap::try_from(map).map_err(error)?;
    let mut all = Vec::new();
    for entry in map.iter() {
        let ([group, role], processors) = entry.map_err(error)?;
        let mut values: Values = [0; COUNTED + 5];
        for processor in processors.iter() {
            for (sum, value) in values[..COUNTED].iter_mut().zip(processor) {
                *sum += value;
            }
            if processor[COUNTED] > values[COUNTED] {
                values[COUNTED..].copy_from_slice(&processor[COUNTED..]);
            }
        }
        all.extend(of_group(group, role, &values));
    }
    Ok(all)
}

fn of_group(group: u64, role: u64, values: &Values) -> Vec<StageHistogram> {
    let role = match role {
        0 => FlowRole::Asks,
        1 => FlowRole::Answers,
        _ => FlowRole::Receives,
    };
    let (counted, slowest) = values.split_at(COUNTED);
    let (sums, counts) = counted.split_at(STAGES);
    let [nanos, end, pid, name @ ..] = slowest else { return Vec::new() };
    let name: Vec<u8> = name.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let slowest =
        SlowestRequest { nanos: *nanos, end: *end, pid: *pid as u32, name: raw::text(&name) };
    let places = FlowStage::ALL.into_iter().map(|stage| (Some(stage), stage as usize));
    let one = |(stage, place): (Option<FlowStage>, usize)| {
        let counts = counts[place * BUCKETS..][..BUCKETS].try_into().unwrap_or([0; BUCKETS]);
        let slowest = (place == WHOLE && slowest.nanos > 0).then(|| slowest.clone());
        StageHistogram { group, role, stage, sum: sums[place], counts, slowest }
    };
    let all = places.chain([(None, WHOLE)]).map(one);
    all.filter(|histogram| histogram.counts.iter().any(|count| *count > 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_and_the_whole_are_found_at_their_places() {
        let mut values: Values = [0; COUNTED + 5];
        values[FlowStage::Nagle as usize] = 5_000;
        values[STAGES + FlowStage::Nagle as usize * BUCKETS + 2] = 1;
        values[WHOLE] = 9_000;
        values[STAGES + WHOLE * BUCKETS + BUCKETS - 1] = 1;
        let name = u64::from_ne_bytes(*b"python3\0");
        values[COUNTED..COUNTED + 4].copy_from_slice(&[8_000, 77, 42, name]);
        let all = of_group(7, 1, &values);
        let found: Vec<_> = all.iter().map(|it| (it.group, it.role, it.stage, it.sum)).collect();
        let of = |stage, sum| (7, FlowRole::Answers, stage, sum);
        assert_eq!(found, [of(Some(FlowStage::Nagle), 5_000), of(None, 9_000)]);
        assert_eq!((all[0].counts[2], all[1].counts[BUCKETS - 1]), (1, 1));
        let slowest = SlowestRequest { nanos: 8_000, end: 77, pid: 42, name: "python3".into() };
        assert_eq!((&all[0].slowest, &all[1].slowest), (&None, &Some(slowest)));
    }
}
