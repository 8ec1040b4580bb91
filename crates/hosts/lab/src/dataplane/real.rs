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

use super::handle::{DataPlane, DataPlaneError, Handle, Start, WAKE, port_of, source_of};
use crate::capture::Capture;
use crate::plane::PortPlan;
use crate::wait::Waiting;
use sys::clock;

/// Rounds between two looks at descriptors, where rings are looked at in each: at most some tens of
/// microseconds until a frontend's message, or a command, is noticed.
const LOOK_EVERY: u32 = 256;

impl Handle {
    /// Starts the thread in real time.
    pub fn start(
        plans: Vec<PortPlan>,
        waiting: Waiting,
        capture: Option<Capture>,
    ) -> Result<Self, DataPlaneError> {
        // A thread that spins has a processor already.
        let comes_first = waiting != Waiting::Spin;
        let start = Start { plans, capture, waiting, now: clock::now(), comes_first };
        Self::spawn(start, run)
    }
}

struct RealTime {
    data: DataPlane,
    /// Whether the descriptors of each port are waited for.
    watched: Vec<bool>,
}

fn run(data: DataPlane) {
    let polls_only = data.waiter.spins() && data.plane.is_in_memory();
    let mut owner = RealTime { watched: vec![true; data.plane.len()], data };
    let done = if polls_only { owner.run_without_waiting() } else { owner.run_waiting() };
    if let Err(errno) = done {
        let plane = &mut owner.data.plane;
        (0..plane.len()).for_each(|number| plane.vanish(number, &errno.to_string()));
    }
}

impl RealTime {
    fn run_waiting(&mut self) -> rustix::io::Result<()> {
        let mut ready = Vec::with_capacity(64);
        while !self.data.stopped {
            match self.data.waiter.wait(self.data.plane.deadline(), &mut ready) {
                Ok(()) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            }
            if ready.contains(&WAKE) {
                self.run_commands();
            }
            self.round(&ready);
        }
        Ok(())
    }

    fn round(&mut self, ready: &[u64]) {
        let now = clock::now();
        self.sync(now, ready);
        for &token in ready.iter().filter(|token| **token != WAKE) {
            self.data.plane.take(clock::now(), port_of(token), source_of(token));
        }
        // Later than what was just taken, or a frame would overtake another one.
        self.data.plane.take_from_memory(clock::now());
        self.data.plane.carry(clock::now());
        self.data.plane.serve(clock::now());
        self.forget_vanished();
    }

    fn run_without_waiting(&mut self) -> rustix::io::Result<()> {
        let mut ready = Vec::with_capacity(64);
        let (mut before, mut moved) = (clock::now(), true);
        let mut round: u32 = 0;
        while !self.data.stopped {
            round = round.wrapping_add(1);
            if round.is_multiple_of(LOOK_EVERY) {
                self.look(&mut ready)?;
            }
            // Nothing in such a round takes long, so one reading of the clock does for all of it.
            let now = clock::now();
            if !moved {
                self.data.waiter.add_spun(now.since(before));
            }
            self.sync(now, &ready);
            ready.clear();
            moved = self.data.plane.take_from_memory(now) > 0;
            moved |= self.data.plane.carry(now) > 0;
            self.data.plane.serve(now);
            before = now;
        }
        Ok(())
    }

    /// Notes which descriptors can be read, and runs commands.
    fn look(&mut self, ready: &mut Vec<u64>) -> rustix::io::Result<()> {
        match self.data.waiter.look(ready) {
            Ok(()) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        if ready.contains(&WAKE) {
            self.run_commands();
        }
        self.forget_vanished();
        Ok(())
    }

    fn run_commands(&mut self) {
        self.data.run_commands(clock::now(), clock::thread_cpu_time());
    }

    /// A descriptor whose interface is gone would be readable for ever.
    fn forget_vanished(&mut self) {
        let DataPlane { plane, waiter, .. } = &self.data;
        for (number, watched) in self.watched.iter_mut().enumerate() {
            if *watched && plane.has_vanished(number) {
                *watched = false;
                for fd in plane.fds(number) {
                    let _ = waiter.remove(fd);
                }
            }
        }
    }

    fn sync(&mut self, now: Instant, ready: &[u64]) {
        let of = |number: usize| move |&token: &u64| token != WAKE && port_of(token) == number;
        for number in 0..self.data.plane.len() {
            self.data.plane.sync(now, number, ready.iter().any(of(number)));
        }
    }
}
