//! Hosts that speak MX: the engine itself, in a library, or half of it in the kernel.
//!
//! In the kernel, as in Open-MX, pull requests and replies are handled where they arrive, in the
//! softirq, which sends what they ask for ("Performance Evaluation of the Open-MX stack", section
//! 3: the receive callback answers pulls and copies replies to their place). Everything else goes
//! to a ring, which the process polls. With a library, all goes to the ring, and the process sleeps
//! while that is empty.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::any::Any;
use core::mem::{replace, take};

use base::time::{Duration, Instant};
use mx::address::{Address, NicId};
use mx::buffers::{Sink, Source};
use mx::config::{Config, ConfigError};
use mx::endpoint::Endpoint;
use mx::ids::{PeerId, SendId};
use mx::matching::Match;
use mx::status::Event;
use mx::wire::{self, Body};

use super::mx_local::{LocalInbox, LocalMessage};
use super::{KernelFrame, Process, Stack, Step, StepAction, Work};
use crate::device::Frame;
use crate::machine::{Costs, Machine, MxSide};

/// Bytes of a page.
const PAGE: u64 = 4_096;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// The shortest frame, without FCS.
const SHORTEST: usize = 60;

/// How often a library and its program look at the clock, as those of Earmark do: when they wake
/// up, at the end of a request, when a message is handed over, and before they sleep.
const WAKING: u32 = 2;
const ENDING: u32 = 2;
const SENDING: u32 = 2;
const GOING_TO_SLEEP: u32 = 3;

/// How many bytes of a message exist: programs look at no others.
pub const HEAD: usize = 32;

/// A message, or the place for one, of which only the first [`HEAD`] bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizedMessage {
    /// Bytes of it.
    pub length: u64,
    /// The first of them.
    pub head: [u8; HEAD],
}

impl SizedMessage {
    /// One of zeros.
    pub const fn of(length: u64) -> Self {
        Self { length, head: [0; HEAD] }
    }
}

impl Source for SizedMessage {
    fn length(&self) -> u64 {
        self.length
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        into.fill(0);
        let head = self.head.get(offset as usize..).unwrap_or_default();
        let count = head.len().min(into.len());
        into[..count].copy_from_slice(&head[..count]);
    }
}

impl Sink for SizedMessage {
    fn capacity(&self) -> u64 {
        self.length
    }

    fn write(&mut self, offset: u64, from: &[u8]) {
        let head = self.head.get_mut(offset as usize..).unwrap_or_default();
        let count = head.len().min(from.len());
        head[..count].copy_from_slice(&from[..count]);
    }
}

/// The context of receives that are posted again and again, and of those that a program posts.
const STANDING: u64 = 0;
const ONCE: u64 = 1;

/// What a program does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It sends a message to the peer of this number.
    Send {
        /// The number, in the order of [`EndpointSpec::peers`].
        peer: usize,
        /// The match information that it goes with.
        match_info: u64,
        /// How long it is, and how it begins.
        message: SizedMessage,
    },
    /// It posts a receive, which takes no time. Endpoints without [`EndpointSpec::receives`] get
    /// nothing else.
    Receive {
        /// The number of the peer that the message comes from.
        peer: usize,
        /// The match information that it comes with.
        match_info: u64,
        /// Bytes of the longest message.
        length: u64,
    },
    /// It computes for so long.
    Compute(Duration),
    /// It waits for a message, for one of its own to be out, or for [`MxProgram::until`].
    Wait,
}

/// A program at an endpoint, as a state machine without I/O.
pub trait MxProgram: Any {
    /// What it does next. Each answer but [`Next::Wait`] is carried out before the next call.
    fn next(&mut self, now: Instant) -> Next;

    /// The message was handed over, the `number`th from 0; so many of this program are on their
    /// way.
    fn sent(&mut self, now: Instant, number: u64, outstanding: usize);

    /// The `number`th message of its own is out, and its memory is free again.
    fn drained(&mut self, now: Instant, number: u64, outstanding: usize);

    /// A message has come from the peer of this number, with this match information.
    fn received(&mut self, now: Instant, peer: usize, match_info: u64, message: SizedMessage);

