//! Coalescing: read, and changed, as a set of parameters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::parameter::Parameter;
use crate::tlv::{Malformed, Reply, Tlv, Writer};

/// The steps that adaptive moderation chooses from when it receives (`..._RX_PROFILE`).
const RX_PROFILE: u16 = 29;
/// And when it sends (`..._TX_PROFILE`).
const TX_PROFILE: u16 = 30;
/// One step (`ETHTOOL_A_PROFILE_IRQ_MODERATION`).
const STEP: u16 = 1;
/// Its time, its packets, its completions (`ETHTOOL_A_IRQ_MODERATION_...`).
const STEP_USEC: u16 = 1;
const STEP_PACKETS: u16 = 2;
const STEP_COMPLETIONS: u16 = 3;

/// A set of parameters with values: all that a driver supports, or those to change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coalesce {
    parameters: BTreeMap<Parameter, u32>,
    /// What adaptive moderation of reception chooses from (DIM), from shortest to longest.
    #[serde(default)]
    pub rx_profile: Option<Vec<ProfileStep>>,
    /// What adaptive moderation of sending chooses from.
    #[serde(default)]
    pub tx_profile: Option<Vec<ProfileStep>>,
}

/// A step of a DIM profile; a driver supports some of the three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileStep {
    /// `rx-usecs` or `tx-usecs` of the step.
    pub usec: Option<u32>,
    /// Packets that end the wait.
    pub pkts: Option<u32>,
    /// Completions that end the wait.
    pub comps: Option<u32>,
}

impl Coalesce {
    /// None at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of a parameter; `None`: the driver does not support it. Switches are 0 or 1.
    pub fn get(&self, parameter: Parameter) -> Option<u32> {
        self.parameters.get(&parameter).copied()
    }

    /// Whether a switch is on; `None`: the driver does not support it.
    pub fn is_on(&self, parameter: Parameter) -> Option<bool> {
        self.get(parameter).map(|value| value != 0)
    }

    /// Takes a value.
    pub fn set(&mut self, parameter: Parameter, value: u32) {
        self.parameters.insert(parameter, value);
    }

    /// The same with a value.
    pub fn with(mut self, parameter: Parameter, value: u32) -> Self {
        self.set(parameter, value);
        self
    }

    /// All parameters and their values.
    pub fn iter(&self) -> impl Iterator<Item = (Parameter, u32)> {
        self.parameters.iter().map(|(parameter, value)| (*parameter, *value))
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty() && self.rx_profile.is_none() && self.tx_profile.is_none()
    }
}

impl Reply for Coalesce {
    fn take(&mut self, attribute: &Tlv<'_>) -> Result<(), Malformed> {
        match attribute.kind {
            RX_PROFILE => self.rx_profile = Some(profile(attribute)?),
            TX_PROFILE => self.tx_profile = Some(profile(attribute)?),
            kind => {
                if let Some(parameter) = Parameter::of_attribute(kind) {
                    self.set(parameter, attribute.word()?);
                }
            }
        }
        Ok(())
    }
}

fn profile(attribute: &Tlv<'_>) -> Result<Vec<ProfileStep>, Malformed> {
    attribute.nested().of_kind(STEP)?.iter().map(|step| step.nested().read()).collect()
}

impl Reply for ProfileStep {
    fn take(&mut self, attribute: &Tlv<'_>) -> Result<(), Malformed> {
        let field = match attribute.kind {
            STEP_USEC => &mut self.usec,
            STEP_PACKETS => &mut self.pkts,
            STEP_COMPLETIONS => &mut self.comps,
            _ => return Ok(()),
        };
        *field = Some(attribute.word()?);
        Ok(())
    }
}

/// Appends the attributes of `ETHTOOL_MSG_COALESCE_SET`, or of an answer: they are the same.
pub fn encode_coalesce(coalesce: &Coalesce, request: &mut Writer) {
    for (parameter, value) in coalesce.iter() {
        let kind = parameter as u16;
        if parameter.is_switch() {
            request.put_u8(kind, u8::from(value != 0));
        } else {
            request.put_u32(kind, value);
        }
    }
    for (kind, steps) in [(RX_PROFILE, &coalesce.rx_profile), (TX_PROFILE, &coalesce.tx_profile)] {
        let Some(steps) = steps else { continue };
        request.nest(kind, |profile| steps.iter().for_each(|step| encode_step(step, profile)));
    }
}

fn encode_step(step: &ProfileStep, profile: &mut Writer) {
    let values =
        [(STEP_USEC, step.usec), (STEP_PACKETS, step.pkts), (STEP_COMPLETIONS, step.comps)];
    profile.nest(STEP, |writer| {
        for (kind, value) in values {
            if let Some(value) = value {
                writer.put_u32(kind, value);
            }
        }
    });
}
