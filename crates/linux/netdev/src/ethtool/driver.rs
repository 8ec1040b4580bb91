//! The driver: its name, its own counters, its flags. All by ioctl, which every kernel has.
//!
//! Layout: `struct ethtool_drvinfo` and `struct ethtool_stats` of Linux,
//! `include/uapi/linux/ethtool.h`.

use std::collections::BTreeMap;
use std::io;

use device::ethtool::{Driver, SET, SETS, Strings, parse_driver};

use super::{Ethtool, command, refused};
use crate::error::DeviceError;
use sys::ethtool::{
    DRIVER, DRIVER_WORDS, GET_FLAGS, SET_FLAGS, STATISTICS, STATISTICS_HEADER, STATISTICS_SPARE,
};

/// Rules choose queues (`ETH_FLAG_NTUPLE`).
const NTUPLE: u32 = 1 << 27;

impl Ethtool {
    /// The driver, as `ethtool -i` has it.
    pub fn driver(&self, device: &str) -> Result<Driver, DeviceError> {
        let mut words = [0_u32; DRIVER_WORDS];
        words[0] = DRIVER;
        self.ioctl("read the driver of", device, &mut words)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(parse_driver(&bytes))
    }

    /// The driver's own counters by name, as `ethtool -S` has them.
    pub fn statistics(&self, device: &str) -> Result<BTreeMap<String, u64>, DeviceError> {
        let action = "read the driver's counters of";
        let Strings(names) = self.read_with(action, device, command::STRINGS, |request| {
            request.nest(SETS, |sets| {
                // `ETHTOOL_A_STRINGSET_ID`, `ETH_SS_STATS`
                sets.nest(SET, |set| {
                    set.put_u32(1, 1);
                });
            });
        })?;
        let refuse = |cause| refused(action, device, cause);
        let count = u32::try_from(names.len());
        let count = count.map_err(|_| refuse(io::ErrorKind::InvalidInput.into()))?;
        let mut words = vec![0; STATISTICS_HEADER + 2 * names.len() + STATISTICS_SPARE];
        (words[0], words[1]) = (STATISTICS, count);
        self.ioctl(action, device, &mut words)?;
        // The driver has another number of them by now.
        if words[1] != count {
            return Err(refuse(io::Error::from_raw_os_error(libc::EAGAIN)));
        }
        let values = words[STATISTICS_HEADER..].chunks_exact(2);
        Ok(names.into_iter().zip(values.map(|pair| join(pair[0], pair[1]))).collect())
    }

    /// Whether rules count: `ntuple-filters` of `ethtool -k`.
    pub fn has_ntuple(&self, device: &str) -> Result<bool, DeviceError> {
        Ok(self.flags("read the flags of", device)? & NTUPLE != 0)
    }

    /// Makes rules count or not (`ethtool -K DEV ntuple on`). Off removes them.
    pub fn set_ntuple(&self, device: &str, on: bool) -> Result<(), DeviceError> {
        let action = "switch the rules of";
        let flags = self.flags(action, device)?;
        let flags = if on { flags | NTUPLE } else { flags & !NTUPLE };
        self.ioctl(action, device, &mut [SET_FLAGS, flags])
    }

    fn flags(&self, action: &'static str, device: &str) -> Result<u32, DeviceError> {
        let mut words = [GET_FLAGS, 0];
        self.ioctl(action, device, &mut words)?;
        Ok(words[1])
    }
}

fn join(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}
