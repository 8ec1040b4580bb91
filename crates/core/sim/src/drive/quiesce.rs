//! The end of a run: faults are over, and every request must end.

use alloc::format;
use alloc::vec::Vec;

use base::time::Duration;
use mx::matching::Match;

use super::Drive;
use crate::model::Wanted;
use crate::world::SimEndpoint;

/// How often waiting messages are received.
const SWEEP: Duration = Duration::from_millis(50);

impl Drive {
    pub(super) fn quiesce(&mut self) {
        self.world.heal();
        for host in 0..self.setup.hosts {
            self.world.sleep(host, false);
        }
        let timeout = self.setup.config.peer_timeout;
        let until = self.world.now() + timeout.times(3) + Duration::from_millis(5_000);
        // Peers that were cut off or restarted may count as lost for so long.
        loop {
            self.go_on(self.world.now() + SWEEP);
            let mut received = false;
            for host in 0..self.setup.hosts {
                received |= self.sweep(host);
            }
            if self.world.now() > until || (self.world.is_quiet() && !received) {
                break;
            }
        }
        self.check_sends();
        for host in 0..self.setup.hosts {
            self.check_memory(host);
            self.cancel_all(host);
        }
        self.note_lost();
        self.is_rough = false;
        self.close_all();
        let lives: Vec<_> = self.apps.iter().map(|app| (app.is_up, app.life)).collect();
        self.model.check_order(|(host, life)| lives[host] == (true, life));
    }

    fn is_there(&self, host: usize) -> bool {
        self.apps[host].is_up && !self.apps[host].is_closing
    }

    /// Receives what waits; whether there was anything.
    fn sweep(&mut self, host: usize) -> bool {
        if !self.is_there(host) {
            return false;
        }
        let context = self.setup.config.context;
        let mask = ((1_u64 << context.bits) - 1) << context.shift;
        let mut any = false;
        for number in 0..1 << context.bits {
            let matching = Match { info: number << context.shift, mask };
            let wanted = Wanted { source: None, matching };
            while self.claim_one(host, wanted, true) {
                any = true;
            }
        }
        any
    }

    /// Every send of a living endpoint has ended.
    fn check_sends(&mut self) {
        for number in 0..self.model.sent.len() {
            let sent = &self.model.sent[number];
            let (host, life, _) = sent.from;
            if sent.ended.is_none() && self.apps[host].is_up && self.apps[host].life == life {
                let sent = sent.clone();
                self.model.fault(format!("send {} has not ended: {sent:?}", number + 1));
            }
        }
    }

    fn cancel_all(&mut self, host: usize) {
        if !self.is_there(host) {
            return;
        }
        for (id, receive) in self.apps[host].open.clone() {
            let (cancelled, kept) = self.world.with(host, |end, _| {
                let cancelled = end.cancel(id);
                (cancelled, end.usage())
            });
            if !cancelled {
                let posted = self.model.posted[receive].clone();
                self.model.fault(format!("receive {receive} hangs: {posted:?} {kept:?}"));
            }
        }
        self.go_on(self.world.now());
        let (open, usage) = self.world.with(host, |end, _| (end.open_requests(), end.usage()));
        let left = (usage.unexpected_bytes, usage.early_bytes, usage.pulling, usage.posted);
        let leaks = usage.charged_bytes > 0 || usage.sends > 0;
        if open != (Vec::new(), Vec::new()) || left != (0, 0, 0, 0) || leaks {
            self.model.fault(format!("host {host} keeps {open:?} {usage:?}"));
        }
    }

    /// Connections that are no more, of which there was no event since no application knew them.
    fn note_lost(&mut self) {
        for side in self.model.sides() {
            let (host, life, peer) = side;
            let lives = self.apps[host].life == life;
            let is_there = self.world.end(host).is_some_and(|end| end.peers().any(|id| id == peer));
            if lives && !is_there {
                self.model.lost.entry(side).or_insert(mx::status::RequestError::Timeout);
            }
        }
    }

    fn close_all(&mut self) {
        for host in 0..self.setup.hosts {
            if self.is_there(host) {
                self.apps[host].is_closing = true;
                self.world.with(host, SimEndpoint::close);
            }
        }
        let timeout = self.setup.config.peer_timeout;
        self.go_on(self.world.now() + timeout.times(2) + Duration::from_millis(1_000));
        for host in 0..self.setup.hosts {
            if self.apps[host].is_up && !self.world.end(host).is_some_and(SimEndpoint::is_closed) {
                self.model.fault(format!("host {host} does not close"));
            }
        }
    }
}
