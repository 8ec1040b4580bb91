//! One rule, as text and as the kernel has it: kinds of packets, fields, masks.

use std::fmt;
use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use sys::ethtool::RuleLayout;

/// Tags count, too (`FLOW_EXT`).
const WITH_TAGS: u32 = 0x8000_0000;
/// The ring that drops (`RX_CLS_FLOW_DISC`).
const DROP: u64 = u64::MAX;
/// In packets over IPv4 of any protocol, the version (`ETH_RX_NFC_IP4`) and its place.
const VERSION: u8 = 1;
const VERSION_PLACE: usize = 13;
/// The last VLAN tag's place among the extra values (`vlan_tci`).
const VLAN_PLACE: usize = 10;

/// A kind of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flow {
    /// Any Ethernet frame.
    Ether,
    /// IPv4 of any protocol.
    Ip4,
    /// IPv6 of any protocol.
    Ip6,
    /// TCP over IPv4.
    Tcp4,
    /// UDP over IPv4.
    Udp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over IPv6.
    Udp6,
}

impl Flow {
    const ALL: [Self; 7] =
        [Self::Ether, Self::Ip4, Self::Ip6, Self::Tcp4, Self::Udp4, Self::Tcp6, Self::Udp6];

    /// Its name, as `ethtool -N` has it, the number of the type in `ethtool.h` (`..._FLOW`), bytes
    /// of an address, and whether it has ports.
    const fn row(self) -> (&'static str, u32, usize, bool) {
        match self {
            Self::Ether => ("ether", 0x12, 0, false),
            Self::Ip4 => ("ip4", 0x0d, 4, false),
            Self::Ip6 => ("ip6", 0x0e, 16, false),
            Self::Tcp4 => ("tcp4", 1, 4, true),
            Self::Udp4 => ("udp4", 2, 4, true),
            Self::Tcp6 => ("tcp6", 5, 16, true),
            Self::Udp6 => ("udp6", 6, 16, true),
        }
    }

    const fn name(self) -> &'static str {
        self.row().0
    }

    pub(super) const fn number(self) -> u32 {
        self.row().1
    }

    /// Whether its packets have addresses of IPv4.
    pub const fn is_ip4(self) -> bool {
        self.row().2 == 4
    }
}

/// What of a packet a rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The address of the sender.
    SourceIp,
    /// That of the receiver.
    DestinationIp,
    /// The port of the sender.
    SourcePort,
    /// That of the receiver.
    DestinationPort,
    /// The type of service of IPv4 or traffic class of IPv6: code point and two bits.
    Tos,
    /// The `EtherType` of the frame.
    EtherType,
    /// The VLAN tag: priority, a bit, and number.
    Vlan,
}

