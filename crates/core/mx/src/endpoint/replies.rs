//! Requests of peers for frames of large messages, until they are answered: those of each peer in
//! their order, one of each peer in turn.

use super::Endpoint;
use crate::buffers::{Sink, Source};
use crate::ids::PeerId;
use crate::large::Job;
use crate::peer::Peer;

/// So many requests of one peer are kept: more than it has under way. It repeats others.
const MAX_JOBS: usize = 512;

impl<S: Source, R: Sink> Endpoint<S, R> {
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
        if let Some(peer) = self.peers.get_mut(id)
            && !peer.jobs.is_empty()
            && !core::mem::replace(&mut peer.has_turn, true)
        {
            self.schedule.replying.push_back(id);
        }
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

    /// A request that was taken goes on if more frames of it are wanted; otherwise another peer has
    /// its turn.
    #[inline]
    pub(super) fn put_back(&mut self, job: Job) {
        if job.wanted == 0 {
            self.end_turn();
        } else if let Some(peer) = self.peers.get_mut(job.peer) {
            peer.jobs.push_front(job);
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
