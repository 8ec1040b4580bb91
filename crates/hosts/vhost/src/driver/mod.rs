//! A virtio-net driver in an ordinary process: attaches to a vhost-user port of the NIC, without a
//! kernel and without a virtual machine.
//!
//! ```text
//!   this process                shared memory                 the NIC's process
//!   send, flush ──▶ transmit ring, packet buffers ──▶ device ──▶ cable, port, moderation ─┐
//!   receive     ◀── receive ring,  packet buffers ◀── device ◀────────────────────────────┘
//!   arm, wait   ◀────────────── interrupt (eventfd) ── when the setting says so
//! ```
//!
//! # How it works
//!
//! [`Driver::connect`] speaks vhost-user over the socket of the port: it agrees on features, makes
//! memory that both processes map, puts a pair of rings or more into it, and gives the device an
//! event descriptor for each direction of news. From then on frames need no system call: they are
//! copied into shared buffers and named in shared rings ([`ring`]).
//!
//! Frames that were [sent](Driver::send) are seen by the device after a [flush](Driver::flush), so
//! that a batch costs one index and at most one kick. A device that polls asks for no kicks.
//!
//! # Waiting for frames
//!
//! The interrupt is off while a process polls. One that has nothing more to do
//!
//! 1. [arms](Driver::arm) the queue; if something slipped in, it polls again;
//! 2. [waits](Driver::wait), or watches [`Driver::interrupt_fd`] and then
//!    [clears](Driver::clear_interrupt) it;
//! 3. [receives](Driver::receive) until there are no more frames, and begins anew.
//!
//! The order matters: the request for an interrupt is visible to the device before the ring is
//! looked at once more. So either the device sees the request, or the driver sees the frame.
//!
//! ```no_run
//! use vhost::driver::{Driver, DriverSettings};
//! use std::time::Duration;
//!
//! let mut driver = Driver::connect("nic.sock".as_ref(), DriverSettings::default())?;
//! driver.send(0, &[0xFF; 60])?;
//! driver.flush(0)?;
//! loop {
//!     let frames = driver.receive(0, 64, |frame| println!("{} bytes", frame.len()))?;
//!     if frames == 0 && !driver.arm(0)? {
//!         driver.wait(0, Duration::from_secs(1))?;
//!     }
//! }
//! # Ok::<(), vhost::driver::DriverError>(())
//! ```
//!
//! # What it costs
//!
//! Memory is allocated while the driver connects, and not after that. A frame is copied once on
//! each side of the driver: out of the caller's memory, and into memory of its own before the
//! caller sees it, because the device could change it later.
//!
//! # Limits
//!
//! Frames are complete: no checksums or segmentation are left to the device. The device is not
//! trusted ([`ring`]); one that breaks the rules makes calls on that queue fail, and nothing worse.
//! A device that vanishes is noticed by [`Driver::wait`], [`Driver::check`] and all commands, not
//! by sending and receiving, which do not look at the socket.

mod control;
mod error;
mod frontend;
#[cfg(test)]
mod frontend_tests;
mod layout;
mod pair;
mod receive;
pub mod ring;
#[cfg(test)]
mod ring_tests;
mod settings;
mod setup;
mod transmit;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use virtio_bindings::virtio_net::{VIRTIO_NET_F_NOTF_COAL, VIRTIO_NET_F_VQ_NOTF_COAL};

pub use error::DriverError;
pub use pair::PairCounters;
pub use settings::DriverSettings;

use control::Controller;
use frontend::Frontend;
use layout::MIN_FRAME;
use pair::Pair;
use setup::Agreement;

/// A process's end of a port. Dropping it unplugs the port.
pub struct Driver {
    frontend: Frontend,
    agreement: Agreement,
    pairs: Box<[Pair]>,
    control: Option<Controller>,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("pairs", &self.pairs.len())
            .field("agreement", &self.agreement)
            .finish_non_exhaustive()
    }
}

impl Driver {
    /// Attaches to the port whose socket is at `path`.
    ///
    /// # Errors
    /// If nobody answers there, the settings do not fit the port, or the kernel gives no memory.
    pub fn connect(path: &Path, settings: DriverSettings) -> Result<Self, DriverError> {
        Self::negotiate(Frontend::connect(path)?, settings)
    }

