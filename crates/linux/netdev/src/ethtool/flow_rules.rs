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

use std::io;
use std::mem::offset_of;

use super::flow_rule::{Flow, FlowRule, parse_flow_rule};
use sys::ethtool::{
    Control, DELETE_RULE, GET_RULE, INSERT_RULE, LOCATIONS, RECEIVE_QUEUES, RULE_COUNT, RULES,
    RULES_WORDS, RuleLayout, RulesLayout,
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

/// A request about rules, and its answer.
#[derive(Clone, Debug)]
pub(super) struct Request(Vec<u32>);

pub(super) fn request(command: u32) -> Request {
    let mut words = vec![0; RULES_WORDS];
    words[0] = command;
    Request(words)
}

impl Request {
    pub(super) fn as_mut(&mut self) -> &mut [u32] {
        &mut self.0
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

    fn rule(&self) -> Vec<u8> {
        self.bytes(offset_of!(RulesLayout, rule), size_of::<RuleLayout>())
    }

    fn set_rule(&mut self, bytes: &[u8]) {
        let first = offset_of!(RulesLayout, rule) / 4;
        for (word, bytes) in self.0[first..].iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
    }

    fn set_location(&mut self, location: u32) {
        let at = offset_of!(RulesLayout, rule) + offset_of!(RuleLayout, location);
        self.0[at / 4] = location;
    }

    fn count(&mut self) -> &mut u32 {
        &mut self.0[LOCATIONS - 1]
    }
}

pub(super) fn rules(control: &Control, device: &str) -> io::Result<FlowRules> {
    let mut words = request(RULE_COUNT);
    control.ethtool(device, words.as_mut())?;
    let chooses = words.data() & CHOOSES != 0;
    let count = *words.count();
    let mut words = request(RULES);
    words.0.resize(RULES_WORDS.max(LOCATIONS + count as usize), 0);
    *words.count() = count;
    control.ethtool(device, words.as_mut())?;
    let found = (*words.count()).min(count) as usize;
    let mut locations: Vec<u32> = words.0[LOCATIONS..].iter().take(found).copied().collect();
    locations.sort_unstable();
    let size = words.data() & !CHOOSES;
    Ok(FlowRules { size: u32::try_from(size).unwrap_or(0), chooses, locations })
}

pub(super) fn rule(
    control: &Control,
    device: &str,
    location: u32,
) -> io::Result<Option<PlacedRule>> {
    // Drivers answer in many ways where there is no rule.
    if !rules(control, device)?.locations.contains(&location) {
        return Ok(None);
    }
    let mut words = request(GET_RULE);
    words.set_location(location);
    control.ethtool(device, words.as_mut())?;
    let rule = parse_flow_rule(&words.rule());
    Ok(Some(rule.map_or(PlacedRule::Other, PlacedRule::Known)))
}

pub(super) fn insert(
    control: &Control,
    device: &str,
    location: Option<u32>,
    rule: &FlowRule,
) -> io::Result<()> {
    let mut words = request(INSERT_RULE);
    words.set_rule(&rule.encode());
    words.set_location(location.unwrap_or(ANYWHERE));
    control.ethtool(device, words.as_mut())
}

pub(super) fn delete(control: &Control, device: &str, location: u32) -> io::Result<()> {
    let mut words = request(DELETE_RULE);
    words.set_location(location);
    control.ethtool(device, words.as_mut())
}

pub(super) fn receive_queues(control: &Control, device: &str) -> io::Result<u32> {
    let mut words = request(RECEIVE_QUEUES);
    control.ethtool(device, words.as_mut())?;
    Ok(u32::try_from(words.data()).unwrap_or(u32::MAX))
}
