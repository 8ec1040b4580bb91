//! Frames that come from endpoints of this host.

use super::ShmPort;
use super::ring::{Next, RecordKind};
use crate::port::{Address, Reference, TakeFrame, is_for};

impl ShmPort {
    /// Takes up to `budget` records of the connection at `place`; how many there were.
    pub(super) fn take(&mut self, place: usize, budget: usize, take: &mut TakeFrame<'_>) -> usize {
        let Self { inbound, record, counters, endpoint, settings, .. } = self;
        let Some(inbound) = inbound.get_mut(place) else { return 0 };
        for came in 0..budget {
            let Some((key, ring)) = &mut inbound.ring else { return came };
            let key @ Address { nic: from, .. } = *key;
            let (kind, record) = match ring.pop(record) {
                Next::Nothing => {
                    inbound.vain = if came == 0 { inbound.vain + 1 } else { 0 };
                    return came;
                }
                Next::Nonsense => {
                    counters.strange += 1;
                    // Nothing more can be expected of it.
                    self.unlink(key);
                    self.remove(place);
                    return came + 1;
                }
                Next::Record(kind, length) => (kind, &record[..length]),
            };
            let referring = match kind {
                RecordKind::Frame => Some((record, None)),
                RecordKind::Reference => referring(record, [inbound.number, ring.end()]),
            };
            let Some((frame, reference)) = referring.filter(|(frame, _)| is_for(frame, *endpoint))
            else {
                counters.strange += 1;
                continue;
            };
            counters.came(frame.len());
            let is_bulk = kind == RecordKind::Reference || frame.len() > settings.mtu.into();
            counters.bulk_in += u64::from(is_bulk);
            match reference {
                Some(reference) => take.take_reference(from, frame, reference),
                None => take.take(from, frame),
            }
        }
        budget
    }

    /// Reads what an endpoint has referred to; `false` if it cannot be read.
    pub(super) fn fetch(&mut self, peer: Address, reference: Reference, place: &mut [u8]) -> bool {
        let [connection, _] = reference.record;
        let is_read = self.inbound.iter_mut().any(|inbound| {
            let is_it = inbound.number == connection;
            is_it && inbound.is_from(peer) && inbound.fetch(reference, place)
        });
        if is_read {
            self.counters.bytes_in += place.len() as u64;
        } else {
            self.counters.strange += 1;
        }
        is_read
    }
}

/// A record that refers to data: its frame, and where they lie.
fn referring(bytes: &[u8], record: [u64; 2]) -> Option<(&[u8], Option<Reference>)> {
    let (at, rest) = bytes.split_first_chunk()?;
    let (length, frame) = rest.split_first_chunk()?;
    let (at, length) = (u64::from_ne_bytes(*at), u64::from_ne_bytes(*length));
    at.checked_add(length)?;
    Some((frame, Some(Reference { at, length, record })))
}
