//! The data plane in real time.
//!
//! Each round takes note of what the hosts have done, takes what they sent, moves what the links
//! have carried into the rings, lets DMAs and timers act, and gives the hosts what there is for
//! them.

use super::{DataPlane, WAKE, port_of, source_of};
use crate::clock;

impl DataPlane {
    pub(super) fn run_in_real_time(&mut self) {
        let mut ready = Vec::with_capacity(64);
        while !self.stopped {
            match self.waiter.wait(self.plane.deadline(), &mut ready) {
                Ok(()) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return self.vanish_all(&errno.to_string()),
            }
            if ready.contains(&WAKE) {
                self.obey();
            }
            self.round(&ready);
        }
    }

    fn round(&mut self, ready: &[u64]) {
        let now = clock::now();
        let of = |number: usize| move |&token: &u64| token != WAKE && port_of(token) == number;
        for number in 0..self.plane.len() {
            self.plane.attend(now, number, ready.iter().any(of(number)));
        }
        for &token in ready.iter().filter(|token| **token != WAKE) {
            self.plane.take(clock::now(), port_of(token), source_of(token));
        }
        self.plane.take_from_memory(now);
        self.plane.carry(clock::now());
        self.plane.serve(clock::now());
        self.stop_hearing_the_dead();
    }

    fn vanish_all(&mut self, reason: &str) {
        (0..self.plane.len()).for_each(|number| self.plane.vanish(number, reason));
    }
}
