//! Endpoints with threads: the MX engine with a port, a clock and a progress thread.
//!
//! ```text
//!   application threads          progress thread
//!   isend, test, wait            when no other thread does
//!          └──────────┬────────────────┘
//!                one lock: engine + port + completions
//! ```
//!
//! A thread that sends hands its frames to the port itself. The first thread that waits leads: it
//! receives what comes, for itself and for others, and sleeps on the port's own descriptor, so that
//! an interrupt wakes the thread that wants the message and no other. Further threads that wait
//! follow: they sleep until the leader has completed their request. The progress thread drives
//! while no thread waits (`leadership.rs`); with [`Progress::Manual`] there is none, and the
//! application has to call [`Endpoint::progress`] often enough.

mod completions;
mod core;
mod error;
mod event_fd;
mod find;
mod leadership;
mod progress;
mod queue;
mod request;
mod shared;
mod sources;
mod wait;

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use base::time::Instant;
use mx::address::Address;
use mx::buffers::{Sink, Source};
use mx::config::Config;
use mx::counters::Counters;
use mx::endpoint::ProbedMessage;
use mx::ids::{MessageId, PeerId, ReceiveId};
use mx::matching::Match;
use mx::status::{Refusal, RequestError};

use self::completions::Filter;
use self::core::Core;
pub use self::error::MxError;
pub use self::event_fd::EventFd;
pub use self::queue::Turn;
pub use self::request::{Completed, Label, RequestId};
use self::shared::Shared;
pub use self::shared::WaitMode;
use self::sources::Sources;
use super::port::{Identity, Port, PortCounters};
use super::report::{EndpointReport, Observer};
use sys::clock;

/// Who makes progress while no thread of the application waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// A thread of the endpoint's own.
    #[default]
    Thread,
    /// No thread: the application calls [`Endpoint::progress`] often enough.
    Manual,
}

/// How an endpoint lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointOptions {
    /// Who makes progress.
    pub progress: Progress,
    /// How threads wait.
    pub waiting: WaitMode,
}

/// An endpoint. Messages to send are of type `S`, places for messages of type `R`. Every call fails
/// when its port is broken.
pub struct Endpoint<S: Source + Send + 'static, R: Sink + Send + 'static> {
    shared: Arc<Shared<S, R>>,
    thread: Option<JoinHandle<()>>,
}

impl<S: Source + Send + 'static, R: Sink + Send + 'static> Endpoint<S, R> {
    /// Opens the endpoint that `port` is for (`mx_open_endpoint`).
    ///
    /// # Errors
    /// If a setting is out of its range, or the system gives no thread.
    pub fn open(
        port: Box<dyn Port>,
        config: Config,
        life: EndpointOptions,
    ) -> Result<Self, MxError> {
        let Identity { nic, endpoint, mtu, host_bytes } = port.identity();
        let address = Address { nic, endpoint };
        let config = Config { mtu: config.mtu.min(mtu), host_bytes, ..config };
        let engine = mx::endpoint::Endpoint::new(config, address, sys::seed::seed())?;
        let sources = Sources::of(&*port).map_err(|error| MxError::System(error.into()))?;
        let sources = Arc::new(sources);
        let core = Mutex::new(Core::new(engine, port, Arc::clone(&sources)));
        let shared = Arc::new(Shared { core, sources, waiting: life.waiting });
        let thread = match life.progress {
            Progress::Manual => None,
            Progress::Thread => {
                let shared = Arc::clone(&shared);
                let name = format!("mx-{}", address.endpoint);
                let thread = std::thread::Builder::new().name(name);
                let run = move || progress::run(&shared);
                Some(thread.spawn(run).map_err(MxError::System)?)
            }
        };
        Ok(Self { shared, thread })
    }

    /// Where this endpoint is.
    #[must_use]
    pub fn address(&self) -> Address {
        self.shared.lock().engine.address()
    }

