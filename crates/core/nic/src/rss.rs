//! Which queue a packet goes to: receive-side scaling.
//!
//! Packets of one connection should meet one core, and connections should spread. The NIC hashes
//! what names the connection (addresses and ports, by Toeplitz' matrix hash under a 40-byte key)
//! and looks the low 7 bits of the hash up in an indirection table of queue numbers. Both are what
//! `ethtool -x` shows and `ethtool -X` sets; the hash is that of Microsoft's "RSS hashing
//! functions", so results can be compared with any NIC under the same key.
//!
//! The hash is linear: every input bit that is set adds (by xor) its own 32-bit window of the key.
//! So each input byte has a table of 256 sums, built once, and a packet costs one look-up per
//! byte: 12 for TCP over IPv4. The tables take 36 KiB.
//!
//! A driver may have fewer types of packets hashed ([`HashTypes`]). Otherwise three kinds are not
//! hashed whole:
//! - a fragment is hashed by its addresses alone, the first one too, or the fragments of one
//!   datagram would part;
//! - an MX frame has no addresses to hash. Its destination endpoint is what one core should serve,
//!   so the endpoint number takes the place of the hash: under an [equal](Indirection::equal) table
//!   endpoint *e* below 128 has queue *e* modulo the number of queues, which a user can predict;
//! - everything else goes to queue 0, or to the first in the table if that one is left out.

use crate::headers::{Addresses, Headers, TCP};
use alloc::boxed::Box;
use core::fmt;

/// Bytes of a key: a 32-bit window for each bit of the longest input, two IPv6 addresses and ports.
pub const KEY_LENGTH: usize = 40;
/// Entries of the indirection table, a power of two.
pub const TABLE_LENGTH: usize = 128;

/// The key of the published verification vectors, and the default of many NICs.
pub const DEFAULT_KEY: [u8; KEY_LENGTH] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// Two IPv6 addresses and two ports.
const INPUT_MAX: usize = 36;

/// The queue of each hash, by its low bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indirection {
    entries: [u16; TABLE_LENGTH],
}

/// An indirection table names a queue that the port does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchQueue {
    /// The queue in the table.
    pub queue: u16,
    /// How many queues the port has, numbered from 0.
    pub queues: u16,
}

/// Which packets are hashed: IP, and of TCP and UDP the ports as well, of either version.
///
/// The bits are those of virtio (virtio 1.3, section 5.1.6.4.3.1, `VIRTIO_NET_HASH_TYPE_*`), of
/// which those for IPv6 with extension headers are no types of their own here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashTypes(u32);

impl HashTypes {
    /// All of them.
    pub const ALL: Self = Self(0x3F);

    /// IP by its addresses; the next two bits are TCP's and UDP's, with ports.
    const IPV4: u32 = 1 << 0;
    const IPV6: u32 = 1 << 3;

    /// Those that virtio's bits name.
    #[must_use]
    pub const fn of_virtio(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// As virtio has them.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    #[inline]
    const fn with_ports(self, version: u32, protocol: Option<u8>) -> bool {
        let shift = if matches!(protocol, Some(TCP)) { 1 } else { 2 };
        self.0 & version << shift != 0
    }
}

/// A hash key and an indirection table, ready to be used.
#[derive(Clone)]
pub struct Rss {
    key: [u8; KEY_LENGTH],
    /// For each input position, what each value of that byte adds to the hash.
    sums: Box<[[u32; 256]; INPUT_MAX]>,
    indirection: Indirection,
    types: HashTypes,
    /// The queue of what has no hash.
    unhashed: u16,
}

impl Indirection {
    /// The table of `ethtool -X DEV equal N`: queues 0 to `queues - 1` in turn. No queues count as
    /// one.
    #[must_use]
    pub fn equal(queues: u16) -> Self {
        let queues = usize::from(queues.max(1));
        Self { entries: core::array::from_fn(|index| (index % queues) as u16) }
    }

    /// The table that takes these queues in turn; without any, queue 0.
    #[must_use]
    pub fn over(queues: &[u16]) -> Self {
        let queue = |index: usize| queues.get(index % queues.len().max(1)).copied().unwrap_or(0);
        Self { entries: core::array::from_fn(queue) }
    }

    /// A table as it stands, for a port of `queues` queues.
    ///
    /// # Errors
    ///
    /// [`NoSuchQueue`] for the first entry that is not below `queues`.
    pub fn new(entries: [u16; TABLE_LENGTH], queues: u16) -> Result<Self, NoSuchQueue> {
        match entries.into_iter().find(|&queue| queue >= queues) {
            Some(queue) => Err(NoSuchQueue { queue, queues }),
            None => Ok(Self { entries }),
        }
    }

