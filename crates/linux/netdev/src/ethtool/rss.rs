//! Receive-side scaling: the key of the hash, and the table that makes queues of hashes
//! (`ethtool -x`).
//!
//! Layout: `struct ethtool_rxfh` of Linux, `include/uapi/linux/ethtool.h`: sizes, the table in
//! words, the key in bytes.

use std::io;

use serde::Serialize;

use super::flow_rule::Flow;
use super::flow_rules::Request;
use super::{Ethtool, refused};
use crate::error::DeviceError;
use sys::ethtool::{GET_SCALING, HASH_FIELDS, SCALING_HEADER, SET_SCALING};

/// Words of `struct ethtool_rxfh`.
const TABLE_SIZE: usize = 2;
const KEY_SIZE: usize = 3;
const FUNCTION: usize = 4;

/// The hash of Toeplitz (`ETH_RSS_HASH_TOP`).
const TOEPLITZ: u8 = 1 << 0;

/// How a device spreads packets over its queues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rss {
    /// The queue of each hash, by its low bits; empty if the driver does not say.
    pub table: Vec<u32>,
    /// The key of the hash; empty if the driver does not say.
    #[serde(skip)]
    pub key: Vec<u8>,
    /// Which hash: bits `ETH_RSS_HASH_...`; 0 if the driver does not say.
    pub function: u8,
    /// What is done to addresses and ports before: bits `RXH_XFRM_...`.
    pub transform: u8,
}

impl Rss {
    /// Whether it is the hash of Toeplitz over addresses and ports as they are. A driver that does
    /// not say has that one.
    pub fn is_toeplitz(&self) -> bool {
        matches!(self.function, 0 | TOEPLITZ) && self.transform == 0
    }
}

/// What the hash of packets of some kind is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashFields {
    /// Whether addresses are in it.
    pub addresses: bool,
    /// Whether ports are in it.
    pub ports: bool,
}

/// Reads the words of `struct ethtool_rxfh`, command included. What is missing is empty.
pub fn parse_rss(words: &[u32]) -> Rss {
    let size = |at: usize| words.get(at).and_then(|size| usize::try_from(*size).ok()).unwrap_or(0);
    let rest = words.get(SCALING_HEADER..).unwrap_or_default();
    let (table, rest) = rest.split_at(size(TABLE_SIZE).min(rest.len()));
    let key = rest.iter().flat_map(|word| word.to_ne_bytes()).take(size(KEY_SIZE));
    let [function, transform, ..] = words.get(FUNCTION).copied().unwrap_or(0).to_ne_bytes();
    Rss { table: table.to_vec(), key: key.collect(), function, transform }
}

impl Ethtool {
    /// How the device spreads packets over its queues (`ethtool -x`).
    pub fn rss(&self, device: &str) -> Result<Rss, DeviceError> {
        let action = "read the hash of";
        let mut sizes = [0; SCALING_HEADER];
        sizes[0] = GET_SCALING;
        self.ioctl(action, device, &mut sizes)?;
        let (table, key) = (sizes[TABLE_SIZE], sizes[KEY_SIZE]);
        let mut words = vec![0; SCALING_HEADER + table as usize + (key as usize).div_ceil(4)];
        (words[0], words[TABLE_SIZE], words[KEY_SIZE]) = (GET_SCALING, table, key);
        self.ioctl(action, device, &mut words)?;
        Ok(parse_rss(&words))
    }

    /// Sets the table that makes queues of hashes (`ethtool -X`); it is as long as before.
    pub fn set_rss_table(&self, device: &str, table: &[u32]) -> Result<(), DeviceError> {
        let action = "change the hash's table of";
        // The kernel takes none for: as the driver had it first.
        let size = u32::try_from(table.len()).ok().filter(|size| *size > 0);
        let size =
            size.ok_or_else(|| refused(action, device, io::ErrorKind::InvalidInput.into()))?;
        let mut words = vec![0; SCALING_HEADER];
        (words[0], words[TABLE_SIZE]) = (SET_SCALING, size);
        words.extend(table);
        self.ioctl(action, device, &mut words)
    }

    /// What the hash of these packets is made of.
    pub fn hash_fields(&self, device: &str, flow: Flow) -> Result<HashFields, DeviceError> {
        // `RXH_IP_SRC | RXH_IP_DST`, `RXH_L4_B_0_1 | RXH_L4_B_2_3`
        const ADDRESSES: u64 = 0b11 << 4;
        const PORTS: u64 = 0b11 << 6;
        let mut words = Request::new(HASH_FIELDS);
        words.flow_type(flow);
        self.ioctl("read what is hashed by", device, &mut words.0)?;
        let has = |bits| words.data() & bits == bits;
        Ok(HashFields { addresses: has(ADDRESSES), ports: has(PORTS) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_and_key_are_behind_their_sizes() {
        let mut words = vec![GET_SCALING, 0, 3, 6, u32::from_ne_bytes([1, 0, 0, 0]), 0, 0, 1, 0];
        words.extend([[1, 2, 3, 4], [5, 6, 0, 0]].map(u32::from_ne_bytes));
        let rss = parse_rss(&words);
        assert_eq!((&rss.table[..], &rss.key[..]), (&[0, 1, 0][..], &[1, 2, 3, 4, 5, 6][..]));
        assert!(rss.is_toeplitz());
        words[FUNCTION] = u32::from_ne_bytes([1, 1, 0, 0]);
        assert!(!parse_rss(&words).is_toeplitz(), "symmetric");
    }

    #[test]
    fn sizes_that_are_wrong_are_cut_off() {
        for words in [&[][..], &[GET_SCALING], &[GET_SCALING, 0, u32::MAX, u32::MAX, 0, 0, 7]] {
            let rss = parse_rss(words);
            assert!(rss.table.len() <= 1 && rss.key.is_empty(), "{rss:?}");
        }
    }
}