    /// Connects to the endpoint at `address`, which has to have this key (`mx_connect`).
    ///
    /// # Errors
    /// If it is not there, does not want to, or does not answer within `timeout`.
    pub fn connect(
        &self,
        address: Address,
        key: u32,
        timeout: Duration,
    ) -> Result<PeerId, MxError> {
        let start = clock::now();
        loop {
            let spent = Duration::from_nanos(clock::now().since(start).as_nanos());
            let left = timeout.saturating_sub(spent);
            let request = self.iconnect(address, key, left)?;
            let completed = self.wait(request, None)?;
            let result =
                completed.map_or(Err(RequestError::Timeout), |completed| completed.status.result);
            match (result, request) {
                (Ok(()), RequestId::Connect(peer)) => return Ok(peer),
                // That was a connection to an earlier life, which is over.
                (Err(error), _) if !error.is_of_earlier_instance() || left.is_zero() => {
                    return Err(MxError::Connect { address, error });
                }
                _ => {}
            }
        }
    }

    /// Begins to connect (`mx_iconnect`). Messages may be sent to the peer at once. If it ends with
    /// [`RequestError::Restarted`], there was a connection to an earlier instance of the peer:
    /// begin again.
    ///
    /// # Errors
    /// If this endpoint is being closed, or its port is broken.
    pub fn iconnect(
        &self,
        address: Address,
        key: u32,
        timeout: Duration,
    ) -> Result<RequestId, MxError> {
        self.iconnect_with(address, key, timeout, Label::default())
    }

    /// Begins to connect, as [`Endpoint::iconnect`]. The completion carries the label: that of the
    /// latest attempt, if there are several to one address.
    pub fn iconnect_with(
        &self,
        address: Address,
        key: u32,
        timeout: Duration,
        label: Label,
    ) -> Result<RequestId, MxError> {
        let timeout = clock::span(timeout);
        let mut core = self.core()?;
        core.catch_up()?;
        let now = core.tick();
        let peer = core.engine.connect(now, address, key, timeout)?;
        core.connecting.insert(peer, label);
        core.send()?;
        core.leadership.polled(now);
        Ok(RequestId::Connect(peer))
    }

    /// Sends a message; the request ends when its memory may be used again (`mx_isend`).
    ///
    /// # Errors
    /// If the peer is lost, this endpoint is being closed, or its port is broken.
    pub fn isend(&self, peer: PeerId, match_info: u64, source: S) -> Result<RequestId, MxError> {
        let send = self.request(|engine, now| engine.isend(now, peer, match_info, source, 0))?;
        Ok(RequestId::Send(send))
    }

    /// Sends a message; the request ends when it was received (`mx_issend`).
    pub fn issend(&self, peer: PeerId, match_info: u64, source: S) -> Result<RequestId, MxError> {
        let send = self.request(|engine, now| engine.issend(now, peer, match_info, source, 0))?;
        Ok(RequestId::Send(send))
    }

    /// Receives the first message that fits: from `source`, or from any peer, and with this match
    /// information (`mx_irecv`).
    ///
    /// # Errors
    /// If the mask does not cover the match information or the context, the source is lost, this
    /// endpoint is being closed, or its port is broken.
    pub fn irecv(
        &self,
        source: Option<PeerId>,
        wanted: Match,
        sink: R,
    ) -> Result<RequestId, MxError> {
        let receive = self.request(|engine, now| engine.irecv(now, source, wanted, sink, 0))?;
        Ok(RequestId::Receive(receive))
    }

    /// The first message that fits and that no receive has taken (`mx_iprobe`).
    ///
    /// # Errors
    /// As for [`Endpoint::irecv`], as far as the mask is concerned; or the port is broken.
    pub fn iprobe(
        &self,
        source: Option<PeerId>,
        wanted: Match,
    ) -> Result<Option<ProbedMessage>, MxError> {
        let mut core = self.core()?;
        core.advance()?;
        Ok(core.engine.probe(source, wanted)?)
    }

    /// The first message that fits, for the caller alone to receive.
    pub fn claim(
        &self,
        source: Option<PeerId>,
        wanted: Match,
    ) -> Result<Option<ProbedMessage>, MxError> {
        let mut core = self.core()?;
        core.advance()?;
        Ok(core.engine.claim(source, wanted)?)
    }

    /// Receives a message that was claimed.
    ///
    /// # Errors
    /// If it is there no longer, or the port is broken.
    pub fn receive_message(&self, message: MessageId, sink: R) -> Result<RequestId, MxError> {
        let receive = self.request(|engine, now| engine.receive_message(now, message, sink, 0))?;
        Ok(RequestId::Receive(receive))
    }

