//! Which frames are for the driver: addresses, VLANs, promiscuous modes.

use crate::address::{Cast, address};

/// The most addresses, own and of multicast groups.
const MAX_ADDRESSES: usize = 256;
/// The most VLANs: all there are.
const MAX_VLAN: u16 = 4_095;

/// A frame's tag is behind its addresses: the type, then priority and number.
const TAG: std::ops::Range<usize> = 12..16;

#[derive(Debug, Default)]
pub(super) struct Filters {
    addresses: Vec<[u8; 6]>,
    vlans: Vec<u16>,
    /// Takes unicast frames for others.
    pub promiscuous: bool,
    /// Takes all multicast frames.
    pub all_multicast: bool,
}

impl Filters {
    /// Adds addresses, all or none; whether there is room for them.
    pub(super) fn add_addresses(&mut self, addresses: &[[u8; 6]]) -> bool {
        let new: Vec<_> = addresses.iter().filter(|new| !self.addresses.contains(new)).collect();
        let fits = self.addresses.len() + new.len() <= MAX_ADDRESSES;
        if fits {
            self.addresses.extend(new);
        }
        fits
    }

    pub(super) fn remove_addresses(&mut self, addresses: &[[u8; 6]]) {
        self.addresses.retain(|address| !addresses.contains(address));
    }

    /// Adds VLANs, all or none; whether there are such.
    pub(super) fn add_vlans(&mut self, vlans: &[u16]) -> bool {
        let fits = vlans.iter().all(|vlan| *vlan <= MAX_VLAN);
        if fits {
            self.remove_vlans(vlans);
            self.vlans.extend(vlans);
            self.vlans.sort_unstable();
            self.vlans.dedup();
        }
        fits
    }

    /// Removes VLANs. Without any, frames of all are taken.
    pub(super) fn remove_vlans(&mut self, vlans: &[u16]) {
        self.vlans.retain(|vlan| !vlans.contains(vlan));
    }

    pub(super) fn accept(&self, frame: &[u8]) -> bool {
        let is_known = |to: &[u8; 6]| self.addresses.contains(to);
        let has_address = frame.first_chunk().is_some_and(is_known);
        let accepted = match address(frame) {
            Cast::Broadcast => true,
            Cast::Multicast => self.all_multicast || has_address,
            Cast::Unicast => self.promiscuous || has_address,
        };
        let has_vlan = |tag: u16| self.vlans.is_empty() || self.vlans.contains(&(tag & 0xFFF));
        accepted && tag(frame).is_none_or(has_vlan)
    }
}

/// Priority and number of the frame's VLAN, if it has a tag of IEEE 802.1Q.
pub(super) fn tag(frame: &[u8]) -> Option<u16> {
    match frame.get(TAG) {
        Some([0x81, 0, high, low]) => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

pub(super) fn strip(frame: &mut Vec<u8>) {
    if tag(frame).is_some() {
        frame.drain(TAG);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: [u8; 6] = [2, 0, 0, 0, 0, 7];
    const GROUP: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

    fn frame(to: [u8; 6], rest: &[u8]) -> Vec<u8> {
        [&to[..], &[0; 6], rest, &[0; 48]].concat()
    }

    #[test]
    fn frames_for_others_are_not_accepted() {
        let mut filters = Filters::default();
        assert!(filters.add_addresses(&[MINE, GROUP]));
        for (to, accepted) in
            [(MINE, true), (GROUP, true), ([0xFF; 6], true), ([2; 6], false), ([3; 6], false)]
        {
            assert_eq!(filters.accept(&frame(to, &[8, 0])), accepted, "{to:?}");
        }
        (filters.promiscuous, filters.all_multicast) = (true, true);
        assert!(filters.accept(&frame([2; 6], &[8, 0])));
        assert!(filters.accept(&frame([3; 6], &[8, 0])));
        (filters.promiscuous, filters.all_multicast) = (false, false);
        filters.remove_addresses(&[MINE]);
        assert!(!filters.accept(&frame(MINE, &[8, 0])));
    }

    #[test]
    fn a_vlan_shuts_the_others_out() {
        let mut filters = Filters::default();
        filters.add_addresses(&[MINE]);
        let of = |number: u8| frame(MINE, &[0x81, 0, 0x20, number, 8, 0]);
        assert!(filters.accept(&of(5)), "none is asked for");
        assert!(filters.add_vlans(&[5, 6]) && !filters.add_vlans(&[7, 4_096]));
        assert!(filters.accept(&of(5)) && !filters.accept(&of(7)));
        assert!(filters.accept(&frame(MINE, &[8, 0])), "it has no tag");
        filters.remove_vlans(&[5]);
        assert!(!filters.accept(&of(5)));
        let mut tagged = of(6);
        assert_eq!(tag(&tagged), Some(0x2006));
        strip(&mut tagged);
        assert_eq!((tagged.len(), &tagged[12..14]), (62, &[8, 0][..]));
        assert_eq!(tag(&tagged), None);
    }

    #[test]
    fn addresses_are_bounded() {
        let mut filters = Filters::default();
        for number in 0..=255 {
            assert!(filters.add_addresses(&[[2, 0, 0, 0, 0, number]]));
        }
        assert!(filters.add_addresses(&[[2, 0, 0, 0, 0, 9]]), "it is there already");
        assert!(!filters.add_addresses(&[[2, 0, 0, 0, 1, 0]]));
    }
}