impl Field {
    const ALL: [(Self, &'static str); 7] = [
        (Self::SourceIp, "src-ip"),
        (Self::DestinationIp, "dst-ip"),
        (Self::SourcePort, "src-port"),
        (Self::DestinationPort, "dst-port"),
        (Self::Tos, "tos"),
        (Self::EtherType, "ethertype"),
        (Self::Vlan, "vlan"),
    ];

    /// Where it is among the values of this kind of packets, and how many bytes it has.
    const fn place(self, flow: Flow) -> Option<(usize, usize)> {
        let (.., address, has_ports) = flow.row();
        match self {
            Self::EtherType if address == 0 => Some((12, 2)),
            Self::EtherType | Self::Vlan => None,
            _ if address == 0 => None,
            Self::SourceIp => Some((0, address)),
            Self::DestinationIp => Some((address, address)),
            Self::SourcePort if has_ports => Some((2 * address, 2)),
            Self::DestinationPort if has_ports => Some((2 * address + 2, 2)),
            Self::SourcePort | Self::DestinationPort => None,
            Self::Tos => Some((2 * address + 4, 1)),
        }
    }

    fn full(self, flow: Flow) -> u128 {
        let tag = (self == Self::Vlan).then_some(2);
        let bytes = self.place(flow).map(|(_, bytes)| bytes).or(tag);
        bytes.map_or(0, |bytes| u128::MAX >> (128 - 8 * bytes))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Masked<T> {
    value: T,
    mask: T,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Queue(u16),
    Drop,
}

/// A rule.
///
/// ```
/// use netdev::ethtool::{Field, Flow, FlowRule};
/// let rule = FlowRule::new(Flow::Tcp4, 1).with(Field::DestinationPort, 11211);
/// assert_eq!(rule.to_string(), "tcp4,dst-port:11211,queue:1");
/// assert_eq!(rule.to_string().parse(), Ok(rule));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowRule {
    flow: Flow,
    addresses: [Masked<u128>; 2],
    words: [Masked<u16>; 5],
    action: Action,
}

impl FlowRule {
    /// A rule that sends all packets of a kind to a queue.
    pub fn new(flow: Flow, queue: u16) -> Self {
        let (addresses, words) = Default::default();
        Self { flow, addresses, words, action: Action::Queue(queue) }
    }

    /// The same for packets that have this value; a field that their kind lacks changes nothing.
    pub fn with(self, field: Field, value: u128) -> Self {
        self.with_mask(field, value, field.full(self.flow))
    }

    /// The same where only the bits of the mask count.
    pub fn with_mask(mut self, field: Field, value: u128, mask: u128) -> Self {
        let mask = mask & field.full(self.flow);
        let value = value & mask;
        match self.addresses.get_mut(field as usize) {
            Some(address) => *address = Masked { value, mask },
            None => {
                // No other field has more than 16 bits.
                let masked = Masked { value: value as u16, mask: mask as u16 };
                self.words[field as usize - 2] = masked;
            }
        }
        self
    }

    /// The queue to which it sends packets, if it does.
    pub fn queue(&self) -> Option<u16> {
        match self.action {
            Action::Queue(queue) => Some(queue),
            Action::Drop => None,
        }
    }

    /// Whether all bits of a field count.
    pub fn has_whole(&self, field: Field) -> bool {
        let mask = self.get(field).mask;
        mask != 0 && mask == field.full(self.flow)
    }

    /// Whether it is what a driver may have made of `asked`: for the same kind of packets and with
    /// the same action, but without some of what was to count.
    pub fn is_left_of(&self, asked: &Self) -> bool {
        let is_left = |field: Field| {
            let (own, asked) = (self.get(field), asked.get(field));
            own.mask & !asked.mask == 0 && own.value == asked.value & own.mask
        };
        (self.flow, self.action) == (asked.flow, asked.action)
            && Field::ALL.into_iter().all(|(field, _)| is_left(field))
    }

    fn get(&self, field: Field) -> Masked<u128> {
        let wide = |word: Masked<u16>| Masked { value: word.value.into(), mask: word.mask.into() };
        self.addresses
            .get(field as usize)
            .copied()
            .unwrap_or_else(|| wide(self.words[field as usize - 2]))
    }

    fn fields(&self) -> impl Iterator<Item = (Field, &'static str, Masked<u128>)> {
        let all = Field::ALL.into_iter().map(|(field, name)| (field, name, self.get(field)));
        all.filter(|(.., it)| it.mask != 0)
    }

    /// The bytes of `struct ethtool_rx_flow_spec`, its location aside.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<RuleLayout>()];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        let values = offset_of!(RuleLayout, values);
        let (masks, extra) = (offset_of!(RuleLayout, masks), offset_of!(RuleLayout, extra_values));
        let extra_masks = offset_of!(RuleLayout, extra_masks);
        let mut kind = self.flow.number();
        if self.flow == Flow::Ip4 {
            put(values + VERSION_PLACE, &[VERSION]);
        }
        for (field, _, Masked { value, mask }) in self.fields() {
            let (value, mask) = (value.to_be_bytes(), mask.to_be_bytes());
            if let Some((place, length)) = field.place(self.flow) {
                put(values + place, &value[16 - length..]);
                put(masks + place, &mask[16 - length..]);
            } else {
                kind |= WITH_TAGS;
                put(extra + VLAN_PLACE, &value[14..]);
                put(extra_masks + VLAN_PLACE, &mask[14..]);
            }
        }
        let ring = match self.action {
            Action::Queue(queue) => queue.into(),
            Action::Drop => DROP,
        };
        put(offset_of!(RuleLayout, flow_type), &kind.to_ne_bytes());
        put(offset_of!(RuleLayout, ring_cookie), &ring.to_ne_bytes());
        bytes
    }
}

/// Reads the bytes of `struct ethtool_rx_flow_spec`. `None`: it is a rule that cannot be said here,
/// such as one by a MAC address, into an RSS context or to a virtual function; or no rule at all.
pub fn parse_flow_rule(bytes: &[u8]) -> Option<FlowRule> {
    let bytes = bytes.get(..size_of::<RuleLayout>())?;
    let word = |at: usize| Some(u32::from_ne_bytes(bytes[at..at + 4].try_into().ok()?));
    let kind = word(offset_of!(RuleLayout, flow_type))?;
    let flow = Flow::ALL.into_iter().find(|flow| flow.number() == kind & !WITH_TAGS)?;
    let ring = offset_of!(RuleLayout, ring_cookie);
    let ring = u64::from_ne_bytes(bytes[ring..ring + 8].try_into().ok()?);
    let action = match ring {
        DROP => Action::Drop,
        queue => Action::Queue(u16::try_from(queue).ok()?),
    };
    let mut rule = FlowRule { action, ..FlowRule::new(flow, 0) };
    for (field, _) in Field::ALL {
        let (values, masks, place, length) = match field.place(flow) {
            Some((place, length)) => {
                (offset_of!(RuleLayout, values), offset_of!(RuleLayout, masks), place, length)
            }
            None if field == Field::Vlan && kind & WITH_TAGS != 0 => (
                offset_of!(RuleLayout, extra_values),
                offset_of!(RuleLayout, extra_masks),
                VLAN_PLACE,
                2,
            ),
            None => continue,
        };
        let number = |start: usize| {
            let bytes = &bytes[start + place..start + place + length];
            bytes.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte))
        };
        rule = rule.with_mask(field, number(values), number(masks));
    }
    // Masks that are not of these fields ask for more than can be said here.
    let masks = |bytes: &[u8]| {
        let mut masks = bytes[offset_of!(RuleLayout, masks)..offset_of!(RuleLayout, ring_cookie)]
            [..52 + 20]
            .to_vec();
        if kind & WITH_TAGS == 0 {
            masks.truncate(52);
        }
        if flow == Flow::Ip4 {
            // The kind says it already; some drivers set it, too.
            masks[VERSION_PLACE] = 0;
        }
        masks
    };
    (masks(&rule.encode()) == masks(bytes)).then_some(rule)
}