    /// It has computed.
    fn computed(&mut self);

    /// Whether it is of interest when messages of its own are out.
    fn wants_ends(&self) -> bool {
        true
    }

    /// When it goes on if nothing comes before.
    fn until(&self) -> Option<Instant>;
}

/// An endpoint, and the program that has it.
pub struct EndpointSpec {
    /// The number of its host.
    pub host: usize,
    /// The core that the program is bound to.
    pub core: usize,
    /// Its number on the host.
    pub endpoint: u8,
    /// How the engine is set.
    pub config: Config,
    /// Those it talks to, as indices of the list of endpoints.
    pub peers: Vec<usize>,
    /// Receives that are always posted, and bytes of the longest message.
    pub receives: (usize, u64),
    /// What it does.
    pub program: Box<dyn MxProgram>,
}

/// What a process does on its own.
#[derive(Debug)]
pub enum MxAction {
    /// It handles an entry of the ring.
    Handle(Frame),
    /// It learns of the end of a request.
    Event(Event<SizedMessage>),
    /// It hands a message over, to a peer, with match information.
    Send(usize, u64, SizedMessage),
    /// It receives from a process of its host.
    Local(LocalMessage),
    /// It keeps its core busy.
    Compute,
    /// It registers pages, or gives them back.
    Register,
    /// It looks at the clock.
    Look,
}

/// One endpoint of a host.
struct Channel {
    engine: Endpoint<SizedMessage, SizedMessage>,
    number: u8,
    /// Addresses of those it talks to, with its names for them.
    peers: Vec<PeerId>,
    program: Box<dyn MxProgram>,
    ring: VecDeque<Frame>,
    local: LocalInbox,
    kernel_sends: bool,
    process_sends: bool,
    outstanding: usize,
    /// Messages that were handed over.
    sent: u64,
    /// Pages that are registered before anything else, after what is to be sent, and after that.
    pages: Pages,
    /// Messages whose pages are not registered yet.
    held: Vec<SendId>,
    /// How often it looks at the clock before it does anything else, or sleeps.
    looks: u32,
    is_awake: bool,
    has_handled: bool,
}

#[derive(Default)]
struct Pages {
    first: u64,
    announced: u64,
    pulled: u64,
}

/// MX on one host.
pub struct MxStack {
    nic: NicId,
    processes: Vec<Process>,
    channels: Vec<Channel>,
    registers_late: bool,
    in_kernel: bool,
}

/// The address of a host's NIC.
pub(crate) const fn nic_of(host: usize) -> NicId {
    let [high, low] = (host as u16).to_be_bytes();
    NicId([2, 0, 0, 0, high, low])
}

/// The stacks of `hosts` hosts of a machine with these endpoints, connected.
///
/// # Errors
/// A setting of an endpoint that is out of range.
pub fn stacks(
    hosts: usize,
    machine: &Machine,
    endpoints: Vec<EndpointSpec>,
) -> Result<Vec<MxStack>, ConfigError> {
    let address = |spec: &EndpointSpec| Address { nic: nic_of(spec.host), endpoint: spec.endpoint };
    let addresses: Vec<Address> = endpoints.iter().map(address).collect();
    let in_kernel = machine.mx == MxSide::Kernel;
    let mut stacks: Vec<MxStack> = (0..hosts)
        .map(|host| MxStack {
            nic: nic_of(host),
            processes: Vec::new(),
            channels: Vec::new(),
            registers_late: machine.registers_late,
            in_kernel,
        })
        .collect();
    let mut names = Vec::new();
    for (number, spec) in endpoints.into_iter().enumerate() {
        let stack = &mut stacks[spec.host];
        names.push((spec.host, stack.channels.len(), spec.peers.clone()));
        let mut engine = Endpoint::new(spec.config, addresses[number], 7 + number as u64)?;
        let (count, bytes) = spec.receives;
        for _ in 0..count {
            // It is not closing, and the match is one.
            let _ =
                engine.irecv(Instant::ZERO, None, Match::ANY, SizedMessage::of(bytes), STANDING);
        }
        stack.processes.push(Process { core: spec.core, blocks: !in_kernel });
        stack.channels.push(Channel {
            engine,
            number: spec.endpoint,
            peers: Vec::new(),
            program: spec.program,
            ring: VecDeque::new(),
            local: LocalInbox::new(count > 0),
            kernel_sends: false,
            process_sends: false,
            outstanding: 0,
            sent: 0,
            pages: Pages::default(),
            held: Vec::new(),
            looks: 0,
            is_awake: false,
            has_handled: false,
        });
    }
    connect(&mut stacks, &names, &addresses);
    Ok(stacks)
}

