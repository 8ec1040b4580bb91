//! Commands of the control queue (virtio 1.3, section 5.1.6.5), and what they change.
//!
//! A command is a class, a command and data that the device reads, then an acknowledgement and
//! sometimes a result that it writes. Addresses and receive modes are accepted and do nothing:
//! the port hands its guest every frame, and the standard allows filters to be imperfect.

use base::time::Instant;
use hostside::trace::Watch;
use nic::moderation::{Moderation, Profile};
use nic::port::Port;
use nic::rss::{HashTypes, Indirection, KEY_LENGTH, Rss, TABLE_LENGTH};
use virtio_bindings::virtio_net::{
    VIRTIO_NET_CTRL_MAC, VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_RSS_CONFIG,
    VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, VIRTIO_NET_CTRL_NOTF_COAL, VIRTIO_NET_CTRL_NOTF_COAL_RX_SET,
    VIRTIO_NET_CTRL_NOTF_COAL_TX_SET, VIRTIO_NET_CTRL_NOTF_COAL_VQ_GET,
    VIRTIO_NET_CTRL_NOTF_COAL_VQ_SET, VIRTIO_NET_CTRL_RX, VIRTIO_NET_ERR, VIRTIO_NET_OK,
};

use super::coalesce::coalesce;
use super::receive::in_buffer;
use super::send::Sender;
use crate::transport::ring::{Chain, DriverEvent, RingError, length};
use crate::transport::session::LiveRing;

/// The command was carried out.
const OK: u8 = VIRTIO_NET_OK as u8;
/// It was not, and nothing has changed.
const ERR: u8 = VIRTIO_NET_ERR as u8;

/// Bytes of a command that are looked at; the longest that matters sets how packets are spread.
const MAX_COMMAND: usize = 2 + 8 + 2 * TABLE_LENGTH + 3 + KEY_LENGTH;

/// How a guest wants packets to be spread (`struct virtio_net_rss_config`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spread {
    /// What is hashed.
    types: HashTypes,
    /// The queue of what is not.
    unclassified: u16,
    /// The queue of each hash by its low bits; a shorter table is repeated.
    table: [u16; TABLE_LENGTH],
    /// Transmit queues in use.
    pairs: u16,
    /// The key; a shorter one ends with zeros.
    key: [u8; KEY_LENGTH],
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

pub(super) struct GuestControls<'a> {
    pub(super) now: Instant,
    pub(super) port: &'a mut Port<Vec<u8>>,
    pub(super) watch: &'a mut Watch,
    pub(super) senders: &'a mut [Sender],
    /// Pairs that the guest uses, and those that the port spreads packets over.
    pub(super) pairs: &'a mut u16,
    pub(super) spread: &'a mut u16,
    pub(super) is_spread_by_guest: &'a mut bool,
    /// The guest was offered to say how packets are spread.
    pub(super) has_rss: bool,
}

