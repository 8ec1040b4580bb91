//! The driver: its name, version and place.
//!
//! Layout: `struct ethtool_drvinfo` of Linux, `include/uapi/linux/ethtool.h`.

use serde::Serialize;

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
