//! The one ioctl for all that `ethtool` did before netlink.
//!
//! Commands and their structures: Linux, `include/uapi/linux/ethtool.h`. rustix has no call for it.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

/// Reads the driver (`ETHTOOL_GDRVINFO`).
pub const DRIVER: u32 = 0x03;
/// Reads coalescing (`ETHTOOL_GCOALESCE`).
pub const GET_COALESCE: u32 = 0x0e;
/// Changes coalescing (`ETHTOOL_SCOALESCE`).
pub const SET_COALESCE: u32 = 0x0f;
/// Reads the driver's counters (`ETHTOOL_GSTATS`).
pub const STATISTICS: u32 = 0x1d;
/// Reads whether TCP is divided into segments by the device, or right before it (`ETHTOOL_GTSO`).
pub const TCP_SEGMENTATION: u32 = 0x1e;
/// Reads the switches that came before features, or changes them (`ETHTOOL_GFLAGS`, `_SFLAGS`).
pub const GET_FLAGS: u32 = 0x25;
/// Changes the switches of [`GET_FLAGS`].
pub const SET_FLAGS: u32 = 0x26;
/// Reads which headers the hash of a flow type is of (`ETHTOOL_GRXFH`).
pub const HASH_FIELDS: u32 = 0x29;
/// Reads how many receive queues there are (`ETHTOOL_GRXRINGS`).
pub const RECEIVE_QUEUES: u32 = 0x2d;
/// Reads how many rules there are (`ETHTOOL_GRXCLSRLCNT`).
pub const RULE_COUNT: u32 = 0x2e;
/// Reads a rule (`ETHTOOL_GRXCLSRULE`).
pub const GET_RULE: u32 = 0x2f;
/// Reads where rules are (`ETHTOOL_GRXCLSRLALL`).
pub const RULES: u32 = 0x30;
/// Removes a rule (`ETHTOOL_SRXCLSRLDEL`).
pub const DELETE_RULE: u32 = 0x31;
/// Adds a rule (`ETHTOOL_SRXCLSRLINS`).
pub const INSERT_RULE: u32 = 0x32;
/// Reads receive-side scaling, or changes it (`ETHTOOL_GRSSH`, `ETHTOOL_SRSSH`).
pub const GET_SCALING: u32 = 0x46;
/// Changes what [`GET_SCALING`] reads.
pub const SET_SCALING: u32 = 0x47;
/// Reads or changes coalescing of some queues (`ETHTOOL_PERQUEUE`).
pub const PER_QUEUE: u32 = 0x4b;

/// Words of `struct ethtool_drvinfo`.
pub const DRIVER_WORDS: usize = 49;
/// Words of `struct ethtool_coalesce`: the command, then its values.
pub const COALESCE_WORDS: usize = 23;
/// Words of `struct ethtool_value`.
pub const VALUE_WORDS: usize = 2;
/// Words before the counters: the command, and how many there are.
pub const STATISTICS_HEADER: usize = 2;
/// Words before the values of queues: two commands, and a bit for each queue (`MAX_NUM_QUEUE`).
pub const PER_QUEUE_HEADER: usize = 2 + 4_096 / 32;

/// The word at which the places of rules begin.
pub const LOCATIONS: usize = offset_of!(RulesLayout, locations) / 4;
/// Words before the indirection table in `struct ethtool_rxfh`; behind it is the key.
pub const SCALING_HEADER: usize = 6;

/// A rule: `struct ethtool_rx_flow_spec`.
#[repr(C)]
pub struct RuleLayout {
    /// The kind of packets.
    pub flow_type: u32,
    /// What headers have.
    pub values: [u8; 52],
    /// What tags have.
    pub extra_values: [u8; 20],
    /// Which bits of the headers count.
    pub masks: [u8; 52],
    /// Which bits of the tags count.
    pub extra_masks: [u8; 20],
    /// What becomes of the packets.
    pub ring_cookie: u64,
    /// Where the rule is.
    pub location: u32,
}

/// What all requests about rules take: `struct ethtool_rxnfc`. It is here for the places of its
/// fields, which depend on the processor.
#[repr(C)]
pub struct RulesLayout {
    /// One of the commands above.
    pub command: u32,
    /// The kind of packets.
    pub flow_type: u32,
    /// What the command says.
    pub data: u64,
    /// The rule that the command is about.
    pub rule: RuleLayout,
    /// How many rules there are.
    pub rule_count: u32,
    /// Where they are; more may follow.
    pub locations: [u32; 0],
}

/// Words of `struct ethtool_rxnfc`.
pub const RULES_WORDS: usize = size_of::<RulesLayout>() / 4;

/// Room for counters beyond those that were asked for. The kernel writes as many as the driver has
/// at that moment; this is for one whose queues become many more meanwhile.
pub const STATISTICS_SPARE: usize = 32_768;

