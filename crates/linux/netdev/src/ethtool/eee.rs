//! Energy-Efficient Ethernet: a link that sleeps while it is idle.

use serde::Serialize;

use crate::genl::for_each;
use crate::tlv::{Malformed, Tlvs};

/// What `ethtool --show-eee` has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Eee {
    /// Whether this link does it: both ends have offered it for the link's speed.
    pub active: bool,
    /// Whether this end offers it.
    pub enabled: bool,
    /// Whether this end lets its transmitter sleep. That of the far end is not known here.
    pub tx_lpi_enabled: bool,
    /// After how many idle microseconds it does.
    pub tx_lpi_timer_us: u32,
}

impl Eee {
    /// For how long a transmitter that has slept waits before it sends, in microseconds, at a
    /// speed in megabits per second; `None` where it depends on more than the speed.
    ///
    /// `Tw_sys_tx` of IEEE 802.3, table 78-4, for 100BASE-TX and 1000BASE-T. Linux has the same
    /// numbers in `mvneta_mac_enable_tx_lpi`. The two ends may agree on more by LLDP.
    pub fn wake_us(speed_mbps: u32) -> Option<f64> {
        match speed_mbps {
            100 => Some(30.0),
            1_000 => Some(16.5),
            _ => None,
        }
    }
}

/// Reads the attributes of `ETHTOOL_MSG_EEE_GET_REPLY`.
pub fn parse_eee(attributes: &[u8]) -> Result<Eee, Malformed> {
    let mut eee = Eee::default();
    for_each(Tlvs::new(attributes), |attribute| {
        // `ETHTOOL_A_EEE_...`
        match attribute.kind {
            4 => eee.active = attribute.word()? != 0,
            5 => eee.enabled = attribute.word()? != 0,
            6 => eee.tx_lpi_enabled = attribute.word()? != 0,
            7 => eee.tx_lpi_timer_us = attribute.word()?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(eee)
}
