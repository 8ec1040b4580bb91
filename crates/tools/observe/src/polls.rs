//! Who polls NAPI instances, again and again.

use anyhow::Result;
use flows::FlowError;
use flows::polls::PollCounter;
use show::suspension::{Polled, Polls};
use sys::busy_poll;

/// Counts polls: those of a network, and by who polls, where this process may have that counted.
pub struct PollMeter {
    process: u32,
    in_network: Option<u64>,
    counter: Result<PollCounter, FlowError>,
}

impl PollMeter {
    /// Begins to count; the network is that of a process.
    pub fn start(process: u32) -> Self {
        let counter = PollCounter::start();
        Self { process, in_network: busy_poll::packets(process), counter }
    }

    /// Why polls are counted by network alone, if they are.
    pub fn refusal(&self) -> Option<&FlowError> {
        self.counter.as_ref().err()
    }

    /// What was counted since the last time.
    ///
    /// # Errors
    /// If the kernel does not show its counts.
    pub fn read(&mut self) -> Result<Polled> {
        let now = busy_poll::packets(self.process);
        let before = std::mem::replace(&mut self.in_network, now);
        let counts = self.counter.as_mut().ok().map(PollCounter::read).transpose()?;
        let by_poller = counts.map(|counts| {
            let polls = counts.into_iter().map(|it| Polls {
                napi: it.napi,
                pid: it.process,
                polls: it.polls,
                packets: it.packets,
            });
            polls.collect()
        });
        Ok(Polled { in_network: now.zip(before).map(|(now, before)| now - before), by_poller })
    }
}
