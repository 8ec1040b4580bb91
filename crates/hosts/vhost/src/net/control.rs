//! Commands of the control queue (virtio 1.3, section 5.1.6.5): bytes to values.
//!
//! A command is a class, a command and data that the device reads, then an acknowledgement and
//! sometimes a result that it writes. Addresses and receive modes are accepted and do nothing:
//! the port hands its guest every frame, and the standard allows filters to be imperfect.

use nic::rss::{HashTypes, KEY_LENGTH, TABLE_LENGTH};
use virtio_bindings::virtio_net::{
    VIRTIO_NET_CTRL_MAC, VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_RSS_CONFIG,
    VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, VIRTIO_NET_CTRL_NOTF_COAL, VIRTIO_NET_CTRL_NOTF_COAL_RX_SET,
    VIRTIO_NET_CTRL_NOTF_COAL_TX_SET, VIRTIO_NET_CTRL_NOTF_COAL_VQ_GET,
    VIRTIO_NET_CTRL_NOTF_COAL_VQ_SET, VIRTIO_NET_CTRL_RX, VIRTIO_NET_ERR, VIRTIO_NET_OK,
};

/// The command was carried out.
pub(super) const OK: u8 = VIRTIO_NET_OK as u8;
/// It was not, and nothing has changed.
pub(super) const ERR: u8 = VIRTIO_NET_ERR as u8;

/// Bytes of a command that are looked at; the longest that matters sets how packets are spread.
pub(super) const MAX_COMMAND: usize = 2 + 8 + 2 * TABLE_LENGTH + 3 + KEY_LENGTH;

/// A pair of coalescing parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coalesce {
    /// The longest wait, in microseconds.
    pub(super) usecs: u32,
    /// The packets that end it.
    pub(super) packets: u32,
}

/// How a guest wants packets to be spread (`struct virtio_net_rss_config`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spread {
    /// What is hashed.
    pub(super) types: HashTypes,
    /// The queue of what is not.
    pub(super) unclassified: u16,
    /// The queue of each hash by its low bits; a shorter table is repeated.
    pub(super) table: [u16; TABLE_LENGTH],
    /// Transmit queues in use.
    pub(super) pairs: u16,
    /// The key; a shorter one ends with zeros.
    pub(super) key: [u8; KEY_LENGTH],
}

impl Spread {
    /// Reads one; `None` if it is too short, or its table or its key is too long.
    fn parse(data: &[u8]) -> Option<Self> {
        let half = |at: usize| data.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes);
        let types = u32::from_le_bytes(data.get(..4)?.try_into().ok()?);
        let (entries, unclassified) = (usize::from(half(4)?) + 1, half(6)?);
        if !entries.is_power_of_two() || entries > TABLE_LENGTH {
            return None;
        }
        let mut table = [0; TABLE_LENGTH];
        for (index, entry) in table.iter_mut().enumerate() {
            *entry = half(8 + 2 * (index % entries))?;
        }
        let behind = 8 + 2 * entries;
        let length = usize::from(*data.get(behind + 2)?);
        let mut key = [0; KEY_LENGTH];
        key.get_mut(..length)?.copy_from_slice(data.get(behind + 3..behind + 3 + length)?);
        let types = HashTypes::of_virtio(types);
        Some(Self { types, unclassified, table, pairs: half(behind)?, key })
    }
}

/// What a guest wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Something that is accepted and has no effect.
    Accepted,
    /// Use this many pairs of queues.
    SetPairs(u16),
    /// Spread packets like this.
    Spread(Box<Spread>),
    /// Moderate all transmit queues.
    CoalesceTransmit(Coalesce),
    /// Moderate all receive queues.
    CoalesceReceive(Coalesce),
    /// Moderate one queue, by the number of its ring.
    CoalesceRing(u16, Coalesce),
    /// Asks what is in force for one ring.
    Ask(u16),
}

/// Reads a command; `None` if it is unknown or too short.
pub(super) fn parse(bytes: &[u8]) -> Option<Command> {
    let ([class, command], data) = bytes.split_first_chunk()?;
    let (class, command) = (u32::from(*class), u32::from(*command));
    let half = |at: usize| data.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes);
    let word = |at: usize| data.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let coalesce = |at| Some(Coalesce { packets: word(at)?, usecs: word(at + 4)? });
    Some(match (class, command) {
        (VIRTIO_NET_CTRL_RX, 0..=5) | (VIRTIO_NET_CTRL_MAC, 0 | 1) => Command::Accepted,
        (VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET) => Command::SetPairs(half(0)?),
        (VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_RSS_CONFIG) => {
            Command::Spread(Box::new(Spread::parse(data)?))
        }
        (VIRTIO_NET_CTRL_NOTF_COAL, VIRTIO_NET_CTRL_NOTF_COAL_TX_SET) => {
            Command::CoalesceTransmit(coalesce(0)?)
        }
        (VIRTIO_NET_CTRL_NOTF_COAL, VIRTIO_NET_CTRL_NOTF_COAL_RX_SET) => {
            Command::CoalesceReceive(coalesce(0)?)
        }
        (VIRTIO_NET_CTRL_NOTF_COAL, VIRTIO_NET_CTRL_NOTF_COAL_VQ_SET) => {
            Command::CoalesceRing(half(0)?, coalesce(4)?)
        }
        (VIRTIO_NET_CTRL_NOTF_COAL, VIRTIO_NET_CTRL_NOTF_COAL_VQ_GET) => Command::Ask(half(0)?),
        _ => return None,
    })
}