/// Connects the endpoints, which takes no time.
fn connect(stacks: &mut [MxStack], names: &[(usize, usize, Vec<usize>)], addresses: &[Address]) {
    let now = Instant::ZERO;
    for (host, channel, peers) in names {
        let Channel { engine, peers: known, local, .. } = &mut stacks[*host].channels[*channel];
        for (of, process, _) in peers.iter().map(|to| &names[*to]) {
            local.add_peer((of == host).then_some(*process));
        }
        let second = Duration::from_millis(1_000);
        known.extend(
            peers.iter().filter_map(|to| engine.connect(now, addresses[*to], 0, second).ok()),
        );
    }
    let mut frame = [0; 1 << 14];
    let mut was_quiet = false;
    while !was_quiet {
        was_quiet = true;
        for (host, channel, _) in names {
            while let Some(out) = stacks[*host].channels[*channel].engine.transmit(now, &mut frame)
            {
                was_quiet = false;
                let from = stacks[*host].nic;
                let to =
                    addresses.iter().position(|it| it.nic == out.to && it.endpoint == out.endpoint);
                let Some((host, channel, _)) = to.map(|to| &names[to]) else { continue };
                let engine = &mut stacks[*host].channels[*channel].engine;
                engine.handle_frame(now, from, &frame[..out.length]);
            }
        }
    }
    let channels = stacks.iter_mut().flat_map(|stack| &mut stack.channels);
    channels.for_each(|channel| while channel.engine.poll_event().is_some() {});
}

impl Channel {
    fn transmit(&mut self, now: Instant, nic: NicId) -> Option<(Frame, Kind)> {
        let mut frame = vec![0; ETHERNET + usize::from(self.engine.config().mtu)];
        let out = self.engine.transmit(now, &mut frame[ETHERNET..])?;
        frame.truncate(ETHERNET + out.length);
        frame[..6].copy_from_slice(&out.to.0);
        frame[6..12].copy_from_slice(&nic.0);
        frame[12..14].copy_from_slice(&wire::ETHER_TYPE.to_be_bytes());
        let kind = kind_of(&frame);
        if frame.len() < SHORTEST {
            frame.resize(SHORTEST, 0);
        }
        Some((frame, kind))
    }

    /// Hands a frame to the engine.
    fn handle(&mut self, now: Instant, frame: &[u8]) {
        let from = NicId(frame[6..12].first_chunk().copied().unwrap_or_default());
        self.engine.handle_frame(now, from, &frame[ETHERNET..]);
    }

    /// Requests that waited for pages are served by the kernel.
    fn registered(&mut self) {
        for send in take(&mut self.held) {
            self.engine.release(send);
            self.kernel_sends = true;
        }
    }

    /// Posts a receive of its program.
    fn post(&mut self, now: Instant, peer: usize, match_info: u64, length: u64) {
        if self.local.process_of(peer).is_some() {
            return self.local.post(peer, match_info);
        }
        if let Some(peer) = self.peers.get(peer) {
            let (wanted, place) = (Match::exact(match_info), SizedMessage::of(length));
            // A peer that is lost sends nothing that anything could wait for.
            let _ = self.engine.irecv(now, Some(*peer), wanted, place, ONCE);
            self.process_sends = true;
        }
    }

    /// A message was copied to where a process of this host finds it.
    fn sent_locally(&mut self, now: Instant) {
        let number = self.sent;
        self.sent += 1;
        self.program.sent(now, number, self.outstanding);
        self.program.drained(now, number, self.outstanding);
    }

