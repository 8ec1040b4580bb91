//! Virtual time: the calendar that all guests share.
//!
//! A User-Mode Linux guest that was started with `time-travel=ext:SOCKET` has no clock of its own.
//! It asks its calendar for a time at which it wants to run, waits, and is told when its turn has
//! come. Between two turns no time passes for it, and whatever it computes during its turn takes
//! none. Only one guest runs at any moment. The order of events is therefore the same in every run,
//! however fast or busy the machine is; what decides is the calendar:
//!
//! ```text
//! guest a  ── REQUEST 75 us, WAIT ──▶ ┌──────────┐
//! guest b  ── REQUEST 40 us, WAIT ──▶ │ calendar │ ── b's is next ── RUN at 40 us ──▶ guest b
//! NIC      ── deadline 60 us ───────▶ └──────────┘
//! ```
//!
//! A guest that sends a frame says what time it is for it, kicks its device with a message, and
//! waits for the answer; an interrupt is a message, too, which the guest answers after it has asked
//! for a turn at the same moment. So the NIC never has to guess when something happened.
//!
//! The kernel's side is `arch/um/kernel/time.c`. [`Calendar`] is the clocks alone;
//! [`dataplane`](crate::dataplane) joins them with the ports.

mod client;
mod message;

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixListener;

use nic::time::Instant;

use client::Client;
pub use client::State;

/// The clocks of all guests, and the time.
#[derive(Debug, Default)]
pub struct Calendar {
    now: Instant,
    clients: Vec<Client>,
}

impl Calendar {
    /// A calendar for guests that will connect, each to its own socket. It is time zero.
    ///
    /// # Errors
    /// If a socket cannot be made non-blocking.
    pub fn new(guests: Vec<(String, UnixListener)>) -> io::Result<Self> {
        let clients = guests.into_iter().map(|(name, listener)| Client::new(name, listener));
        Ok(Self { now: Instant::ZERO, clients: clients.collect::<io::Result<_>>()? })
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Time passes. It does not go back.
    pub(crate) fn advance_to(&mut self, time: Instant) {
        self.now = self.now.max(time);
    }

    /// How many guests there are, the absent and the gone included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// Whether there is no guest.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// What guest `number`'s clock does.
    #[must_use]
    pub fn state(&self, number: usize) -> State {
        self.clients[number].state
    }

    /// What becomes readable when guest `number` has something to say; it changes once, when the
    /// guest has connected.
    #[must_use]
    pub fn fd(&self, number: usize) -> BorrowedFd<'_> {
        self.clients[number].fd()
    }

    /// Takes the connection of guest `number`; whether it has come.
    ///
    /// # Errors
    /// If the system refuses it.
    pub(crate) fn accept(&mut self, number: usize) -> io::Result<bool> {
        self.clients[number].accept()
    }

    /// Hears guest `number` out.
    ///
    /// # Errors
    /// If it says what no clock says.
    pub(crate) fn listen(&mut self, number: usize) -> Result<(), String> {
        self.clients[number].listen(&mut self.now)
    }

    /// Whether time stands still: a guest runs, or has still to come.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.clients.iter().any(|client| !matches!(client.state, State::Waiting | State::Gone))
    }

    /// The names of the guests that time waits for.
    #[must_use]
    pub fn holding(&self) -> Vec<&str> {
        let held = |client: &&Client| !matches!(client.state, State::Waiting | State::Gone);
        self.clients.iter().filter(held).map(|client| client.name.as_str()).collect()
    }

    /// Whether every guest has gone.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.clients.iter().all(|client| client.state == State::Gone)
    }

    /// Lets the next guest begin once nobody runs: guests boot one after the other, in their order.
    ///
    /// # Errors
    /// If the message cannot be sent.
    pub(crate) fn begin_next(&mut self) -> io::Result<()> {
        let busy = |client: &Client| client.state == State::Running;
        if self.clients.iter().any(busy) {
            return Ok(());
        }
        let open =
            |client: &&mut Client| matches!(client.state, State::Absent | State::Starting(_));
        match self.clients.iter_mut().find(open) {
            Some(next) => next.begin(),
            None => Ok(()),
        }
    }

    /// When the next guest wants its turn.
    #[must_use]
    pub fn next_request(&self) -> Option<Instant> {
        self.clients.iter().filter_map(|client| client.request).min()
    }

    /// Gives the guest that wants to run first its turn, at the time it is; of several, the first.
    pub(crate) fn run_next(&mut self) {
        let now = self.now;
        let waiting = self.clients.iter_mut().filter(|client| client.request.is_some());
        if let Some(next) = waiting.min_by_key(|client| client.request) {
            next.run(now);
        }
    }
}
