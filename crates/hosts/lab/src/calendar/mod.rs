//! Virtual time: the calendar that all guests share.
//!
//! A User-Mode Linux guest that was started with `time-travel=ext:SOCKET` has no clock of its own.
//! It asks its calendar for a time at which it wants to run, and waits for the message that its
//! turn has come. Between two turns no time passes for it, and whatever it computes during its turn
//! takes none. Only one guest runs at any moment. The order of events is therefore the same in
//! every run, however fast or busy the machine is; what decides is the calendar:
//!
//! ```text
//! guest a  ── REQUEST 75 us, WAIT ──▶ ┌──────────┐
//! guest b  ── REQUEST 40 us, WAIT ──▶ │ calendar │ ── b's is next ── RUN at 40 us ──▶ guest b
//! NIC      ── deadline 60 us ───────▶ └──────────┘
//! ```
//!
//! A guest that sends a frame says what time it is for it, kicks its device by a bit in memory that
//! all share, and does not let time pass before its turn ends; a guest that is interrupted gets a
//! turn, and finds bits of its rings there. So the NIC never has to guess when something happened.
//! (The first kick of a ring, that of a ring whose answer the driver waits for, and those of other
//! kernels are messages, and the guest waits for the answer. The first interrupt, and all of other
//! kernels, is a message right before that of its turn.)
//!
//! The kernel's side is `arch/um/kernel/time.c`. [`Calendar`] is the clocks alone;
//! [`dataplane`](crate::dataplane) joins them with the ports.

#[cfg(any(test, feature = "checks"))]
pub(crate) mod checks;
mod client;
mod message;
mod shared;

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixListener;

use base::time::Instant;

use client::Client;
pub use client::State;
use shared::Shared;

/// Midnight, 1 January 2026, UTC, in nanoseconds since 1970: when the world of virtual time begins.
pub const BEGINNING_OF_TIME: u64 = 1_767_225_600 * 1_000_000_000;

/// A guest asks for this time when it has nothing to do; beyond it, clocks turn negative.
const NEVER: Instant = Instant::from_nanos(i64::MAX as u64);

/// The clocks of all guests, and the time.
#[derive(Debug)]
pub struct Calendar {
    now: Instant,
    clients: Vec<Client>,
    shared: Shared,
    /// The guest that runs, if one does.
    running: Option<usize>,
}

impl Calendar {
    /// A calendar for guests that will connect, each to its own socket. It is time zero.
    pub fn new(guests: Vec<(String, UnixListener)>) -> io::Result<Self> {
        let shared = Shared::new(guests.len() as u16)?;
        let clients = guests.into_iter().map(|(name, listener)| Client::new(name, listener));
        let clients = clients.collect::<io::Result<_>>()?;
        Ok(Self { now: Instant::ZERO, clients, shared, running: None })
    }

    /// The present moment of virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Time passes. It does not go back.
    pub(crate) fn advance_to(&mut self, time: Instant) {
        self.now = self.now.max(time);
        self.shared.set_now(self.now);
    }

    /// The guest that runs may do so until `until` without a word, unless another guest wants to
    /// run before.
    pub(crate) fn let_run_until(&mut self, until: Option<Instant>) {
        let others = (0..self.len()).filter(|number| Some(*number) != self.running);
        let first = others.filter_map(|number| self.request(number)).chain(until).min();
        let have_all_begun = self.clients.iter().all(Client::has_begun);
        // No guest's time may pass before that of all has begun.
        let until = if have_all_begun { first.unwrap_or(NEVER) } else { self.now };
        self.shared.set_free_until(until);
    }

    /// When guest `number` wants to run.
    fn request(&self, number: usize) -> Option<Instant> {
        let client = &self.clients[number];
        let shared = self.shared.request(number as u16).map(Instant::from_nanos);
        let shared = shared.filter(|time| *time < NEVER);
        let waits = client.state == State::Waiting;
        client.request.into_iter().chain(shared).min().filter(|_| waits).map(|t| t.max(self.now))
    }

    /// How many guests there are, the absent and the gone included.
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// Whether there is no guest.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// What guest `number`'s clock does.
    pub fn state(&self, number: usize) -> State {
        self.clients[number].state
    }

