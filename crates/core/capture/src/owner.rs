//! Whose arrivals: which packets of a capture the host of interest received.
//!
//! A capture has both directions. Where it says which way a packet went, that is believed; where
//! the user names an address, what goes to that address has arrived. Otherwise the first packets
//! are looked at: the station to which or from which nearly all frames go is the host at which the
//! capture was made.

use alloc::vec::Vec;
use core::net::IpAddr;

use nic::headers::Addresses;

use crate::link::{CapturedPacket, PacketDirection};

/// Packets that are looked at before it is decided.
const LOOKED_AT: usize = 2_048;
/// A station is the host's if so many of 100 frames with two single stations are its own.
const NEARLY_ALL: u64 = 95;
/// Stations that are counted at once.
const MAX_STATIONS: usize = 256;

/// One end of the frames of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Station {
    /// Its Ethernet address.
    pub address: [u8; 6],
    /// Frames to it.
    pub received: u64,
    /// Frames from it.
    pub sent: u64,
}

/// How it is decided which packets have arrived, and how sure that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sure {
    /// The capture says the direction of packets.
    Directions,
    /// What goes to this address.
    Address(IpAddr),
    /// What goes to this station, and to groups unless it sent it: nearly all frames are its own.
    Station([u8; 6]),
    /// The same, but another station is in nearly all frames, too: this one received more.
    Either([u8; 6], [u8; 6]),
    /// Everything: no station is in nearly all frames, so it is a tap or a port that mirrors.
    All,
}

/// Decides which packets have arrived.
#[derive(Clone, Debug, Default)]
pub struct Owner {
    decided: Option<Sure>,
    stations: Vec<Station>,
    frames: u64,
    directed: u64,
    seen: usize,
}

impl Owner {
    /// What goes to `address`; without one, whatever the first packets say.
    #[must_use]
    pub fn new(address: Option<IpAddr>) -> Self {
        Self { decided: address.map(Sure::Address), ..Self::default() }
    }

    /// How it is decided, if it is.
    #[must_use]
    pub const fn decided(&self) -> Option<Sure> {
        self.decided
    }

    /// Looks at one of the first packets; whether it is decided now.
    pub fn look(&mut self, packet: &CapturedPacket) -> bool {
        if self.decided.is_some() {
            return true;
        }
        self.seen += 1;
        self.directed += u64::from(packet.direction != PacketDirection::Unknown);
        if let Some(stations) = packet.stations.filter(|[_, to]| to[0] & 1 == 0) {
            self.frames += 1;
            for (station, is_sender) in stations.into_iter().zip([true, false]) {
                self.count(station, is_sender);
            }
        }
        if self.seen >= LOOKED_AT {
            self.decide();
        }
        self.decided.is_some()
    }

    fn count(&mut self, address: [u8; 6], is_sender: bool) {
        let known = self.stations.iter().position(|station| station.address == address);
        let at = known.unwrap_or_else(|| {
            if self.stations.len() < MAX_STATIONS {
                self.stations.push(Station { address, ..Station::default() });
            }
            self.stations.len() - 1
        });
        let station = &mut self.stations[at];
        if station.address == address {
            station.sent += u64::from(is_sender);
            station.received += u64::from(!is_sender);
        }
    }

    /// Decides by what has been seen, as at the end of a short capture.
    pub fn decide(&mut self) -> Sure {
        if let Some(decided) = self.decided {
            return decided;
        }
        let is_own = |station: &&Station| {
            (station.sent + station.received) * 100 >= self.frames * NEARLY_ALL
        };
        let mut own: Vec<&Station> = self.stations.iter().filter(is_own).collect();
        own.sort_by_key(|station| core::cmp::Reverse(station.received));
        let decided = match own[..] {
            // A few packets without a direction do not make the others unknown.
            _ if self.directed * 2 > self.seen as u64 => Sure::Directions,
            [] => Sure::All,
            [one] => Sure::Station(one.address),
            [most, other, ..] => Sure::Either(most.address, other.address),
        };
        self.decided = Some(decided);
        decided
    }

    /// Whether the host received this packet.
    #[inline]
    #[must_use]
    pub fn received(&self, packet: &CapturedPacket) -> bool {
        match self.decided {
            None | Some(Sure::All) => true,
            Some(Sure::Directions) => packet.direction == PacketDirection::In,
            Some(Sure::Address(address)) => {
                packet.direction != PacketDirection::Out && goes_to(packet, address)
            }
            Some(Sure::Station(own) | Sure::Either(own, _)) => {
                packet.stations.is_some_and(|[from, to]| to == own || to[0] & 1 == 1 && from != own)
            }
        }
    }
}

fn goes_to(packet: &CapturedPacket, address: IpAddr) -> bool {
    let Ok(headers) = &packet.headers else { return false };
    match (headers.addresses(), address) {
        (Addresses::V4([_, _, _, _, to @ ..]), IpAddr::V4(own)) => own.octets() == *to,
        (Addresses::V6(both), IpAddr::V6(own)) => both[16..] == own.octets(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(from: u8, to: u8) -> CapturedPacket {
        CapturedPacket {
            at_ns: 0,
            interface: 0,
            length: 60,
            headers: nic::headers::parse(&[0; 60]),
            stations: Some([[2, 0, 0, 0, 0, from], [2, 0, 0, 0, 0, to]]),
            direction: PacketDirection::Unknown,
            recorded: None,
        }
    }

    fn decide(packets: impl Iterator<Item = CapturedPacket>) -> Owner {
        let mut owner = Owner::new(None);
        packets.for_each(|packet| {
            owner.look(&packet);
        });
        owner.decide();
        owner
    }

    #[test]
    fn the_station_of_nearly_all_frames_is_the_host() {
        let talk = (0..90).map(|n| if n % 3 == 0 { packet(9, n) } else { packet(n, 9) });
        let owner = decide(talk.chain([packet(1, 2)]));
        assert_eq!(owner.decided(), Some(Sure::Station([2, 0, 0, 0, 0, 9])));
        assert!(owner.received(&packet(4, 9)) && !owner.received(&packet(9, 4)));
        let mut group = packet(4, 9);
        group.stations = Some([[2, 0, 0, 0, 0, 4], [0xff; 6]]);
        assert!(owner.received(&group), "what all receive");
    }

    #[test]
    fn of_two_stations_the_one_that_received_more_is_taken_and_the_other_named() {
        let owner = decide((0..9).map(|n| if n < 6 { packet(1, 2) } else { packet(2, 1) }));
        let [two, one] = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]];
        assert_eq!(owner.decided(), Some(Sure::Either(two, one)));
        let many = decide((0..200).map(|n| packet(n, n + 1)));
        assert_eq!(many.decided(), Some(Sure::All));
    }

    #[test]
    fn directions_and_addresses_are_believed() {
        let mut inbound = packet(1, 2);
        inbound.direction = PacketDirection::In;
        let owner = decide([inbound.clone(), inbound.clone()].into_iter());
        assert_eq!(owner.decided(), Some(Sure::Directions));
        assert!(owner.received(&inbound) && !owner.received(&packet(1, 2)));
        let named = Owner::new(Some("10.0.0.2".parse().unwrap()));
        assert!(!named.received(&inbound), "it is no IP packet");
        assert_eq!(Owner::new(None).decide(), Sure::All, "of nothing");
    }
}
