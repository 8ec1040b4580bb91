//! What comes over a connection.

use ::mx::wire::RUN_HEAD;

use super::super::{Arrivals, NicId, PortCounters, TakeFrame, endpoint_of};

pub(super) struct Counted<'a, 'b> {
    pub(super) endpoint: u8,
    pub(super) counters: &'a mut PortCounters,
    pub(super) seen: &'a mut usize,
    pub(super) take: &'a mut TakeFrame<'b>,
}

impl Arrivals for Counted<'_, '_> {
    fn take(&mut self, from: NicId, frame: &[u8]) {
        *self.seen += 1;
        if endpoint_of(frame) == Some(self.endpoint) {
            self.counters.came_bulk(1, frame.len());
            self.take.take(from, frame);
        } else {
            self.counters.strange += 1;
        }
    }

    fn place(
        &mut self,
        from: NicId,
        head: &[u8; RUN_HEAD],
        skip: usize,
        most: usize,
    ) -> Option<&mut [u8]> {
        self.take.place(from, head, skip, most)
    }

    fn placed(&mut self, from: NicId, head: &[u8; RUN_HEAD], length: usize) {
        *self.seen += self.counters.placed(length);
        self.take.placed(from, head, length);
    }
}
