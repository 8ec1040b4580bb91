//! What a device has of the parts of a lane.

use anyhow::{Context, Result};
use netdev::DeviceError;
use netdev::ethtool::{Ethtool, Flow, FlowRules, HashFields, PlacedRule, Rss};

use crate::device::TunedDevice;
use crate::lone::may_wait;
use crate::setting::steering::Placed;
use crate::setting::{Setting, State};

/// How many rules are looked at; a device with more is configured by other means.
const MAX_READ: usize = 512;

/// What a device has.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    /// The name of the device.
    pub device: String,
    /// What drives it, for people.
    pub driver: String,
    /// How many queues receive.
    pub queues: u32,
    pub(crate) max_queues: Option<u32>,
    /// Whether rules count; `None`: the driver offers no switch for that.
    pub ntuple: Option<bool>,
    /// Where it has rules; `None`: its driver has none.
    pub rules: Option<FlowRules>,
    /// The rules that are there, as far as they can be said.
    pub there: Vec<Placed>,
    /// Its hash; `None`: its driver does not show it.
    pub(crate) rss: Option<Rss>,
    pub(crate) tcp_hash: Option<HashFields>,
    pub(crate) udp_hash: Option<HashFields>,
    pub(crate) per_queue: bool,
    /// Whether packets may wait for `rx-frames` others at `rx-usecs 0`.
    pub may_wait: bool,
    /// Its settings, and processors of queues where they can be chosen.
    pub state: State,
}

impl Capabilities {
    /// Asks the driver of a device.
    pub fn read(device: &dyn TunedDevice) -> Result<Self> {
        let name = &device.identity().name;
        let ethtool = Ethtool::open()?;
        let channels = optional(ethtool.channels(name))?;
        let queues = match channels.map(|channels| channels.receiving()) {
            Some(queues) if queues > 0 => queues,
            _ => optional(ethtool.receive_queues(name))?.unwrap_or(1),
        };
        let max_queues = channels.and_then(|it| it.combined_max.max(it.rx_max));
        let features = optional(ethtool.features(name))?.unwrap_or_default();
        let switch = "rx-ntuple-filter";
        let ntuple = features.is_offered(switch).then(|| features.is_on(switch));
        let per_queue = optional(ethtool.queue_coalesce(name, queues))?.is_some();
        let of_queues = (0..u16::try_from(queues).unwrap_or(u16::MAX)).flat_map(|queue| {
            [Setting::SmpAffinity, Setting::XpsCpus].map(|setting| setting.of_queue(queue))
        });
        let named: Vec<Setting> = of_queues.flatten().collect();
        let state = device.read_with(&named).with_context(|| format!("read {name}"))?;
        let rules = optional(ethtool.flow_rules(name))?;
        let mut there = Vec::new();
        let places = rules.iter().flat_map(|rules| &rules.locations).take(MAX_READ);
        for location in places.copied() {
            let rule = optional(ethtool.flow_rule(name, location))?.flatten();
            let rule = rule.and_then(PlacedRule::known);
            let chooses = rules.as_ref().is_some_and(|rules| rules.chooses);
            let location = (!chooses).then_some(location);
            there.extend(rule.map(|rule| Placed { location, rule }));
        }
        Ok(Self {
            device: name.clone(),
            driver: device.driver(),
            queues,
            max_queues,
            ntuple,
            rules,
            there,
            rss: optional(ethtool.rss(name))?.filter(|rss| !rss.table.is_empty()),
            tcp_hash: optional(ethtool.hash_fields(name, Flow::Tcp4))?,
            udp_hash: optional(ethtool.hash_fields(name, Flow::Udp4))?,
            per_queue,
            may_wait: may_wait(device, &state),
            state,
        })
    }

    /// Whether rules do not count, and the driver therefore does not show its own: iavf is such a
    /// one.
    pub fn hides_rules(&self) -> bool {
        self.rules.is_none() && self.ntuple == Some(false)
    }

    /// The same as if it had room for rules, until it shows them.
    pub fn with_room(&self) -> Self {
        Self { rules: Some(FlowRules::default()), ..self.clone() }
    }

    /// Free places for rules, the last first, as `ethtool -N` takes them; so rules of others that
    /// stand before keep their say. Where the driver chooses, there is no end of them.
    pub fn places(&self) -> impl Iterator<Item = Option<u32>> {
        let rules = self.rules.clone().unwrap_or_default();
        // A driver that does not say how many there are takes small numbers.
        let size = if rules.size == 0 { 64 } else { rules.size };
        let (chosen, size) = if rules.chooses { (MAX_READ, 0) } else { (0, size) };
        let free = (0..size).rev().filter(move |place| !rules.locations.contains(place));
        free.map(Some).chain(std::iter::repeat_n(None, chosen))
    }
}

/// What a driver does not have is no error; that there is no such device is one.
fn optional<T>(outcome: Result<T, DeviceError>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_no_device() || error.is_denied() => Err(error.into()),
        // Drivers refuse what they do not have in many ways.
        Err(_) => Ok(None),
    }
}
