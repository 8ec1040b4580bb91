//! Channels: how many queues there are, and could be.

use serde::Serialize;

use crate::genl::for_each;
use crate::tlv::{Malformed, Tlvs, Writer};

/// Numbers of queues with an interrupt of their own, as `ethtool -l` has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Channels {
    /// That only receive.
    pub rx: Option<u32>,
    /// At most.
    pub rx_max: Option<u32>,
    /// That only send.
    pub tx: Option<u32>,
    /// At most.
    pub tx_max: Option<u32>,
    /// For something else, such as the link's state.
    pub other: Option<u32>,
    /// That do both.
    pub combined: Option<u32>,
    /// At most.
    pub combined_max: Option<u32>,
}

impl Channels {
    /// How many receive.
    pub fn receiving(&self) -> u32 {
        self.rx.unwrap_or(0).saturating_add(self.combined.unwrap_or(0))
    }
}

/// `ETHTOOL_A_CHANNELS_COMBINED_COUNT`.
const COMBINED: u16 = 9;

/// Adds what `ETHTOOL_MSG_CHANNELS_SET` changes: how many queues do both.
pub fn encode_combined(count: u32, request: &mut Writer) {
    request.put_u32(COMBINED, count);
}

/// Reads the attributes of `ETHTOOL_MSG_CHANNELS_GET_REPLY`.
pub fn parse_channels(attributes: &[u8]) -> Result<Channels, Malformed> {
    let mut channels = Channels::default();
    for_each(Tlvs::new(attributes), |attribute| {
        // `ETHTOOL_A_CHANNELS_...`
        let field = match attribute.kind {
            2 => &mut channels.rx_max,
            3 => &mut channels.tx_max,
            5 => &mut channels.combined_max,
            6 => &mut channels.rx,
            7 => &mut channels.tx,
            8 => &mut channels.other,
            COMBINED => &mut channels.combined,
            _ => return Ok(()),
        };
        *field = Some(attribute.word()?);
        Ok(())
    })?;
    Ok(channels)
}
