//! A wire within this process, for tests of what uses ports: nothing is lost, and a sender finds
//! the port full when the receiver has no room.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::name::REMEDY;
use super::{
    Identity, NicId, Outgoing, Port, PortCounters, PortError, Room, TakeFrame, Transmitted,
    WriteFrame, check_mtu, endpoint_of,
};
use crate::endpoint::EventFd;

/// What ports are plugged into.
#[derive(Clone, Debug)]
pub struct Wire {
    sockets: Arc<Mutex<Vec<Socket>>>,
    mtu: u16,
    room: usize,
}

#[derive(Debug)]
struct Socket {
    nic: NicId,
    endpoint: u8,
    event: Arc<EventFd>,
    frames: VecDeque<(NicId, Vec<u8>)>,
    /// Buffers to be used again.
    spare: Vec<Vec<u8>>,
    /// The owner waits for a signal when a frame comes.
    armed: bool,
    /// Ports that found no room here.
    waiting: Vec<Arc<EventFd>>,
    unplugged: bool,
}

impl Wire {
    /// A wire for frames of up to `mtu` bytes, with room for so many on their way to each port.
    ///
    /// # Errors
    /// If no port has such an MTU.
    pub fn new(mtu: u16, room: usize) -> Result<Self, PortError> {
        let mtu = check_mtu("a wire", mtu.into())?;
        Ok(Self { sockets: Arc::default(), mtu, room: room.max(1) })
    }

    /// Plugs in a port.
    ///
    /// # Errors
    /// If the address is taken, or there are no more descriptors.
    pub fn port(&self, nic: NicId, endpoint: u8) -> Result<WirePort, PortError> {
        let event = EventFd::open().map_err(|errno| {
            PortError::system("open a port", &nic.to_string(), REMEDY)(errno.into())
        })?;
        let event = Arc::new(event);
        let mut sockets = self.lock();
        if sockets.iter().any(|it| (it.nic, it.endpoint) == (nic, endpoint) && !it.unplugged) {
            return Err(PortError::Taken { endpoint, port: nic.to_string(), holder: None });
        }
        sockets.push(Socket {
            nic,
            endpoint,
            event: Arc::clone(&event),
            frames: VecDeque::new(),
            spare: Vec::new(),
            armed: false,
            waiting: Vec::new(),
            unplugged: false,
        });
        let number = sockets.len() - 1;
        drop(sockets);
        let (staged, frame) = (None, vec![0; self.mtu.into()]);
        let counters = PortCounters::default();
        Ok(WirePort { wire: self.clone(), number, nic, endpoint, event, frame, staged, counters })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Socket>> {
        // No step leaves the queues in a state that others may not see.
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A port that is plugged into a [`Wire`].
#[derive(Debug)]
pub struct WirePort {
    wire: Wire,
    number: usize,
    nic: NicId,
    endpoint: u8,
    event: Arc<EventFd>,
    frame: Vec<u8>,
    /// What is in `frame` and has not gone.
    staged: Option<Outgoing>,
    counters: PortCounters,
}

impl WirePort {
    /// Hands the staged frame over; `false` if there is no room.
    fn send(&mut self) -> bool {
        let Some(outgoing) = self.staged else { return true };
        let frame = &self.frame[..outgoing.length.min(self.frame.len())];
        let address = (outgoing.to, outgoing.endpoint);
        let mut sockets = self.wire.lock();
        let to = sockets.iter_mut().find(|it| (it.nic, it.endpoint) == address && !it.unplugged);
        if let Some(to) = to {
            if to.frames.len() >= self.wire.room {
                if !to.waiting.iter().any(|event| Arc::ptr_eq(event, &self.event)) {
                    to.waiting.push(Arc::clone(&self.event));
                }
                self.counters.full += 1;
                return false;
            }
            let mut copy = to.spare.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(frame);
            to.frames.push_back((self.nic, copy));
            if std::mem::take(&mut to.armed) {
                to.event.ring();
            }
        }
        self.counters.went(1, frame.len());
        self.staged = None;
        true
    }
}

impl Port for WirePort {
    fn identity(&self) -> Identity {
        Identity { nic: self.nic, endpoint: self.endpoint, mtu: self.wire.mtu, host_bytes: 6 }
    }

    fn transmit(&mut self, write: &mut WriteFrame<'_>) -> Result<Transmitted, PortError> {
        loop {
            if !self.send() {
                return Ok(Transmitted::Full(Room::Signalled));
            }
            self.staged = write.next(&mut self.frame);
            if self.staged.is_none() {
                return Ok(Transmitted::Drained);
            }
        }
    }

    fn receive(&mut self, budget: usize, take: &mut TakeFrame<'_>) -> Result<usize, PortError> {
        for came in 0..budget {
            let mut sockets = self.wire.lock();
            let own = &mut sockets[self.number];
            own.armed = false;
            let Some((from, frame)) = own.frames.pop_front() else { return Ok(came) };
            own.waiting.drain(..).for_each(|event| event.ring());
            drop(sockets);
            if endpoint_of(&frame) == Some(self.endpoint) {
                self.counters.came(frame.len());
                // Not under the lock: what is called may send.
                take.take(from, &frame);
            } else {
                self.counters.strange += 1;
            }
            self.wire.lock()[self.number].spare.push(frame);
        }
        Ok(budget)
    }

    fn arm(&mut self) -> Result<bool, PortError> {
        let mut sockets = self.wire.lock();
        let own = &mut sockets[self.number];
        own.armed = own.frames.is_empty();
        Ok(!own.armed)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    fn clear(&mut self) -> Result<(), PortError> {
        self.event.silence();
        Ok(())
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }
}

impl Drop for WirePort {
    fn drop(&mut self) {
        let mut sockets = self.wire.lock();
        let own = &mut sockets[self.number];
        own.unplugged = true;
        own.frames.clear();
        own.waiting.drain(..).for_each(|event| event.ring());
    }
}
