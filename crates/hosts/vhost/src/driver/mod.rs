#![doc = include_str!("theory.md")]

mod error;
mod frontend;
#[cfg(test)]
mod frontend_tests;
mod layout;
mod receive;
pub mod ring;
#[cfg(test)]
mod ring_tests;
mod setup;
mod transmit;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub use error::DriverError;

use frontend::Frontend;
use layout::MIN_FRAME;
use receive::Receiver;
use setup::Agreement;
use transmit::Transmitter;

/// What a driver asks of its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverSettings {
    /// Buffers of each ring: a power of two, 2 to 16,384.
    pub ring_size: u16,
    /// The largest packet that is sent or received, without the Ethernet header, in bytes. The
    /// port may allow less; `None` is as much as it allows.
    pub mtu: Option<u16>,
}

impl Default for DriverSettings {
    fn default() -> Self {
        Self { ring_size: 256, mtu: None }
    }
}

/// What happened on a driver's pair of queues so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverCounters {
    /// Frames that were put into the ring.
    pub sent: u64,
    /// How often there was no room for a frame.
    pub full: u64,
    /// Frames that were delivered or were too long.
    pub received: u64,
    /// Of these, frames that were longer than the MTU allows, and were dropped.
    pub oversized: u64,
    /// How often the device was notified: each is a system call.
    pub kicks: u64,
}

/// A process's end of a port, with a pair of queues. Dropping it unplugs the port.
pub struct VirtioDriver {
    frontend: Frontend,
    agreement: Agreement,
    receiver: Receiver,
    transmitter: Transmitter,
    /// What the device makes readable, for frames that came and for room to send.
    interrupt: OwnedFd,
}

impl fmt::Debug for VirtioDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtioDriver").field("agreement", &self.agreement).finish_non_exhaustive()
    }
}

impl VirtioDriver {
    /// Attaches to the port whose socket is at `path`.
    pub fn connect(path: &Path, settings: DriverSettings) -> Result<Self, DriverError> {
        Self::negotiate(Frontend::connect(path)?, settings)
    }

    /// Attaches to the port at the other end of `stream`.
    pub fn attach(stream: UnixStream, settings: DriverSettings) -> Result<Self, DriverError> {
        Self::negotiate(Frontend::new(stream)?, settings)
    }

    fn negotiate(mut frontend: Frontend, settings: DriverSettings) -> Result<Self, DriverError> {
        let agreement = Agreement::reach(&mut frontend, &settings)?;
        let (receiver, transmitter, interrupt) =
            setup::start(&mut frontend, &agreement, settings.ring_size)?;
        Ok(Self { frontend, agreement, receiver, transmitter, interrupt })
    }

    /// The Ethernet address of the port; 02:00:00:00:00:00 if the port has none, as those of DPDK.
    pub fn mac(&self) -> [u8; 6] {
        self.agreement.mac
    }

    /// The largest packet, without the Ethernet header, in bytes.
    pub fn mtu(&self) -> u16 {
        self.agreement.mtu
    }

    /// Puts a frame, from the Ethernet header on, into the ring. The device sees it at the next
    /// [`flush`](Self::flush). `false`: there is no room; all frames before it were flushed, and
    /// room is made by the device alone.
    #[inline]
    pub fn send(&mut self, frame: &[u8]) -> Result<bool, DriverError> {
        let largest = self.agreement.largest_frame();
        if !(MIN_FRAME..=largest).contains(&frame.len()) {
            return Err(DriverError::Frame(frame.len(), largest));
        }
        let sent = self.transmitter.send(frame);
        sent.map_err(|cause| DriverError::Ring("transmit", cause))
    }

    /// Lets the device see what was sent, and notifies it if it asked for that.
    pub fn flush(&mut self) {
        self.transmitter.ring().flush();
    }

    /// Hands up to `budget` frames that came to `deliver`: how many came. Less than the budget
    /// means that there are no more.
    #[inline]
    pub fn receive(
        &mut self,
        budget: usize,
        deliver: impl FnMut(&[u8]),
    ) -> Result<usize, DriverError> {
        let received = self.receiver.receive(budget, deliver);
        received.map_err(|cause| DriverError::Ring("receive", cause))
    }

    /// Asks for an interrupt when a frame comes. `true`: one is there already, so there may be no
    /// interrupt, and it is for the caller to receive it.
    pub fn arm(&mut self) -> bool {
        self.receiver.ring().arm(1)
    }

    /// Asks for an interrupt when there is room to send again, after [`send`](Self::send) has said
    /// that there is none. `true`: there is room already, or soon, so there may be no interrupt.
    pub fn arm_send(&mut self) -> Result<bool, DriverError> {
        let armed = self.transmitter.arm();
        armed.map_err(|cause| DriverError::Ring("transmit", cause))
    }

    /// What becomes readable at an interrupt, for frames that came and for room to send.
    pub fn interrupt_fd(&self) -> BorrowedFd<'_> {
        self.interrupt.as_fd()
    }

    /// Makes [`interrupt_fd`](Self::interrupt_fd) unreadable until the next interrupt.
    pub fn clear_interrupt(&mut self) {
        frontend::clear(self.interrupt_fd());
    }

    /// What becomes readable when the device hangs up; [`check`](Self::check) fails then.
    pub fn hangup_fd(&self) -> BorrowedFd<'_> {
        self.frontend.connection()
    }

    /// Waits for an interrupt and clears it; `false` if there was none within `timeout`.
    pub fn wait(&self, timeout: Duration) -> Result<bool, DriverError> {
        self.frontend.wait("wait for an interrupt", self.interrupt_fd(), timeout)
    }

    /// Looks whether the device is still there.
    pub fn check(&self) -> Result<(), DriverError> {
        self.frontend.check("look after the NIC")
    }

    /// What happened so far.
    pub fn counters(&self) -> DriverCounters {
        let [received, oversized, receive_kicks] = self.receiver.counters();
        let [sent, full, transmit_kicks] = self.transmitter.counters();
        let kicks = receive_kicks + transmit_kicks;
        DriverCounters { sent, full, received, oversized, kicks }
    }

    /// Stops both rings in good order: when this returns, the device touches the memory no more.
    ///
    /// Frames that the device has not taken from the transmit ring are lost.
    pub fn disconnect(mut self) -> Result<(), DriverError> {
        (0..2).try_for_each(|index| self.frontend.stop(index).map(drop))
    }
}
