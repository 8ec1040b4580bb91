//! Who is connected to a port, and who of them is looked at.

use std::os::fd::AsRawFd;

use base::time::Instant;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use super::link::Inbound;
use super::ring::Wake;
use super::{AGAIN, EVENTS, IDLE, IDLE_AFTER, LISTENER, LOOK, OUTBOUND, ShmPort, lost};
use sys::clock;

impl ShmPort {
    /// Nothing was found: whether it is time to look who came and went.
    pub(super) fn has_been_idle(&mut self) -> bool {
        self.idle += 1;
        if self.looked != Instant::ZERO && self.idle < IDLE {
            return false;
        }
        self.idle = 0;
        clock::now().since(self.looked) >= LOOK
    }

    pub(super) fn poll_connections(&mut self) {
        self.batches = 0;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        loop {
            self.counters.calls_in += 1;
            let most = EVENTS as libc::c_int;
            let epoll = self.epoll.as_raw_fd();
            // SAFETY: there is room for as many events as the kernel is given.
            // JUSTIFICATION: rustix calls epoll_pwait2, which valgrind and older filters of system
            // calls do not know.
            let happened = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), most, 0) };
            // The epoll is valid; a signal is no event.
            let happened = usize::try_from(happened).unwrap_or(0);
            for event in &events[..happened] {
                self.handle(event.u64);
            }
            if happened < EVENTS {
                break;
            }
        }
        self.looked = clock::now();
    }

    fn handle(&mut self, event: u64) {
        if event == LISTENER || event == AGAIN {
            self.accept();
        } else if event & OUTBOUND != 0 {
            self.hear(event & !OUTBOUND);
        } else if let Some(inbound) = self.inbound.iter_mut().find(|it| it.number == event) {
            self.counters.calls_in += 1;
            let (call, greeting) = (inbound.call, inbound.read_socket());
            // Who rings has something, unless it has been taken meanwhile.
            self.wake(call);
            // Long frames come if they may go back, too.
            if let Some((from, reads)) = greeting
                && self.reaches(from)
                && let Some(inbound) = self.inbound.iter().find(|it| it.number == event)
            {
                inbound.answer(reads, &self.calls);
            }
        }
    }

    fn wake(&mut self, call: u16) {
        let silent = self.inbound.iter().skip(self.busy).position(|it| it.call == call);
        if let Some(place) = silent {
            self.inbound.swap(self.busy, self.busy + place);
            self.inbound[self.busy].vain = 0;
            self.busy += 1;
        }
    }

    /// Hears who has something although it is not looked at.
    pub(super) fn hear_calls(&mut self) {
        let mut called = Vec::new();
        self.calls.take(|call| called.push(call));
        called.into_iter().for_each(|call| self.wake(call));
    }

    /// Looks no longer at peers that have sent nothing for long: they call.
    pub(super) fn rest(&mut self) {
        for place in (0..self.busy).rev() {
            let inbound = &mut self.inbound[place];
            if inbound.vain >= IDLE_AFTER
                && let Some((_, ring)) = &mut inbound.ring
                && !ring.arm(Wake::Call)
            {
                self.busy -= 1;
                self.inbound.swap(place, self.busy);
            }
        }
    }

    pub(super) fn remove(&mut self, mut place: usize) -> Inbound {
        if place < self.busy {
            self.busy -= 1;
            self.inbound.swap(place, self.busy);
            place = self.busy;
        }
        let mut gone = self.inbound.swap_remove(place);
        self.free.push(gone.call);
        self.counters.overrun += lost(&mut gone);
        gone
    }

    /// Forgets peers that send nothing any more: nothing goes to them either.
    pub(super) fn forget_gone(&mut self) {
        while let Some(place) = self.inbound.iter().position(Inbound::is_over) {
            if let Some((from, _)) = self.remove(place).ring {
                self.unlink(from);
            }
        }
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            let socket = match accept_with(&self.listener, flags) {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(_) => {
                    // No descriptors, probably. The listener does not tell again of those who wait.
                    self.again.later();
                    return;
                }
            };
            let Some(&call) = self.free.last() else { continue };
            self.accepted += 1;
            let reads = self.settings.reads_memory;
            let Some(inbound) = Inbound::new(self.accepted, socket, call, reads) else { continue };
            let data = epoll::EventData::new_u64(inbound.number);
            if epoll::add(&self.epoll, &inbound, data, epoll::EventFlags::IN).is_ok() {
                self.free.pop();
                self.inbound.push(inbound);
                self.wake(call);
            }
        }
    }
}
