//! Packets that belong together: of a service's port, of a flow, of a code point, of a rule.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use nic::headers::{Addresses, Headers, Malformed, TCP, UDP};
use nic::marker::Rules;

/// Groups that are counted by themselves: the first that come. All others are one more.
const MAX_GROUPS: usize = 256;
/// Places of the table, a power of two: it is never more than a quarter full.
const PLACES: usize = 4 * MAX_GROUPS;
/// ICMP and ICMPv6 (IANA).
const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// By what packets are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The port of the service: the lower one of the two.
    #[default]
    Port,
    /// Addresses and ports.
    Flow,
    /// The code point of IP.
    Dscp,
    /// The rule of the marks that decides.
    Rule,
}

impl By {
    /// All of them, with their words.
    pub const ALL: [(&str, Self); 4] =
        [("port", Self::Port), ("flow", Self::Flow), ("dscp", Self::Dscp), ("rule", Self::Rule)];
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(word, _)| *word == text);
        found.map(|(_, by)| by).ok_or_else(|| format!("`{text}` is none of port, flow, dscp, rule"))
    }
}

/// What packets of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// Whatever found no place.
    Others,
    Port(u8, u16),
    Flow(u8, (u16, u16), Addresses),
    Protocol(u8),
    EtherType(u16),
    Dscp(u8),
    Rule(Option<u8>),
    Malformed,
}

/// The groups that have been seen, by number; number 0 is what found no place.
#[derive(Clone, Debug)]
pub struct Groups {
    by: By,
    rules: Rules,
    keys: Vec<Key>,
    table: Vec<u16>,
    last: u16,
}

impl Groups {
    /// None yet; `rules` are those of [`By::Rule`].
    #[must_use]
    pub fn new(by: By, rules: Rules) -> Self {
        Self { by, rules, keys: vec![Key::Others], table: vec![0; PLACES], last: 0 }
    }

    /// The number of the group of a packet with these headers.
    #[inline]
    pub fn number(&mut self, headers: &Result<Headers, Malformed>) -> u16 {
        let key = self.key(headers);
        if self.keys[usize::from(self.last)] == key {
            return self.last;
        }
        self.last = self.find(key);
        self.last
    }

    fn find(&mut self, key: Key) -> u16 {
        let mut place = hash(&key) as usize % PLACES;
        loop {
            match self.table[place] {
                0 if self.keys.len() > MAX_GROUPS => return 0,
                0 => {
                    self.table[place] = self.keys.len() as u16;
                    self.keys.push(key);
                    return self.table[place];
                }
                number if self.keys[usize::from(number)] == key => return number,
                _ => place = (place + 1) % PLACES,
            }
        }
    }

    #[inline]
    fn key(&self, headers: &Result<Headers, Malformed>) -> Key {
        let Ok(headers) = headers else { return Key::Malformed };
        let protocol = headers.protocol();
        match self.by {
            By::Rule => Key::Rule(self.rules.classify(headers).rule),
            By::Dscp => match headers.dscp() {
                Some(dscp) => Key::Dscp(dscp),
                None => Key::EtherType(headers.ether_type()),
            },
            By::Port | By::Flow => match (protocol, headers.ports()) {
                (Some(protocol), Some((a, b))) if self.by == By::Port => {
                    Key::Port(protocol, a.min(b))
                }
                (Some(protocol), ports) if self.by == By::Flow => {
                    Key::Flow(protocol, ports.unwrap_or_default(), *headers.addresses())
                }
                (Some(protocol), _) => Key::Protocol(protocol),
                (None, _) => Key::EtherType(headers.ether_type()),
            },
        }
    }

    /// How many groups there are, number 0 included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// The name of a group, as tables have it.
    #[must_use]
    pub fn name(&self, number: usize) -> String {
        match self.keys.get(number) {
            Some(Key::Rule(Some(rule))) => {
                self.rules.get(*rule).map_or_else(String::new, ToString::to_string)
            }
            Some(key) => key.to_string(),
            None => Key::Others.to_string(),
        }
    }
}

/// A number that the flow of a packet with these headers has, and hardly another one.
#[must_use]
pub fn flow_number(headers: &Result<Headers, Malformed>) -> u64 {
    let Ok(headers) = headers else { return 0 };
    let protocol = headers.protocol().unwrap_or(0);
    let ports = headers.ports().unwrap_or((headers.ether_type(), 0));
    hash(&Key::Flow(protocol, ports, *headers.addresses()))
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Others => f.write_str("others"),
            Self::Port(protocol, port) => write!(f, "{} {port}", protocol_name(protocol)),
            Self::Flow(protocol, ports, addresses) => flow(f, protocol, ports, &addresses),
            Self::Protocol(protocol) => f.write_str(&protocol_name(protocol)),
            Self::EtherType(0x0806) => f.write_str("ARP"),
            Self::EtherType(ether_type) => write!(f, "EtherType {ether_type:#06x}"),
            Self::Dscp(dscp) => write!(f, "dscp {dscp}"),
            Self::Rule(_) => f.write_str("no rule"),
            Self::Malformed => f.write_str("malformed"),
        }
    }
}