    /// How often it looks at the clock for the end of a request.
    fn looks_at_end(&mut self, event: &Event<SizedMessage>) -> u32 {
        if matches!(event, Event::Sent(..)) && !self.program.wants_ends() {
            return 0;
        }
        let before = take(&mut self.looks);
        ENDING + if take(&mut self.has_handled) { 0 } else { before }
    }

    fn ended(&mut self, now: Instant, event: &Event<SizedMessage>) {
        match event {
            Event::Received(_, status, place) => {
                let peer = self.peers.iter().position(|peer| Some(*peer) == status.peer);
                let message = SizedMessage { length: status.length, head: place.head };
                self.program.received(now, peer.unwrap_or_default(), status.match_info, message);
                if status.context == STANDING {
                    let _ = self.engine.irecv(now, None, Match::ANY, *place, STANDING);
                    self.process_sends = true;
                }
            }
            Event::Sent(_, status) => {
                self.outstanding -= 1;
                self.program.drained(now, status.context, self.outstanding);
            }
            Event::Connected(..) | Event::Lost(..) => {}
        }
    }
}

/// What a frame is, with the bytes of a message in it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Pull,
    Reply(f64),
    Medium(f64),
    Small(f64),
    /// The whole message.
    Rendezvous(u64),
    Control,
    Invalid,
}

fn kind_of(frame: &[u8]) -> Kind {
    match wire::parse(&frame[ETHERNET..]) {
        Ok((_, Body::Pull(_))) => Kind::Pull,
        Ok((_, Body::Reply { data, .. })) => Kind::Reply(data.len() as f64),
        Ok((_, Body::Medium { data, .. })) => Kind::Medium(data.len() as f64),
        Ok((_, Body::Small(_, data))) => Kind::Small(data.len() as f64),
        Ok((_, Body::Rendezvous { total, .. })) => Kind::Rendezvous(total),
        Ok(_) => Kind::Control,
        Err(_) => Kind::Invalid,
    }
}

impl Kind {
    const fn bytes(self) -> f64 {
        match self {
            Self::Reply(bytes) | Self::Medium(bytes) | Self::Small(bytes) => bytes,
            _ => 0.0,
        }
    }

    /// Short messages are copied into their frames; of others pages are attached.
    fn send_ns(self, costs: &Costs) -> f64 {
        costs.send
            + match self {
                Self::Medium(_) | Self::Reply(_) => costs.attach,
                _ => costs.copy * self.bytes(),
            }
    }
}

impl MxStack {
    /// The engine of the endpoint of a process.
    pub fn engine(&self, process: usize) -> &Endpoint<SizedMessage, SizedMessage> {
        &self.channels[process].engine
    }

    /// The programs of all processes that are of this type.
    pub fn programs<P: MxProgram>(&mut self) -> impl Iterator<Item = &mut P> {
        self.channels.iter_mut().filter_map(|channel| {
            let program: &mut dyn Any = &mut *channel.program;
            program.downcast_mut()
        })
    }

    /// The program of a process, if it is of this type.
    pub fn program<P: MxProgram>(&mut self, process: usize) -> Option<&mut P> {
        let program: &mut dyn Any = &mut *self.channels[process].program;
        program.downcast_mut()
    }

    fn channel_of(&self, frame: &[u8]) -> Option<usize> {
        let (header, _) = wire::parse(&frame[ETHERNET..]).ok()?;
        self.channels.iter().position(|channel| channel.number == header.to)
    }

    /// Pages of a message that is pulled.
    fn pages(&self, process: usize, bytes: u64) -> u64 {
        let is_pulled = bytes > self.channels[process].engine.config().eager_max.into();
        if is_pulled { bytes.div_ceil(PAGE) } else { 0 }
    }