    /// Takes back a receive that no message has come for (`mx_cancel`); it ends as cancelled. False
    /// if it is too late for that.
    pub fn cancel(&self, receive: ReceiveId) -> Result<bool, MxError> {
        let mut core = self.core()?;
        let cancelled = core.engine.cancel(receive);
        core.send()?;
        Ok(cancelled)
    }

    /// Takes back a receive that no message has come for, or stops waiting for a connection: its
    /// completion is dropped, even if a thread waits for any. False if it is too late for that,
    /// and of a send, and then the completion comes.
    pub fn withdraw(&self, request: RequestId) -> Result<bool, MxError> {
        let mut core = self.core()?;
        let is_withdrawn = match request {
            RequestId::Receive(receive) => core.engine.cancel(receive),
            RequestId::Connect(_) => !core.ended.has(Filter::One(request)),
            RequestId::Send(_) => false,
        };
        if is_withdrawn {
            // Before the engine reports it.
            core.ended.forget(request);
        }
        core.send()?;
        Ok(is_withdrawn)
    }

    /// The completion of this request is dropped (`mx_forget`).
    pub fn forget(&self, request: RequestId) {
        self.shared.lock().ended.forget(request);
    }

    /// Peers that are connected, and where they are.
    #[must_use]
    pub fn peers(&self) -> Vec<(PeerId, Address)> {
        let core = self.shared.lock();
        let engine = &core.engine;
        engine.peers().filter_map(|peer| Some((peer, engine.address_of(peer)?))).collect()
    }

    /// Where a peer is, unless it is lost.
    #[must_use]
    pub fn address_of(&self, peer: PeerId) -> Option<Address> {
        self.shared.lock().engine.address_of(peer)
    }

    /// A number that the application gave to a peer, 0 before that.
    #[must_use]
    pub fn peer_context(&self, peer: PeerId) -> Option<u64> {
        self.shared.lock().engine.peer_context(peer)
    }

    /// Gives a number to a peer; false if it is lost.
    pub fn set_peer_context(&self, peer: PeerId, context: u64) -> bool {
        self.shared.lock().engine.set_peer_context(peer, context)
    }

    /// What engine and port have counted.
    #[must_use]
    pub fn counters(&self) -> (Counters, PortCounters) {
        let mut core = self.shared.lock();
        (*core.engine.counters(), core.port.counters())
    }

    /// Everything that is going on, for people to read.
    #[must_use]
    pub fn dump(&self) -> String {
        self.shared.lock().engine.dump()
    }

    /// This endpoint as others may look at it: see [`super::report`].
    #[must_use]
    pub fn observer(&self) -> Observer {
        let shared = Arc::downgrade(&self.shared);
        Observer::new(self.address(), move || {
            let shared = shared.upgrade()?;
            let mut core = shared.lock();
            let port = core.port.counters();
            let engine = &core.engine;
            Some(EndpointReport::new(engine.address(), engine.counters(), &port, engine.dump()))
        })
    }

    /// Closes in good order: waits until peers have all messages, for `patience` at most.
    ///
    /// # Errors
    /// If that is not enough, or the port is broken: messages are lost.
    pub fn close(mut self, patience: Duration) -> Result<(), MxError> {
        let closed = self.linger(patience);
        self.stop();
        closed
    }

    fn request<T>(
        &self,
        ask: impl FnOnce(&mut mx::endpoint::Endpoint<S, R>, Instant) -> Result<T, Refusal>,
    ) -> Result<T, MxError> {
        let mut core = self.core()?;
        let now = core.tick();
        let asked = ask(&mut core.engine, now)?;
        core.send_asked()?;
        core.leadership.polled(now);
        Ok(asked)
    }

    fn core(&self) -> Result<MutexGuard<'_, Core<S, R>>, MxError> {
        let core = self.shared.lock();
        core.check()?;
        Ok(core)
    }

    fn stop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        {
            let mut core = self.shared.lock();
            core.stopping = true;
            core.leadership.wake_progress();
        }
        // It only panics if the engine does, and that is on standard error.
        let _ = thread.join();
    }
}

impl<S: Source + Send + 'static, R: Sink + Send + 'static> Drop for Endpoint<S, R> {
    /// Messages that are on their way may be lost; [`Endpoint::close`] waits for them.
    fn drop(&mut self) {
        self.stop();
    }
}
