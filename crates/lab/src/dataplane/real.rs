//! The data plane in real time.
//!
//! Each round takes note of what the hosts have done, takes what they sent, moves what the links
//! have carried into the rings, lets DMAs and timers act, and gives the hosts what there is for
//! them.
//!
//! Between two rounds the thread waits for a descriptor or a deadline. If it spins, and its hosts
//! share their memory with it, it does not wait at all: it looks at their rings again and again,
//! and at descriptors every now and then.

use base::time::Instant;

use super::{DataPlane, WAKE, port_of, source_of};
use sys::clock;

/// Rounds between two looks at descriptors, where rings are looked at in each: at most some tens of
/// microseconds until a frontend's message, or a command, is heard.
const LOOK_EVERY: u32 = 256;

impl DataPlane {
    pub(super) fn run_in_real_time(&mut self) {
        let looks_only = self.waiter.spins() && self.plane.is_in_memory();
        let done = if looks_only { self.run_without_waiting() } else { self.run_waiting() };
        if let Err(errno) = done {
            self.vanish_all(&errno.to_string());
        }
    }

    fn run_waiting(&mut self) -> rustix::io::Result<()> {
        let mut ready = Vec::with_capacity(64);
        while !self.stopped {
            match self.waiter.wait(self.plane.deadline(), &mut ready) {
                Ok(()) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            }
            if ready.contains(&WAKE) {
                self.obey();
            }
            self.round(&ready);
        }
        Ok(())
    }

    fn round(&mut self, ready: &[u64]) {
        let now = clock::now();
        self.sync(now, ready);
        for &token in ready.iter().filter(|token| **token != WAKE) {
            self.plane.take(clock::now(), port_of(token), source_of(token));
        }
        // Later than what was just taken, or a frame would overtake another one.
        self.plane.take_from_memory(clock::now());
        self.plane.carry(clock::now());
        self.plane.serve(clock::now());
        self.stop_hearing_the_dead();
    }

    fn run_without_waiting(&mut self) -> rustix::io::Result<()> {
        let mut ready = Vec::with_capacity(64);
        let (mut before, mut moved) = (clock::now(), true);
        let mut round: u32 = 0;
        while !self.stopped {
            round = round.wrapping_add(1);
            if round.is_multiple_of(LOOK_EVERY) {
                self.look(&mut ready)?;
            }
            // Nothing in such a round takes long, so one reading of the clock does for all of it.
            let now = clock::now();
            if !moved {
                self.waiter.add_spun(now.since(before));
            }
            self.sync(now, &ready);
            ready.clear();
            moved = self.plane.take_from_memory(now) > 0;
            moved |= self.plane.carry(now) > 0;
            self.plane.serve(now);
            before = now;
        }
        Ok(())
    }

    /// Hears what descriptors say.
    fn look(&mut self, ready: &mut Vec<u64>) -> rustix::io::Result<()> {
        match self.waiter.look(ready) {
            Ok(()) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        if ready.contains(&WAKE) {
            self.obey();
        }
        self.stop_hearing_the_dead();
        Ok(())
    }

    fn sync(&mut self, now: Instant, ready: &[u64]) {
        let of = |number: usize| move |&token: &u64| token != WAKE && port_of(token) == number;
        for number in 0..self.plane.len() {
            self.plane.sync(now, number, ready.iter().any(of(number)));
        }
    }

    fn vanish_all(&mut self, reason: &str) {
        (0..self.plane.len()).for_each(|number| self.plane.vanish(number, reason));
    }
}