    /// Attaches to the port at the other end of `stream`.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn attach(stream: UnixStream, settings: DriverSettings) -> Result<Self, DriverError> {
        Self::negotiate(Frontend::new(stream)?, settings)
    }

    fn negotiate(mut frontend: Frontend, settings: DriverSettings) -> Result<Self, DriverError> {
        let agreement = Agreement::reach(&mut frontend, &settings)?;
        let (pairs, control) = setup::start(&mut frontend, &agreement, &settings)?;
        let mut driver = Self { frontend, agreement, pairs, control };
        if settings.pairs > 1 {
            let pairs = settings.pairs.to_le_bytes();
            driver.command("use several pairs of queues", control::PAIRS_SET, &pairs)?;
        }
        Ok(driver)
    }

    /// The Ethernet address of the port; 02:00:00:00:00:00 if the port has none to tell of, as
    /// those of DPDK.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        self.agreement.mac
    }

    /// The largest packet, without the Ethernet header, in bytes.
    #[must_use]
    pub fn mtu(&self) -> u16 {
        self.agreement.mtu
    }

    /// How many pairs of queues there are. They are numbered from 0.
    #[must_use]
    pub fn pairs(&self) -> u16 {
        self.pairs.len() as u16
    }

    /// Whether the device coalesces interrupts as the driver says, for all queues and for each.
    #[must_use]
    pub fn coalesces(&self) -> [bool; 2] {
        [VIRTIO_NET_F_NOTF_COAL, VIRTIO_NET_F_VQ_NOTF_COAL].map(|bit| self.agreement.has(bit))
    }

    /// Puts a frame, from the Ethernet header on, into the ring of `queue`. The device sees it at
    /// the next [`flush`](Self::flush). `false`: there is no room; all frames before it were
    /// flushed, and room is made by the device alone.
    ///
    /// # Errors
    /// If the frame is too short or too long, there is no such queue, or the device broke its ring.
    #[inline]
    pub fn send(&mut self, queue: u16, frame: &[u8]) -> Result<bool, DriverError> {
        let largest = self.agreement.largest_frame();
        if !(MIN_FRAME..=largest).contains(&frame.len()) {
            return Err(DriverError::Frame { length: frame.len(), largest });
        }
        let sent = self.pair(queue)?.transmitter.send(frame);
        sent.map_err(|cause| DriverError::Ring { queue, ring: "transmit", cause })
    }

    /// Lets the device see what was sent on `queue`, and notifies it if it asked for that.
    ///
    /// # Errors
    /// If there is no such queue.
    pub fn flush(&mut self, queue: u16) -> Result<(), DriverError> {
        self.pair(queue)?.transmitter.ring().flush();
        Ok(())
    }

    /// Hands up to `budget` frames that came on `queue` to `deliver`: how many came. Less than the
    /// budget means that there are no more.
    ///
    /// # Errors
    /// If there is no such queue, or the device broke its ring.
    #[inline]
    pub fn receive(
        &mut self,
        queue: u16,
        budget: usize,
        deliver: impl FnMut(&[u8]),
    ) -> Result<usize, DriverError> {
        let received = self.pair(queue)?.receiver.receive(budget, deliver);
        received.map_err(|cause| DriverError::Ring { queue, ring: "receive", cause })
    }

    /// Asks for an interrupt when a frame comes on `queue`. `true`: one is there already, so there
    /// may be no interrupt, and it is for the caller to receive it.
    ///
    /// # Errors
    /// If there is no such queue.
    pub fn arm(&mut self, queue: u16) -> Result<bool, DriverError> {
        Ok(self.pair(queue)?.receiver.ring().arm(1))
    }

    /// Asks for an interrupt when there is room to send on `queue` again, after
    /// [`send`](Self::send) has said that there is none. `true`: there is room already, or soon,
    /// so there may be no interrupt.
    ///
    /// # Errors
    /// If there is no such queue, or the device broke its ring.
    pub fn arm_send(&mut self, queue: u16) -> Result<bool, DriverError> {
        let armed = self.pair(queue)?.transmitter.arm();
        armed.map_err(|cause| DriverError::Ring { queue, ring: "transmit", cause })
    }

    /// What becomes readable when `queue` interrupts, for frames that came and for room to send.
    ///
    /// # Errors
    /// If there is no such queue.
    pub fn interrupt_fd(&self, queue: u16) -> Result<BorrowedFd<'_>, DriverError> {
        let pair = self.pairs.get(usize::from(queue));
        Ok(pair.ok_or_else(|| no_queue(queue, self.pairs.len()))?.interrupt.as_fd())
    }

    /// Makes [`interrupt_fd`](Self::interrupt_fd) unreadable until the next interrupt.
    ///
    /// # Errors
    /// If there is no such queue.
    pub fn clear_interrupt(&mut self, queue: u16) -> Result<(), DriverError> {
        frontend::clear(self.interrupt_fd(queue)?);
        Ok(())
    }

    /// What becomes readable when the device hangs up; [`check`](Self::check) fails then.
    #[must_use]
    pub fn hangup_fd(&self) -> BorrowedFd<'_> {
        self.frontend.connection()
    }

    /// Waits for an interrupt of `queue` and clears it; `false` if there was none within `timeout`.
    ///
    /// # Errors
    /// If there is no such queue, or the device has hung up.
    pub fn wait(&self, queue: u16, timeout: Duration) -> Result<bool, DriverError> {
        self.frontend.wait("wait for an interrupt", self.interrupt_fd(queue)?, timeout)
    }

    /// Looks whether the device is still there.
    ///
    /// # Errors
    /// If it has hung up.
    pub fn check(&self) -> Result<(), DriverError> {
        self.frontend.check("look after the NIC")
    }

    /// Sets the coalescing of all receive queues, as `ethtool -C` does: an interrupt at the latest
    /// `usecs` microseconds after a frame, or after `frames` frames.
    ///
    /// # Errors
    /// If the device cannot do so or refuses.
    pub fn set_coalescing(&mut self, usecs: u32, frames: u32) -> Result<(), DriverError> {
        if !self.agreement.has(VIRTIO_NET_F_NOTF_COAL) {
            return Err(DriverError::Lacks("coalescing (VIRTIO_NET_F_NOTF_COAL)"));
        }
        // virtio_net_ctrl_coal_rx
        let mut data = [0; 8];
        data[..4].copy_from_slice(&frames.to_le_bytes());
        data[4..].copy_from_slice(&usecs.to_le_bytes());
        self.command("set the coalescing", control::COALESCE_RECEIVE, &data)
    }

    /// Sets the coalescing of one receive queue.
    ///
    /// # Errors
    /// If there is no such queue, or the device cannot do so or refuses.
    pub fn set_queue_coalescing(
        &mut self,
        queue: u16,
        usecs: u32,
        frames: u32,
    ) -> Result<(), DriverError> {
        self.pair(queue)?;
        if !self.agreement.has(VIRTIO_NET_F_VQ_NOTF_COAL) {
            return Err(DriverError::Lacks("coalescing by queue (VIRTIO_NET_F_VQ_NOTF_COAL)"));
        }
        // virtio_net_ctrl_coal_vq: the ring, two bytes of zeros, frames, microseconds
        let mut data = [0; 12];
        data[..2].copy_from_slice(&(2 * queue).to_le_bytes());
        data[4..8].copy_from_slice(&frames.to_le_bytes());
        data[8..].copy_from_slice(&usecs.to_le_bytes());
        self.command("set the coalescing of a queue", control::COALESCE_QUEUE, &data)
    }

    /// What happened on `queue` so far.
    ///
    /// # Errors
    /// If there is no such queue.
    pub fn counters(&self, queue: u16) -> Result<PairCounters, DriverError> {
        let pair = self.pairs.get(usize::from(queue));
        Ok(pair.ok_or_else(|| no_queue(queue, self.pairs.len()))?.counters())
    }

    /// Stops all rings in good order: when this returns, the device touches the memory no more.
    ///
    /// Frames that the device has not taken from the transmit rings are lost.
    ///
    /// # Errors
    /// If the device is gone or answers nonsense; the port is unplugged all the same.
    pub fn disconnect(mut self) -> Result<(), DriverError> {
        let control = self.control.as_ref().map(|_| self.agreement.control_ring());
        for index in (0..2 * u32::from(self.pairs())).chain(control) {
            self.frontend.stop(index)?;
        }
        Ok(())
    }

    fn pair(&mut self, queue: u16) -> Result<&mut Pair, DriverError> {
        let pairs = self.pairs.len();
        self.pairs.get_mut(usize::from(queue)).ok_or_else(|| no_queue(queue, pairs))
    }

    fn command(
        &mut self,
        operation: &'static str,
        command: [u8; 2],
        data: &[u8],
    ) -> Result<(), DriverError> {
        let control = self.control.as_mut().ok_or(DriverError::Lacks("a control queue"))?;
        control.command(&self.frontend, operation, command, data)
    }
}

/// Made only when it is needed: an error that is made to be dropped costs every frame something.
#[cold]
fn no_queue(queue: u16, pairs: usize) -> DriverError {
    DriverError::NoQueue { queue, pairs: pairs as u16 }
}
