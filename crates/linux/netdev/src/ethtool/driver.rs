//! The driver: its name, its own counters, its flags. All by ioctl, which every kernel has.
//!
//! Layout: `struct ethtool_drvinfo` and `struct ethtool_stats` of Linux,
//! `include/uapi/linux/ethtool.h`.

use std::io;

use serde::Serialize;

use sys::ethtool::{
    Control, DRIVER, DRIVER_WORDS, GET_FLAGS, SET_FLAGS, STATISTICS, STATISTICS_HEADER,
    STATISTICS_SPARE,
};

/// Rules choose queues (`ETH_FLAG_NTUPLE`).
pub(super) const NTUPLE: u32 = 1 << 27;

/// Bytes of each of its texts.
const TEXT: usize = 32;

/// A driver, as `ethtool -i` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Driver {
    /// Its name, such as `igb`.
    pub name: String,
    /// Its version; today mostly that of the kernel.
    pub version: String,
    /// The version of the device's firmware; empty if it has none.
    pub firmware: String,
    /// Where the device is, such as `0000:00:03.0`; empty if nowhere.
    pub bus: String,
}

/// Reads the bytes of `struct ethtool_drvinfo`, command included. What is missing is empty.
pub fn parse_driver(bytes: &[u8]) -> Driver {
    let text = |number: usize| {
        let start = 4 + number * TEXT;
        let field = bytes.get(start..start + TEXT).unwrap_or_default();
        let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).trim().to_owned()
    };
    Driver { name: text(0), version: text(1), firmware: text(2), bus: text(3) }
}

pub(super) fn read(control: &Control, device: &str) -> io::Result<Driver> {
    let mut words = [0_u32; DRIVER_WORDS];
    words[0] = DRIVER;
    control.ethtool(device, &mut words)?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    Ok(parse_driver(&bytes))
}

/// The values of `count` counters; none if the driver has another number of them by now.
pub(super) fn statistics(control: &Control, device: &str, count: usize) -> io::Result<Vec<u64>> {
    let expected = u32::try_from(count).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut words = vec![0; STATISTICS_HEADER + 2 * count + STATISTICS_SPARE];
    (words[0], words[1]) = (STATISTICS, expected);
    control.ethtool(device, &mut words)?;
    if words[1] != expected {
        return Err(io::Error::from_raw_os_error(libc::EAGAIN));
    }
    let values = words[STATISTICS_HEADER..].chunks_exact(2).take(count);
    Ok(values.map(|pair| join(pair[0], pair[1])).collect())
}

/// Switches that are older than features (`ETH_FLAG_...`).
pub(super) fn flags(control: &Control, device: &str) -> io::Result<u32> {
    let mut words = [GET_FLAGS, 0];
    control.ethtool(device, &mut words)?;
    Ok(words[1])
}

/// Turns one of them on or off.
pub(super) fn set_flag(control: &Control, device: &str, flag: u32, on: bool) -> io::Result<()> {
    let flags = flags(control, device)?;
    let flags = if on { flags | flag } else { flags & !flag };
    control.ethtool(device, &mut [SET_FLAGS, flags])
}

/// A number of 64 bits from its two words as they lie in memory.
fn join(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_short_or_odd_bytes_are_empty_texts() {
        assert_eq!(parse_driver(&[]), Driver::default());
        let mut bytes = [0; 196];
        bytes[4..8].copy_from_slice(b"tun\xff");
        bytes[100..112].copy_from_slice(b"0000:00:03.0");
        let driver = parse_driver(&bytes);
        assert_eq!((&*driver.name, &*driver.bus), ("tun\u{fffd}", "0000:00:03.0"));
        assert_eq!(parse_driver(&bytes[..40]).bus, "");
    }
}
