//! Frames that come from endpoints of this host.

use mx::wire::{RUN_HEAD, Run};

use super::ShmPort;
use super::link::Inbound;
use super::ring::{Kind, Next, ROOM};
use crate::port::{NicId, PortCounters, TakeFrame, is_for};

/// Bytes of a reference before the head: where the data lie, and how many they are.
const PLACE: usize = 16;

impl ShmPort {
    /// Takes up to `budget` records of the connection at `place`; how many there were.
    pub(super) fn take(&mut self, place: usize, budget: usize, take: &mut TakeFrame<'_>) -> usize {
        let Self { inbound, record, frame, counters, endpoint, settings, .. } = self;
        let Some(inbound) = inbound.get_mut(place) else { return 0 };
        for came in 0..budget {
            let Some((key, ring)) = &mut inbound.ring else { return came };
            let key @ (from, _) = *key;
            match ring.pop(record) {
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
                Next::Record(Kind::Frame, length) => {
                    let frame = &record[..length];
                    if is_for(frame, *endpoint) {
                        counters.came(length);
                        counters.bulk_in += u64::from(length > settings.mtu.into());
                        take.take(from, frame);
                    } else {
                        counters.strange += 1;
                    }
                }
                Next::Record(Kind::Reference, length) => {
                    let record = &record[..length];
                    let is_for = record.get(PLACE..).is_some_and(|head| is_for(head, *endpoint));
                    let mut referred = Referred { inbound, frame, counters, from, take };
                    if !is_for || referred.take(record).is_none() {
                        counters.strange += 1;
                    }
                }
            }
        }
        budget
    }
}

/// Data in the memory of a sender, and where they go.
struct Referred<'a, 'b> {
    inbound: &'a mut Inbound,
    /// Where a frame is put together.
    frame: &'a mut [u8],
    counters: &'a mut PortCounters,
    from: NicId,
    take: &'a mut TakeFrame<'b>,
}

/// Where data lie: the first ones in a record, the rest in the memory of its sender.
#[derive(Clone, Copy)]
struct Data<'a> {
    lead: &'a [u8],
    at: u64,
}

impl Referred<'_, '_> {
    /// Takes what a record refers to; `None` if it cannot be, or cannot be read.
    fn take(&mut self, record: &[u8]) -> Option<()> {
        let (at, rest) = record.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (at, length) = (u64::from_ne_bytes(*at), u64::from_ne_bytes(*length));
        at.checked_add(length)?;
        let (head, lead) = rest.split_first_chunk()?;
        let length = usize::try_from(length).ok()?.checked_add(lead.len())?;
        let data = Data { lead, at };
        match Run::new(head, length) {
            Some(run) => self.take_run(data, run),
            None => self.take_frame(head, data, length, true),
        }
    }

    /// Takes a frame: its head, and so many bytes of data.
    fn take_frame(
        &mut self,
        head: &[u8; RUN_HEAD],
        data: Data<'_>,
        length: usize,
        is_wanted: bool,
    ) -> Option<()> {
        let all = head.len().checked_add(length).filter(|all| *all <= ROOM)?;
        let (first, place) = self.frame[..all].split_at_mut(head.len());
        first.copy_from_slice(head);
        data.fetch(self.inbound, place, is_wanted)?;
        self.counters.came_bulk(1, all);
        self.take.take(self.from, &self.frame[..all]);
        Some(())
    }

    /// Takes a run, whose data go to their place as far as they have one.
    fn take_run(&mut self, mut data: Data<'_>, mut run: Run) -> Option<()> {
        // Bytes of its next frame that are in place.
        let mut placed = 0;
        while run.left() > 0 {
            let (head, next) = (run.head(), run.next());
            if let Some(place) = self.take.place(self.from, &head, placed, run.left() - placed) {
                data.fetch(self.inbound, place, true)?;
                data = data.after(place.len());
                placed += place.len();
                if let whole @ 1.. = run.whole(placed) {
                    self.counters.placed(whole);
                    self.take.placed(self.from, &head, whole);
                    placed -= whole;
                    run.advance(whole);
                }
                continue;
            }
            if placed == 0 {
                self.take_frame(&head, data, next, false)?;
            }
            // Otherwise it had a place, and nobody wants it any more.
            data = data.after(next - placed);
            placed = 0;
            run.advance(next);
        }
        Some(())
    }
}

impl<'a> Data<'a> {
    /// Fills `place` with the first of them; `None` if they cannot be read.
    fn fetch(self, inbound: &mut Inbound, place: &mut [u8], is_wanted: bool) -> Option<()> {
        let (first, rest) = place.split_at_mut(self.lead.len().min(place.len()));
        first.copy_from_slice(&self.lead[..first.len()]);
        (rest.is_empty() || inbound.fetch(self.at, rest, is_wanted)).then_some(())
    }

    /// Those after so many bytes.
    fn after(self, skip: usize) -> Self {
        let (skipped, lead) = self.lead.split_at(self.lead.len().min(skip));
        Self { lead, at: self.at + (skip - skipped.len()) as u64 }
    }
}
