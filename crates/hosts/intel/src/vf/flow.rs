//! Rules of the flow director: which packets go to which queue, before receive-side scaling.
//!
//! A driver describes a packet layer by layer, and says of each which fields count
//! (`struct virtchnl_fdir_rule`). Of layers and fields that cannot be matched here no rule is made.

use std::net::IpAddr;

use nic::headers::{Addresses, Headers, TCP, UDP};

use super::virtchnl::Fields;

/// The most rules (`IAVF_MAX_FDIR_FILTERS`).
pub(super) const MAX_RULES: usize = 128;

/// How an operation of the flow director ended (`enum virtchnl_fdir_prgm_status`).
pub(super) mod outcome {
    pub(in super::super) const SUCCESS: u32 = 0;
    pub(in super::super) const NO_RESOURCE: u32 = 1;
    pub(in super::super) const EXISTS: u32 = 2;
    pub(in super::super) const DOES_NOT_EXIST: u32 = 4;
    pub(in super::super) const INVALID: u32 = 5;
}

/// Bytes of `struct virtchnl_fdir_add`, and where its answer is.
pub(super) const ADD: usize = 2_616;
pub(super) const ADD_NUMBER: usize = 4;
pub(super) const ADD_OUTCOME: usize = 2_612;
/// The same of `struct virtchnl_fdir_del`.
pub(super) const REMOVE: usize = 12;
pub(super) const REMOVE_OUTCOME: usize = 8;

const VALIDATE_ONLY: usize = 2;
const LAYERS: usize = 12;
const LAYER: usize = 72;
const MAX_LAYERS: usize = 32;
const ACTIONS: usize = 2_320;

const ACTION_DROP: u32 = 0;
const ACTION_QUEUE: u32 = 3;

/// What becomes of a packet that a rule fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Queue(u16),
    Drop,
}

/// The packets of a rule: those that have what is said here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    pub ether_type: Option<u16>,
    pub source: Option<IpAddr>,
    pub destination: Option<IpAddr>,
    /// The code point; the two bits behind it do not count.
    pub dscp: Option<u8>,
    pub protocol: Option<u8>,
    pub source_port: Option<u16>,
    pub destination_port: Option<u16>,
}

