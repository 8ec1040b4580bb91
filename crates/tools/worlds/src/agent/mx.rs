//! Drives one workload over an MX endpoint.
//!
//! The workload gets the same events as over sockets: a message that has come is a `Received`, a
//! `Sent` has a backlog while as many messages are on their way as [`MxSpec::in_flight`] permits,
//! and `Drained` says that there is room for another one.
//!
//! A connection is a peer and the match information that it sends with: a client numbers its
//! connections so, and the answer has the number of the request.
//!
//! Clients sleep in the endpoint, so that the interrupt for a message wakes them directly. So do
//! servers; a thread of theirs reads the parent's orders and wakes them when there is one.

use super::clock::{Clock, cpu_ns};
use super::control::{Command, Control, print};
use super::driver::{Meter, RunTotals};
use super::outgoing::{Filler, OutgoingMessage};
use super::result::record;
use super::worker::Worker;
use base::time::{Duration, Instant};
use bench::agent::{AgentSpec, MxPeer, MxSpec};
use bench::records::AgentMessage;
use mx::config::{Config, MAX_MTU};
use mx::ids::PeerId;
use mx::matching::Match;
use mx::status::RequestError;
use mx_io::endpoint::{
    Completed, Endpoint, EndpointOptions, MxError, Progress, RequestId, WaitMode,
};
use mx_io::port::packet::PacketPort;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration as Span;
use workload::{
    Action, ConnectionId, Counter, Record, Recorder, Timing, Window, Workload, WorkloadEvent,
};

type MxEndpoint = Endpoint<OutgoingMessage, Vec<u8>>;

const CONNECT_WITHIN: Span = Span::from_secs(5);
/// How long a client that is done waits for its last messages to be fetched.
const LINGER: Span = Span::from_millis(200);
/// Bytes for messages that come, all places together, and how many places there are.
const ROOM_BYTES: usize = 4 << 20;
const LEAST_PLACES: usize = 2;
const MOST_PLACES: usize = 64;
/// How often a server that did not wait is woken again.
const KNOCK_EVERY: Span = Span::from_millis(1);
/// The whole life of an agent over MX; no record if the parent left before *go*.
pub(super) fn drive(spec: &AgentSpec) -> Result<Option<Record>, String> {
    let is_server = spec.workload.is_server();
    let mut driver = Driver::open(spec)?;
    let mut workload = spec.workload.build(spec.transport().framing(), spec.seed);
    let window = if is_server { Window::NEVER } else { spec.window() };
    let mut recorder = Recorder::new(window, spec.series);
    let mut control = Control::default();
    print(&AgentMessage::Ready { address: driver.name.clone() });
    if is_server {
        driver.orders = Some(Orders::listen(control, &driver.endpoint, spec.window()));
    } else {
        match control.wait().map_err(|error| error.to_string())? {
            Command::Go => {}
            Command::Stop | Command::End => return Ok(None),
        }
    }
    driver.clock = Clock::start(workload.reads_wall_clock());
    let totals = driver.run(workload.as_mut(), &mut recorder)?;
    if let Some(endpoint) = Arc::into_inner(driver.endpoint) {
        // Whatever is not fetched by then does not count any more.
        let _ = endpoint.close(LINGER);
    }
    Ok(Some(record(spec, totals, recorder)))
}

/// What the parent says to a server, commands by a thread.
struct Orders {
    commands: Receiver<std::io::Result<Command>>,
    /// How many of them the server has taken.
    taken: Arc<AtomicU32>,
    /// The window, from *go* on.
    window: Window,
}

impl Orders {
    fn listen(mut control: Control, endpoint: &Arc<MxEndpoint>, window: Window) -> Self {
        let (sender, commands) = channel();
        let taken = Arc::new(AtomicU32::new(0));
        let (endpoint, count) = (Arc::clone(endpoint), Arc::clone(&taken));
        std::thread::spawn(move || {
            for said in 1.. {
                let command = control.wait();
                let is_last = !matches!(command, Ok(Command::Go));
                if sender.send(command).is_err() {
                    return;
                }
                // A thread that is about to wait does not notice.
                while count.load(Ordering::Acquire) < said {
                    endpoint.wakeup();
                    std::thread::sleep(KNOCK_EVERY);
                }
                if is_last {
                    return;
                }
            }
        });
        Self { commands, taken, window }
    }
}

enum Woken {
    Message(ConnectionId, usize),
    Drained(ConnectionId),
    Time,
    Stop,
}

