//! Hosts that speak IP: TCP, datagrams of UDP, echoes of ICMP, and frames of no protocol.
//!
//! The kernel's half handles a packet in the softirq, answers echo requests and sends what TCP may
//! send there. The process' half is calls: one reads what a socket has, one writes, and what it
//! writes leaves before it returns, unless the NIC has no room; then the kernel goes on with
//! streams, and a call that sends datagrams waits.
//!
//! | what | costs |
//! |---|---|
//! | a packet | `packet`, `handler`; one of no known protocol `packet` alone |
//! | a call, with what the program does | `library`, `copy` a byte; `clock` before it sends |
//! | a segment of TCP, received or sent | `clock` as well |
//! | a frame that is sent | `send`, and `attach` if it has more than 512 bytes of payload |
//!
//! Connections are made before the simulation begins, and all hosts know each other's addresses.

mod ip;
mod program;
mod setup;
mod tcp;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::mem::take;

use base::time::{Duration, Instant};
use workload::{ConnectionId, Transport};

use super::driver::{Demand, Reported, WorkloadDriver};
use super::{KernelFrame, Process, Stack, Step, StepAction, Work};
use crate::frame::Frame;
use crate::machine::Costs;
pub use ip::address_of;
use ip::{Datagrams, ETHERNET, End, Protocol};
use program::{Conversation, READ, SocketProgram, Sockets};
pub use setup::{Binding, ProgramSpec, stacks};
use tcp::{OPTIONS, TcpEnd};

/// Frames with more bytes than this beyond headers have pages attached; what is shorter is copied.
const ATTACHED: usize = 512;
/// Looks at the clock when a moment has come: the kernel's for its timer, and one of the program.
const WAKING: f64 = 4.0;
/// Bytes of the headers of a TCP segment.
const HEADERS: usize = ETHERNET + 40 + OPTIONS;
/// The first port of clients, as in `net.ipv4.ip_local_port_range`.
const FIRST_PORT: u16 = 32_768;

/// What a process does on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetAction {
    /// It sends what its workload has said, as datagrams of this size if it is given.
    Send(ConnectionId, Option<usize>),
    /// It keeps its core busy.
    Compute,
    /// It reads from a stream, or writes what is left over.
    Stream(ConnectionId),
    /// It reads a datagram.
    Datagram,
    /// It wakes up, because of the time.
    Wake,
}

/// The end of a TCP connection and the program that has it.
struct TcpFlow {
    end: TcpEnd,
    process: usize,
    number: ConnectionId,
    is_ready: bool,
    /// The kernel has it among those that may have segments.
    is_in_kernel: bool,
    timer: Option<Instant>,
}

/// What the kernel sends by itself.
enum KernelSend {
    Frame(usize, Frame),
    Segments(usize),
}

/// IP on one host.
pub struct NetStack {
    /// At least one, which may have no program.
    processes: Vec<Process>,
    programs: Vec<SocketProgram>,
    sockets: Vec<Sockets>,
    datagrams: Datagrams,
    last_port: u16,
    streams: Vec<TcpFlow>,
    /// Streams by port, and the peer's.
    flows: BTreeMap<(u16, End), usize>,
    /// Programs by the port of their datagrams, or the identifier of their echoes.
    ports: BTreeMap<(Transport, u16), usize>,
    kernel: VecDeque<KernelSend>,
    /// When streams have something to send if nothing happens before.
    timers: BTreeSet<(Instant, usize)>,
    /// For the bytes of a frame that came, and of a segment that is made.
    place: Vec<u8>,
    segment: Vec<u8>,
}

impl NetStack {
    fn new(host: usize) -> Self {
        Self {
            processes: Vec::new(),
            programs: Vec::new(),
            sockets: Vec::new(),
            datagrams: Datagrams::new(host),
            last_port: FIRST_PORT - 1,
            streams: Vec::new(),
            flows: BTreeMap::new(),
            ports: BTreeMap::new(),
            kernel: VecDeque::new(),
            timers: BTreeSet::new(),
            place: Vec::new(),
            segment: Vec::new(),
        }
    }

    /// The driver of a process, and what it has measured; none where a host has no program.
    pub fn driver(&mut self, process: usize) -> Option<&mut WorkloadDriver> {
        self.programs.get_mut(process).map(|program| &mut program.driver)
    }

    /// Datagrams that found no room in the buffer of their socket.
    pub fn dropped(&self) -> u64 {
        self.sockets.iter().map(|sockets| sockets.dropped).sum()
    }

    fn next_port(&mut self) -> u16 {
        self.last_port = self.last_port.checked_add(1).unwrap_or(FIRST_PORT);
        self.last_port
    }

