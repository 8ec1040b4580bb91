//! A listening socket and at most one frontend: what devices of any kind have of a guest.
//!
//! A device asks for its [`session`](Frontend::session), looks at its rings, and has the guest
//! [called](Frontend::call). Whatever the frontend does wrong costs it the connection, and the next
//! may come.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use base::time::Instant;
use hostside::VirtualHost;
use rustix::event::{Timespec, epoll};
use sys::peer::Credentials;
use sys::streams::is_lack;

use super::connection::Connection;
use super::message::{FrontendRequest, Header};
use super::notify::Watched;
use super::reaper::ForeignFd;
use super::session::{Answer, ProtocolViolation, Session, SessionSettings, Watching};

/// What the epoll reports.
const LISTENER: u64 = 0;
const CONNECTION: u64 = 1;
const BACKEND: u64 = 2;
/// A kick of whatever ring: all are looked at anyway.
const KICK: u64 = 3;
/// The end of the process that has connected.
const PROCESS: u64 = 4;

/// Messages that are taken in one round: other ports wait meanwhile.
const BATCH: usize = 16;

/// Descriptors and mappings that wait to be closed, at which a frontend is sent away.
const MAX_UNCLOSED: usize = 512;

/// How long none is accepted after one that could not be.
const PAUSE: Duration = Duration::from_millis(100);

/// Has connections accepted again when it is dropped. The reaper drops it, after all that waited to
/// be closed when accepting ended; the epoll then wakes the owner of the device by itself.
#[derive(Debug)]
struct Reopening {
    /// What only time can bring, as descriptors that others hold, is waited for so long.
    after: Duration,
    epoll: Arc<OwnedFd>,
    /// None if the device is gone meanwhile.
    listener: Weak<UnixListener>,
}

impl Drop for Reopening {
    fn drop(&mut self) {
        thread::sleep(self.after);
        if let Some(listener) = self.listener.upgrade() {
            // The entry is there, so this needs no memory, and does not fail.
            let event = epoll::EventData::new_u64(LISTENER);
            let _ = epoll::modify(&*self.epoll, &*listener, event, epoll::EventFlags::IN);
        }
    }
}

/// The socket of a device, and who is connected to it.
#[derive(Debug)]
pub struct Frontend {
    settings: SessionSettings,
    /// Watched for connections, except while too much waits to be closed.
    listener: Arc<UnixListener>,
    pub(super) watching: Watching,
    guest: Option<Guest>,
    lost: Option<String>,
    /// What went wrong where it could not be acted upon.
    violation: Option<ProtocolViolation>,
    /// For each ring: when the interrupt that was raised for it reaches the guest. One that is
    /// raised meanwhile comes with it.
    calls: Vec<Option<Instant>>,
    /// Rings whose interrupts wait for the guest's turn.
    raised: Vec<usize>,
}

#[derive(Debug)]
struct Guest {
    connection: Watched<Connection>,
    session: Session,
    /// The process that connected, where it can be seen from here.
    _process: Option<Watched<OwnedFd>>,
    has_ended: bool,
    /// An answer that waits until what was kicked has been taken.
    owed: Option<Vec<u8>>,
}

