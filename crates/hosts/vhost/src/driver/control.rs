//! The control queue: commands to the device (virtio 1.2, section 5.1.6.5).
//!
//! A command is a chain of two descriptors, what the device reads and where it answers. There is
//! one at a time, and its buffer and descriptors are always the same.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::error::DriverError;
use super::frontend::{Frontend, TIMEOUT};
use super::layout;
use super::ring::{NEXT, Ring, RingError, WRITE};
use sys::memory::{Buffers, SharedMemory};

/// Buffers of the ring: the two of a command, and to spare for devices that want more of a ring.
pub(super) const RING: u16 = 64;

/// The longest command that is sent, in bytes.
pub(super) const ROOM: usize = 32;

/// Asks for a number of pairs of queues (`VIRTIO_NET_CTRL_MQ`, `VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET` of
/// `include/uapi/linux/virtio_net.h`).
pub(super) const PAIRS_SET: [u8; 2] = [4, 0];

/// Sets the coalescing of all receive queues (`VIRTIO_NET_CTRL_NOTF_COAL`, `_RX_SET`).
pub(super) const COALESCE_RECEIVE: [u8; 2] = [6, 1];

/// Sets the coalescing of one queue (`VIRTIO_NET_CTRL_NOTF_COAL`, `_VQ_SET`).
pub(super) const COALESCE_QUEUE: [u8; 2] = [6, 2];

/// What the device answers if it has done so (`VIRTIO_NET_OK`).
const DONE: u8 = 0;

/// What stands in place of the answer before there is one: neither done nor refused.
const PENDING: u8 = 0xFF;

/// The command's two buffers: what the device reads, and where it answers.
const COMMAND: u16 = 0;
const ANSWER: u16 = 1;

/// The driver's end of the control queue.
pub(super) struct Controller {
    ring: Ring,
    buffers: Buffers,
    interrupt: OwnedFd,
}

impl Controller {
    /// A queue without a command.
    pub(super) fn new(
        memory: &Arc<SharedMemory>,
        place: &layout::Queue,
        ring: Ring,
        interrupt: OwnedFd,
    ) -> Self {
        let buffers = Buffers::new(memory, place.buffers, ring.size().into(), place.stride);
        [COMMAND, ANSWER].into_iter().for_each(|id| ring.place(id, place.address(id)));
        Self { ring, buffers, interrupt }
    }

    /// Gives a command and waits until the device has obeyed.
    pub(super) fn command(
        &mut self,
        frontend: &Frontend,
        operation: &'static str,
        command: [u8; 2],
        data: &[u8],
    ) -> Result<(), DriverError> {
        self.buffers.write(COMMAND, 0, &command);
        self.buffers.write(COMMAND, command.len(), data);
        self.buffers.write(ANSWER, 0, &[PENDING]);
        self.ring.describe(COMMAND, (command.len() + data.len()) as u32, NEXT, ANSWER);
        self.ring.describe(ANSWER, 1, WRITE, 0);
        self.ring.arm(1);
        self.ring.post(COMMAND);
        self.ring.flush();
        let broken = |error: RingError| DriverError::Answer {
            operation,
            what: format!("a broken control ring: {error}"),
        };
        while self.ring.take().map_err(broken)?.is_none() {
            if !frontend.wait(operation, self.interrupt.as_fd(), TIMEOUT)? {
                let silent = DriverError::Silent { operation, seconds: TIMEOUT.as_secs() };
                // An answer that comes after all must not be taken for that of another command.
                self.ring.fault(RingError::Before);
                return Err(silent);
            }
        }
        let mut answer = [PENDING];
        self.buffers.read(ANSWER, 0, &mut answer);
        match answer[0] {
            DONE => Ok(()),
            PENDING => Err(DriverError::Answer { operation, what: "no status".into() }),
            status => Err(DriverError::Refused { operation, status: status.into() }),
        }
    }
}
