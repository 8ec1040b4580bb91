//! The data plane in virtual time: the calendar of its guests, and their NIC.
//!
//! While a guest runs, or answers an interrupt, time is *held*: the thread hears what its clock and
//! its device say, and nothing else happens. When all guests wait, time jumps to whatever comes
//! first, and at one moment the order is always the same: commands, then the NIC, then guests.
//!
//! A guest that is interrupted asks for a turn at the same moment, so an interrupt costs no time
//! there. On its way it takes what the device's settings say, and until then guests run.
//! After every turn the rings are looked at, which is how the NIC learns at which moment a host has
//! re-armed.
//!
//! A guest that runs may go on until the next event that is known, whoever's it is. While it waits,
//! its own clock may therefore be ahead of the calendar, though never beyond that event, and it
//! must not be told anything before its time. So whatever comes from outside, a command or an
//! interrupt that it caused, is told at an event.

use std::sync::PoisonError;

use base::time::Instant;

use super::{DataPlane, WAKE, port_of};
use crate::calendar::State;
use sys::{clock, cpu};

/// Tokens of the guests' clocks; those of ports are below.
const CLOCK: u64 = 1 << 32;

impl DataPlane {
    pub(super) fn run_in_virtual_time(&mut self) {
        if let Some(cpu) = cpu::of_this_process() {
            // Elsewhere it only takes longer.
            let _ = cpu::pin(None, cpu);
        }
        for number in 0..self.calendar.len() {
            if let Err(errno) = self.waiter.add(self.calendar.fd(number), CLOCK | number as u64) {
                self.failure = Some(format!("watch the clock of a guest: {errno}"));
            }
        }
        self.heard_at = clock::now();
        self.show();
        while !self.stopped {
            if self.failure.is_none() && self.step() {
                continue;
            }
            // Nothing will ever happen by itself again.
            if self.failure.is_none() && !self.is_over() && !self.calendar.is_empty() {
                self.fail("virtual time stands still: all guests wait, and for nothing".into());
            }
            if !self.commanded {
                self.hear(None);
            }
            self.obey();
        }
    }

    /// Lets the next thing happen; whether there was one.
    fn step(&mut self) -> bool {
        if self.is_over() {
            return false;
        }
        if self.calendar.is_held() || self.plane.calls_unacked() {
            self.hear(Some(self.heard_at + self.patience));
            if !self.calendar.has_begun() {
                self.obey();
            }
            return true;
        }
        let now = self.calendar.now();
        (0..self.plane.len()).for_each(|number| self.plane.sync(now, number, false));
        if self.plane.next_irq_at().is_some_and(|at| at <= now) {
            self.plane.send_calls(now);
            return true;
        }
        let planned = self.schedule.first().map(|(at, _)| *at);
        let device = self.plane.deadline();
        let call = self.plane.next_irq_at();
        let guest = self.calendar.next_request();
        let Some(next) = [planned, device, call, guest].into_iter().flatten().min() else {
            return false;
        };
        self.calendar.advance_to(next);
        self.outlook.lock().unwrap_or_else(PoisonError::into_inner).now = next;
        if self.commanded {
            self.obey();
            return true;
        }
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= next);
        if due(planned) {
            let (_, command) = self.schedule.remove(0);
            command(self);
        } else if due(device) {
            self.plane.carry(self.calendar.now());
            self.plane.serve(self.calendar.now());
        } else if !due(call) {
            // Calls whose moment has come are sent by the next step, before any guest runs.
            self.calendar.run_next(self.next_event());
        }
        true
    }

    /// When something happens next that is not a guest's turn.
    fn next_event(&self) -> Option<Instant> {
        let planned = self.schedule.first().map(|(at, _)| *at);
        [planned, self.plane.deadline(), self.plane.next_irq_at()].into_iter().flatten().min()
    }

    /// Waits for something to be said, in real time, and hears it.
    fn hear(&mut self, until: Option<Instant>) {
        let mut ready = Vec::with_capacity(64);
        match self.waiter.wait(until, &mut ready) {
            Ok(()) => {}
            Err(rustix::io::Errno::INTR) => return,
            Err(errno) => self.fail(format!("wait for the guests: {errno}")),
        }
        if ready.is_empty() && until.is_some_and(|until| until <= clock::now()) {
            let names = self.calendar.holding().join(", ");
            self.fail(format!(
                "guest {names} has been running for {} s without a word; does a program in it spin?",
                self.patience.as_micros() / 1_000_000
            ));
        }
        for &token in &ready {
            match token {
                WAKE => self.note_command(),
                clock if clock & CLOCK != 0 => self.hear_clock((clock & !CLOCK) as usize),
                port => self.hear_port(port_of(port)),
            }
        }
        // A command is no word of the guest's.
        if ready.iter().any(|token| *token != WAKE) {
            self.heard_at = clock::now();
        }
        if let Err(error) = self.calendar.begin_next() {
            self.fail(format!("start the clock of a guest: {error}"));
        }
    }

    /// A command has come. Its time comes later, and until then the descriptor is to be quiet.
    fn note_command(&mut self) {
        self.commanded = true;
        self.quiet();
    }

    fn hear_clock(&mut self, number: usize) {
        let token = CLOCK | number as u64;
        let before = self.calendar.state(number);
        if before == State::Absent {
            let watched = match self.calendar.accept(number) {
                Ok(true) => self.waiter.add(self.calendar.fd(number), token).map_err(Into::into),
                accepted => accepted.map(drop),
            };
            if let Err(error) = watched {
                return self.fail(format!("watch the clock of a guest: {error}"));
            }
        }
        if let Err(error) = self.calendar.listen(number) {
            self.fail(error);
        }
        if self.calendar.state(number) == State::Gone {
            let _ = self.waiter.remove(self.calendar.fd(number));
            self.show();
        } else if before == State::Absent {
            self.show();
        }
    }

    /// A guest said something to its device. It waits for the answer, so all of it happens now.
    fn hear_port(&mut self, number: usize) {
        self.calendar.take_time();
        let now = self.calendar.now();
        self.plane.sync(now, number, true);
        self.plane.take_all(now, number);
        self.plane.carry(now);
        self.plane.serve(now);
        // The guest waits for its answer. What it did may make something happen earlier than it
        // was told it could run; it must know before it goes on.
        self.calendar.let_run_until(self.next_event());
        self.plane.answer(number);
    }

    fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
        self.show();
    }
}