/// Refuses what can be no device's name: the kernel would cut it off and find another one.
///
/// # Errors
/// `ENODEV`, as for a device that is not there.
pub fn check_name(device: &str) -> io::Result<()> {
    let fits = (1..libc::IFNAMSIZ).contains(&device.len()) && !device.bytes().any(|byte| byte == 0);
    if fits { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ENODEV)) }
}

/// How many words a command reads and writes; `None` for one that is not known here.
fn needed(words: &[u32]) -> Option<usize> {
    let (command, rest) = words.split_first()?;
    match *command {
        DRIVER => Some(DRIVER_WORDS),
        GET_COALESCE | SET_COALESCE => Some(COALESCE_WORDS),
        TCP_SEGMENTATION | GET_FLAGS | SET_FLAGS => Some(VALUE_WORDS),
        HASH_FIELDS | RECEIVE_QUEUES | RULE_COUNT | GET_RULE | DELETE_RULE | INSERT_RULE => {
            Some(RULES_WORDS)
        }
        RULES => {
            let count = *words.get(offset_of!(RulesLayout, rule_count) / 4)?;
            let end = usize::try_from(count).ok()?.checked_add(LOCATIONS)?;
            Some(end.max(RULES_WORDS))
        }
        GET_SCALING | SET_SCALING => {
            let length = |at: usize| usize::try_from(*words.get(at)?).ok();
            let key = length(3)?.div_ceil(4);
            Some(SCALING_HEADER + length(2)?.checked_add(key)?)
        }
        STATISTICS => {
            let count = usize::try_from(*rest.first()?).ok()?;
            Some(STATISTICS_HEADER + count.checked_mul(2)?.checked_add(STATISTICS_SPARE)?)
        }
        PER_QUEUE => {
            let queues = words.get(2..PER_QUEUE_HEADER)?.iter().map(|word| word.count_ones());
            Some(PER_QUEUE_HEADER + queues.sum::<u32>() as usize * COALESCE_WORDS)
        }
        _ => None,
    }
}

/// Asks about devices in the network of the thread that opened it.
#[derive(Debug)]
pub struct Control(OwnedFd);

impl Control {
    /// Opens a socket in the network of this thread.
    pub fn open() -> io::Result<Self> {
        Ok(Self(socket(AddressFamily::INET, SocketType::DGRAM, None)?))
    }

    /// The number of a device.
    pub fn index(&self, device: &str) -> io::Result<u32> {
        check_name(device)?;
        Ok(name_to_index(&self.0, device)?)
    }

    /// Asks the driver of a device. `words` hold a command and what belongs to it, and then its
    /// answer.
    ///
    /// # Errors
    /// If the words are too few for their command, or the kernel or the driver refuses.
    pub fn ethtool(&self, device: &str, words: &mut [u32]) -> io::Result<()> {
        check_name(device)?;
        if needed(words).is_none_or(|needed| words.len() < needed) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        ask(&self.0, device, words)
    }
}

fn ask(socket: &OwnedFd, device: &str, words: &mut [u32]) -> io::Result<()> {
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: words.as_mut_ptr().cast() },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the request points to as many words as the command reads and writes, which the caller
    // has looked at, and both outlive the call.
    let outcome =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_words_are_refused_before_the_kernel_sees_them() {
        let mut many_queues = vec![u32::MAX; PER_QUEUE_HEADER + COALESCE_WORDS];
        many_queues[0] = PER_QUEUE;
        let mut rules = [0; RULES_WORDS];
        (rules[0], rules[LOCATIONS - 1]) = (RULES, 8);
        let short: [&[u32]; 9] = [
            &rules,
            &[GET_RULE; RULES_WORDS - 1],
            &[GET_SCALING, 0, 8, 40, 0, 0, 0, 0],
            &[],
            &[GET_COALESCE; COALESCE_WORDS - 1],
            &[DRIVER; DRIVER_WORDS - 1],
            &[STATISTICS, u32::MAX, 0, 0],
            &many_queues,
            &[0x4711; 1_000],
        ];
        let control = Control::open().unwrap();
        for words in short {
            let refused = control.ethtool("lo", &mut words.to_vec()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn rules_are_where_the_kernel_has_them() {
        assert_eq!(offset_of!(RulesLayout, rule), 16);
        assert_eq!(offset_of!(RuleLayout, masks), 76);
        assert_eq!(LOCATIONS, offset_of!(RulesLayout, rule_count) / 4 + 1);
        if cfg!(target_arch = "x86_64") {
            let places = [offset_of!(RuleLayout, ring_cookie), LOCATIONS * 4, RULES_WORDS * 4];
            assert_eq!(places, [152, 188, 192]);
        }
    }

    #[test]
    fn names_that_no_device_has_are_no_device() {
        for name in ["", "a-name-of-16-let", "a\0b"] {
            assert_eq!(check_name(name).unwrap_err().raw_os_error(), Some(libc::ENODEV));
        }
    }
}
