//! What a rank does, written as an MPI program: point to point, and collectives made of that.
//!
//! The collectives are those of Open MPI 1.3, which the paper ran, as its component `tuned` chooses
//! them for 16 ranks (`ompi/mca/coll/tuned/coll_tuned_decision_fixed.c`).

use alloc::vec::Vec;

use super::rank::Op;

/// Tags from here on are those of collectives.
const COLLECTIVE: u64 = 1 << 32;

/// The program of one rank.
#[derive(Debug)]
pub(crate) struct RankScript {
    /// Which of the ranks it is.
    pub(crate) rank: usize,
    /// How many ranks there are: a power of two.
    pub(crate) ranks: usize,
    /// What it does.
    pub(crate) ops: Vec<Op>,
    collectives: u64,
}

impl RankScript {
    pub(crate) const fn new(rank: usize, ranks: usize) -> Self {
        Self { rank, ranks, ops: Vec::new(), collectives: 0 }
    }

    /// Computes for a share of an iteration.
    pub(crate) fn compute(&mut self, share: f64) {
        self.ops.push(Op::Compute(share));
    }

    /// Begins to receive. The rank itself sends nothing to itself.
    pub(crate) fn receive(&mut self, from: usize, tag: u64, bytes: u64) {
        if from != self.rank {
            self.ops.push(Op::Receive { from, tag, bytes });
        }
    }

    /// Begins to send.
    pub(crate) fn send(&mut self, to: usize, tag: u64, bytes: u64) {
        if to != self.rank {
            self.ops.push(Op::Send { to, tag, bytes });
        }
    }

    /// Waits for all that has begun.
    pub(crate) fn wait(&mut self) {
        self.ops.push(Op::Wait);
    }

    /// Sends to one rank while it receives as much from another.
    pub(crate) fn exchange(&mut self, to: usize, from: usize, tag: u64, bytes: u64) {
        self.receive(from, tag, bytes);
        self.send(to, tag, bytes);
        self.wait();
    }

    fn collective(&mut self) -> u64 {
        self.collectives += 1;
        COLLECTIVE + self.collectives
    }

    /// `MPI_Alltoall` and `MPI_Alltoallv` of so many bytes for each rank: pairwise, as blocks of
    /// 3,000 bytes and more, and `MPI_Alltoallv` always.
    pub(crate) fn all_to_all(&mut self, bytes: u64) {
        let tag = self.collective();
        for step in 1..self.ranks {
            let to = (self.rank + step) % self.ranks;
            let from = (self.rank + self.ranks - step) % self.ranks;
            self.exchange(to, from, tag, bytes);
        }
    }

    /// `MPI_Alltoall` of blocks below 200 bytes among more than 12 ranks (Bruck): half of the
    /// blocks in each of log2 steps.
    pub(crate) fn all_to_all_short(&mut self, bytes: u64) {
        let tag = self.collective();
        for distance in self.distances() {
            let from = (self.rank + self.ranks - distance) % self.ranks;
            let blocks = self.ranks as u64 / 2;
            self.exchange((self.rank + distance) % self.ranks, from, tag, bytes * blocks);
        }
    }

    /// `MPI_Allreduce` of less than 10,000 bytes, and `MPI_Barrier` of none: recursive doubling.
    pub(crate) fn all_reduce(&mut self, bytes: u64) {
        let tag = self.collective();
        for distance in self.distances() {
            let other = self.rank ^ distance;
            self.exchange(other, other, tag, bytes);
        }
    }

    /// `MPI_Barrier`: no rank goes on before all have come.
    pub(crate) fn barrier(&mut self) {
        self.all_reduce(0);
    }

    /// `MPI_Reduce` of a few bytes to rank 0: a binomial tree.
    pub(crate) fn reduce(&mut self, bytes: u64) {
        let tag = self.collective();
        for distance in self.distances() {
            if self.rank & distance != 0 {
                self.send(self.rank - distance, tag, bytes);
                return self.wait();
            }
            self.receive(self.rank + distance, tag, bytes);
            self.wait();
        }
    }

    /// 1, 2, 4 and so on, below the number of ranks.
    fn distances(&self) -> impl Iterator<Item = usize> + use<> {
        let ranks = self.ranks;
        (0..).map(|power| 1 << power).take_while(move |distance| *distance < ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// What all ranks send must be what all ranks receive, in the same order for each pair.
    #[test]
    fn sends_and_receives_of_collectives_fit() {
        type Collective = fn(&mut RankScript);
        let collectives: [(&str, Collective); 5] = [
            ("all_to_all", |it| it.all_to_all(5_000)),
            ("all_to_all_short", |it| it.all_to_all_short(4)),
            ("all_reduce", |it| it.all_reduce(8)),
            ("reduce", |it| it.reduce(16)),
            ("barrier", RankScript::barrier),
        ];
        for (name, collective) in collectives {
            let (mut sent, mut received) = (vec![], vec![]);
            for rank in 0..16 {
                let mut script = RankScript::new(rank, 16);
                collective(&mut script);
                for op in script.ops {
                    match op {
                        Op::Send { to, tag, bytes } => sent.push((rank, to, tag, bytes)),
                        Op::Receive { from, tag, bytes } => received.push((from, rank, tag, bytes)),
                        Op::Compute(_) | Op::Wait => {}
                    }
                }
            }
            sent.sort_unstable();
            received.sort_unstable();
            assert_eq!(sent, received, "{name}");
            assert!(!sent.is_empty(), "{name}");
        }
    }
}
