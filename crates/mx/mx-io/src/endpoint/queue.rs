//! An endpoint as a completion queue, for layers above that have their own requests.
//!
//! Such a layer gives each request a context and takes ends in the order in which they come, all of
//! them: it must not use the calls that wait for one request.

use std::sync::Arc;

use base::time::Instant;
use mx::buffers::{Sink, Source};
use mx::matching::Match;
use mx::status::Refusal;

use super::Endpoint;
use super::completions::Filter;
use super::core::Core;
use super::error::MxError;
use super::event_fd::EventFd;
use super::request::Completed;
use sys::clock;

/// The engine, for one who is shown what has ended ([`Endpoint::drain`]) and wants more of it.
#[derive(Debug)]
pub struct Turn<'a, S, R> {
    engine: &'a mut mx::endpoint::Endpoint<S, R>,
    has_asked: bool,
}

impl<S, R> Turn<'_, S, R> {
    /// Asks the engine for something. What that makes is sent when all ends have been shown.
    pub fn ask<T>(
        &mut self,
        ask: impl FnOnce(&mut mx::endpoint::Endpoint<S, R>, Instant) -> T,
    ) -> T {
        self.has_asked = true;
        ask(self.engine, clock::now())
    }

    /// The engine, for what makes nothing to send.
    pub const fn engine(&mut self) -> &mut mx::endpoint::Endpoint<S, R> {
        self.engine
    }
}

const ALL: Filter = Filter::Any(Match::ANY);

impl<S: Source + Send + 'static, R: Sink + Send + 'static> Endpoint<S, R> {
    /// Asks the engine for something, and sends what that makes. The endpoint is locked meanwhile.
    ///
    /// # Errors
    /// What the engine refuses; or the port is broken.
    pub fn with_engine<T>(
        &self,
        ask: impl FnOnce(&mut mx::endpoint::Endpoint<S, R>, Instant) -> Result<T, Refusal>,
    ) -> Result<T, MxError> {
        self.request(ask)
    }

    /// Passes ends to `take`, in their order, `most` at most, and says how many there were. Frames
    /// are received first if no end is known: this is for one who calls it again and again. The
    /// endpoint is locked meanwhile: `take` must not call it, but has the engine.
    pub fn drain(
        &self,
        most: usize,
        mut take: impl FnMut(&mut Turn<'_, S, R>, Completed<R>),
    ) -> Result<usize, MxError> {
        let mut core = self.shared.lock();
        if !core.ended.has(ALL) {
            core.check()?;
            core.look()?;
            let now = core.now();
            core.leadership.polled(now);
        }
        let Core { engine, ended, .. } = &mut *core;
        let mut turn = Turn { engine, has_asked: false };
        let mut taken = 0;
        while taken < most
            && let Some(completed) = ended.take(ALL)
        {
            take(&mut turn, completed);
            taken += 1;
        }
        if turn.has_asked && !core.is_broken() {
            core.tick();
            core.send_asked()?;
        }
        Ok(taken)
    }

    /// From now on this bell is one of those that are rung; see [`Endpoint::ring_next`].
    pub fn add_bell(&self, bell: &Arc<EventFd>) {
        let mut core = self.shared.lock();
        if !core.event_fds.iter().any(|known| Arc::ptr_eq(known, bell)) {
            core.event_fds.push(Arc::clone(bell));
        }
    }

    /// Has all bells rung, once, when the next request ends or the port breaks, for a thread that
    /// is going to sleep. False if it had better not: a request has ended that no call has taken.
    pub fn ring_next(&self) -> Result<bool, MxError> {
        let mut core = self.core()?;
        core.advance()?;
        core.end_lent();
        if core.ended.has(ALL) {
            return Ok(false);
        }
        core.signals_next = true;
        core.leadership.release();
        Ok(true)
    }
}