/// A flow; without ports where it has none.
fn flow(
    f: &mut fmt::Formatter<'_>,
    protocol: u8,
    (from, to): (u16, u16),
    addresses: &Addresses,
) -> fmt::Result {
    let name = protocol_name(protocol);
    let [from, to] = [from, to].map(|it| if it == 0 { String::new() } else { format!(":{it}") });
    match addresses {
        Addresses::V4([a, b, c, d, e, g, h, i]) => {
            let (x, y) = (Ipv4Addr::new(*a, *b, *c, *d), Ipv4Addr::new(*e, *g, *h, *i));
            write!(f, "{name} {x}{from} > {y}{to}")
        }
        Addresses::V6(both) => {
            let half =
                |at: usize| Ipv6Addr::from(core::array::from_fn::<u8, 16, _>(|it| both[at + it]));
            write!(f, "{name} [{}]{from} > [{}]{to}", half(0), half(16))
        }
        Addresses::None => f.write_str(&name),
    }
}

fn protocol_name(protocol: u8) -> String {
    match protocol {
        TCP => "tcp".into(),
        UDP => "udp".into(),
        ICMP => "icmp".into(),
        ICMP6 => "icmp6".into(),
        _ => format!("IP protocol {protocol}"),
    }
}

/// A number that differs where keys do, mostly.
fn hash(key: &Key) -> u64 {
    let mix =
        |sum: u64, part: u64| (sum ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let number = match *key {
        Key::Others | Key::Malformed => 0,
        Key::Port(protocol, port) => u64::from(protocol) << 16 | u64::from(port),
        Key::Flow(protocol, (from, to), addresses) => {
            let ports = u64::from(protocol) << 32 | u64::from(from) << 16 | u64::from(to);
            let bytes: &[u8] = match &addresses {
                Addresses::None => &[],
                Addresses::V4(bytes) => bytes,
                Addresses::V6(bytes) => bytes,
            };
            bytes.iter().fold(ports, |sum, byte| mix(sum, u64::from(*byte)))
        }
        Key::Protocol(number) => 1 << 40 | u64::from(number),
        Key::EtherType(number) => 2 << 40 | u64::from(number),
        Key::Dscp(number) => 3 << 40 | u64::from(number),
        Key::Rule(number) => 4 << 40 | number.map_or(0, |number| u64::from(number) + 1),
    };
    mix(number, 1) >> 20
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(port: u16) -> Result<Headers, Malformed> {
        let mut frame = [0_u8; 60];
        frame[12..16].copy_from_slice(&[8, 0, 0x45, 0xb8]);
        frame[16..18].copy_from_slice(&46_u16.to_be_bytes());
        frame[23] = UDP;
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        frame[36..38].copy_from_slice(&50_000_u16.to_be_bytes());
        nic::headers::parse(&frame)
    }

    #[test]
    fn groups_have_the_names_that_people_know() {
        let name = |by, rules: &str| {
            let mut groups = Groups::new(by, rules.parse().unwrap());
            let number = groups.number(&headers(123));
            (number, groups.name(number.into()))
        };
        assert_eq!(name(By::Port, ""), (1, "udp 123".into()));
        assert_eq!(name(By::Flow, ""), (1, "udp 10.0.0.1:123 > 10.0.0.2:50000".into()));
        assert_eq!(name(By::Dscp, ""), (1, "dscp 46".into()));
        assert_eq!(name(By::Rule, "udp-port=123"), (1, "udp-port=123".into()));
        assert_eq!(name(By::Rule, "mx"), (1, "no rule".into()));
        let mut groups = Groups::new(By::Port, Rules::NONE);
        groups.number(&Err(Malformed::EthernetTruncated));
        assert_eq!(groups.name(1), "malformed");
        assert!("queue".parse::<By>().is_err());
    }

    #[test]
    fn late_groups_are_among_the_others() {
        let mut groups = Groups::new(By::Port, Rules::NONE);
        for round in 0..2 {
            for port in 0..1_000 {
                let number = usize::from(groups.number(&headers(port)));
                let expected = if port < 256 { usize::from(port) + 1 } else { 0 };
                assert_eq!(number, expected, "round {round}, port {port}");
            }
        }
        assert_eq!((groups.count(), groups.name(0)), (257, "others".into()));
    }
}