    /// What a process sends, or registers behind what it has sent.
    fn next_frame(
        &mut self,
        now: Instant,
        costs: &Costs,
        process: usize,
    ) -> Option<Step<MxAction>> {
        let nic = self.nic;
        let channel = &mut self.channels[process];
        if let Some((frame, kind)) = channel.transmit(now, nic) {
            let transmitted = if matches!(kind, Kind::Medium(_)) { costs.moved_send } else { 1.0 };
            let work = Work { ns: kind.send_ns(costs), received: 0.0, transmitted };
            return Some(Step { work, action: StepAction::Send(frame) });
        }
        channel.process_sends = false;
        let Pages { announced, pulled, .. } = &mut channel.pages;
        let pages = if *announced > 0 { take(announced) } else { take(pulled) };
        (pages > 0).then(|| own(costs.page * pages as f64, MxAction::Register))
    }

    /// What the program of a process does next, unless it waits.
    fn ask(&mut self, now: Instant, costs: &Costs, process: usize) -> Option<Step<MxAction>> {
        let registers_late = self.registers_late;
        let channel = &mut self.channels[process];
        match channel.program.next(now) {
            Next::Send { peer, match_info, message } => {
                if channel.local.process_of(peer).is_some() {
                    let ns = costs.library + costs.copy * message.length as f64;
                    return Some(own(ns, MxAction::Send(peer, match_info, message)));
                }
                let pages = self.pages(process, message.length);
                self.channels[process].pages.announced += if registers_late { pages } else { 0 };
                let ns = if registers_late { 0.0 } else { costs.page * pages as f64 };
                let ns = ns + costs.clock * f64::from(SENDING);
                let channel = &mut self.channels[process];
                (channel.looks, channel.has_handled) = (GOING_TO_SLEEP, false);
                Some(own(ns, MxAction::Send(peer, match_info, message)))
            }
            Next::Receive { peer, match_info, length } => {
                channel.post(now, peer, match_info, length);
                self.ask(now, costs, process)
            }
            Next::Compute(lasts) => Some(own(lasts.as_nanos() as f64, MxAction::Compute)),
            Next::Wait => None,
        }
    }
}

fn own(ns: f64, action: MxAction) -> Step<MxAction> {
    Step { work: Work::of(ns), action: StepAction::Own(action) }
}

impl Stack for MxStack {
    type StepAction = MxAction;

    fn processes(&self) -> &[Process] {
        &self.processes
    }

    fn receive_work(&self, costs: &Costs, frame: &[u8]) -> Work {
        let kind = kind_of(frame);
        let handler = if kind == Kind::Invalid { 0.0 } else { costs.handler };
        let ns = costs.packet + handler + costs.copy * kind.bytes();
        let received = match kind {
            Kind::Medium(_) => 1.0,
            // No more of the channel than what every packet needs.
            Kind::Invalid => costs.moved_low,
            _ => 0.0,
        };
        Work { ns, received, transmitted: 0.0 }
    }

    fn receive(&mut self, now: Instant, frame: Frame) -> Option<usize> {
        let (in_kernel, process) = (self.in_kernel, self.channel_of(&frame)?);
        let channel = &mut self.channels[process];
        match kind_of(&frame) {
            Kind::Pull | Kind::Reply(_) if in_kernel => {
                channel.handle(now, &frame);
                channel.kernel_sends = true;
            }
            _ => channel.ring.push_back(frame),
        }
        Some(process)
    }

    fn has_kernel_frames(&self) -> bool {
        self.channels.iter().any(|channel| channel.kernel_sends)
    }

    fn kernel_frame(&mut self, now: Instant, costs: &Costs) -> Option<KernelFrame> {
        for (process, channel) in self.channels.iter_mut().enumerate() {
            if !channel.kernel_sends {
                continue;
            }
            if let Some((frame, kind)) = channel.transmit(now, self.nic) {
                // A reply touches the ring and the buffer, but no endpoint of a process.
                let transmitted = costs.moved_reply;
                let work = Work { ns: kind.send_ns(costs), received: 0.0, transmitted };
                return Some(KernelFrame { process, work, frame });
            }
            channel.kernel_sends = false;
        }
        None
    }