    fn add_stream(&mut self, end: TcpEnd, process: usize, port: u16, peer: End) {
        let stream = self.streams.len();
        let sockets = self.programs[process].sockets;
        let number = self.sockets[sockets].add(Conversation::Stream(stream));
        let (is_ready, is_in_kernel) = (false, false);
        self.streams.push(TcpFlow { end, process, number, is_ready, is_in_kernel, timer: None });
        self.flows.insert((port, peer), stream);
    }

    /// Has the program of a stream look at it if there is something to read or room to write.
    fn refresh(&mut self, stream: usize) {
        let TcpFlow { end, process, number, is_ready, .. } = &mut self.streams[stream];
        let sockets = &mut self.sockets[self.programs[*process].sockets];
        let is_writable = !sockets.backlogs[*number].is_empty() && has_room(end);
        if !*is_ready && (end.readable() > 0 || is_writable) {
            *is_ready = true;
            sockets.ready.push_back(*number);
        }
    }

    /// The next segment of a stream, whose timer is planned anew if it has none.
    fn segment(&mut self, now: Instant, stream: usize) -> Option<Frame> {
        let TcpFlow { end, timer, .. } = &mut self.streams[stream];
        let segment = end.segment(now, &mut self.segment);
        if segment.is_none() {
            if let Some(at) = timer.take() {
                self.timers.remove(&(at, stream));
            }
            *timer = end.deadline(now).filter(|at| *at > now);
            self.timers.extend(timer.map(|at| (at, stream)));
        }
        segment
    }

    /// The kernel sends the segments of a stream.
    fn give_to_kernel(&mut self, stream: usize) {
        if !core::mem::replace(&mut self.streams[stream].is_in_kernel, true) {
            self.kernel.push_back(KernelSend::Segments(stream));
        }
    }

    fn receive_packet(&mut self, now: Instant, frame: &[u8]) -> Option<usize> {
        if let Some((Protocol::Tcp { from, to }, _)) = ip::parse(&frame[ETHERNET..]) {
            let stream = *self.flows.get(&(to, from))?;
            self.streams[stream].end.receive(now, frame, &mut self.segment);
            self.refresh(stream);
            let process = self.streams[stream].process;
            // A process that is in a call on the socket goes on with it.
            if !self.programs[process].sending.contains(&stream) {
                self.give_to_kernel(stream);
            }
            return Some(self.waiting(process));
        }
        let packet = self.datagrams.whole(&frame[ETHERNET..])?;
        let (protocol, payload) = ip::parse(&packet)?;
        let (transport, port, conversation) = match protocol {
            Protocol::Tcp { .. } => return None,
            Protocol::Udp { from, to } => (Transport::Udp, to, Conversation::Datagrams(to, from)),
            Protocol::Echo { from, is_request: true, identifier, sequence } => {
                let send = |frame| self.kernel.push_back(KernelSend::Frame(0, frame));
                self.datagrams.echo(false, from, (identifier, sequence), payload, send);
                return None;
            }
            Protocol::Echo { from, identifier, .. } => {
                (Transport::Icmp, identifier, Conversation::Echoes(identifier, from))
            }
        };
        let process = *self.ports.get(&(transport, port))?;
        let sockets = &mut self.sockets[self.programs[process].sockets];
        let number = sockets.peer(conversation);
        sockets.deliver(number, payload);
        Some(self.waiting(process))
    }

    /// This process, or if it does something else one that shares its sockets and waits.
    fn waiting(&self, process: usize) -> usize {
        let sockets = self.programs[process].sockets;
        let waits =
            |it: &usize| self.programs[*it].sockets == sockets && self.programs[*it].driver.waits();
        let others = (0..self.programs.len()).filter(|it| *it != process);
        [process].into_iter().chain(others).find(waits).unwrap_or(process)
    }

    /// What a process sends before it does anything else.
    fn next_frame(
        &mut self,
        now: Instant,
        costs: &Costs,
        process: usize,
        may_send: bool,
    ) -> Option<Step<NetAction>> {
        if !may_send {
            while let Some(stream) = self.programs[process].sending.pop_front() {
                self.give_to_kernel(stream);
            }
            return None;
        }
        let mut frame = self.programs[process].outgoing.pop_front();
        while frame.is_none()
            && let Some(&stream) = self.programs[process].sending.front()
        {
            frame = self.segment(now, stream);
            if frame.is_none() {
                self.programs[process].sending.pop_front();
            }
        }
        let frame = frame?;
        let work = Work { ns: send_ns(costs, &frame), received: 0.0, transmitted: 1.0 };
        Some(Step { work, action: StepAction::Send(frame) })
    }

