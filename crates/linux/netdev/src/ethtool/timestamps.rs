//! Timestamps: which ones device and stack make.

use std::collections::BTreeSet;

use serde::Serialize;

use super::bitset::names_of_set_bits;
use crate::genl::for_each;
use crate::tlv::{Malformed, Tlvs};

/// What `ethtool -T` has, by its names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timestamps {
    /// Such as `hardware-receive` and `software-transmit`.
    pub capabilities: BTreeSet<String>,
    /// When the device stamps what is sent, such as `on`.
    pub tx_types: BTreeSet<String>,
    /// Which packets it stamps as they come, such as `all`.
    pub rx_filters: BTreeSet<String>,
    /// The number of the device's clock, as in `/dev/ptp0`; `None` if it has none.
    pub phc_index: Option<u32>,
}

impl Timestamps {
    /// Whether the device itself stamps packets as they come.
    pub fn has_hardware_receive(&self) -> bool {
        self.capabilities.contains("hardware-receive")
    }

    /// Whether the device itself stamps packets as they go.
    pub fn has_hardware_transmit(&self) -> bool {
        self.capabilities.contains("hardware-transmit")
    }
}

/// Reads the attributes of `ETHTOOL_MSG_TSINFO_GET_REPLY`.
pub fn parse_timestamps(attributes: &[u8]) -> Result<Timestamps, Malformed> {
    let mut timestamps = Timestamps::default();
    for_each(Tlvs::new(attributes), |attribute| {
        // `ETHTOOL_A_TSINFO_...`
        match attribute.kind {
            2 => timestamps.capabilities = names_of_set_bits(attribute)?,
            3 => timestamps.tx_types = names_of_set_bits(attribute)?,
            4 => timestamps.rx_filters = names_of_set_bits(attribute)?,
            5 => timestamps.phc_index = Some(attribute.word()?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(timestamps)
}
