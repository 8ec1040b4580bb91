//! Rules that choose the queue of a packet before its hash does (`ethtool -n`, `-N`): the ntuple
//! filters, flow directors and classifiers of NICs.
//!
//! Layout: `struct ethtool_rxnfc` and `struct ethtool_rx_flow_spec` of Linux,
//! `include/uapi/linux/ethtool.h`: a kind of packets, values of their headers, and masks whose bits
//! say which of them count. Each rule has a place of its own, its location; drivers look at lower
//! ones first, or at all at once.
//!
//! A rule as text has a kind, what has to fit, and a queue:
//!
//! ```text
//! tcp4,dst-port:11211,queue:1
//! ether,ethertype:0x86df,queue:3
//! ip6,src-ip:fe80::/10,tos:184/0xfc,drop
//! ```

use std::mem::offset_of;

use super::Ethtool;
use super::flow_rule::{Flow, FlowRule, parse_flow_rule};
use crate::error::DeviceError;
use sys::ethtool::{
    DELETE_RULE, GET_RULE, INSERT_RULE, LOCATIONS, RECEIVE_QUEUES, RULE_COUNT, RULES, RULES_WORDS,
    RuleLayout, RulesLayout,
};

/// In the answer to [`RULE_COUNT`]: the driver can choose locations (`RX_CLS_LOC_SPECIAL`).
const CHOOSES: u64 = 0x8000_0000;

/// The location that leaves the choice to the driver (`RX_CLS_LOC_ANY`).
const ANYWHERE: u32 = u32::MAX;

/// The rules of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowRules {
    /// How many locations there are, from 0 on; 0 if the driver does not say.
    pub size: u32,
    /// Whether the driver can choose locations by itself; a few do nothing else.
    pub chooses: bool,
    /// The locations that are taken, in order.
    pub locations: Vec<u32>,
}

/// A rule of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacedRule {
    /// One that can be said as text.
    Known(FlowRule),
    /// Another one, such as by a MAC address, or to a virtual function.
    Other,
}

impl PlacedRule {
    /// The rule, if it can be said.
    pub fn known(self) -> Option<FlowRule> {
        match self {
            Self::Known(rule) => Some(rule),
            Self::Other => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Request(pub(super) Vec<u32>);

impl Request {
    pub(super) fn new(command: u32) -> Self {
        let mut words = vec![0; RULES_WORDS];
        words[0] = command;
        Self(words)
    }

    fn about(command: u32, location: u32) -> Self {
        let mut request = Self::new(command);
        let at = offset_of!(RulesLayout, rule) + offset_of!(RuleLayout, location);
        request.0[at / 4] = location;
        request
    }

    pub(super) fn flow_type(&mut self, flow: Flow) {
        self.0[offset_of!(RulesLayout, flow_type) / 4] = flow.number();
    }

    pub(super) fn data(&self) -> u64 {
        let bytes: Vec<u8> = self.bytes(offset_of!(RulesLayout, data), 8);
        bytes.try_into().map_or(0, u64::from_ne_bytes)
    }

    fn bytes(&self, start: usize, length: usize) -> Vec<u8> {
        let bytes = self.0.iter().flat_map(|word| word.to_ne_bytes());
        bytes.skip(start).take(length).collect()
    }

    fn count(&mut self) -> &mut u32 {
        &mut self.0[LOCATIONS - 1]
    }
}

impl Ethtool {
    /// Where the device has rules that choose queues (`ethtool -n`).
    pub fn flow_rules(&self, device: &str) -> Result<FlowRules, DeviceError> {
        self.locations("read the rules of", device)
    }

    fn locations(&self, action: &'static str, device: &str) -> Result<FlowRules, DeviceError> {
        let mut words = Request::new(RULE_COUNT);
        self.ioctl(action, device, &mut words.0)?;
        let chooses = words.data() & CHOOSES != 0;
        let count = *words.count();
        let mut words = Request::new(RULES);
        words.0.resize(RULES_WORDS.max(LOCATIONS + count as usize), 0);
        *words.count() = count;
        self.ioctl(action, device, &mut words.0)?;
        let found = (*words.count()).min(count) as usize;
        let mut locations: Vec<u32> = words.0[LOCATIONS..].iter().take(found).copied().collect();
        locations.sort_unstable();
        let size = words.data() & !CHOOSES;
        Ok(FlowRules { size: u32::try_from(size).unwrap_or(0), chooses, locations })
    }

    /// The rule at a location; `None`: there is none.
    pub fn flow_rule(&self, device: &str, at: u32) -> Result<Option<PlacedRule>, DeviceError> {
        let action = "read a rule of";
        // Drivers answer in many ways where there is no rule.
        if !self.locations(action, device)?.locations.contains(&at) {
            return Ok(None);
        }
        let mut words = Request::about(GET_RULE, at);
        self.ioctl(action, device, &mut words.0)?;
        let bytes = words.bytes(offset_of!(RulesLayout, rule), size_of::<RuleLayout>());
        Ok(Some(parse_flow_rule(&bytes).map_or(PlacedRule::Other, PlacedRule::Known)))
    }

    /// Adds a rule; without a location, where the driver likes, if it can choose. Drivers replace
    /// one that is at the location without a word.
    pub fn insert_flow_rule(
        &self,
        device: &str,
        location: Option<u32>,
        rule: &FlowRule,
    ) -> Result<(), DeviceError> {
        let location = location.unwrap_or(ANYWHERE);
        let mut words = Request::about(INSERT_RULE, location);
        let first = offset_of!(RulesLayout, rule) / 4;
        // The location is behind what a rule has.
        let to = words.0[first..].iter_mut().take(offset_of!(RuleLayout, location) / 4);
        for (word, bytes) in to.zip(rule.encode().chunks_exact(4)) {
            *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        self.ioctl("add a rule to", device, &mut words.0)
    }

    /// Removes the rule at a location.
    pub fn delete_flow_rule(&self, device: &str, location: u32) -> Result<(), DeviceError> {
        self.ioctl("remove a rule of", device, &mut Request::about(DELETE_RULE, location).0)
    }

    /// How many queues receive: for drivers that do not say how many channels there are.
    pub fn receive_queues(&self, device: &str) -> Result<u32, DeviceError> {
        let mut words = Request::new(RECEIVE_QUEUES);
        self.ioctl("read the receive queues of", device, &mut words.0)?;
        Ok(u32::try_from(words.data()).unwrap_or(u32::MAX))
    }
}