struct Driver {
    endpoint: Arc<MxEndpoint>,
    /// This endpoint, or the one that it talks to.
    name: String,
    clock: Clock,
    worker: Worker,
    cpu: Meter,
    orders: Option<Orders>,
    filler: Filler,
    /// Peers and match information, by the number of the connection.
    connections: Vec<(PeerId, u64)>,
    /// Messages that may be on their way; 0: not limited.
    in_flight: usize,
    sends: HashMap<RequestId, (ConnectionId, Instant)>,
}

impl Driver {
    fn open(spec: &AgentSpec) -> Result<Self, String> {
        let (interface, settings) = spec.mx()?;
        let port =
            PacketPort::open(interface, settings.endpoint).map_err(|error| error.to_string())?;
        let config = Config {
            mtu: MAX_MTU,
            marks: settings.marks.0,
            mark_early: settings.mark_early,
            ..Config::default()
        };
        let waiting = if spec.spin { WaitMode::Spin } else { WaitMode::Sleep };
        let life = EndpointOptions { progress: Progress::Thread, waiting };
        let endpoint = MxEndpoint::open(Box::new(port), config, life).map_err(|e| e.to_string())?;
        let mut driver = Self {
            name: endpoint.address().to_string(),
            endpoint: Arc::new(endpoint),
            clock: Clock::start(false),
            worker: Worker::new(spec)?,
            cpu: Meter::new(cpu_ns),
            orders: None,
            filler: Filler::default(),
            connections: Vec::new(),
            in_flight: settings.in_flight as usize,
            sends: HashMap::new(),
        };
        driver.post_places(settings)?;
        if let Some(peer) = settings.peer {
            driver.connect(peer, spec.workload.connections())?;
        }
        Ok(driver)
    }

    fn post_places(&mut self, settings: &MxSpec) -> Result<(), String> {
        let each = settings.message_bytes as usize;
        let places = (ROOM_BYTES / each.max(1)).clamp(LEAST_PLACES, MOST_PLACES);
        (0..places).try_for_each(|_| self.post(vec![0; each]))
    }

    fn post(&self, place: Vec<u8>) -> Result<(), String> {
        let posted = self.endpoint.irecv(None, Match::ANY, place);
        posted.map(drop).map_err(|error| self.failed("receive from", &error))
    }

    fn connect(&mut self, MxPeer(address): MxPeer, connections: usize) -> Result<(), String> {
        self.name = address.to_string();
        let peer = self.endpoint.connect(address, 0, CONNECT_WITHIN);
        let peer = peer.map_err(|error| format!("{error}; is the server agent up?"))?;
        self.connections = (0..connections as u64).map(|number| (peer, number)).collect();
        Ok(())
    }

    fn failed(&self, operation: &str, error: &MxError) -> String {
        format!("{operation} MX endpoint {}: {error}", self.name)
    }

    fn run(
        &mut self,
        workload: &mut dyn Workload,
        recorder: &mut Recorder,
    ) -> Result<RunTotals, String> {
        let mut message = None;
        let mut event = WorkloadEvent::Start;
        loop {
            let now = self.clock.now();
            self.cpu.observe(now.at, recorder.window());
            event = match workload.next(now, event, recorder) {
                Action::Send { connection, bytes } => {
                    WorkloadEvent::Sent { connection, backlog: self.send(connection, bytes)? }
                }
                Action::SendBatch { .. } => {
                    return Err(format!("send to {}: MX sends no batches", self.name));
                }
                Action::Compute(work) => {
                    self.worker.work(work)?;
                    WorkloadEvent::Computed
                }
                Action::Wait { until } => match self.wait(until, &mut message, recorder)? {
                    Woken::Stop => break,
                    Woken::Time => WorkloadEvent::Woke,
                    Woken::Drained(connection) => WorkloadEvent::Drained { connection },
                    Woken::Message(connection, length) => {
                        let bytes = message.as_deref().unwrap_or_default();
                        WorkloadEvent::Received { connection, bytes: &bytes[..length] }
                    }
                },
                Action::Done => break,
                Action::Fail(why) => return Err(format!("{}: {why}", self.name)),
            };
        }
        let (at, window) = (self.clock.at(), recorder.window());
        self.cpu.observe(at, window);
        let window_ns = at.min(window.end).since(window.start).as_nanos();
        Ok(RunTotals { window_ns, cpu_ns: self.cpu.grown(), refused: 0, polled: None })
    }

