//! How many connections there are at once, in all and of one address.
//!
//! There is always a slot for the newest: where all are taken, the oldest loses its own, of those
//! of the same address if they have their share, and rather one that has not asked for anything
//! yet. So connections that do nothing, however many, do not keep out those that ask.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::refusals::counted_as;
use tokio::task::AbortHandle;

/// The share of one address: a quarter.
const SHARE: usize = 4;

#[derive(Debug)]
pub(super) struct Admission {
    limit: usize,
    slots: Arc<Mutex<Slots>>,
}

#[derive(Debug, Default)]
struct Slots {
    next: u64,
    taken: Vec<Taken>,
}

#[derive(Debug)]
struct Taken {
    number: u64,
    from: IpAddr,
    has_asked: Arc<AtomicBool>,
    /// `None` for a moment, until its task is there.
    task: Option<AbortHandle>,
}

/// A slot of a connection, until this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    number: u64,
    has_asked: Arc<AtomicBool>,
    slots: Arc<Mutex<Slots>>,
}

impl Admission {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, slots: Arc::default() }
    }

    /// Gives a slot to a connection, whose task `start` starts.
    pub(super) fn enter(&self, from: IpAddr, start: impl FnOnce(Slot) -> AbortHandle) {
        let from = counted_as(from);
        let mut slots = lock(&self.slots);
        let same = slots.taken.iter().filter(|one| one.from == from).count();
        if same >= self.limit.div_ceil(SHARE) {
            slots.end_oldest(|one| one.from == from);
        } else if slots.taken.len() >= self.limit {
            slots.end_oldest(|_| true);
        }
        let (number, has_asked) = (slots.next, Arc::<AtomicBool>::default());
        slots.next += 1;
        let asked = Arc::clone(&has_asked);
        slots.taken.push(Taken { number, from, has_asked: asked, task: None });
        // Its task may end and give its slot back before it is noted.
        drop(slots);
        let task = start(Slot { number, has_asked, slots: Arc::clone(&self.slots) });
        let mut slots = lock(&self.slots);
        if let Some(taken) = slots.taken.iter_mut().find(|one| one.number == number) {
            taken.task = Some(task);
        }
    }

    pub(super) fn make_room(&self) {
        lock(&self.slots).end_oldest(|_| true);
    }
}

impl Slots {
    /// Ends the oldest of some that has not asked yet, or else the oldest.
    fn end_oldest(&mut self, among: impl Fn(&Taken) -> bool) {
        let idle = |one: &Taken| among(one) && !one.has_asked.load(Ordering::Relaxed);
        let oldest = self.taken.iter().position(idle);
        let oldest = oldest.or_else(|| self.taken.iter().position(among));
        if let Some(task) = oldest.and_then(|oldest| self.taken.remove(oldest).task) {
            task.abort();
        }
    }
}

impl Slot {
    pub(super) fn is_asked(&self) {
        self.has_asked.store(true, Ordering::Relaxed);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.slots).taken.retain(|one| one.number != self.number);
    }
}

fn lock(slots: &Mutex<Slots>) -> MutexGuard<'_, Slots> {
    slots.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::pending;
    use std::rc::Rc;

    use super::*;

    #[derive(Clone)]
    struct Door {
        admission: Rc<Admission>,
        tasks: Rc<RefCell<Vec<tokio::task::JoinHandle<()>>>>,
    }

    impl Door {
        fn new(limit: usize) -> Self {
            Self { admission: Rc::new(Admission::new(limit)), tasks: Rc::default() }
        }

        async fn enter(&self, from: &str, asks: bool) {
            self.admission.enter(from.parse().unwrap(), |slot| {
                let task = tokio::spawn(async move {
                    if asks {
                        slot.is_asked();
                    }
                    pending::<()>().await;
                    drop(slot);
                });
                let handle = task.abort_handle();
                self.tasks.borrow_mut().push(task);
                handle
            });
            tokio::task::yield_now().await;
        }

        /// The numbers of those that go on.
        async fn open(&self) -> Vec<usize> {
            tokio::task::yield_now().await;
            let tasks = self.tasks.borrow();
            (0..tasks.len()).filter(|&number| !tasks[number].is_finished()).collect()
        }
    }

    fn run(test: impl AsyncFnOnce()) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test());
    }

    #[test]
    fn an_address_with_its_share_replaces_its_own() {
        run(async || {
            let door = Door::new(8);
            door.enter("10.0.0.1", true).await;
            for _ in 0..100 {
                door.enter("10.0.0.2", false).await;
            }
            assert_eq!(door.open().await, [0, 99, 100]);
        });
    }

    #[test]
    fn clients_that_ask_outlive_those_that_do_not() {
        run(async || {
            let door = Door::new(4);
            door.enter("10.0.0.1", true).await;
            for host in 2..50 {
                door.enter(&format!("10.0.0.{host}"), false).await;
            }
            assert_eq!(door.open().await, [0, 46, 47, 48]);
            door.admission.make_room();
            assert_eq!(door.open().await, [0, 47, 48]);
        });
    }
}