    /// The table as it stands.
    #[must_use]
    pub const fn entries(&self) -> &[u16; TABLE_LENGTH] {
        &self.entries
    }

    /// The queue of what has no hash: queue 0, if any hash leads there.
    fn unhashed(&self) -> u16 {
        if self.entries.contains(&0) { 0 } else { self.entries[0] }
    }

    /// The queue of a hash.
    #[inline]
    #[must_use]
    pub const fn queue(&self, hash: u32) -> u16 {
        self.entries[hash as usize % TABLE_LENGTH]
    }
}

impl fmt::Display for NoSuchQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, queues } = self;
        write!(f, "indirection table names queue {queue}; the port has {queues} queues, from 0")
    }
}

impl core::error::Error for NoSuchQueue {}

impl Rss {
    /// Builds the hash tables of `key`: a few ten thousand operations, not for the packet path.
    #[must_use]
    pub fn new(key: [u8; KEY_LENGTH], indirection: Indirection) -> Self {
        let mut sums = Box::new([[0; 256]; INPUT_MAX]);
        for (table, key) in sums.iter_mut().zip(key.windows(5)) {
            // The 40 bits from here on hold the windows of all 8 bits of this byte.
            let bits = key.iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
            for value in 1..table.len() {
                let lowest = value.trailing_zeros();
                // Linear: the value without its lowest bit, plus the window of that bit.
                table[value] = table[value & (value - 1)] ^ (bits >> (lowest + 1)) as u32;
            }
        }
        let unhashed = indirection.unhashed();
        Self { key, sums, indirection, types: HashTypes::ALL, unhashed }
    }

    /// The key of the Toeplitz hash.
    #[must_use]
    pub const fn key(&self) -> &[u8; KEY_LENGTH] {
        &self.key
    }

    /// The indirection table.
    #[must_use]
    pub const fn indirection(&self) -> &Indirection {
        &self.indirection
    }

    /// The queue of what has no hash.
    #[inline]
    pub(crate) const fn unhashed(&self) -> u16 {
        self.unhashed
    }

    /// Uses another indirection table from the next packet on.
    pub fn set_indirection(&mut self, indirection: Indirection) {
        self.unhashed = indirection.unhashed();
        self.indirection = indirection;
    }

    /// Hashes these types of packets alone, from the next one on; all others go to `unhashed`.
    pub fn set_types(&mut self, types: HashTypes, unhashed: u16) {
        (self.types, self.unhashed) = (types, unhashed);
    }

    /// The Toeplitz hash of an IP packet; `None` for any other frame, and for types that are not
    /// hashed.
    #[inline]
    #[must_use]
    pub fn hash(&self, headers: &Headers) -> Option<u32> {
        let (addresses, version): (&[u8], _) = match headers.addresses() {
            Addresses::None => return None,
            Addresses::V4(addresses) => (addresses, HashTypes::IPV4),
            Addresses::V6(addresses) => (addresses, HashTypes::IPV6),
        };
        let hash = self.sum(0, addresses);
        match headers.ports() {
            Some((source, destination))
                if !headers.is_fragment() && self.types.with_ports(version, headers.protocol()) =>
            {
                let ports = u32::from(source) << 16 | u32::from(destination);
                Some(hash ^ self.sum(addresses.len(), &ports.to_be_bytes()))
            }
            _ => (self.types.0 & version != 0).then_some(hash),
        }
    }

    /// The queue of a packet.
    #[inline]
    #[must_use]
    pub fn queue_of(&self, headers: &Headers) -> u16 {
        let hash = match headers.mx_endpoint() {
            Some(endpoint) => Some(endpoint.into()),
            None => self.hash(headers),
        };
        hash.map_or(self.unhashed, |hash| self.indirection.queue(hash))
    }

    /// What the input bytes from position `at` on add to the hash.
    #[inline]
    fn sum(&self, at: usize, bytes: &[u8]) -> u32 {
        let tables = self.sums.iter().skip(at);
        tables.zip(bytes).fold(0, |sum, (table, &byte)| sum ^ table[usize::from(byte)])
    }
}

