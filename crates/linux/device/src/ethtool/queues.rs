//! Coalescing as the ioctl has it: of single queues, and of devices on old kernels.
//!
//! Layout: `struct ethtool_coalesce` of Linux, `include/uapi/linux/ethtool.h`. Its words are in the
//! order of the netlink attributes, but it does not say which of them a driver supports: a 0 may
//! mean either.

use serde::Serialize;

use super::coalesce::Coalesce;
use super::parameter::Parameter;

/// Words of `struct ethtool_coalesce`: the command, then its values.
const WORDS: usize = 23;

/// The coalescing of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueueCoalesce {
    /// The number of the queue.
    pub queue: u32,
    /// Its settings: values that are not 0, and the waiting times in any case.
    pub coalesce: Coalesce,
}

/// The queues whose settings are not those of the whole device, as far as the ioctl shows.
pub fn differing_queues(queues: Vec<QueueCoalesce>, whole: &Coalesce) -> Vec<QueueCoalesce> {
    let differs = |queue: &QueueCoalesce| {
        queue.coalesce.iter().any(|(name, value)| whole.get(name).is_some_and(|it| it != value))
    };
    queues.into_iter().filter(differs).collect()
}

impl Parameter {
    /// Whether a queue can have one of its own: the ioctl is older than some parameters.
    pub fn is_of_queues(self) -> bool {
        word_of(self).is_some()
    }
}

/// The values of `struct ethtool_coalesce`, command included.
///
/// A 0 is taken for "not supported", except for the two waiting times, which every driver has.
pub fn parse_legacy(words: &[u32]) -> Coalesce {
    let mut coalesce = Coalesce::new();
    for parameter in Parameter::all() {
        let Some(&value) = word_of(parameter).and_then(|word| words.get(word)) else { continue };
        if value != 0 || matches!(parameter, Parameter::RxUsecs | Parameter::TxUsecs) {
            coalesce.set(parameter, value);
        }
    }
    coalesce
}

/// Where the value of a parameter is among the words; `None`: the ioctl is older than it.
pub fn word_of(parameter: Parameter) -> Option<usize> {
    let word = usize::from(parameter as u16).checked_sub(1)?;
    (word < WORDS).then_some(word)
}
