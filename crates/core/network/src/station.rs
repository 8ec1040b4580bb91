//! Who is who on Earmark's wire.
//!
//! The stations of a lab are numbered from 1. The number decides every address, so that a capture
//! can be read without a table: station 1 is `10.9.0.1`, `fd09::1` and `02:00:00:00:00:0a`, station
//! 2 ends in 2, 2 and `0b`. The MAC addresses are locally administered; the networks are private
//! ones.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// Prefix length of the IPv4 network that all stations share.
pub const IPV4_PREFIX: u8 = 24;

/// Prefix length of the IPv6 network that all stations share.
pub const IPV6_PREFIX: u8 = 64;

/// The most hosts that have a letter each.
pub const MAX_HOSTS: usize = 26;

/// The names of the first `count` hosts: `a`, `b`, and so on, at most [`MAX_HOSTS`].
pub fn names(count: usize) -> Vec<String> {
    ('a'..='z').take(count).map(String::from).collect()
}

/// The IPv4 address of the station with this number.
pub const fn ipv4(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, number)
}

/// A host as its peers see it: its name and its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Station {
    /// The name of the host.
    pub name: String,
    /// The Ethernet address of its interface.
    pub mac: [u8; 6],
    /// Its IPv4 address, in a network of [`IPV4_PREFIX`] bits.
    pub ipv4: Ipv4Addr,
    /// Its IPv6 address, in a network of [`IPV6_PREFIX`] bits.
    pub ipv6: Ipv6Addr,
}

impl Station {
    /// The station with this name and number.
    ///
    /// # Panics
    ///
    /// If `number` is not in `1..=200`.
    pub fn new(name: &str, number: u8) -> Self {
        assert!((1..=200).contains(&number), "station numbers are 1 to 200, not {number}");
        Self {
            name: name.to_owned(),
            mac: [0x02, 0, 0, 0, 0, 0x09 + number],
            ipv4: ipv4(number),
            ipv6: Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, number.into()),
        }
    }

    /// The stations of hosts with these names, numbered in their order; at most 200.
    pub fn all(names: &[String]) -> Vec<Self> {
        (1..=200).zip(names).map(|(number, name)| Self::new(name, number)).collect()
    }

    /// The name of its interface: `a0` for host `a`.
    pub fn interface(&self) -> String {
        format!("{}0", self.name)
    }

    /// Its IP addresses, each with the length of its prefix.
    pub fn addresses(&self) -> [(IpAddr, u8); 2] {
        [(self.ipv4.into(), IPV4_PREFIX), (self.ipv6.into(), IPV6_PREFIX)]
    }
}
