//! Whether messages went to receives in the right order.
//!
//! Take a receive that got a message. Every earlier message of the same connection that fits the
//! receive had arrived before. Had it waited when the receive was posted, the receive would have
//! got it; had it come later, the receive would have been tried first, but for those posted before
//! it. So it went to a receive that was posted earlier. And had an earlier posted receive, which
//! fits the message, still waited when the message came, that one would have got it.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use mx::ids::PeerId;
use mx::status::RequestError;

use super::{ConnectionSide, Model, Posted, place};

impl Model {
    /// Checks the order of everything that was received. `is_alive` says of a host and a life of it
    /// whether it lasted to the end.
    pub(crate) fn check_order(&mut self, is_alive: impl Fn((usize, u32)) -> bool) {
        let mut by_connection: BTreeMap<ConnectionSide, Vec<(u64, PeerId)>> = BTreeMap::new();
        for posted in &self.posted {
            if let Some((number, peer)) = posted.got {
                let side = (posted.by.0, posted.by.1, peer);
                by_connection.entry(side).or_default().push((number, peer));
            }
        }
        for (side, got) in by_connection {
            let Some(&from) = self.connections.get(&side) else { continue };
            let sent: Vec<_> =
                (0..self.sent.len()).filter(|at| self.sent[*at].from == from).collect();
            let is_open = is_alive((side.0, side.1)) && !self.lost.contains_key(&side);
            for (number, peer) in got {
                let earlier = sent.iter().take_while(|at| **at + 1 < number as usize);
                for at in earlier {
                    self.check_pair(number, *at as u64 + 1, peer, is_open);
                }
            }
        }
        self.check_left_over(is_alive);
    }

    /// A message was received that was sent after another one.
    fn check_pair(&mut self, number: u64, earlier: u64, peer: PeerId, is_open: bool) {
        let [message, before] = [number, earlier].map(|of| &self.sent[place(of)]);
        let Some(receive) = message.taken else { return };
        if !self.posted[receive].fits(before.match_info, peer) {
            return;
        }
        let good = match before.taken {
            Some(other) => other < receive,
            // A large message goes with its connection; those behind it stay.
            None => !is_open,
        };
        if !good {
            let before = before.clone();
            self.fault(format!("{number} went to {receive}, but {before:?} ({earlier}) fits too"));
        }
    }

    /// Receives that got nothing, though messages came that fit and went to later ones.
    fn check_left_over(&mut self, is_alive: impl Fn((usize, u32)) -> bool) {
        let mut faults = Vec::new();
        for (early, idle) in self.posted.iter().enumerate().filter(|(_, idle)| idle.got.is_none()) {
            // One whose host died may have been about to get a message.
            if idle.discarded || (idle.ended.is_none() && !is_alive(idle.by)) {
                continue;
            }
            for (late, posted) in self.posted.iter().enumerate().skip(early + 1) {
                let Some((number, peer)) = posted.got else { continue };
                let match_info = self.sent[place(number)].match_info;
                if posted.by == idle.by && idle.fits(match_info, peer) && outlives(idle, posted) {
                    faults.push(format!("{number} went to {late}, but {early} waited: {idle:?}"));
                }
            }
        }
        for fault in faults {
            self.fault(fault);
        }
    }
}

/// Whether a receive waited when another one ended, as one that did what it was asked to.
fn outlives(idle: &Posted, other: &Posted) -> bool {
    let Some((other, Ok(()) | Err(RequestError::Truncated))) = other.ended else { return false };
    idle.ended.is_none_or(|(ended, _)| ended > other)
}