impl GuestControls<'_> {
    /// Carries out a command: the acknowledgement and the result.
    pub(super) fn carry_out(&mut self, command: &[u8]) -> Vec<u8> {
        self.result(command).map_or(vec![ERR], |result| [&[OK], &result[..]].concat())
    }

    /// The result of a command; `None` if it is unknown, too short or impossible.
    fn result(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let ([class, command], data) = bytes.split_first_chunk()?;
        let half = |at: usize| data.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes);
        let word = |at: usize| data.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let profile = |at| Some(Profile { rx_frames: word(at)?, rx_usecs: word(at + 4)? });
        let queues = self.port.queues().len();
        let done = match (u32::from(*class), u32::from(*command)) {
            (VIRTIO_NET_CTRL_RX, 0..=5) | (VIRTIO_NET_CTRL_MAC, 0 | 1) => true,
            (VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET) => {
                let wanted = Some(half(0)?).filter(|pairs| (1..=queues).contains(&(*pairs).into()));
                *self.pairs = wanted?;
                true
            }
            (VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_RSS_CONFIG) => {
                self.spread(Spread::parse(data)?)
            }
            (VIRTIO_NET_CTRL_NOTF_COAL, VIRTIO_NET_CTRL_NOTF_COAL_TX_SET) => {
                let profile = profile(0)?;
                self.senders.iter_mut().all(|sender| sender.coalesce(self.now, profile))
            }
            (VIRTIO_NET_CTRL_NOTF_COAL, VIRTIO_NET_CTRL_NOTF_COAL_RX_SET) => {
                let profile = profile(0)?;
                (0..queues).all(|pair| self.coalesce_receive(pair, profile))
            }
            (VIRTIO_NET_CTRL_NOTF_COAL, VIRTIO_NET_CTRL_NOTF_COAL_VQ_SET) => {
                let (ring, profile) = (half(0)?, profile(4)?);
                let pair = usize::from(ring / 2);
                match self.senders.get_mut(pair) {
                    Some(sender) if ring % 2 == 1 => sender.coalesce(self.now, profile),
                    _ => self.coalesce_receive(pair, profile),
                }
            }
            (VIRTIO_NET_CTRL_NOTF_COAL, VIRTIO_NET_CTRL_NOTF_COAL_VQ_GET) => {
                let Profile { rx_usecs, rx_frames } = self.in_force(half(0)?)?;
                return Some([rx_frames.to_le_bytes(), rx_usecs.to_le_bytes()].concat());
            }
            _ => false,
        };
        done.then(Vec::new)
    }

    /// Spreads packets as the guest wants it, if it was offered that and there are such queues.
    fn spread(&mut self, spread: Spread) -> bool {
        let Spread { types, unclassified, table, pairs, key } = spread;
        let all = self.port.queues().len() as u16;
        let Ok(table) = Indirection::new(table, all) else { return false };
        if !self.has_rss || unclassified >= all || !(1..=all).contains(&pairs) {
            return false;
        }
        // A key costs some ten thousand operations, another table none.
        let mut rss = if *self.port.rss().key() == key {
            let mut rss = self.port.rss().clone();
            rss.set_indirection(table);
            rss
        } else {
            Rss::new(key, table)
        };
        rss.set_types(types, unclassified);
        self.port.set_rss(pairs, rss);
        (*self.pairs, *self.spread, *self.is_spread_by_guest) = (pairs, pairs, true);
        true
    }

    fn coalesce_receive(&mut self, pair: usize, profile: Profile) -> bool {
        let Some(queue) = self.port.queues_mut().get_mut(pair) else { return false };
        let before: Moderation = *queue.moderation();
        let Ok(moderation) = coalesce(before, profile.rx_usecs, profile.rx_frames) else {
            return false;
        };
        // Linux sends what has not changed as well; a timer that runs need not start anew.
        if moderation != before {
            queue.set_moderation(self.now, moderation, self.watch);
        }
        true
    }

    fn in_force(&self, ring: u16) -> Option<Profile> {
        let pair = usize::from(ring / 2);
        Some(match ring % 2 {
            0 => self.port.queues().get(pair)?.in_force(),
            _ => self.senders.get(pair)?.in_force(),
        })
    }
}

/// Where in which control ring the guest was asked to kick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AskedAt {
    generation: u32,
    base: u16,
}

/// Takes the next command. If there is none, the guest is asked to kick, unless it was before.
pub(super) fn take_command(
    live: &mut LiveRing<'_>,
    chain: &mut Chain,
    asked_at: &mut Option<AskedAt>,
) -> Result<Option<(u16, Vec<u8>)>, RingError> {
    chain.clear();
    let mut head = live.ring.take(live.memory, chain)?;
    let here = Some(AskedAt { generation: live.generation, base: live.ring.base() });
    if head.is_none() && *asked_at != here {
        *asked_at = here;
        live.ring.ask_for_kick();
        // One may have come before the guest could see that.
        head = live.ring.take(live.memory, chain)?;
    }
    let Some(head) = head else { return Ok(None) };
    let mut bytes = vec![0; length(&chain.readable).min(MAX_COMMAND as u64) as usize];
    chain.read(live.memory, 0, &mut bytes).map_err(in_buffer)?;
    Ok(Some((head, bytes)))
}

