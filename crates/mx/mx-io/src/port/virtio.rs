//! Frames straight onto a NIC of ours: a port of `earmark nic serve` or of a lab, reached through
//! its vhost-user socket.
//!
//! The NIC decides when to interrupt, and sees the mark of each frame: this is where interrupt
//! moderation and MX meet without a kernel in between. Frames need no system call, but for one who
//! sleeps. The address of the port is the NIC's, and so is the MTU.

use std::os::fd::BorrowedFd;
use std::path::Path;

use ::mx::wire::ETHER_TYPE;

use super::{
    BROADCAST, Identity, MAX_MTU, NicId, Port, PortCounters, PortError, Room, TakeFrame,
    Transmitted, WriteFrame, check_mtu, is_for,
};
use vhost::driver::{DriverSettings, VirtioDriver};

const HEADER: usize = 14;

/// A port that drives a NIC.
#[derive(Debug)]
pub struct VirtioPort {
    driver: VirtioDriver,
    endpoint: u8,
    mtu: u16,
    frame: Vec<u8>,
    /// Bytes of it that have still to go; 0 if there are none.
    staged: usize,
    counters: PortCounters,
    /// How often the device was notified before the first frame.
    first_kicks: u64,
}

impl VirtioPort {
    /// Attaches to the port whose socket is at `path`, with a pair of queues.
    ///
    /// # Errors
    /// As [`VirtioDriver::connect`], and if the MTU is too small for MX.
    pub fn connect(path: &Path, endpoint: u8, settings: DriverSettings) -> Result<Self, PortError> {
        let mtu = Some(settings.mtu.unwrap_or(MAX_MTU));
        let driver = VirtioDriver::connect(path, DriverSettings { mtu, ..settings })?;
        let mtu = check_mtu(&path.display().to_string(), driver.mtu().into())?;
        let counters = PortCounters::default();
        let frame = vec![0; HEADER + usize::from(mtu)];
        let first_kicks = driver.counters().kicks;
        Ok(Self { driver, endpoint, mtu, frame, staged: 0, counters, first_kicks })
    }

    /// Hands the staged frame over, if there is one; `false` if there is no room.
    fn send(&mut self) -> Result<bool, PortError> {
        if self.staged == 0 {
            return Ok(true);
        }
        while !self.driver.send(&self.frame[..self.staged])? {
            if !self.driver.arm_send()? {
                return Ok(false);
            }
        }
        self.counters.went(1, self.staged - HEADER);
        self.staged = 0;
        Ok(true)
    }
}

impl Port for VirtioPort {
    fn identity(&self) -> Identity {
        Identity {
            nic: NicId(self.driver.mac()),
            endpoint: self.endpoint,
            mtu: self.mtu,
            host_bytes: 6,
        }
    }

    fn transmit(&mut self, write: &mut WriteFrame<'_>) -> Result<Transmitted, PortError> {
        loop {
            if !self.send()? {
                self.counters.full += 1;
                return Ok(Transmitted::Full(Room::Signalled));
            }
            let Some(outgoing) = write.next(&mut self.frame[HEADER..]) else {
                self.driver.flush();
                return Ok(Transmitted::Drained);
            };
            self.frame[..6].copy_from_slice(&outgoing.to.0);
            self.frame[6..12].copy_from_slice(&self.driver.mac());
            self.frame[12..14].copy_from_slice(&ETHER_TYPE.to_be_bytes());
            self.staged = HEADER + outgoing.length.min(self.mtu.into());
        }
    }

    fn receive(&mut self, budget: usize, take: &mut TakeFrame<'_>) -> Result<usize, PortError> {
        let (own, endpoint, counters) = (self.driver.mac(), self.endpoint, &mut self.counters);
        let came = self.driver.receive(budget, |frame| {
            match sender(frame, own).filter(|(_, frame)| is_for(frame, endpoint)) {
                Some((from, frame)) => {
                    counters.came(frame.len());
                    take.take(from, frame);
                }
                None => counters.strange += 1,
            }
        })?;
        Ok(came)
    }

    fn arm(&mut self) -> Result<bool, PortError> {
        Ok(self.driver.arm())
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.driver.interrupt_fd()
    }

    fn more_readiness(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.driver.hangup_fd()]
    }

    fn clear(&mut self) -> Result<(), PortError> {
        self.counters.calls_in += 2;
        self.driver.clear_interrupt();
        Ok(self.driver.check()?)
    }

    fn counters(&mut self) -> PortCounters {
        let mut counters = self.counters;
        let driver = self.driver.counters();
        counters.too_long = driver.oversized;
        // The device is notified of free buffers only when it has run out of them.
        counters.calls_out = driver.kicks - self.first_kicks;
        counters
    }
}

/// The sender of a frame, and what follows its EtherType; `None` if it is not one of ours.
fn sender(frame: &[u8], own: [u8; 6]) -> Option<(NicId, &[u8])> {
    let (header, body) = frame.split_at_checked(HEADER)?;
    let from: [u8; 6] = header[6..12].try_into().ok()?;
    let is_for_us = [own, BROADCAST.0].iter().any(|to| header[..6] == *to);
    let ours = is_for_us && header[12..] == ETHER_TYPE.to_be_bytes() && from[0] & 1 == 0;
    ours.then_some((NicId(from), body))
}
