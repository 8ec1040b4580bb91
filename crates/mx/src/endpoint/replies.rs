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
        if peer.jobs.len() + peer.parked.len() >= MAX_JOBS {
            return false;
        }
        if peer.jobs.is_empty() {
            self.schedule.replying.push_back(job.peer);
        }
        peer.jobs.push_back(job);
        true
    }

    /// The request whose turn it is.
    pub(super) fn take_job(&mut self) -> Option<Job> {
        let id = self.schedule.replying.pop_front()?;
        let peer = self.peers.get_mut(id)?;
        let job = peer.jobs.pop_front()?;
        if !peer.jobs.is_empty() {
            self.schedule.replying.push_back(id);
        }
        Some(job)
    }

    /// The request that was taken has more to be answered, and goes on at once.
    pub(super) fn go_on(&mut self, job: Job) {
        let Some(peer) = self.peers.get_mut(job.peer) else { return };
        peer.jobs.push_front(job);
        let turns = &mut self.schedule.replying;
        if turns.back() == Some(&job.peer) {
            turns.pop_back();
        }
        turns.push_front(job.peer);
    }

    /// The requests of a peer that have waited for a bulk path wait for their turn.
    pub(super) fn unpark(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        if peer.jobs.is_empty() && !peer.parked.is_empty() {
            self.schedule.replying.push_back(id);
        }
        peer.jobs.extend(peer.parked.drain(..));
    }

    /// Nothing is sent to this peer any more.
    pub(super) fn drop_jobs(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.parked.clear();
        if !peer.jobs.is_empty() {
            peer.jobs.clear();
            self.schedule.replying.retain(|other| *other != id);
        }
    }
}

impl Peer {
    /// The request for these frames that waits already.
    pub(super) fn find_job(&mut self, job: &Job) -> Option<&mut Job> {
        let name = |job: &Job| (job.region, job.pull, job.first);
        self.jobs.iter_mut().chain(&mut self.parked).find(|other| name(other) == name(job))
    }
}