/// Writes the answer and gives the buffer back; whether the guest wants to be called.
pub(super) fn answer_command(
    live: &mut LiveRing<'_>,
    head: u16,
    chain: &Chain,
    answer: &[u8],
) -> Result<bool, RingError> {
    let written = chain.write(live.memory, answer).map_err(in_buffer)?;
    let before = live.ring.published();
    live.ring.add_used(head, written);
    live.ring.flush_used();
    Ok(match live.ring.driver_event() {
        DriverEvent::Nothing => false,
        DriverEvent::All => true,
        DriverEvent::After(index) => index == before,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nic::port::PortSettings;
    use nic::rss::DEFAULT_KEY;

    const PAIRS: u16 = 4;

    /// What a guest that may say how packets are spread is answered, and the port after that.
    fn spread(wanted: Spread, has_rss: bool) -> (bool, Port<Vec<u8>>, u16) {
        let settings = PortSettings { queues: PAIRS, ..PortSettings::default() };
        let mut port = Port::new(settings, Instant::ZERO);
        let (mut pairs, mut spread, mut is_spread_by_guest) = (1, 1, false);
        let mut target = GuestControls {
            now: Instant::ZERO,
            port: &mut port,
            watch: &mut Watch::default(),
            senders: &mut [],
            pairs: &mut pairs,
            spread: &mut spread,
            is_spread_by_guest: &mut is_spread_by_guest,
            has_rss,
        };
        let done = target.spread(wanted);
        assert_eq!((pairs, is_spread_by_guest), (spread, done));
        (done, port, pairs)
    }

    #[test]
    fn a_guest_that_was_offered_it_sets_key_and_table() {
        let types = HashTypes::ALL;
        let mut table = [0; TABLE_LENGTH];
        table[127] = 3;
        let wanted = Spread { types, unclassified: 1, table, pairs: 2, key: [9; KEY_LENGTH] };
        let (done, port, pairs) = spread(wanted, true);
        assert_eq!((done, pairs, port.rss().key()), (true, 2, &wanted.key));
        assert_eq!(port.rss().indirection().entries(), &table);
        let beyond = Spread { table: [PAIRS; TABLE_LENGTH], ..wanted };
        for (wanted, has_rss) in [
            (wanted, false),
            (beyond, true),
            (Spread { unclassified: PAIRS, ..wanted }, true),
            (Spread { pairs: 0, ..wanted }, true),
            (Spread { pairs: PAIRS + 1, ..wanted }, true),
        ] {
            let (done, port, pairs) = spread(wanted, has_rss);
            assert_eq!((done, pairs, port.rss().key()), (false, 1, &DEFAULT_KEY));
        }
    }

    #[test]
    fn a_table_and_a_key_are_read_as_linux_sends_them() {
        let table = (0..TABLE_LENGTH as u16).flat_map(|index| (index % 3).to_le_bytes());
        let table: Vec<u8> = table.collect();
        let key = [7; KEY_LENGTH];
        let head = [0x3F, 0, 0, 0, 127, 0, 1, 0];
        let bytes = [&head[..], &table, &[3, 0, 40], &key].concat();
        assert_eq!(2 + bytes.len(), MAX_COMMAND);
        let spread = Spread::parse(&bytes).unwrap();
        assert_eq!((spread.types, spread.unclassified, spread.pairs), (HashTypes::ALL, 1, 3));
        assert_eq!((spread.table[..4].to_vec(), spread.key), (vec![0, 1, 2, 0], key));
        for length in 0..bytes.len() {
            assert_eq!(Spread::parse(&bytes[..length]), None);
        }
        // Two entries, a key of one byte.
        let short = [1, 0, 0, 0, 1, 0, 0, 0, 5, 0, 6, 0, 2, 0, 1, 9];
        let spread = Spread::parse(&short).unwrap();
        assert_eq!(
            (spread.table[126..].to_vec(), spread.key[..2].to_vec()),
            (vec![5, 6], vec![9, 0])
        );
        for (at, wrong) in [(4, 2), (5, 1), (14, 41)] {
            let mut bytes = [&short[..], &[0; 600]].concat();
            bytes[at] = wrong;
            assert_eq!(Spread::parse(&bytes), None, "{at}");
        }
    }
}