    /// What a process that waits has to look at.
    fn next_arrival(&mut self, costs: &Costs, process: usize) -> Option<Step<NetAction>> {
        let sockets = &mut self.sockets[self.programs[process].sockets];
        let (bytes, action) = if let Some(number) = sockets.ready.pop_front() {
            let Conversation::Stream(stream) = sockets.conversations[number] else { return None };
            let TcpFlow { end, is_ready, process: owner, .. } = &mut self.streams[stream];
            (*is_ready, *owner) = (false, process);
            let backlog = sockets.backlogs[number].len();
            let written =
                if backlog > 0 && has_room(end) { backlog.min(end.writable()) } else { 0 };
            let bytes = if written > 0 { written } else { end.readable().min(READ) };
            (bytes, NetAction::Stream(number))
        } else {
            (sockets.begin_datagram()?, NetAction::Datagram)
        };
        let work =
            Work { ns: costs.library + costs.copy * bytes as f64, received: 1.0, transmitted: 0.0 };
        Some(Step { work, action: StepAction::Own(action) })
    }

    /// Has a process send on its streams whose time has come; whether there were some.
    fn run_timers(&mut self, now: Instant, process: usize) -> bool {
        let due = self.timers.iter().take_while(|(at, _)| *at <= now);
        let due: Vec<_> =
            due.filter(|(_, it)| self.streams[*it].process == process).copied().collect();
        for timer in &due {
            self.timers.remove(timer);
            self.streams[timer.1].timer = None;
            self.programs[process].may_send_on(timer.1);
        }
        !due.is_empty()
    }

    /// A call has sent what the workload said.
    fn sent(&mut self, process: usize, number: ConnectionId, each: Option<usize>) {
        let Self { programs, sockets, streams, datagrams, .. } = self;
        let program = &mut programs[process];
        let sockets = &mut sockets[program.sockets];
        let bytes = program.driver.outgoing();
        let conversation = sockets.conversations.get(number).copied();
        if let Some(Conversation::Stream(stream)) = conversation {
            let backlog = &mut sockets.backlogs[number];
            let is_first = backlog.is_empty();
            let taken = if is_first { streams[stream].end.write(bytes) } else { 0 };
            backlog.extend_from_slice(&bytes[taken..]);
            let left = backlog.len();
            program.may_send_on(stream);
            return program.driver.report(Reported::Sent(number, left));
        }
        let each = each.unwrap_or(bytes.len()).max(1);
        let one = [bytes];
        let payloads = bytes.chunks(each).chain(one.into_iter().filter(|bytes| bytes.is_empty()));
        for payload in payloads {
            match conversation {
                Some(Conversation::Datagrams(port, to)) => {
                    datagrams.udp(port, to, payload, |frame| program.outgoing.push_back(frame));
                }
                Some(Conversation::Echoes(identifier, to)) => {
                    let name = (identifier, program.sequence);
                    program.sequence = program.sequence.wrapping_add(1);
                    let send = |frame| program.outgoing.push_back(frame);
                    datagrams.echo(true, to, name, payload, send);
                }
                Some(Conversation::Frames) => program.outgoing.push_back(Frame::new(payload)),
                Some(Conversation::Stream(_)) | None => {}
            }
        }
        program.driver.report(Reported::Sent(number, 0));
    }

    /// A call has read a datagram.
    fn read_datagram(&mut self, process: usize) {
        let program = &mut self.programs[process];
        let taken = self.sockets[program.sockets].take_datagram();
        if let Some((connection, payload)) = taken {
            program.driver.received(connection, payload.length(), |place| payload.read(place));
        }
    }

    /// A call has written what was left over on a stream, or has read from it.
    fn handled(&mut self, process: usize, number: ConnectionId) {
        let program = &mut self.programs[process];
        let sockets = &mut self.sockets[program.sockets];
        let Conversation::Stream(stream) = sockets.conversations[number] else { return };
        let end = &mut self.streams[stream].end;
        let backlog = &mut sockets.backlogs[number];
        if !backlog.is_empty() && has_room(end) {
            let taken = end.write(backlog);
            backlog.drain(..taken);
            if backlog.is_empty() {
                program.driver.report(Reported::Drained(number));
            }
        } else if end.readable() > 0 {
            let length = end.readable().min(READ);
            program.driver.received(number, length, |place| {
                end.read(place);
            });
        }
        program.may_send_on(stream);
        self.refresh(stream);
    }
}

