//! From rules in the language of marks to rules of a device, and what is lost on the way.
//!
//! A device compares fields of headers with values. It knows no flags such as PSH, no length of a
//! frame, nothing of MX but its EtherType, and no exceptions; and it looks at one port, not at
//! either of the two. A test that it cannot tell is left out, if the others still say something.

use std::net::IpAddr;

use netdev::ethtool::{Field, Flow, FlowRule};
use nic::marker::{Condition, Rules};

/// The most rules of a device that one lane takes.
const MAX_RULES: usize = 32;

/// `EtherType`s of protocols.
const MX: u16 = 0x86df;
const IP4: u16 = 0x0800;
const IP6: u16 = 0x86dd;

/// A rule of the device that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The rule of the lane that it is for, as it was written.
    pub asked: String,
    /// The same in several ways, the best first: the device takes the first that it can.
    pub ways: Vec<FlowRule>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Translation {
    pub candidates: Vec<Candidate>,
    /// What the device cannot tell, and what it does instead: a sentence each.
    pub lost: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parts {
    text: String,
    conditions: Vec<Condition>,
    is_exception: bool,
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
}

pub(crate) fn translate(text: &str, queue: u16) -> Result<Translation, String> {
    let mut all = Translation::default();
    for rule in text.split(',').filter(|_| !text.trim().is_empty()) {
        let parts = parse(rule)?;
        if parts.is_exception {
            all.lost.push(format!(
                "`{}`: a device has no exceptions; such packets go to the lane if another rule \
                 sends them there",
                parts.text
            ));
            continue;
        }
        parts.translate(queue, &mut all)?;
    }
    if all.candidates.is_empty() {
        return Err(format!("`{text}` names no packets; write it like tcp-port=11211"));
    }
    if all.candidates.len() > MAX_RULES {
        return Err(format!(
            "`{text}` takes {} rules of a device, one for each value of a range; at most \
             {MAX_RULES} are made",
            all.candidates.len()
        ));
    }
    Ok(all)
}

/// The one port that a lane is about, and whether it is one of TCP; for the choice by hash.
pub(crate) fn lone_port(text: &str) -> Option<(bool, u16)> {
    let parts = parse(text).ok().filter(|_| !text.contains(','))?;
    match parts.conditions[..] {
        [Condition::Value { field: name @ ("tcp-port" | "udp-port"), lo, hi, negate: false }]
            if lo == hi && !parts.is_exception =>
        {
            Some((name == "tcp-port", lo))
        }
        _ => None,
    }
}

/// Addresses are no test of marks, where each packet would pay for them.
fn parse(rule: &str) -> Result<Parts, String> {
    let rule = rule.trim();
    let mut parts = Parts { text: rule.to_owned(), ..Parts::default() };
    let mut rest = Vec::new();
    for test in rule.split('&').map(str::trim) {
        let (name, value) = test.split_once('=').unwrap_or((test, ""));
        let address = match name.trim() {
            "src-ip" => &mut parts.source,
            "dst-ip" => &mut parts.destination,
            _ => {
                rest.push(test);
                continue;
            }
        };
        let value = value.trim().parse();
        let value = value.map_err(|_| format!("`{test}`: an address, as in src-ip=10.0.0.7"))?;
        if address.replace(value).is_some() {
            return Err(format!("`{rule}` has {} twice", name.trim()));
        }
    }
    if !rest.is_empty() {
        let rules: Rules = rest.join(" & ").parse().map_err(|error| format!("{error}"))?;
        let one = rules.iter().next();
        parts.conditions = one.map(|rule| rule.conditions().collect()).unwrap_or_default();
        parts.is_exception = one.is_some_and(|rule| !rule.marks());
    }
    Ok(parts)
}

/// Values of each field that a device may compare; `None`: any.
#[derive(Default)]
struct Wanted {
    ether_types: Option<Vec<u16>>,
    priorities: Option<Vec<u16>>,
    code_points: Option<Vec<u16>>,
    tcp: Option<Vec<u16>>,
    udp: Option<Vec<u16>>,
    is_tcp: bool,
}

impl Parts {
    fn translate(&self, queue: u16, all: &mut Translation) -> Result<(), String> {
        let mut wanted = Wanted::default();
        let mut lost = Vec::new();
        for condition in &self.conditions {
            self.add(*condition, &mut wanted, &mut lost)?;
        }
        let has_tcp = wanted.is_tcp || wanted.tcp.is_some();
        if has_tcp && wanted.udp.is_some() {
            return Err(format!("`{}`: no packet is of TCP and of UDP", self.text));
        }
        let any = |values: &Option<Vec<u16>>| values.is_some();
        let says_something = any(&wanted.ether_types)
            || any(&wanted.priorities)
            || any(&wanted.code_points)
            || any(&wanted.tcp)
            || any(&wanted.udp)
            || self.source.is_some()
            || self.destination.is_some();
        if !says_something {
            let what = if has_tcp { "all of TCP" } else { "all packets" };
            return Err(format!(
                "`{}`: a device cannot tell {}, and without that {what} would go to the lane; \
                 choose by ports, addresses, ethertype, vlan-priority or dscp",
                self.text,
                lost.join(" and ")
            ));
        }
        if !lost.is_empty() {
            all.lost.push(format!(
                "`{}`: the device cannot tell {}; the nearest rule leaves that out",
                self.text,
                lost.join(" and ")
            ));
        }
        let flows = self.flows(has_tcp, &wanted)?;
        for flow in flows {
            self.rules(flow, queue, &wanted, &mut all.candidates)?;
        }
        Ok(())
    }

    fn add(
        &self,
        condition: Condition,
        wanted: &mut Wanted,
        lost: &mut Vec<String>,
    ) -> Result<(), String> {
        let (name, lo, hi) = match condition {
            Condition::Flag("mx") => {
                lost.push("which frames of MX are marked".into());
                wanted.ether_types = Some(vec![MX]);
                return Ok(());
            }
            Condition::Flag(flag) => {
                lost.push(flag.into());
                wanted.is_tcp = true;
                return Ok(());
            }
            Condition::Value { field: "length", .. } => {
                lost.push("the length of a frame".into());
                return Ok(());
            }
            Condition::Value { field, negate: true, .. } => {
                lost.push(format!("that {field} is another one"));
                wanted.is_tcp |= field == "tcp-port";
                return Ok(());
            }
            Condition::Value { field, lo, hi, .. } => (field, lo, hi),
        };
        let values = match name {
            "ethertype" => &mut wanted.ether_types,
            "vlan-priority" => &mut wanted.priorities,
            "dscp" => &mut wanted.code_points,
            "tcp-port" => &mut wanted.tcp,
            _ => &mut wanted.udp,
        };
        let own: Vec<u16> = (lo..=hi).take(MAX_RULES + 1).collect();
        if own.len() > MAX_RULES {
            return Err(format!(
                "`{}`: a device compares {name} with single values, and a range of more than \
                 {MAX_RULES} would take as many rules",
                self.text
            ));
        }
        match values {
            // Either port may be the one, so two tests need not be about the same.
            Some(_) if name.ends_with("port") => lost.push(format!("a second test of {name}")),
            Some(before) => before.retain(|value| own.contains(value)),
            None => *values = Some(own),
        }
        Ok(())
    }

    fn flows(&self, has_tcp: bool, wanted: &Wanted) -> Result<Vec<Flow>, String> {
        let both = match (has_tcp, &wanted.udp, &wanted.code_points) {
            (true, ..) => Some([Flow::Tcp4, Flow::Tcp6]),
            (_, Some(_), _) => Some([Flow::Udp4, Flow::Udp6]),
            (.., Some(_)) => Some([Flow::Ip4, Flow::Ip6]),
            _ if self.source.or(self.destination).is_some() => Some([Flow::Ip4, Flow::Ip6]),
            _ => None,
        };
        let Some(both) = both else { return Ok(vec![Flow::Ether]) };
        let fits = |flow: &Flow| {
            let is_of = |address: IpAddr| address.is_ipv4() == flow.is_ip4();
            let kind = if flow.is_ip4() { IP4 } else { IP6 };
            [self.source, self.destination].into_iter().flatten().all(is_of)
                && wanted.ether_types.as_ref().is_none_or(|types| types.contains(&kind))
        };
        let flows: Vec<Flow> = both.into_iter().filter(fits).collect();
        if flows.is_empty() { Err(format!("`{}` fits no packet", self.text)) } else { Ok(flows) }
    }

    fn rules(
        &self,
        flow: Flow,
        queue: u16,
        wanted: &Wanted,
        candidates: &mut Vec<Candidate>,
    ) -> Result<(), String> {
        let number = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => address.into(),
        };
        let mut rule = FlowRule::new(flow, queue);
        for (field, address) in
            [(Field::SourceIp, self.source), (Field::DestinationIp, self.destination)]
        {
            rule = address.map_or(rule, |address| rule.with(field, number(address)));
        }
        let mut rules = vec![vec![rule]];
        let types = wanted.ether_types.as_ref().filter(|_| flow == Flow::Ether);
        rules = times(&rules, types, |rule, kind| vec![rule.with(Field::EtherType, kind.into())]);
        rules = times(&rules, wanted.priorities.as_ref(), |rule, priority| {
            vec![rule.with_mask(Field::Vlan, u128::from(priority) << 13, 0b111 << 13)]
        });
        let ports = wanted.tcp.as_ref().or(wanted.udp.as_ref());
        let to =
            times(&rules, ports, |rule, it| vec![rule.with(Field::DestinationPort, it.into())]);
        if ports.is_some() {
            rules = times(&rules, ports, |it, port| vec![it.with(Field::SourcePort, port.into())]);
            rules.splice(0..0, to);
        }
        rules = times(&rules, wanted.code_points.as_ref(), |rule, point| {
            // The two bits behind it are of congestion. Some devices compare whole bytes alone.
            let value = u128::from(point) << 2;
            vec![rule.with_mask(Field::Tos, value, 0xfc), rule.with(Field::Tos, value)]
        });
        if candidates.len() + rules.len() > 8 * MAX_RULES {
            return Err(format!("`{}` takes more than {MAX_RULES} rules of a device", self.text));
        }
        let asked = &self.text;
        candidates.extend(rules.into_iter().map(|ways| Candidate { asked: asked.clone(), ways }));
        Ok(())
    }
}

/// Each rule with each value, in one or several ways; as they are where any value will do.
fn times(
    rules: &[Vec<FlowRule>],
    values: Option<&Vec<u16>>,
    with: impl Fn(FlowRule, u16) -> Vec<FlowRule>,
) -> Vec<Vec<FlowRule>> {
    let Some(values) = values else { return rules.to_vec() };
    let each = |ways: &Vec<FlowRule>| {
        let ways = ways.clone();
        let one = |value: &u16| ways.iter().flat_map(|rule| with(*rule, *value)).collect();
        values.iter().map(one).collect::<Vec<_>>()
    };
    rules.iter().flat_map(each).collect()
}