impl Flow {
    /// Whether a packet with these headers is one.
    pub(crate) fn fits(&self, headers: &Headers) -> bool {
        let fits = |wanted: Option<u16>, has: Option<u16>| wanted.is_none() || wanted == has;
        let (source, destination) = match headers.addresses() {
            Addresses::None => (None, None),
            Addresses::V4([a, b, c, d, e, f, g, h]) => {
                (Some(IpAddr::from([*a, *b, *c, *d])), Some(IpAddr::from([*e, *f, *g, *h])))
            }
            Addresses::V6(bytes) => (address(&bytes[..16]), address(&bytes[16..])),
        };
        let ports = headers.ports();
        fits(self.ether_type, Some(headers.ether_type()))
            && (self.source.is_none() || self.source == source)
            && (self.destination.is_none() || self.destination == destination)
            && fits(self.dscp.map(u16::from), headers.dscp().map(u16::from))
            && fits(self.protocol.map(u16::from), headers.protocol().map(u16::from))
            && fits(self.source_port, ports.map(|ports| ports.0))
            && fits(self.destination_port, ports.map(|ports| ports.1))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowRule {
    pub flow: Flow,
    pub action: Action,
}

/// What `struct virtchnl_fdir_add` asks for; also whether it is to be checked only.
pub(super) fn parse(message: &[u8]) -> Option<(FlowRule, bool)> {
    let fields = Fields(message);
    let count = fields.word(LAYERS).ok()? as usize;
    // Layers of a tunnel, and rules that are raw bytes, which have no layers.
    if message.len() < ADD || message[8] != 0 || !(1..=MAX_LAYERS).contains(&count) {
        return None;
    }
    let layers = fields.part(LAYERS + 4, count * LAYER).ok()?;
    let mut flow = Flow::default();
    for layer in layers.chunks_exact(LAYER) {
        add_layer(&mut flow, Fields(layer))?;
    }
    let action = parse_action(Fields(message.get(ACTIONS..)?))?;
    Some((FlowRule { flow, action }, fields.half(VALIDATE_ONLY).ok()? != 0))
}

/// The one action; others, such as marks for the driver, are not for us to take.
fn parse_action(fields: Fields<'_>) -> Option<Action> {
    if fields.word(0).ok()? != 1 {
        return None;
    }
    match fields.word(4).ok()? {
        ACTION_DROP => Some(Action::Drop),
        ACTION_QUEUE => Some(Action::Queue(fields.half(8).ok()?)),
        _ => None,
    }
}

/// Takes in what a layer (`struct virtchnl_proto_hdr`) says; nothing if it says more than can be
/// matched.
fn add_layer(flow: &mut Flow, layer: Fields<'_>) -> Option<()> {
    const ETHERNET: u32 = 1;
    const IPV4: u32 = 4;
    const IPV6: u32 = 5;
    const OF_TCP: u32 = 6;
    const OF_UDP: u32 = 7;
    let (kind, selected) = (layer.word(0).ok()?, layer.word(4).ok()?);
    let bytes = layer.part(8, 64).ok()?;
    let has = |bit: u32| selected & 1 << bit != 0;
    let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let known = match kind {
        ETHERNET => {
            flow.ether_type = has(2).then(|| half(12));
            1 << 2
        }
        IPV4 => {
            flow.ether_type = Some(0x0800);
            flow.source = if has(0) { address(&bytes[12..16]) } else { None };
            flow.destination = if has(1) { address(&bytes[16..20]) } else { None };
            flow.dscp = has(2).then(|| bytes[1] >> 2);
            flow.protocol = has(4).then(|| bytes[9]);
            0b1_0111
        }
        IPV6 => {
            flow.ether_type = Some(0x86DD);
            flow.source = if has(0) { address(&bytes[8..24]) } else { None };
            flow.destination = if has(1) { address(&bytes[24..40]) } else { None };
            // The traffic class, across two bytes.
            flow.dscp = has(2).then(|| (half(0) >> 4) as u8 >> 2);
            flow.protocol = has(4).then(|| bytes[6]);
            0b1_0111
        }
        OF_TCP | OF_UDP => {
            flow.protocol = Some(if kind == OF_TCP { TCP } else { UDP });
            flow.source_port = has(0).then(|| half(0));
            flow.destination_port = has(1).then(|| half(2));
            0b11
        }
        _ => return None,
    };
    (selected & !known == 0).then_some(())
}

/// An address of 4 or 16 bytes.
fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A layer: its type, the fields that count, bytes at offsets.
    pub(crate) type Layer<'a> = (u32, u32, &'a [(usize, &'a [u8])]);

    /// `struct virtchnl_fdir_add` with these layers.
    pub(crate) fn message(layers: &[Layer<'_>], action: (u32, u16)) -> Vec<u8> {
        let mut message = vec![0; ADD];
        message[0] = 1;
        message[LAYERS] = layers.len() as u8;
        for (number, (kind, selected, values)) in layers.iter().enumerate() {
            let at = LAYERS + 4 + number * LAYER;
            message[at..at + 4].copy_from_slice(&kind.to_le_bytes());
            message[at + 4..at + 8].copy_from_slice(&selected.to_le_bytes());
            for (offset, value) in *values {
                message[at + 8 + offset..at + 8 + offset + value.len()].copy_from_slice(value);
            }
        }
        message[ACTIONS] = 1;
        message[ACTIONS + 4] = action.0 as u8;
        message[ACTIONS + 8] = action.1 as u8;
        message
    }

    /// Ethernet, IPv4 from 10.0.0.1 to 10.0.0.2, UDP to this port.
    pub(crate) fn udp(port: u16) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14..24].copy_from_slice(&[0x45, 0xB8, 0, 46, 0, 0, 0, 0, 64, UDP]);
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[36..38].copy_from_slice(&port.to_be_bytes());
        frame
    }

    #[test]
    fn a_rule_fits_the_packets_it_describes() {
        let layers: [Layer<'_>; 3] = [
            (1, 0, &[]),
            (4, 0b111, &[(1, &[0xB8]), (12, &[10, 0, 0, 1, 10, 0, 0, 2])]),
            (7, 2, &[(2, &[0, 53])]),
        ];
        let (rule, only_checked) = parse(&message(&layers, (ACTION_QUEUE, 3))).unwrap();
        assert_eq!((rule.action, only_checked), (Action::Queue(3), false));
        let fits = |frame: &[u8]| rule.flow.fits(&nic::headers::parse(frame).unwrap());
        assert!(fits(&udp(53)));
        assert!(!fits(&udp(54)));
        for (at, value) in [(15, 0), (29, 9), (33, 9), (23, TCP)] {
            let mut other = udp(53);
            other[at] = value;
            if value == TCP {
                other[46] = 0x50;
            }
            assert!(!fits(&other), "byte {at}");
        }
        assert!(!fits(&[0; 60]));
    }

    #[test]
    fn what_cannot_be_matched_is_no_rule() {
        let ethernet: Layer<'_> = (1, 0, &[]);
        assert!(parse(&message(&[ethernet], (ACTION_DROP, 0))).is_some());
        for (layers, action) in [
            (&[][..], (ACTION_QUEUE, 0)),
            (&[ethernet, (8, 0, &[])], (ACTION_QUEUE, 0)), // SCTP
            (&[ethernet, (4, 1 << 3, &[])], (ACTION_QUEUE, 0)), // time to live
            (&[ethernet], (5, 0)),                         // mark
        ] {
            assert_eq!(parse(&message(layers, action)), None);
        }
        let mut many = message(&[ethernet], (ACTION_QUEUE, 0));
        many[LAYERS..LAYERS + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(parse(&many), None);
        assert_eq!(parse(&[0; 100]), None);
    }
}