    fn next(
        &mut self,
        now: Instant,
        costs: &Costs,
        process: usize,
        may_send: bool,
    ) -> Option<Step<MxAction>> {
        let registers_late = self.registers_late;
        let channel = &mut self.channels[process];
        let pages = take(&mut channel.pages.first);
        if pages > 0 {
            return Some(own(costs.page * pages as f64, MxAction::Register));
        }
        if channel.process_sends && may_send {
            let step = self.next_frame(now, costs, process);
            if step.is_some() {
                return step;
            }
        }
        // Over a library, it goes on until it waits; beside the kernel's half, it looks first.
        if !self.in_kernel
            && let Some(step) = self.ask(now, costs, process)
        {
            return Some(step);
        }
        let channel = &mut self.channels[process];
        if let Some(event) = channel.engine.poll_event() {
            // Pages that were written are given back before the program hears of them.
            let bytes = match &event {
                Event::Received(_, status, _) if registers_late => status.length,
                _ => 0,
            };
            let pages = self.pages(process, bytes) as f64;
            let looks = self.channels[process].looks_at_end(&event);
            let ns = costs.clock * f64::from(looks) + costs.library + costs.page * pages;
            return Some(own(ns, MxAction::Event(event)));
        }
        if let Some(frame) = channel.ring.pop_front() {
            let kind = kind_of(&frame);
            let is_copied = matches!(kind, Kind::Medium(_) | Kind::Reply(_));
            let copied = if is_copied { kind.bytes() } else { 0.0 };
            let mut looks = 0;
            if !replace(&mut channel.is_awake, true) {
                looks = WAKING;
                (channel.looks, channel.has_handled) = (GOING_TO_SLEEP, true);
            }
            if let Kind::Rendezvous(total) = kind {
                let Pages { first, pulled, .. } = &mut channel.pages;
                *(if registers_late { pulled } else { first }) += total.div_ceil(PAGE);
            }
            let ns = costs.clock * f64::from(looks) + costs.event + costs.copy * copied;
            let work = Work { ns, received: 1.0, transmitted: 0.0 };
            return Some(Step { work, action: StepAction::Own(MxAction::Handle(frame)) });
        }
        if let Some(message) = channel.local.take() {
            return Some(own(costs.library, MxAction::Local(message)));
        }
        if self.in_kernel
            && let Some(step) = self.ask(now, costs, process)
        {
            return Some(step);
        }
        let channel = &mut self.channels[process];
        if channel.engine.is_overdue(now) {
            channel.engine.handle_timeout(now);
            channel.process_sends = true;
            return self.next(now, costs, process, may_send);
        }
        let looks = f64::from(take(&mut channel.looks));
        channel.is_awake = false;
        (looks * costs.clock > 0.0).then(|| own(looks * costs.clock, MxAction::Look))
    }

    fn done(&mut self, now: Instant, process: usize, action: MxAction) {
        if let MxAction::Send(peer, match_info, message) = action
            && let Some(to) = self.channels[process].local.process_of(peer)
        {
            self.channels[to].local.arrive(process, match_info, message);
            return self.channels[process].sent_locally(now);
        }
        let channel = &mut self.channels[process];
        match action {
            MxAction::Handle(frame) => {
                channel.handle(now, &frame);
                channel.process_sends = true;
            }
            MxAction::Send(peer, match_info, message) => {
                let number = channel.sent;
                channel.sent += 1;
                if let Some(peer) = channel.peers.get(peer)
                    && let Ok(send) = channel.engine.isend(now, *peer, match_info, message, number)
                {
                    channel.outstanding += 1;
                    if channel.pages.announced > 0 {
                        channel.engine.hold(send);
                        channel.held.push(send);
                    }
                }
                channel.process_sends = true;
                channel.program.sent(now, number, channel.outstanding);
            }
            MxAction::Compute => channel.program.computed(),
            MxAction::Event(event) => channel.ended(now, &event),
            MxAction::Local(LocalMessage { peer, match_info, message }) => {
                channel.program.received(now, peer, match_info, message);
            }
            MxAction::Register => channel.registered(),
            MxAction::Look => {}
        }
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        let of = |channel: &Channel| [channel.engine.deadline(), channel.program.until()];
        // What is overdue would hide what is not.
        self.channels.iter().flat_map(of).flatten().filter(|at| *at > now).min()
    }
}
