//! Commands of a guest, from its control ring to what they change.

use base::time::Instant;
use nic::moderation::{Moderation, Profile};
use nic::port::Port;
use nic::rss::{Indirection, Rss};

use super::coalesce::coalesce;
use super::control::{self, Coalesce, Command, Spread};
use super::receive::{Receiver, in_buffer};
use super::send::Sender;
use crate::transport::ring::{Chain, DriverEvent, RingError};
use crate::transport::session::LiveRing;
use hostside::trace::Watch;

/// What a command changes.
pub(super) struct GuestControls<'a> {
    pub(super) now: Instant,
    pub(super) port: &'a mut Port<Vec<u8>>,
    pub(super) watch: &'a mut Watch,
    pub(super) receivers: &'a mut [Receiver],
    pub(super) senders: &'a mut [Sender],
    /// Pairs that the guest uses, and those that the port spreads packets over.
    pub(super) pairs: &'a mut u16,
    pub(super) spread: &'a mut u16,
    pub(super) is_spread_by_guest: &'a mut bool,
    /// The guest was offered to say how packets are spread.
    pub(super) has_rss: bool,
}

impl GuestControls<'_> {
    /// Carries out a command; `None` is an unknown one.
    pub(super) fn carry_out(&mut self, command: Option<Command>) -> control::Answer {
        let mut result = None;
        let pairs = self.receivers.len();
        let done = match command {
            None => false,
            Some(Command::Accepted) => true,
            Some(Command::SetPairs(wanted)) => {
                let possible = (1..=pairs).contains(&usize::from(wanted));
                if possible {
                    *self.pairs = wanted;
                }
                possible
            }
            Some(Command::Spread(spread)) => self.spread(*spread),
            Some(Command::CoalesceTransmit(Coalesce { usecs, packets })) => {
                self.senders.iter_mut().all(|sender| sender.coalesce(self.now, usecs, packets))
            }
            Some(Command::CoalesceReceive(numbers)) => {
                (0..pairs).all(|pair| self.coalesce_receive(pair, numbers))
            }
            Some(Command::CoalesceRing(ring, numbers)) => {
                let pair = usize::from(ring / 2);
                let Coalesce { usecs, packets } = numbers;
                match self.senders.get_mut(pair) {
                    Some(sender) if ring % 2 == 1 => sender.coalesce(self.now, usecs, packets),
                    _ => self.coalesce_receive(pair, numbers),
                }
            }
            Some(Command::Ask(ring)) => {
                result = self.in_force(ring);
                result.is_some()
            }
        };
        control::Answer { ack: if done { control::OK } else { control::ERR }, result }
    }

    /// Spreads packets as the guest wants it, if it was offered that and there are such queues.
    fn spread(&mut self, spread: Spread) -> bool {
        let Spread { types, unclassified, table, pairs, key } = spread;
        let all = self.receivers.len() as u16;
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

    fn coalesce_receive(&mut self, pair: usize, Coalesce { usecs, packets }: Coalesce) -> bool {
        let Some(queue) = self.port.queues_mut().get_mut(pair) else { return false };
        let before: Moderation = *queue.moderation();
        let Ok(moderation) = coalesce(before, usecs, packets) else { return false };
        // Linux sends what has not changed as well; a timer that runs need not start anew.
        if moderation != before {
            queue.set_moderation(self.now, moderation, self.watch);
        }
        true
    }

    fn in_force(&self, ring: u16) -> Option<Coalesce> {
        let pair = usize::from(ring / 2);
        let Profile { rx_usecs, rx_frames } = if ring.is_multiple_of(2) {
            self.port.queues().get(pair)?.in_force()
        } else {
            self.senders.get(pair)?.in_force()
        };
        Some(Coalesce { usecs: rx_usecs, packets: rx_frames })
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
) -> Result<Option<(u16, Option<Command>)>, RingError> {
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
    let mut bytes = [0; control::MAX_COMMAND];
    let mut filled = 0;
    for segment in &chain.readable {
        let count = (segment.length as usize).min(bytes.len() - filled);
        let to = &mut bytes[filled..filled + count];
        live.memory.read(segment.address, to).map_err(in_buffer)?;
        filled += count;
    }
    Ok(Some((head, control::parse(&bytes[..filled]))))
}

/// Writes the answer and gives the buffer back; whether the guest wants to be called.
pub(super) fn answer_command(
    live: &mut LiveRing<'_>,
    head: u16,
    chain: &Chain,
    answer: control::Answer,
) -> Result<bool, RingError> {
    let (bytes, length) = answer.encode();
    let mut rest = &bytes[..length];
    for segment in &chain.writable {
        let (now, later) = rest.split_at(rest.len().min(segment.length as usize));
        live.memory.write(segment.address, now).map_err(in_buffer)?;
        rest = later;
    }
    let before = live.ring.published();
    live.ring.add_used(head, (length - rest.len()) as u32);
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
    use nic::rss::{DEFAULT_KEY, HashTypes, KEY_LENGTH, TABLE_LENGTH};

    const PAIRS: u16 = 4;

    /// What a guest that may say how packets are spread is answered, and the port after that.
    fn spread(wanted: Spread, has_rss: bool) -> (u8, Port<Vec<u8>>, u16) {
        let settings = PortSettings { queues: PAIRS, ..PortSettings::default() };
        let mut port = Port::new(settings, Instant::ZERO);
        let mut receivers: Vec<_> = (0..PAIRS).map(|_| Receiver::default()).collect();
        let (mut pairs, mut spread, mut is_spread_by_guest) = (1, 1, false);
        let mut target = GuestControls {
            now: Instant::ZERO,
            port: &mut port,
            watch: &mut Watch::default(),
            receivers: &mut receivers,
            senders: &mut [],
            pairs: &mut pairs,
            spread: &mut spread,
            is_spread_by_guest: &mut is_spread_by_guest,
            has_rss,
        };
        let answer = target.carry_out(Some(Command::Spread(Box::new(wanted))));
        assert_eq!((pairs, is_spread_by_guest), (spread, answer.ack == control::OK));
        (answer.ack, port, pairs)
    }

    #[test]
    fn a_guest_that_was_offered_it_sets_key_and_table() {
        let types = HashTypes::ALL;
        let mut table = [0; TABLE_LENGTH];
        table[127] = 3;
        let wanted = Spread { types, unclassified: 1, table, pairs: 2, key: [9; KEY_LENGTH] };
        let (ack, port, pairs) = spread(wanted, true);
        assert_eq!((ack, pairs, port.rss().key()), (control::OK, 2, &wanted.key));
        assert_eq!(port.rss().indirection().entries(), &table);
        let beyond = Spread { table: [PAIRS; TABLE_LENGTH], ..wanted };
        for (wanted, has_rss) in [
            (wanted, false),
            (beyond, true),
            (Spread { unclassified: PAIRS, ..wanted }, true),
            (Spread { pairs: 0, ..wanted }, true),
            (Spread { pairs: PAIRS + 1, ..wanted }, true),
        ] {
            let (ack, port, pairs) = spread(wanted, has_rss);
            assert_eq!((ack, pairs, port.rss().key()), (control::ERR, 1, &DEFAULT_KEY));
        }
    }
}
