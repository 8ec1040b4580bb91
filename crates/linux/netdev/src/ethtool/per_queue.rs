//! Coalescing of single queues (`ethtool --per-queue`), by ioctl: netlink has no such request.
//!
//! Layout: `struct ethtool_per_queue_op` of Linux, `include/uapi/linux/ethtool.h`: a bit for each
//! queue, and behind them a `struct ethtool_coalesce` for each bit. A queue number means the
//! receive and the transmit queue of that number. Drivers that have it: virtio_net, ice, i40e,
//! iavf, idpf, hinic, cpsw; others answer `EOPNOTSUPP`.

use std::io;
use std::ops::Range;

use serde::Serialize;

use super::coalesce::Coalesce;
use super::legacy::{change_words, parse_legacy, word_of};
use super::parameter::Parameter;
use sys::ethtool::{
    COALESCE_WORDS as WORDS, Control, GET_COALESCE as GET, PER_QUEUE, PER_QUEUE_HEADER,
    SET_COALESCE as SET,
};

/// Queues that there may be (`MAX_NUM_QUEUE`).
const MAX_QUEUES: u32 = 4_096;

/// The coalescing of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueueCoalesce {
    /// The number of the queue.
    pub queue: u32,
    /// Its settings: values that are not 0, and the waiting times in any case.
    pub coalesce: Coalesce,
}

impl Parameter {
    /// Whether a queue can have one of its own: the ioctl is older than some parameters.
    pub fn is_of_queues(self) -> bool {
        word_of(self).is_some()
    }
}

pub(super) fn queue_coalesce(
    control: &Control,
    device: &str,
    queues: u32,
) -> io::Result<Vec<QueueCoalesce>> {
    let queues = 0..queues.min(MAX_QUEUES);
    let words = read(control, device, queues.clone())?;
    let values = words[PER_QUEUE_HEADER..].chunks(WORDS).map(parse_legacy);
    Ok(queues.zip(values).map(|(queue, coalesce)| QueueCoalesce { queue, coalesce }).collect())
}

pub(super) fn set_queue_coalesce(
    control: &Control,
    device: &str,
    queue: u32,
    change: &Coalesce,
) -> io::Result<()> {
    if queue >= MAX_QUEUES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut words = read(control, device, queue..queue + 1)?;
    change_words(&mut words[PER_QUEUE_HEADER..], change)?;
    (words[1], words[PER_QUEUE_HEADER]) = (SET, SET);
    control.ethtool(device, &mut words)
}

fn read(control: &Control, device: &str, queues: Range<u32>) -> io::Result<Vec<u32>> {
    let mut words = vec![0; PER_QUEUE_HEADER + queues.len() * WORDS];
    (words[0], words[1]) = (PER_QUEUE, GET);
    for queue in queues {
        words[2 + queue as usize / 32] |= 1 << (queue % 32);
    }
    control.ethtool(device, &mut words)?;
    Ok(words)
}