/// As much that a program which waits for room is woken (`sk_stream_is_writeable`: a third).
fn has_room(end: &TcpEnd) -> bool {
    end.writable() * 3 >= end.capacity()
}

fn send_ns(costs: &Costs, frame: &Frame) -> f64 {
    let attach = if frame.length() > HEADERS + ATTACHED { costs.attach } else { 0.0 };
    costs.send + attach + clock_ns(costs, frame.head())
}

/// TCP takes the time of each segment (`tcp_mstamp_refresh`).
fn clock_ns(costs: &Costs, frame: &[u8]) -> f64 {
    if ip::is_tcp(frame) { costs.clock } else { 0.0 }
}

fn own(ns: f64, action: NetAction) -> Option<Step<NetAction>> {
    Some(Step { work: Work::of(ns), action: StepAction::Own(action) })
}

impl Stack for NetStack {
    type StepAction = NetAction;

    fn processes(&self) -> &[Process] {
        &self.processes
    }

    fn receive_work(&self, costs: &Costs, frame: &[u8]) -> Work {
        if ip::is_ip(frame) {
            let ns = costs.packet + costs.handler + clock_ns(costs, frame);
            Work { ns, received: 1.0, transmitted: 0.0 }
        } else {
            Work { ns: costs.packet, received: costs.moved_low, transmitted: 0.0 }
        }
    }

    fn receive(&mut self, now: Instant, frame: Frame) -> Option<usize> {
        if !ip::is_ip(frame.head()) {
            return None;
        }
        let mut place = take(&mut self.place);
        let process = self.receive_packet(now, frame.whole(&mut place));
        self.place = place;
        process
    }

    fn has_kernel_frames(&self) -> bool {
        !self.kernel.is_empty()
    }

    fn kernel_frame(&mut self, now: Instant, costs: &Costs) -> Option<KernelFrame> {
        while let Some(send) = self.kernel.pop_front() {
            let (process, frame) = match send {
                KernelSend::Frame(process, frame) => (process, frame),
                KernelSend::Segments(stream) => match self.segment(now, stream) {
                    Some(frame) => {
                        // One each, in turn.
                        self.kernel.push_back(KernelSend::Segments(stream));
                        (self.streams[stream].process, frame)
                    }
                    None => {
                        self.streams[stream].is_in_kernel = false;
                        continue;
                    }
                },
            };
            let transmitted = costs.moved_reply;
            let work = Work { ns: send_ns(costs, &frame), received: 0.0, transmitted };
            return Some(KernelFrame { process, work, frame });
        }
        None
    }

    fn next(
        &mut self,
        now: Instant,
        costs: &Costs,
        process: usize,
        may_send: bool,
    ) -> Option<Step<NetAction>> {
        if process >= self.programs.len() {
            return None;
        }
        loop {
            let step = self.next_frame(now, costs, process, may_send);
            if step.is_some() || !self.programs[process].outgoing.is_empty() {
                return step;
            }
            let driver = &mut self.programs[process].driver;
            let request = driver.next(now);
            let clock = costs.clock * f64::from(driver.readings());
            match request {
                Demand::Send { connection, length, each } => {
                    let ns = clock + costs.library + costs.copy * length as f64;
                    return own(ns, NetAction::Send(connection, each));
                }
                Demand::Compute(Duration::ZERO) => driver.report(Reported::Computed),
                Demand::Compute(lasts) => {
                    return own(clock + lasts.as_nanos() as f64, NetAction::Compute);
                }
                Demand::Report(until) => {
                    let step = self.next_arrival(costs, process);
                    if step.is_some() {
                        return step;
                    }
                    if until.is_some_and(|until| until <= now) {
                        return own(costs.clock * WAKING, NetAction::Wake);
                    }
                    if !self.run_timers(now, process) {
                        return None;
                    }
                }
                Demand::Nothing => {
                    if !self.run_timers(now, process) {
                        return None;
                    }
                }
            }
        }
    }

    fn done(&mut self, _now: Instant, process: usize, action: NetAction) {
        match action {
            NetAction::Send(number, each) => self.sent(process, number, each),
            NetAction::Compute => self.programs[process].driver.report(Reported::Computed),
            NetAction::Stream(number) => self.handled(process, number),
            NetAction::Datagram => self.read_datagram(process),
            NetAction::Wake => {
                let program = &mut self.programs[process];
                program.woke(&self.sockets[program.sockets]);
            }
        }
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        let timer = self.timers.range((now, usize::MAX)..).next().map(|(at, _)| *at);
        self.programs.iter().filter_map(|program| program.until(now)).chain(timer).min()
    }
}
