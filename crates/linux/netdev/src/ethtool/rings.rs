//! Rings: how many descriptors there are, and could be.

use serde::Serialize;

use crate::genl::for_each;
use crate::tlv::{Malformed, Tlvs};

/// The sizes of rings, as `ethtool -g` has them. Descriptors, unless they say otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rings {
    /// Of each receive ring.
    pub rx: Option<u32>,
    /// At most.
    pub rx_max: Option<u32>,
    /// Of each ring for small packets.
    pub rx_mini: Option<u32>,
    /// Of each ring for large packets.
    pub rx_jumbo: Option<u32>,
    /// Of each transmit ring.
    pub tx: Option<u32>,
    /// At most.
    pub tx_max: Option<u32>,
    /// Bytes of each receive buffer.
    pub rx_buf_len: Option<u32>,
    /// Bytes of each completion entry.
    pub cqe_size: Option<u32>,
}

/// Reads the attributes of `ETHTOOL_MSG_RINGS_GET_REPLY`.
pub fn parse_rings(attributes: &[u8]) -> Result<Rings, Malformed> {
    let mut rings = Rings::default();
    for_each(Tlvs::new(attributes), |attribute| {
        // `ETHTOOL_A_RINGS_...`
        let field = match attribute.kind {
            2 => &mut rings.rx_max,
            5 => &mut rings.tx_max,
            6 => &mut rings.rx,
            7 => &mut rings.rx_mini,
            8 => &mut rings.rx_jumbo,
            9 => &mut rings.tx,
            10 => &mut rings.rx_buf_len,
            12 => &mut rings.cqe_size,
            _ => return Ok(()),
        };
        *field = Some(attribute.word()?);
        Ok(())
    })?;
    Ok(rings)
}
