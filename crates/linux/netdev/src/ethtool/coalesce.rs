//! Coalescing: read, and changed, as a set of parameters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::parameter::Parameter;
use crate::genl::for_each;
use crate::tlv::{Malformed, Tlv, Tlvs, Writer};

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
    /// Microseconds.
    pub usec: Option<u32>,
    /// Packets.
    pub pkts: Option<u32>,
    /// Completions.
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

    /// What to change so that `self` becomes `wanted`, as far as `wanted` has it.
    pub fn difference(&self, wanted: &Self) -> Self {
        let differs = |of: &Option<_>, wanted: &Option<_>| (of != wanted).then(|| wanted.clone());
        let changed = wanted.iter().filter(|(name, value)| self.get(*name) != Some(*value));
        Self {
            parameters: changed.collect(),
            rx_profile: differs(&self.rx_profile, &wanted.rx_profile).flatten(),
            tx_profile: differs(&self.tx_profile, &wanted.tx_profile).flatten(),
        }
    }
}

/// Reads the attributes of `ETHTOOL_MSG_COALESCE_GET_REPLY`. Unknown ones are passed over.
pub fn parse_coalesce(attributes: &[u8]) -> Result<Coalesce, Malformed> {
    let mut coalesce = Coalesce::new();
    for_each(Tlvs::new(attributes), |attribute| {
        match attribute.kind {
            RX_PROFILE => coalesce.rx_profile = Some(profile(attribute)?),
            TX_PROFILE => coalesce.tx_profile = Some(profile(attribute)?),
            kind => {
                if let Some(parameter) = Parameter::of_attribute(kind) {
                    coalesce.set(parameter, attribute.word()?);
                }
            }
        }
        Ok(())
    })?;
    Ok(coalesce)
}

fn profile(attribute: &Tlv<'_>) -> Result<Vec<ProfileStep>, Malformed> {
    let mut steps = Vec::new();
    for_each(attribute.nested(), |step| {
        if step.kind != STEP {
            return Ok(());
        }
        let mut values = ProfileStep::default();
        for_each(step.nested(), |value| {
            match value.kind {
                STEP_USEC => values.usec = Some(value.word()?),
                STEP_PACKETS => values.pkts = Some(value.word()?),
                STEP_COMPLETIONS => values.comps = Some(value.word()?),
                _ => {}
            }
            Ok(())
        })?;
        steps.push(values);
        Ok(())
    })?;
    Ok(steps)
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