/// The Toeplitz hash by its definition, bit by bit: for hashes now and then, of any NIC. Of a key
/// that is too short for the input, bits beyond its end count as 0.
#[must_use]
pub fn toeplitz(key: &[u8], input: &[u8]) -> u32 {
    let bit = |bytes: &[u8], index: usize| {
        bytes.get(index / 8).is_some_and(|byte| byte >> (7 - index % 8) & 1 == 1)
    };
    let window =
        |from| (from..from + 32).fold(0, |window, index| window << 1 | u32::from(bit(key, index)));
    (0..input.len() * 8).filter(|&index| bit(input, index)).fold(0, |sum, at| sum ^ window(at))
}

impl fmt::Debug for Rss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rss")
            .field("key", &self.key)
            .field("indirection", &self.indirection)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{ethernet, ipv4, ipv6, mx, tagged, tcp, tcp4, udp4};
    use crate::headers::{TCP, parse};
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use core::net::IpAddr;
    use proptest::prelude::*;

    /// A protocol of which we read no header.
    const ESP: u8 = 50;

    fn rss(queues: u16) -> Rss {
        Rss::new(DEFAULT_KEY, Indirection::equal(queues))
    }

    /// An IPv6 packet between two hosts; of another protocol than TCP it has no ports.
    fn packet6(protocol: u8, addresses: [u8; 32], ports: (u16, u16)) -> Headers {
        let mut frame = ethernet(0x86dd, &ipv6(protocol, &tcp(ports.0, ports.1, 0, b"")));
        frame[22..54].copy_from_slice(&addresses);
        parse(&frame).unwrap()
    }

    /// A packet between two hosts; of another protocol than TCP it has no ports.
    fn packet(protocol: u8, source: (&str, u16), destination: (&str, u16)) -> Headers {
        let ports = (source.1, destination.1);
        match (source.0.parse().unwrap(), destination.0.parse().unwrap()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let segment = tcp(ports.0, ports.1, 0, b"");
                let mut frame = ethernet(0x0800, &ipv4(protocol, 0, &[], &segment));
                frame[26..34].copy_from_slice(&[a.octets(), b.octets()].concat());
                parse(&frame).unwrap()
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                let addresses = [a.octets(), b.octets()].concat().try_into().unwrap();
                packet6(protocol, addresses, ports)
            }
            _ => unreachable!(),
        }
    }

    #[test]
    fn hash_matches_the_published_vectors() {
        let rss = rss(1);
        // Destination, source, hash of the addresses, hash of addresses and ports.
        for (destination, source, addresses, all) in [
            (("161.142.100.80", 1766), ("66.9.149.187", 2794), 0x323e_8fc2, 0x51cc_c178),
            (("65.69.140.83", 4739), ("199.92.111.2", 14230), 0xd718_262a, 0xc626_b0ea),
            (("12.22.207.184", 38024), ("24.19.198.95", 12898), 0xd2d0_a5de, 0x5c2b_394a),
            (("209.142.163.6", 2217), ("38.27.205.30", 48228), 0x8298_9176, 0xafc7_327f),
            (("202.188.127.2", 1303), ("153.39.163.191", 44251), 0x5d18_09c5, 0x10e8_28a2),
            (
                ("3ffe:2501:200:3::1", 1766),
                ("3ffe:2501:200:1fff::7", 2794),
                0x2cc1_8cd5,
                0x4020_7d3d,
            ),
            (
                ("ff02::1", 4739),
                ("3ffe:501:8::260:97ff:fe40:efab", 14230),
                0x0f0c_461c,
                0xdde5_1bbf,
            ),
            (
                ("fe80::200:f8ff:fe21:67cf", 38024),
                ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251),
                0x4b61_e985,
                0x02d1_feef,
            ),
        ] {
            assert_eq!(rss.hash(&packet(TCP, source, destination)), Some(all), "{source:?}");
            let other = packet(ESP, source, destination);
            assert_eq!(rss.hash(&other), Some(addresses), "{source:?}");
        }
    }

    #[test]
    fn fragments_of_one_datagram_stay_together() {
        let rss = rss(128);
        let segment = tcp(1000, 80, 0, b"");
        let fragment = |word| parse(&ethernet(0x0800, &ipv4(6, word, &[], &segment))).unwrap();
        let whole = rss.hash(&fragment(0));
        let [first, middle, last] = [0x2000, 0x2001, 0x0001].map(|word| rss.hash(&fragment(word)));
        assert_eq!((first, middle), (middle, last));
        assert_ne!(whole, first);
    }

    #[test]
    fn udp_ports_and_tags_do_what_they_should() {
        let rss = rss(128);
        let hash = |frame: &[u8]| rss.hash(&parse(frame).unwrap());
        assert_ne!(hash(&udp4(1, 2, b"")), hash(&udp4(1, 3, b"")));
        assert_eq!(hash(&udp4(1, 2, b"")), hash(&tcp4(1, 2, 0, b"")));
        assert_eq!(hash(&udp4(1, 2, b"")), hash(&tagged(0x8100, 3, &udp4(1, 2, b""))));
    }

    #[test]
    fn what_is_not_among_the_types_is_hashed_by_less_or_not_at_all() {
        let frames = [udp4(1, 2, b""), tcp4(1, 2, 0, b"")].map(|frame| parse(&frame).unwrap());
        let [all, addresses, none] = [0x3F, 0x01, 0x38].map(|bits| {
            let mut rss = rss(128);
            rss.set_types(HashTypes::of_virtio(bits), 5);
            frames.each_ref().map(|headers| (rss.hash(headers), rss.queue_of(headers)))
        });
        assert_eq!((all[0], none), (all[1], [(None, 5); 2]));
        assert_eq!(addresses[0], addresses[1]);
        assert_ne!(addresses[0], all[0]);
        let mut udp = rss(128);
        udp.set_types(HashTypes::of_virtio(0x04), 5);
        assert_eq!([udp.hash(&frames[0]), udp.hash(&frames[1])], [all[0].0, None]);
    }

    #[test]
    fn mx_frames_go_by_endpoint() {
        let rss = rss(3);
        let queues: Vec<u16> =
            (0..8).map(|endpoint| rss.queue_of(&parse(&mx(0, endpoint)).unwrap())).collect();
        assert_eq!(queues, [0, 1, 2, 0, 1, 2, 0, 1]);
    }

    #[test]
    fn other_frames_go_to_queue_0() {
        let arp = parse(&ethernet(0x0806, &[0; 46])).unwrap();
        assert_eq!(rss(8).queue_of(&arp), 0);
        let entries = Indirection::new([7; TABLE_LENGTH], 8).unwrap();
        let mut rss = rss(1);
        rss.set_indirection(entries);
        assert_eq!(rss.queue_of(&arp), 7, "queue 0 is left out");
        assert_eq!(rss.queue_of(&parse(&tcp4(1, 2, 0, b"")).unwrap()), 7);
        assert_eq!(rss.queue_of(&parse(&mx(0, 0)).unwrap()), 7);
    }

    #[test]
    fn queue_is_the_entry_of_the_low_seven_bits() {
        let entries = core::array::from_fn(|index| index as u16);
        let rss = Rss::new(DEFAULT_KEY, Indirection::new(entries, 128).unwrap());
        let headers = packet(TCP, ("66.9.149.187", 2794), ("161.142.100.80", 1766));
        assert_eq!(rss.queue_of(&headers), 0x78);
    }

    #[test]
    fn equal_table_takes_queues_in_turn() {
        assert_eq!(Indirection::equal(4).entries()[..6], [0, 1, 2, 3, 0, 1]);
        assert_eq!(Indirection::equal(0), Indirection::equal(1));
        assert_eq!(Indirection::over(&[0, 2]).entries()[..5], [0, 2, 0, 2, 0]);
        assert_eq!(Indirection::over(&[]), Indirection::equal(1));
        assert_eq!(Indirection::equal(1).entries(), &[0; TABLE_LENGTH]);
    }

    #[test]
    fn table_with_an_unknown_queue_is_refused() {
        let entries = *Indirection::equal(4).entries();
        let error = Indirection::new(entries, 3).unwrap_err();
        assert_eq!(error, NoSuchQueue { queue: 3, queues: 3 });
        assert_eq!(
            error.to_string(),
            "indirection table names queue 3; the port has 3 queues, from 0"
        );
    }

    proptest! {
        #[test]
        fn tables_agree_with_the_definition(
            key: [[u8; 20]; 2],
            addresses: [u8; 32],
            ports: (u16, u16),
        ) {
            let key = key.concat().try_into().unwrap();
            let headers = packet6(TCP, addresses, ports);
            let mut input = addresses.to_vec();
            input.extend(ports.0.to_be_bytes());
            input.extend(ports.1.to_be_bytes());
            let rss = Rss::new(key, Indirection::equal(1));
            prop_assert_eq!(rss.hash(&headers), Some(toeplitz(&key, &input)));
        }
    }
}