impl fmt::Display for FlowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.flow.name())?;
        for (field, name, Masked { value, mask }) in self.fields() {
            let full = field.full(self.flow);
            write!(f, ",{name}:")?;
            match field {
                Field::SourceIp | Field::DestinationIp if self.flow.is_ip4() => {
                    write!(f, "{}", Ipv4Addr::from(value as u32))?;
                }
                Field::SourceIp | Field::DestinationIp => write!(f, "{}", Ipv6Addr::from(value))?,
                Field::EtherType => write!(f, "{value:#06x}")?,
                _ => write!(f, "{value}")?,
            }
            if mask != full {
                write!(f, "/{mask:#x}")?;
            }
        }
        match self.action {
            Action::Queue(queue) => write!(f, ",queue:{queue}"),
            Action::Drop => f.write_str(",drop"),
        }
    }
}

impl FromStr for FlowRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| {
            format!("the rule {text}: {why}; write it like tcp4,dst-port:11211,queue:1")
        };
        let mut parts = text.split(',');
        let kind = parts.next().unwrap_or_default();
        let flow = Flow::ALL.into_iter().find(|flow| flow.name() == kind).ok_or_else(|| {
            let names = Flow::ALL.map(Flow::name).join(", ");
            refuse(&format!("`{kind}` is no kind of packets; there are {names}"))
        })?;
        let mut rule = Self::new(flow, 0);
        let mut action = None;
        for part in parts {
            let (name, value) = part.split_once(':').unwrap_or((part, ""));
            let chosen = match name {
                "drop" if value.is_empty() => Some(Action::Drop),
                "queue" => {
                    Some(Action::Queue(value.parse().map_err(|_| refuse("a queue is a number"))?))
                }
                _ => None,
            };
            if let Some(chosen) = chosen {
                if action.replace(chosen).is_some() {
                    return Err(refuse("it names two queues"));
                }
                continue;
            }
            let field = Field::ALL.into_iter().find(|(_, known)| *known == name);
            let field = field.map(|(field, _)| field).filter(|field| field.full(flow) != 0);
            let field = field.ok_or_else(|| refuse(&format!("{kind} has no `{name}`")))?;
            if rule.get(field).mask != 0 {
                return Err(refuse(&format!("`{name}` is there twice")));
            }
            let masked = parse_value(field, flow, value);
            let Masked { value, mask } = masked.ok_or_else(|| {
                refuse(&format!("`{value}` is no {name}, or more than a mask lets count"))
            })?;
            rule = rule.with_mask(field, value, mask);
        }
        rule.action = action.ok_or_else(|| refuse("it has no queue"))?;
        Ok(rule)
    }
}

