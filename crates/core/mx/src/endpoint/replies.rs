//! Requests of peers for frames of large messages, until they are answered: those of each peer in
//! their order, one of each peer in turn.

use super::Endpoint;
use crate::buffers::{Sink, Source};
use crate::ids::{PeerId, SendId};
use crate::large::Job;
use crate::peer::Peer;

/// So many requests of one peer are kept: more than it has under way. It repeats others.
const MAX_JOBS: usize = 512;

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// Peers wait for the frames of a large message that they ask for: as if they had not, until it
    /// is [released](Self::release). Its announcement goes out meanwhile. This is for one who
    /// prepares the memory of a message, such as by registering its pages, while the announcement
    /// is under way; a peer repeats a request that is not answered within
    /// [`resend_min`](crate::config::Config::resend_min), and is lost in the end. What the same
    /// peer asks for later waits, too, since it takes frames out of order for loss. False if this
    /// send has ended.
    pub fn hold(&mut self, send: SendId) -> bool {
        self.sends.get_mut(send).map(|sending| sending.is_held = true).is_some()
    }

    /// Answers what peers have asked for of a message that was [held](Self::hold) until now.
    pub fn release(&mut self, send: SendId) {
        if let Some(sending) = self.sends.get_mut(send) {
            sending.is_held = false;
            let peer = sending.peer;
            self.await_turn(peer);
        }
    }

    /// Whether frames wait that move large messages: answers to pull requests, or such requests.
    /// Where the kernel of a host moves them by itself, it is to [`transmit`](Self::transmit) then.
    pub fn moves_large(&self) -> bool {
        let asks =
            |id: &PeerId| self.peers.get(*id).is_some_and(|peer| !peer.to_request.is_empty());
        !self.schedule.replying.is_empty() || self.schedule.ready.iter().any(asks)
    }

    /// Keeps a request; false if its peer has too many.
    pub(super) fn push_job(&mut self, job: Job) -> bool {
        let Some(peer) = self.peers.get_mut(job.peer) else { return false };
        let has_room = peer.jobs.len() + peer.parked.len() < MAX_JOBS;
        if has_room {
            peer.jobs.push_back(job);
            self.await_turn(job.peer);
        }
        has_room
    }

    /// The requests of a peer that have waited for a bulk path wait for their turn.
    pub(super) fn unpark(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.jobs.extend(peer.parked.drain(..));
        self.await_turn(id);
    }

    fn await_turn(&mut self, id: PeerId) {
        if self.may_answer(id)
            && let Some(peer) = self.peers.get_mut(id)
            && !core::mem::replace(&mut peer.has_turn, true)
        {
            self.schedule.replying.push_back(id);
        }
    }

    /// Whether the first request of a peer may be answered, if there is one.
    fn may_answer(&self, id: PeerId) -> bool {
        let job = self.peers.get(id).and_then(|peer| peer.jobs.front());
        job.is_some_and(|job| {
            let region = self.regions.get(job.region, job.peer);
            let sending = region.and_then(|region| self.sends.get(region.send));
            !sending.is_some_and(|sending| sending.is_held)
        })
    }

    #[inline]
    pub(super) fn take_job(&mut self) -> Option<Job> {
        let id = *self.schedule.replying.front()?;
        let job = self.peers.get_mut(id).and_then(|peer| peer.jobs.pop_front());
        if job.is_none() {
            self.end_turn();
        }
        job
    }

    /// A request that was taken goes on if more frames of it are wanted; otherwise, or if its
    /// message `is_held`, another peer has its turn.
    #[inline]
    pub(super) fn put_back(&mut self, job: Job, is_held: bool) {
        let is_done = job.wanted == 0;
        if !is_done && let Some(peer) = self.peers.get_mut(job.peer) {
            peer.jobs.push_front(job);
        }
        if is_done || is_held {
            self.end_turn();
        }
    }

    fn end_turn(&mut self) {
        let Some(id) = self.schedule.replying.pop_front() else { return };
        if let Some(peer) = self.peers.get_mut(id) {
            peer.has_turn = false;
        }
        self.await_turn(id);
    }

    pub(super) fn drop_jobs(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.parked.clear();
        peer.jobs.clear();
        if peer.has_turn {
            self.schedule.replying.retain(|other| *other != id);
        }
    }
}

impl Peer {
    pub(super) fn find_job(&mut self, job: &Job) -> Option<&mut Job> {
        let name = |job: &Job| (job.region, job.pull, job.first);
        self.jobs.iter_mut().chain(&mut self.parked).find(|other| name(other) == name(job))
    }
}