    /// Sends a message; the bytes of it that the workload waits for, or 0 if there is room for
    /// another one.
    fn send(&mut self, connection: ConnectionId, bytes: &[u8]) -> Result<usize, String> {
        let (peer, match_info) = self.connections[connection];
        let sent_at = self.clock.at();
        let request = match self.endpoint.isend(peer, match_info, self.filler.message(bytes)) {
            Ok(request) => request,
            // A client that left needs no answer.
            Err(MxError::Refused(_)) if self.orders.is_some() => return Ok(0),
            Err(error) => return Err(self.failed("send to", &error)),
        };
        if self.in_flight == 0 {
            self.endpoint.forget(request);
            return Ok(0);
        }
        self.sends.insert(request, (connection, sent_at));
        Ok(if self.sends.len() < self.in_flight { 0 } else { bytes.len().max(1) })
    }

    /// Waits for something that concerns the workload. A message that has come is in `message`; the
    /// place of the one before is for another one.
    fn wait(
        &mut self,
        until: Option<Instant>,
        message: &mut Option<Vec<u8>>,
        recorder: &mut Recorder,
    ) -> Result<Woken, String> {
        if let Some(place) = message.take() {
            self.post(place)?;
        }
        loop {
            if self.take_commands(recorder)? {
                return Ok(Woken::Stop);
            }
            let left = until.map(|until| until.since(self.clock.at()));
            let ended = match left {
                Some(Duration::ZERO) => self.endpoint.test_any(Match::ANY),
                _ => self
                    .endpoint
                    .wait_any(Match::ANY, left.map(|left| Span::from_nanos(left.as_nanos()))),
            };
            let ended = ended.map_err(|error| self.failed("wait for messages of", &error))?;
            match ended {
                Some(completed) => {
                    if let Some(woken) = self.ended(completed, message, recorder)? {
                        return Ok(woken);
                    }
                }
                None if left == Some(Duration::ZERO) => return Ok(Woken::Time),
                None => {}
            }
        }
    }

    fn ended(
        &mut self,
        completed: Completed<Vec<u8>>,
        message: &mut Option<Vec<u8>>,
        recorder: &mut Recorder,
    ) -> Result<Option<Woken>, String> {
        let Completed { request, status, sink } = completed;
        let at = self.clock.at();
        match (request, sink, status.peer) {
            (RequestId::Receive(_), Some(sink), Some(peer)) if status.result.is_ok() => {
                *message = Some(sink);
                recorder.count(at, Counter::MessagesReceived, 1);
                recorder.count(at, Counter::MessageBytes, status.length);
                let connection = self.connection((peer, status.match_info));
                Ok(Some(Woken::Message(connection, status.length as usize)))
            }
            (RequestId::Send(_), ..) if status.result.is_ok() => {
                let Some((connection, sent_at)) = self.sends.remove(&request) else {
                    return Ok(None);
                };
                recorder.record(at, Timing::Transfer, at.since(sent_at).as_nanos() as i64);
                Ok(Some(Woken::Drained(connection)))
            }
            (RequestId::Connect(_), ..) => Ok(None),
            // What a client that left did not say is not missed.
            (RequestId::Receive(_), Some(place), _)
                if self.orders.is_some() && status.result != Err(RequestError::Truncated) =>
            {
                self.post(place)?;
                Ok(None)
            }
            _ => Err(format!(
                "message of {} bytes, MX endpoint {}: {}; look at the agent there",
                status.length,
                self.name,
                status.result.map_or_else(|error| error.to_string(), |()| "success".to_owned())
            )),
        }
    }

    /// The number of a connection, a new one if need be.
    fn connection(&mut self, of: (PeerId, u64)) -> ConnectionId {
        let known = self.connections.iter().position(|known| *known == of);
        known.unwrap_or_else(|| {
            self.connections.push(of);
            self.connections.len() - 1
        })
    }

    /// Does what the parent said; true to stop.
    fn take_commands(&mut self, recorder: &mut Recorder) -> Result<bool, String> {
        let Some(Orders { commands, taken, window }) = &self.orders else { return Ok(false) };
        for command in commands.try_iter() {
            taken.fetch_add(1, Ordering::Release);
            if command.map_err(|error| error.to_string())? != Command::Go {
                return Ok(true);
            }
            let go = self.clock.at().since(Instant::ZERO);
            recorder.set_window(Window { start: window.start + go, end: window.end + go });
        }
        Ok(false)
    }
}
