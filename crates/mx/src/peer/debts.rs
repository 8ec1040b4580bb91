//! What a peer owes, and since when nothing has come of it.
//!
//! That a peer says anything shows that it is alive, not that the connection is of use: where
//! frames of one size or type never get through, the others would keep it for ever. So what
//! depends on the way and on the other endpoint alone has to move: acknowledgements, answers to
//! pulls, the rest of what has begun to come. For what depends on the program there, room for
//! messages or a receive that fits, any word will do.
//!
//! A debt is overdue when nothing has come of it for the whole time, and its peer was asked so
//! often meanwhile: one who did not run, as in a machine that was suspended, has not asked.

use base::time::{Duration, Instant};

/// So often a peer is asked in vain before it counts as gone.
const QUESTIONS: u32 = 4;

/// What may be owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Debt {
    /// Any frame: a sign of life.
    Word,
    /// That one of our numbered frames has arrived.
    Arrival,
    /// A frame of a large message that was asked for.
    Reply,
    /// The next numbered frame, since others that follow it, or pieces of its message, have come.
    Next,
}

/// How a debt stands.
#[derive(Clone, Copy, Debug)]
struct Open {
    since: Instant,
    questions: u32,
}

/// The debts of a peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Debts([Option<Open>; 4]);

impl Debts {
    /// Whether this is owed.
    pub(crate) const fn has(&self, debt: Debt) -> bool {
        self.0[debt as usize].is_some()
    }

    /// When something last came of it, or it began to be owed; the epoch if it is not.
    pub(crate) fn since(&self, debt: Debt) -> Instant {
        self.0[debt as usize].map_or(Instant::ZERO, |open| open.since)
    }

    /// This is owed now, or not. Whoever begins to owe has the whole time.
    pub(crate) fn set(&mut self, debt: Debt, is_owed: bool, now: Instant) {
        let open = &mut self.0[debt as usize];
        *open = is_owed.then(|| open.unwrap_or(Open { since: now, questions: 0 }));
    }

    /// Something has come of it.
    pub(crate) fn moved(&mut self, debt: Debt, now: Instant) {
        if let Some(open) = &mut self.0[debt as usize] {
            *open = Open { since: now, questions: 0 };
        }
    }

    /// The peer is asked.
    pub(crate) fn asked(&mut self) {
        for open in self.0.iter_mut().flatten() {
            open.questions += 1;
        }
    }

    /// When the first of them will be overdue, if nothing comes of it and nothing is asked.
    pub(crate) fn deadline(&self, patience: Duration) -> Option<Instant> {
        let ripe = self.0.iter().flatten().filter(|open| open.questions >= QUESTIONS);
        ripe.map(|open| open.since + patience).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debt_is_overdue_after_the_time_and_the_questions() {
        let at = Instant::from_micros;
        let patience = Duration::from_micros(100);
        let mut debts = Debts::default();
        debts.set(Debt::Word, true, at(0));
        debts.set(Debt::Reply, true, at(10));
        debts.set(Debt::Reply, true, at(20));
        for _ in 0..QUESTIONS {
            assert_eq!(debts.deadline(patience), None);
            debts.asked();
        }
        assert_eq!(debts.deadline(patience), Some(at(100)));
        debts.moved(Debt::Word, at(30));
        assert_eq!(debts.deadline(patience), Some(at(110)));
        debts.set(Debt::Reply, false, at(40));
        debts.moved(Debt::Reply, at(50));
        assert_eq!((debts.has(Debt::Reply), debts.deadline(patience)), (false, None));
    }
}