    /// What becomes readable when guest `number` has something to say; it changes once, when the
    /// guest has connected.
    pub fn fd(&self, number: usize) -> BorrowedFd<'_> {
        self.clients[number].fd()
    }

    pub(crate) fn accept(&mut self, number: usize) -> io::Result<bool> {
        self.clients[number].accept()
    }

    pub(crate) fn listen(&mut self, number: usize) -> Result<(), String> {
        self.take_time();
        let shares = self.shared.is_shared_by(number as u16);
        self.clients[number].listen(&mut self.now, shares)?;
        if self.running == Some(number) && self.clients[number].state != State::Running {
            self.running = None;
            self.shared.run_none();
        }
        Ok(())
    }

    /// Whether guest `number`, whose turn is over, has kicked its device in it.
    pub(crate) fn take_kick(&mut self, number: usize) -> bool {
        !self.clients[number].holds_time() && self.shared.take_kick(number as u16)
    }

    /// Takes over the time of the guest that runs: it says what it is before it kicks a device.
    pub(crate) fn take_time(&mut self) {
        // Any guest may write there; none is asked to run at the end of time.
        self.now =
            Some(self.shared.now()).filter(|now| *now < NEVER).unwrap_or(self.now).max(self.now);
    }

    /// Whether anybody's time has begun.
    pub fn has_begun(&self) -> bool {
        self.clients.iter().any(Client::has_begun)
    }

    /// Whether time stands still: a guest runs, or has still to come.
    pub fn is_held(&self) -> bool {
        self.clients.iter().any(Client::holds_time)
    }

    /// The names of the guests that time waits for.
    pub fn holding(&self) -> Vec<&str> {
        let held = self.clients.iter().filter(|client| client.holds_time());
        held.map(|client| client.name.as_str()).collect()
    }

    /// Lets the next guest begin once none runs: guests boot one after the other, in their order.
    pub(crate) fn begin_next(&mut self) -> io::Result<()> {
        if self.running.is_some() {
            return Ok(());
        }
        let Some(next) = self.clients.iter().position(|client| !client.has_begun()) else {
            return Ok(());
        };
        if matches!(self.clients[next].state, State::Starting(_)) {
            self.let_run(next, None);
            self.clients[next].begin(next as u16, &self.shared)?;
        }
        Ok(())
    }

    /// When the next guest wants its turn.
    pub fn next_request(&self) -> Option<Instant> {
        (0..self.len()).filter_map(|number| self.request(number)).min()
    }

    /// Guest `number`, if it waits, wants to run now: it will be interrupted.
    pub(crate) fn wake(&mut self, number: usize) -> Result<(), String> {
        let client = &mut self.clients[number];
        if client.state != State::Waiting {
            return Ok(());
        }
        if !self.shared.is_shared_by(number as u16) {
            return Err(format!(
                "guest {}: its kernel is too old for virtual time; `earmark kernel` builds another",
                client.name
            ));
        }
        client.request = Some(self.now);
        Ok(())
    }

    /// Gives the guest that wants to run first its turn, at the time it is; of several, the first.
    ///
    /// It may go on until `until`, or until another guest wants to run. `interrupt` says for which
    /// rings it is interrupted, a bit for each, if its kernel finds that in the shared memory,
    /// which its second argument says. If not, it sends messages: at this moment the guest's kernel
    /// finds in the shared memory that the turn is its own, and still waits for RUN.
    pub(crate) fn run_next(
        &mut self,
        until: Option<Instant>,
        interrupt: impl FnOnce(usize, bool) -> u64,
    ) {
        let waiting = (0..self.len()).filter_map(|number| Some((self.request(number)?, number)));
        let Some((_, next)) = waiting.min() else { return };
        self.let_run(next, until);
        let rings = interrupt(next, self.shared.sees_interrupts(next as u16));
        self.shared.interrupt(next as u16, rings);
        self.clients[next].run(self.now);
    }

    fn let_run(&mut self, number: usize, until: Option<Instant>) {
        self.running = Some(number);
        self.shared.set_now(self.now);
        self.shared.run(number as u16);
        self.let_run_until(until);
    }
}

#[cfg(test)]
mod tests;
