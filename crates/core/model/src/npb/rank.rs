//! A rank of an MPI program: what it does in an iteration, again and again.

use alloc::vec::Vec;

use base::time::{Duration, Instant};

use crate::stack::mx::{MxProgram, Next, SizedMessage};

/// What a rank does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Op {
    /// It computes for this share of what it computes in an iteration.
    Compute(f64),
    /// It begins to receive from another rank (`MPI_Irecv`).
    Receive {
        /// The other rank.
        from: usize,
        /// The message's tag.
        tag: u64,
        /// Bytes of the message.
        bytes: u64,
    },
    /// It begins to send to another rank (`MPI_Isend`).
    Send {
        /// The other rank.
        to: usize,
        /// The message's tag.
        tag: u64,
        /// Bytes of the message.
        bytes: u64,
    },
    /// It waits until everything that it has begun has ended (`MPI_Waitall`).
    Wait,
}

/// A rank, which is a program at an endpoint whose peers are all ranks in their order.
#[derive(Debug)]
pub(crate) struct Rank {
    ops: Vec<Op>,
    /// What all of [`Op::Compute`] in an iteration takes, in nanoseconds.
    compute_ns: f64,
    iterations: u32,
    next: usize,
    /// Sends and receives that have not ended.
    pending: usize,
    /// Iterations that were done, and when the last one ended.
    pub(crate) done: u32,
    pub(crate) done_at: Instant,
}

impl Rank {
    /// One that does `ops` so many times.
    pub(crate) const fn new(ops: Vec<Op>, compute_ns: f64, iterations: u32) -> Self {
        Self { ops, compute_ns, iterations, next: 0, pending: 0, done: 0, done_at: Instant::ZERO }
    }

    /// Whether all iterations were done.
    pub(crate) const fn is_done(&self) -> bool {
        self.done >= self.iterations
    }
}

impl MxProgram for Rank {
    fn next(&mut self, now: Instant) -> Next {
        while !self.is_done() {
            let Some(op) = self.ops.get(self.next) else {
                (self.next, self.done, self.done_at) = (0, self.done + 1, now);
                continue;
            };
            if *op == Op::Wait && self.pending > 0 {
                break;
            }
            self.next += 1;
            match *op {
                Op::Wait => {}
                Op::Compute(share) => {
                    return Next::Compute(Duration::from_nanos((share * self.compute_ns) as u64));
                }
                Op::Receive { from: peer, tag: match_info, bytes: length } => {
                    self.pending += 1;
                    return Next::Receive { peer, match_info, length };
                }
                Op::Send { to: peer, tag: match_info, bytes } => {
                    self.pending += 1;
                    return Next::Send { peer, match_info, message: SizedMessage::of(bytes) };
                }
            }
        }
        Next::Wait
    }

    fn sent(&mut self, _: Instant, _: u64, _: usize) {}

    fn drained(&mut self, _: Instant, _: u64, _: usize) {
        self.pending -= 1;
    }

    fn received(&mut self, _: Instant, _: usize, _: u64, _: SizedMessage) {
        self.pending -= 1;
    }

    fn computed(&mut self) {}

    fn until(&self) -> Option<Instant> {
        None
    }
}
