//! Which queues rules of the NIC choose.

use std::collections::BTreeMap;

use netdev::DeviceError;
use netdev::ethtool::{Coalesce, Ethtool, Parameter, PlacedRule, QueueCoalesce};
use netdev::netdev::{Direction, Netdev, QueueCounters};
use netdev::queue_names::queues_among;
use show::Lane;

/// What of a device may be lanes, as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) rules: Vec<(u32, PlacedRule)>,
    pub(crate) table: Vec<u32>,
    pub(crate) packets: BTreeMap<u32, u64>,
}

impl Source {
    pub(crate) fn read(
        ethtool: &Ethtool,
        netdev: Option<&Netdev>,
        device: &str,
    ) -> Result<Self, DeviceError> {
        let mut source = Self::default();
        for location in ethtool.flow_rules(device)?.locations {
            let rule = ethtool.flow_rule(device, location)?;
            source.rules.extend(rule.map(|rule| (location, rule)));
        }
        if source.rules.is_empty() {
            return Ok(source);
        }
        source.table = ethtool.rss(device).map(|rss| rss.table).unwrap_or_default();
        let counters = netdev.and_then(|netdev| netdev.queue_counters(device).ok());
        // Some drivers answer, and count nothing.
        let counts = |queues: &Vec<QueueCounters>| {
            queues.iter().any(|queue| queue.counters.contains_key("rx-packets"))
        };
        let counters = counters
            .filter(counts)
            .unwrap_or_else(|| queues_among(&ethtool.statistics(device).unwrap_or_default()));
        let received = counters.iter().filter(|queue| queue.direction == Direction::Rx);
        let packets = received.filter_map(|it| Some((it.id, *it.counters.get("rx-packets")?)));
        source.packets = packets.collect();
        Ok(source)
    }

    pub(crate) fn lanes(&self, whole: Option<&Coalesce>, queues: &[QueueCoalesce]) -> Vec<Lane> {
        let mut lanes: BTreeMap<u32, Lane> = BTreeMap::new();
        for (location, rule) in &self.rules {
            let Some((rule, queue)) = rule.known().and_then(|rule| Some((rule, rule.queue()?)))
            else {
                continue;
            };
            let queue = u32::from(queue);
            let lane = lanes.entry(queue).or_insert_with(|| {
                let own = queues.iter().find(|it| it.queue == queue).map(|it| &it.coalesce);
                let usecs = |from: Option<&Coalesce>| from?.get(Parameter::RxUsecs);
                Lane {
                    queue,
                    rules: Vec::new(),
                    packets: self.packets.get(&queue).copied(),
                    rx_usecs: usecs(own).or_else(|| usecs(whole)),
                    is_alone: (!self.table.is_empty()).then(|| !self.table.contains(&queue)),
                }
            });
            lane.rules.push(format!("{location}:{rule}"));
        }
        lanes.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        let rule = |text: &str| PlacedRule::Known(text.parse().unwrap());
        Source {
            rules: vec![
                (5, rule("udp4,dst-port:7,queue:2")),
                (6, PlacedRule::Other),
                (7, rule("ip4,src-ip:10.0.0.1,drop")),
                (126, rule("tcp4,src-port:11211,queue:3")),
                (127, rule("tcp4,dst-port:11211,queue:3")),
            ],
            table: vec![0, 1, 2],
            packets: [(2, 1), (3, 70)].into(),
        }
    }

    #[test]
    fn queues_of_rules_are_lanes() {
        let whole = Coalesce::new().with(Parameter::RxUsecs, 50);
        let own = Coalesce::new().with(Parameter::RxUsecs, 0);
        let lanes = source().lanes(Some(&whole), &[QueueCoalesce { queue: 3, coalesce: own }]);
        let texts: Vec<String> = lanes.iter().map(Lane::describe).collect();
        assert_eq!(
            texts,
            [
                "queue 2, rx-usecs 50, hashes lead there, too, 1 packet: 5:udp4,dst-port:7,queue:2",
                "queue 3, interrupts at once, for its rules alone, 70 packets: \
                 126:tcp4,src-port:11211,queue:3; 127:tcp4,dst-port:11211,queue:3",
            ]
        );
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        let bare = Source { table: Vec::new(), packets: BTreeMap::new(), ..source() };
        let lanes = bare.lanes(None, &[]);
        assert_eq!(lanes[0].describe(), "queue 2: 5:udp4,dst-port:7,queue:2");
        assert!(Source::default().lanes(None, &[]).is_empty());
    }
}