/// A value, and its mask if it has one: bits in hexadecimal, or of an address how many from the
/// left.
fn parse_value(field: Field, flow: Flow, text: &str) -> Option<Masked<u128>> {
    let full = field.full(flow);
    let (value, mask) = text.split_once('/').map_or((text, None), |(value, it)| (value, Some(it)));
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let is_address = matches!(field, Field::SourceIp | Field::DestinationIp);
    let value = if is_address {
        match value.parse().ok()? {
            IpAddr::V4(address) if flow.is_ip4() => u32::from(address).into(),
            IpAddr::V6(address) if !flow.is_ip4() => address.into(),
            _ => return None,
        }
    } else {
        number(value)?
    };
    let mask = match mask {
        None => full,
        Some(bits) if is_address && !bits.starts_with("0x") => {
            let width = full.count_ones();
            let left = width.checked_sub(bits.parse().ok()?)?;
            full.checked_shr(left).map_or(0, |_| full & full.checked_shl(left).unwrap_or(0))
        }
        Some(bits) => number(bits)?,
    };
    (mask != 0 && mask & !full == 0 && value & !mask == 0).then_some(Masked { value, mask })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_written_alike() {
        for text in [
            "tcp4,dst-port:11211,queue:1",
            "udp4,src-ip:10.0.0.7,dst-ip:10.1.0.0/0xffff0000,src-port:319,tos:184/0xfc,queue:65535",
            "tcp6,src-ip:fe80::1,dst-port:7,queue:0",
            "ether,ethertype:0x86df,queue:3",
            "ether,vlan:40960/0xe000,drop",
            "ip4,tos:0/0xfc,queue:2",
            "ip6,queue:2",
        ] {
            let rule: FlowRule = text.parse().unwrap();
            assert_eq!(rule.to_string(), text);
            assert_eq!(parse_flow_rule(&rule.encode()), Some(rule), "{text}");
        }
        let short: FlowRule = "ip6,src-ip:fe80::/10,queue:1".parse().unwrap();
        let mask = "ip6,src-ip:fe80::/0xffc00000000000000000000000000000,queue:1";
        assert_eq!(short.to_string(), mask);
    }

    #[test]
    fn a_rule_is_where_the_header_of_the_kernel_has_it() {
        let rule: FlowRule = "tcp4,dst-port:11211,queue:1".parse().unwrap();
        let bytes = rule.encode();
        // `pdst` of `struct ethtool_tcpip4_spec`, then the same of the masks.
        assert_eq!(bytes[..4], 1_u32.to_ne_bytes());
        assert_eq!((&bytes[14..16], &bytes[86..88]), (&[0x2b, 0xcb][..], &[0xff, 0xff][..]));
        assert_eq!(bytes.iter().filter(|byte| **byte != 0).count(), 6);
    }

    #[test]
    fn what_is_left_of_a_rule_is_known() {
        let rule = |text: &str| text.parse::<FlowRule>().unwrap();
        let asked = rule("ip4,src-ip:10.0.0.7,tos:184,queue:1");
        for left in ["ip4,queue:1", "ip4,tos:184/0xfc,queue:1", "ip4,src-ip:10.0.0.0/8,queue:1"] {
            assert!(rule(left).is_left_of(&asked), "{left}");
        }
        for other in ["ip4,queue:2", "ip6,queue:1", "ip4,tos:4/0xfc,queue:1", "ip4,drop"] {
            assert!(!rule(other).is_left_of(&asked), "{other}");
        }
        assert!(asked.is_left_of(&asked) && !asked.is_left_of(&rule("ip4,tos:184,queue:1")));
    }

    #[test]
    fn rules_that_ask_for_more_are_others() {
        let rule: FlowRule = "ip4,src-ip:10.0.0.7,queue:1".parse().unwrap();
        let with = |at: usize, value: u8| {
            let mut bytes = rule.encode();
            bytes[at] = value;
            parse_flow_rule(&bytes)
        };
        assert_eq!(with(4 + 20, 7), Some(rule), "a value without a mask does not count");
        assert_eq!(with(76 + 13, 0xff), Some(rule), "the version, as iavf has it");
        assert_eq!(with(76 + 14, 0xff), None, "a protocol");
        let ring = offset_of!(RuleLayout, ring_cookie);
        assert_eq!(with(ring + 4, 1), None, "a virtual function");
        assert_eq!(with(0, 0x10), None, "another kind");
        for end in 0..rule.encode().len() {
            assert_eq!(parse_flow_rule(&rule.encode()[..end]), None);
        }
    }
}
