//! Steering: which processors handle the packets of a queue in software (RPS, RFS, XPS).
//!
//! Files and meaning: Linux, `Documentation/networking/scaling.rst`.

use serde::Serialize;

use super::cpus::parse_mask;
use super::kernel::KernelFiles;
use super::napi::Direction;

/// The steering of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Steering {
    /// Which way packets go.
    pub direction: Direction,
    /// The number of the queue among those of its direction.
    pub queue: u32,
    /// Receiving: those that packets are spread over; none: the one that was interrupted keeps
    /// them. Sending: those whose packets go out here.
    pub cpus: Vec<u32>,
    /// Receiving: flows whose reading processor is remembered.
    pub flows: u64,
}

/// The steering of the queues in a directory `queues`, receiving ones first. Queues without it are
/// there with no processors. A mask that cannot be read counts as none.
pub fn read_steering(files: &dyn KernelFiles, directory: &str) -> Vec<Steering> {
    let mut steering: Vec<Steering> = files
        .list(directory)
        .unwrap_or_default()
        .iter()
        .filter_map(|name| {
            let (direction, queue) = parse_name(name)?;
            let (mask, flows) = match direction {
                Direction::Rx => {
                    ("rps_cpus", files.number(&format!("{directory}/{name}/rps_flow_cnt")))
                }
                Direction::Tx => ("xps_cpus", None),
            };
            let cpus = files.word(&format!("{directory}/{name}/{mask}"));
            let cpus = cpus.and_then(|mask| parse_mask(&mask)).unwrap_or_default();
            Some(Steering { direction, queue, cpus, flows: flows.unwrap_or(0) })
        })
        .collect();
    steering.sort_by_key(|one| (one.direction, one.queue));
    steering
}

fn parse_name(name: &str) -> Option<(Direction, u32)> {
    match name.split_once('-')? {
        ("rx", queue) => Some((Direction::Rx, queue.parse().ok()?)),
        ("tx", queue) => Some((Direction::Tx, queue.parse().ok()?)),
        _ => None,
    }
}
