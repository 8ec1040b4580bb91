//! The driver that the data plane plays for a host that has none for our NIC.
//!
//! A host that was interrupted is polled, 64 packets at a time, until a poll finds nothing, and is
//! then re-armed. Between two polls the wire is looked at again, so that a packet that arrives
//! during a poll is found by it, as under NAPI. Handing a frame to a TAP runs the receiving host's
//! whole stack in this thread; that CPU time is counted separately, as the host's.

use std::io;
use std::os::fd::BorrowedFd;

use base::time::{Duration, Instant};

use hostside::{Fetched, HostSide, Service};
use sys::clock;

/// Packets that a host takes in one poll, as NAPI's weight.
const BUDGET: usize = 64;

/// A host's stack behind its interface, such as a TAP.
///
/// Queues are numbered from 0; asking for one that does not exist is a defect and panics.
pub trait Stack: Send {
    /// How many queues the interface has.
    fn queues(&self) -> usize;

    /// What becomes readable when the stack has sent something on `queue`.
    fn fd(&self, queue: usize) -> BorrowedFd<'_>;

    /// Takes the next frame that the stack sent on `queue` in place of what is in `frame`; `false`
    /// if there is none.
    fn transmit(&self, queue: usize, frame: &mut Vec<u8>) -> io::Result<bool>;

    /// Hands a frame to the stack.
    fn deliver(&self, queue: usize, frame: &[u8]) -> io::Result<()>;
}

/// A stack with the driver that is played for it.
#[derive(Debug)]
pub struct NapiDriver<S> {
    stack: S,
    polling: Vec<bool>,
    refused: u64,
    receive_time: Duration,
}

impl<S: Stack> NapiDriver<S> {
    /// A driver for `stack` and each of its queues.
    pub fn new(stack: S) -> Self {
        let polling = vec![false; stack.queues()];
        Self { stack, polling, refused: 0, receive_time: Duration::ZERO }
    }

    fn poll(&mut self, now: Instant, queue: usize, service: &mut Service<'_>) -> io::Result<()> {
        let before = clock::thread_cpu_time();
        let Service { port, watch, pool, delivered } = service;
        let receive_queue = &mut port.queues_mut()[queue];
        let mut outcome = Ok(());
        let taken = receive_queue.poll(now, BUDGET, *watch, |packet, frame| {
            delivered(packet, &frame);
            if let Err(error) = self.stack.deliver(queue, &frame) {
                self.refused += 1;
                if is_gone(&error) {
                    outcome = Err(error);
                }
            }
            pool.push(frame);
        });
        if taken == 0 {
            self.polling[queue] = false;
            receive_queue.rearm(clock::now(), *watch);
        }
        self.receive_time = self.receive_time + (clock::thread_cpu_time() - before);
        outcome
    }
}

impl<S: Stack> HostSide for NapiDriver<S> {
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        (0..self.stack.queues()).map(|queue| self.stack.fd(queue)).collect()
    }

    fn transmit(&mut self, _: Instant, source: usize, frame: &mut Vec<u8>) -> io::Result<Fetched> {
        let found = self.stack.transmit(source, frame)?;
        Ok(if found { Fetched::Frame } else { Fetched::Nothing })
    }

    fn serve(&mut self, now: Instant, service: &mut Service<'_>) -> io::Result<()> {
        for queue in 0..self.polling.len() {
            self.polling[queue] |= service.port.queues_mut()[queue].take_interrupt();
            if self.polling[queue] {
                self.poll(now, queue, service)?;
            }
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.polling.contains(&true).then_some(Instant::ZERO)
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn receive_time(&self) -> Duration {
        self.receive_time
    }
}

/// Whether an interface is gone for good, rather than down or short of memory.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::BADFD.raw_os_error())
}
