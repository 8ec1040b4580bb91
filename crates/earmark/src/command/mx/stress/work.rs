//! Threads that send and receive.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use base::prng::Prng;
use mx::ids::PeerId;
use mx::matching::Match;
use mx::status::RequestError;
use mx_io::endpoint::{Completed, RequestId};

use super::super::session::BytesEndpoint;
use super::delivery::{CLASS, DeliveryCheck, MAX_SIZE, count, match_info};
use super::order::Moment;

/// How long a send may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a receive is posted before it is taken back.
const POSTED: Duration = Duration::from_millis(20);
/// Sends that a thread has under way.
const DEPTH: usize = 8;
/// The longest message of each class, in bytes; longer ones are rarer.
const CLASSES: [usize; 8] = [0, 16, 128, 128, 1_500, 32 << 10, 200 << 10, MAX_SIZE];

/// One endpoint among the others.
pub(super) struct Party {
    /// Its place among them.
    pub(super) number: usize,
    pub(super) end: BytesEndpoint,
    /// The peers that it reaches, and their places.
    pub(super) peers: Vec<(PeerId, usize)>,
}

impl Party {
    /// Sends until it is over; then waits for the ends of all sends.
    pub(super) fn send(&self, check: &DeliveryCheck, thread: u64) {
        let seed = (self.number as u64) << 8 | thread;
        if let Err(error) = self.try_to_send(check, seed) {
            check.fault(format!("send from {}: {error:#}", self.end.address()));
        }
    }

    fn try_to_send(&self, check: &DeliveryCheck, seed: u64) -> Result<()> {
        let mut prng = Prng::new(seed);
        let mut under_way: VecDeque<(usize, RequestId)> = VecDeque::new();
        for serial in 0.. {
            if check.is_over.load(Ordering::Relaxed) {
                break;
            }
            let (peer, number) = self.peers[prng.below(self.peers.len() as u64) as usize];
            let class = CLASSES[prng.below(CLASSES.len() as u64) as usize];
            let size = prng.below(class as u64 + 1) as usize;
            let match_info = match_info(seed, serial);
            let message = check.issue(number, match_info, size);
            let request = if prng.chance(250_000) {
                count(&check.tally.synchronous);
                self.end.issend(peer, match_info, message)?
            } else {
                self.end.isend(peer, match_info, message)?
            };
            under_way.push_back((number, request));
            if under_way.len() == DEPTH
                && let Some((number, sent)) = under_way.pop_front()
            {
                self.await_sent(number, sent)?;
            }
        }
        under_way.into_iter().try_for_each(|(number, sent)| self.await_sent(number, sent))
    }

    fn await_sent(&self, number: usize, request: RequestId) -> Result<()> {
        let Some(completed) = self.end.wait(request, Some(TIMEOUT))? else {
            bail!("a send to endpoint {number} does not end: {}", self.end.dump());
        };
        let is_sent = matches!(completed.status.result, Ok(()) | Err(RequestError::Truncated));
        ensure!(is_sent, "to endpoint {number}: {:?}", completed.status);
        Ok(())
    }

    /// Receives in every way there is, until all has come.
    pub(super) fn receive(&self, check: &DeliveryCheck, thread: u64) {
        let mut prng = Prng::new(!((self.number as u64) << 8 | thread));
        let mut memory = Vec::new();
        while !check.is_drained.load(Ordering::Relaxed) {
            let outcome = match prng.below(5) {
                0 | 1 => self.post(check, None, Match::ANY, &mut memory),
                // Every other message of each sender.
                2 => {
                    self.post(check, None, Match { info: prng.below(2), mask: CLASS }, &mut memory)
                }
                3 => {
                    let peer = self.peers[prng.below(self.peers.len() as u64) as usize].0;
                    self.post(check, Some(peer), Match::ANY, &mut memory)
                }
                _ => self.claim(check, prng.chance(250_000)),
            };
            if let Err(error) = outcome {
                return check.fault(format!("receive at {}: {error:#}", self.end.address()));
            }
        }
    }

    /// Posts a receive, and takes it back if nothing comes.
    fn post(
        &self,
        check: &DeliveryCheck,
        source: Option<PeerId>,
        wanted: Match,
        memory: &mut Vec<u8>,
    ) -> Result<()> {
        memory.resize(MAX_SIZE, 0);
        let posted = check.moment();
        let request = self.end.irecv(source, wanted, std::mem::take(memory))?;
        let mut completed = self.end.wait(request, Some(POSTED))?;
        let mut cancelled = false;
        if let (None, RequestId::Receive(receive)) = (&completed, request) {
            cancelled = self.end.cancel(receive)?;
            completed = self.end.wait(request, Some(TIMEOUT))?;
        }
        let Some(completed) = completed else {
            bail!("a receive does not end: {}", self.end.dump())
        };
        let is_cancelled = completed.status.result == Err(RequestError::Cancelled);
        ensure!(is_cancelled == cancelled, "cancelled {cancelled}, and yet {:?}", completed.status);
        if is_cancelled {
            count(&check.tally.cancelled);
        } else {
            self.complete(check, (posted, MAX_SIZE), &completed)?;
        }
        *memory = completed.sink.unwrap_or_default();
        Ok(())
    }

    /// Takes a message that has come, into just enough memory, or into half of that.
    fn claim(&self, check: &DeliveryCheck, too_small: bool) -> Result<()> {
        if self.end.iprobe(None, Match::ANY)?.is_none() {
            std::thread::yield_now();
            return Ok(());
        }
        let posted = check.moment();
        // Another thread may have been faster.
        let Some(found) = self.end.claim(None, Match::ANY)? else { return Ok(()) };
        count(&check.tally.claimed);
        let length = found.length as usize;
        let capacity = if too_small { length / 2 } else { length };
        let request = self.end.receive_message(found.message, vec![0; capacity])?;
        let Some(completed) = self.end.wait(request, Some(TIMEOUT))? else {
            bail!("the receive of {found:?} does not end: {}", self.end.dump());
        };
        let reported = (completed.status.match_info, completed.status.length);
        ensure!(
            reported == (found.match_info, found.length),
            "{found:?} is {:?}",
            completed.status
        );
        self.complete(check, (posted, capacity), &completed)
    }

    fn complete(
        &self,
        check: &DeliveryCheck,
        into: (Moment, usize),
        completed: &Completed<Vec<u8>>,
    ) -> Result<()> {
        check.complete(self.number, into, completed);
        let sender = (completed.status.match_info >> 48) as usize;
        let expected = self.peers.iter().find(|(_, number)| *number == sender);
        let peer = expected.map(|(peer, _)| *peer);
        ensure!(completed.status.peer == peer, "from endpoint {sender}: {:?}", completed.status);
        Ok(())
    }
}