/// What the device writes back: an acknowledgement and, of a [`Command::Ask`], the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// [`OK`] or [`ERR`].
    pub(super) ack: u8,
    /// `struct virtio_net_ctrl_coal`.
    pub(super) result: Option<Coalesce>,
}

impl Answer {
    /// The bytes, and how many of them there are.
    pub(super) fn encode(&self) -> ([u8; 9], usize) {
        let mut bytes = [0; 9];
        bytes[0] = self.ack;
        let Some(Coalesce { usecs, packets }) = self.result else { return (bytes, 1) };
        bytes[1..5].copy_from_slice(&packets.to_le_bytes());
        bytes[5..].copy_from_slice(&usecs.to_le_bytes());
        (bytes, 9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_linux_sends_them() {
        let coalesce = Coalesce { usecs: 50, packets: 258 };
        let numbers = [2, 1, 0, 0, 50, 0, 0, 0];
        let with = |start: &[u8]| parse(&[start, &numbers].concat());
        assert_eq!(with(&[6, 0]), Some(Command::CoalesceTransmit(coalesce)));
        assert_eq!(with(&[6, 1]), Some(Command::CoalesceReceive(coalesce)));
        assert_eq!(with(&[6, 2, 3, 0, 0, 0]), Some(Command::CoalesceRing(3, coalesce)));
        assert_eq!(parse(&[6, 3, 1, 0, 0, 0]), Some(Command::Ask(1)));
        assert_eq!(parse(&[4, 0, 2, 0]), Some(Command::SetPairs(2)));
        assert_eq!(parse(&[0, 1, 1]), Some(Command::Accepted));
        assert_eq!(parse(&[1, 1, 2, 0, 0, 0, 0, 1]), Some(Command::Accepted));
    }

    #[test]
    fn a_table_and_a_key_are_read_as_linux_sends_them() {
        let table = (0..TABLE_LENGTH as u16).flat_map(|index| (index % 3).to_le_bytes());
        let table: Vec<u8> = table.collect();
        let key = [7; KEY_LENGTH];
        let head = [4, 1, 0x3F, 0, 0, 0, 127, 0, 1, 0];
        let bytes = [&head[..], &table, &[3, 0, 40], &key].concat();
        assert_eq!(bytes.len(), MAX_COMMAND);
        let Some(Command::Spread(spread)) = parse(&bytes) else { panic!("not read") };
        assert_eq!((spread.types, spread.unclassified, spread.pairs), (HashTypes::ALL, 1, 3));
        assert_eq!((spread.table[..4].to_vec(), spread.key), (vec![0, 1, 2, 0], key));
        for length in 0..bytes.len() {
            assert_eq!(parse(&bytes[..length]), None);
        }
        // Two entries, a key of one byte.
        let short = [4, 1, 1, 0, 0, 0, 1, 0, 0, 0, 5, 0, 6, 0, 2, 0, 1, 9];
        let Some(Command::Spread(spread)) = parse(&short) else { panic!("not read") };
        assert_eq!(
            (spread.table[126..].to_vec(), spread.key[..2].to_vec()),
            (vec![5, 6], vec![9, 0])
        );
        for (at, wrong) in [(6, 2), (7, 1), (16, 41)] {
            let mut bytes = [&short[..], &[0; 600]].concat();
            bytes[at] = wrong;
            assert_eq!(parse(&bytes), None, "{at}");
        }
    }

    #[test]
    fn unknown_and_short_commands_are_none() {
        for class in 0..=u8::MAX {
            for command in 0..=u8::MAX {
                let known = parse(&[class, command, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_some();
                assert_eq!(
                    known,
                    matches!((class, command), (0, 0..=5) | (1, 0..=1) | (4, 0) | (6, 0..=3))
                );
            }
        }
        for bytes in
            [&[][..], &[6], &[6, 1], &[6, 1, 0, 0, 0, 0, 0, 0, 0], &[6, 2, 0, 0], &[4, 0, 1]]
        {
            assert_eq!(parse(bytes), None);
        }
    }

    #[test]
    fn result_follows_the_acknowledgement() {
        let answer = Answer { ack: OK, result: Some(Coalesce { usecs: 5, packets: 3 }) };
        assert_eq!(answer.encode(), ([0, 3, 0, 0, 0, 5, 0, 0, 0], 9));
        assert_eq!(Answer { ack: ERR, result: None }.encode().1, 1);
    }
}
