//! The link: how fast, and whether it is there.

use serde::Serialize;

use crate::genl::for_each;
use crate::tlv::{Malformed, Tlvs};

/// The link, as `ethtool DEV` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Megabits per second; `None` if the driver does not know.
    pub speed_mbps: Option<u32>,
    /// Whether both sides may send at once; `None` if the driver does not know.
    pub is_full_duplex: Option<bool>,
    /// Whether there is a link; `None` if the driver does not say.
    pub is_up: Option<bool>,
}

/// Reads the attributes of `ETHTOOL_MSG_LINKMODES_GET_REPLY`.
pub fn parse_link_modes(attributes: &[u8]) -> Result<Link, Malformed> {
    let mut link = Link::default();
    for_each(Tlvs::new(attributes), |attribute| {
        // `ETHTOOL_A_LINKMODES_SPEED` and `_DUPLEX`; `SPEED_UNKNOWN` is -1.
        match attribute.kind {
            5 => link.speed_mbps = Some(attribute.word()?).filter(|speed| *speed != u32::MAX),
            6 => {
                link.is_full_duplex = match attribute.word()? {
                    0 => Some(false),
                    1 => Some(true),
                    _ => None,
                };
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(link)
}

/// Reads whether there is a link from the attributes of `ETHTOOL_MSG_LINKSTATE_GET_REPLY`.
pub fn parse_link_state(attributes: &[u8]) -> Result<Option<bool>, Malformed> {
    let mut is_up = None;
    for_each(Tlvs::new(attributes), |attribute| {
        // `ETHTOOL_A_LINKSTATE_LINK`
        if attribute.kind == 2 {
            is_up = Some(attribute.word()? != 0);
        }
        Ok(())
    })?;
    Ok(is_up)
}