impl Frontend {
    /// Waits for a frontend on `listener`.
    pub fn new(listener: UnixListener, settings: SessionSettings) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let watching = Watching::new(KICK, BACKEND)?;
        let event = epoll::EventData::new_u64(LISTENER);
        epoll::add(&*watching.epoll, &listener, event, epoll::EventFlags::IN)?;
        Ok(Self {
            listener: Arc::new(listener),
            watching,
            guest: None,
            lost: None,
            violation: None,
            calls: vec![None; settings.rings],
            raised: Vec::new(),
            settings,
        })
    }

    /// What becomes readable when there is something to do.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.watching.epoll.as_fd()
    }

    /// Whether a frontend is connected.
    pub fn is_connected(&self) -> bool {
        self.guest.is_some()
    }

    /// Why the last guest is gone, if none has come since.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// What the guest has set up, if there is one.
    #[inline]
    pub fn session(&mut self) -> Option<&mut Session> {
        self.guest.as_mut().map(|guest| &mut guest.session)
    }

    /// Takes what has come at the descriptors if one is `ready`; whether another guest has come, of
    /// whose rings nothing is known.
    pub fn sync(&mut self, ready: bool) -> bool {
        ready && self.listen()
    }

    fn listen(&mut self) -> bool {
        let mut space = [const { MaybeUninit::uninit() }; 16];
        // Edges of kicks are taken off by this; nothing is to be done for them.
        let waited = epoll::wait(&*self.watching.epoll, &mut space, Some(&Timespec::default()));
        let Ok((events, _)) = waited else { return false };
        let has = |token| events.iter().any(|event| event.data.u64() == token);
        let mut outcome = Ok(());
        if has(CONNECTION) {
            outcome = self.converse();
        }
        if has(BACKEND) {
            outcome = outcome.and_then(|()| self.check_backend());
        }
        if let Some(guest) = &mut self.guest {
            guest.has_ended |= has(PROCESS);
        }
        outcome = outcome.and_then(|()| self.check_frontend());
        self.account(outcome);
        // Last, because a guest may come right after the end of the one before.
        has(LISTENER) && self.accept()
    }

    /// Whether the frontend is one to keep.
    fn check_frontend(&self) -> Result<(), ProtocolViolation> {
        let Some(guest) = &self.guest else { return Ok(()) };
        // Its connection would have ended by itself, but for what it has passed. Without that the
        // process may have handed the connection over to another, as managers of machines do.
        if guest.has_ended
            && (guest.session.holds_sockets() || guest.connection.inside.holds_descriptors())
        {
            return Err(ProtocolViolation::Ended);
        }
        if self.watching.reaper.pending() > MAX_UNCLOSED {
            return Err(ProtocolViolation::Unclosed);
        }
        Ok(())
    }

    fn accept(&mut self) -> bool {
        let mut another = false;
        while self.watching.reaper.pending() <= MAX_UNCLOSED {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => {
                    if is_lack(&error) {
                        self.pause(PAUSE);
                    }
                    return another;
                }
            };
            let Watching { epoll, reaper, .. } = &self.watching;
            let connection = Connection::new(ForeignFd::new(stream.into(), reaper));
            if self.guest.is_some() {
                continue; // The port has its guest; this one finds its connection closed.
            }
            let process = process_of(connection.as_fd());
            let process = process.and_then(|fd| Watched::process(epoll, fd, PROCESS).ok());
            if let Ok(connection) = Watched::connection(epoll, connection, CONNECTION) {
                let session = Session::new(&self.settings, self.watching.clone());
                self.guest = Some(Guest {
                    connection,
                    session,
                    _process: process,
                    has_ended: false,
                    owed: None,
                });
                self.lost = None;
                another = true;
            }
        }
        self.pause(Duration::ZERO);
        another
    }

    /// Accepts no more connections until the reaper has closed what waits for it now, and then has
    /// waited for `after`.
    fn pause(&self, after: Duration) {
        let Watching { epoll, reaper, .. } = &self.watching;
        let event = epoll::EventData::new_u64(LISTENER);
        let _ = epoll::modify(&**epoll, &*self.listener, event, epoll::EventFlags::empty());
        let listener = Arc::downgrade(&self.listener);
        reaper.drop_later(Box::new(Reopening { after, epoll: Arc::clone(epoll), listener }));
    }

    /// Obeys messages, until there are none or one has to wait for its answer.
    fn converse(&mut self) -> Result<(), ProtocolViolation> {
        let Some(guest) = &mut self.guest else { return Ok(()) };
        for _ in 0..BATCH {
            if guest.owed.is_some() {
                break;
            }
            let Some(incoming) = guest.connection.inside.receive()? else { break };
            let request = FrontendRequest::parse(&incoming.header, &incoming.payload)?;
            guest.obey(&incoming.header, request, incoming.fds)?;
        }
        Ok(())
    }

    fn check_backend(&mut self) -> Result<(), ProtocolViolation> {
        self.guest.as_mut().map_or(Ok(()), |guest| guest.session.check_backend())
    }

    /// Ends the connection; another may come.
    fn lose(&mut self, violation: &ProtocolViolation) {
        self.guest = None;
        self.lost = Some(violation.to_string());
        self.calls.fill(None);
        self.raised.clear();
    }

    /// Disconnects the guest; `false` if there is none.
    pub fn evict(&mut self) -> bool {
        let had_guest = self.guest.is_some();
        if had_guest {
            self.lose(&ProtocolViolation::Evicted);
        }
        had_guest
    }

    /// Takes note of what the guest did wrong; it loses the port at the end of the round.
    pub fn accuse(&mut self, violation: ProtocolViolation) {
        self.violation = Some(violation);
    }

    /// Ends the connection if something went wrong, now or before.
    pub fn account(&mut self, outcome: Result<(), ProtocolViolation>) {
        if let Err(violation) = self.violation.take().map_or(outcome, Err) {
            // Memory that was taken away reads as zeros, in which rules seem to be broken.
            let poisoned = self.guest.as_ref().is_some_and(|guest| guest.session.is_poisoned());
            self.lose(if poisoned { &ProtocolViolation::Poisoned } else { &violation });
        }
    }

    /// Has the guest interrupted for ring `index`, at `at` unless it is to be before.
    pub fn call(&mut self, index: usize, at: Instant) {
        self.calls[index].get_or_insert(at);
    }
}

