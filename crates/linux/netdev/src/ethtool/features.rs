//! Features: what device and stack do for many packets at once, and else.

use std::collections::BTreeSet;

use serde::Serialize;

use super::bitset::names_of_set_bits;
use crate::genl::for_each;
use crate::tlv::{Malformed, Tlvs};

/// What can be changed, and what is on (`ETHTOOL_A_FEATURES_...`).
const HARDWARE: u16 = 2;
const ACTIVE: u16 = 4;

/// Features by the names of `ethtool -k`, such as `rx-gro`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Features {
    /// Those that are on.
    pub active: BTreeSet<String>,
    /// Those that the device could have on.
    pub changeable: BTreeSet<String>,
}

impl Features {
    /// Whether a feature is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.active.contains(name)
    }

    /// Whether a feature is on, or could be.
    pub fn is_offered(&self, name: &str) -> bool {
        self.is_on(name) || self.changeable.contains(name)
    }
}

/// Reads the attributes of `ETHTOOL_MSG_FEATURES_GET_REPLY`.
pub fn parse_features(attributes: &[u8]) -> Result<Features, Malformed> {
    let mut features = Features::default();
    for_each(Tlvs::new(attributes), |attribute| {
        match attribute.kind {
            HARDWARE => features.changeable = names_of_set_bits(attribute)?,
            ACTIVE => features.active = names_of_set_bits(attribute)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(features)
}