impl VirtualHost for Frontend {
    fn next_irq_at(&self) -> Option<Instant> {
        self.calls.iter().flatten().min().copied()
    }

    fn raise_irqs(&mut self, now: Instant) -> bool {
        let mut any = false;
        for (index, call) in self.calls.iter_mut().enumerate() {
            if call.take_if(|at| *at <= now).is_some() {
                any = true;
                if !self.raised.contains(&index) {
                    self.raised.push(index);
                }
            }
        }
        any
    }

    fn send_irqs(&mut self) {
        let Some(guest) = &mut self.guest else { return self.raised.clear() };
        for index in self.raised.drain(..) {
            if let Err(violation) = guest.session.call(index) {
                // A guest that cannot take them loses the port in the next round.
                self.violation = Some(violation);
            }
        }
    }

    fn take_irqs(&mut self) -> u64 {
        // A kernel that finds them in memory has 64 rings at most.
        let bits = self.raised.drain(..).filter_map(|index| 1_u64.checked_shl(index as u32));
        bits.fold(0, |rings, bit| rings | bit)
    }

    fn answer_kick(&mut self) {
        let Some(guest) = &mut self.guest else { return };
        if let Some(owed) = guest.owed.take()
            && let Err(violation) = guest.connection.inside.send(&owed)
        {
            self.violation = Some(violation.into());
        }
    }
}

/// The process at the other end of a socket; none if it is not in sight of ours.
fn process_of(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    let process = Credentials::of(socket).ok()?.process?;
    rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).ok()
}

impl Guest {
    fn obey(
        &mut self,
        header: &Header,
        request: FrontendRequest,
        fds: Vec<ForeignFd>,
    ) -> Result<(), ProtocolViolation> {
        match self.session.handle(header, request, fds)? {
            Answer::Nothing => {}
            Answer::Now(message) => self.connection.inside.send(&message)?,
            Answer::WhenServed(message) => self.owed = Some(message),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceSettings;
    use crate::transport::reaper::Foreign;
    use crate::transport::reaper::tests::Stubborn;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::io::Write;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixStream};
    use std::sync::mpsc::sync_channel;

    fn is_ready(frontend: &Frontend, seconds: i64) -> bool {
        let patience = Timespec { tv_sec: seconds, tv_nsec: 0 };
        poll(&mut [PollFd::new(&frontend.fd(), PollFlags::IN)], Some(&patience)).unwrap() > 0
    }

    #[test]
    fn who_waits_for_the_reaper_is_accepted_when_it_is_done() {
        let name = format!("earmark-test-{}-reopening", std::process::id());
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let settings = DeviceSettings::default().session();
        let mut frontend = Frontend::new(listener, settings).unwrap();
        let reaper = frontend.watching.reaper.clone();
        let (release, wait) = sync_channel(0);
        drop(Foreign::new(Stubborn(wait), &reaper));
        (0..MAX_UNCLOSED).for_each(|_| drop(Foreign::new((), &reaper)));

        let _peer = UnixStream::connect_addr(&address).unwrap();
        assert!(is_ready(&frontend, 0));
        assert!(!frontend.sync(true), "too much waits to be closed");
        assert!(!is_ready(&frontend, 0), "nothing can be done until the reaper is");
        release.send(()).unwrap();
        // From here on nothing but the frontend's descriptor says that there is something to do.
        assert!(is_ready(&frontend, 120), "the frontend that waits is noticed");
        assert!(frontend.sync(true));
        assert!(frontend.is_connected());
    }

    #[test]
    fn who_cannot_be_accepted_keeps_nothing_busy_and_is_tried_again() {
        // A connection that is read from cannot be accepted from, as if descriptors were lacking.
        let (mut peer, listener) = UnixStream::pair().unwrap();
        peer.write_all(b"x").unwrap();
        let listener = UnixListener::from(OwnedFd::from(listener));
        let settings = DeviceSettings::default().session();
        let mut frontend = Frontend::new(listener, settings).unwrap();
        let (release, wait) = sync_channel(0);
        drop(Foreign::new(Stubborn(wait), &frontend.watching.reaper));

        assert!(!frontend.sync(true));
        assert!(!is_ready(&frontend, 0), "nothing can be done for a while");
        release.send(()).unwrap();
        assert!(is_ready(&frontend, 120), "it is tried again");
    }
}
