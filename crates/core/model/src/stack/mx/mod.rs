//! Hosts that speak MX: the engine itself, in a library, or half of it in the kernel.
//!
//! In the kernel, as in Open-MX, pull requests and replies are handled where they arrive, in the
//! softirq, which sends what they ask for ("Performance Evaluation of the Open-MX stack", section
//! 3: the receive callback answers pulls and copies replies to their place). Everything else goes
//! to a ring, which the process polls. With a library, all goes to the ring, and the process sleeps
//! while that is empty.
//!
//! Pages of a large message are registered by the process, before it announces one and before it
//! pulls one: `omx_pin_synchronous` is 1 in Open-MX 1.0.901 (`driver/linux/omx_main.c`), which the
//! paper ran. That a message was pulled is an entry of the ring, and the library notifies the
//! sender (`omx__process_pull_done()`, `libopen-mx/omx_large.c`).

mod frames;
mod local;
mod program;
mod setup;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::any::Any;
use core::mem::{replace, take};

use base::time::Instant;
use mx::address::NicId;
use mx::endpoint::Endpoint;
use mx::ids::PeerId;
use mx::matching::Match;
use mx::outgoing::Outgoing;
use mx::status::Event;
use mx::wire::{self, FrameType};

use super::{KernelFrame, Process, Stack, Step, StepAction, Work};
use crate::frame::Frame;
use crate::machine::Costs;
use frames::{Kind, kind_of, send_ns};
use local::{LocalInbox, LocalMessage};
pub use program::{EndpointSpec, HEAD, MxProgram, Next, SizedMessage};
pub use setup::stacks;

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
/// The context of receives that are posted again and again, and of those that a program posts.
const STANDING: u64 = 0;
const ONCE: u64 = 1;

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
    /// It registers pages.
    Register,
    /// It looks at the clock.
    Look,
}

/// One endpoint of a host.
struct Channel {
    engine: Endpoint<SizedMessage, SizedMessage>,
    number: u8,
    /// Its names for those it talks to, and their numbers by name.
    peers: Vec<PeerId>,
    numbers: BTreeMap<PeerId, usize>,
    program: Box<dyn MxProgram>,
    ring: VecDeque<(Kind, Frame)>,
    local: LocalInbox,
    kernel_sends: bool,
    process_sends: bool,
    outstanding: usize,
    /// Messages that were handed over.
    sent: u64,
    /// Pages that are registered before anything else.
    pages: u64,
    /// What the library sends when it learns that the kernel has pulled a message.
    notifies: VecDeque<(Frame, Outgoing)>,
    /// How often it looks at the clock before it does anything else, or sleeps.
    looks: u32,
    is_awake: bool,
    has_handled: bool,
}

/// MX on one host.
pub struct MxStack {
    nic: NicId,
    processes: Vec<Process>,
    channels: Vec<Channel>,
    in_kernel: bool,
    /// For the bytes of a frame.
    place: Vec<u8>,
}

/// The address of a host's NIC.
pub(crate) const fn nic_of(host: usize) -> NicId {
    let [high, low] = (host as u16).to_be_bytes();
    NicId([2, 0, 0, 0, high, low])
}

/// The host whose NIC has this address.
pub(crate) const fn host_of(nic: NicId) -> Option<usize> {
    match nic.0 {
        [2, 0, 0, 0, high, low] => Some((high as usize) << 8 | low as usize),
        _ => None,
    }
}

impl Channel {
    /// The next frame that its engine sends; `place` is for the bytes of it.
    fn transmit(
        &mut self,
        now: Instant,
        nic: NicId,
        place: &mut Vec<u8>,
    ) -> Option<(Frame, Outgoing)> {
        let longest = ETHERNET + usize::from(self.engine.config().mtu);
        if place.len() < longest {
            place.resize(longest, 0);
        }
        let out = self.engine.transmit(now, &mut place[ETHERNET..longest])?;
        let frame = &mut place[..ETHERNET + out.length];
        frame[..6].copy_from_slice(&out.to.0);
        frame[6..12].copy_from_slice(&nic.0);
        frame[12..14].copy_from_slice(&wire::ETHER_TYPE.to_be_bytes());
        Some((Frame::padded(frame, SHORTEST), out))
    }

    /// Hands a frame to the engine.
    fn handle(&mut self, now: Instant, frame: &Frame, place: &mut Vec<u8>) {
        let frame = frame.whole(place);
        let from = NicId(frame[6..12].first_chunk().copied().unwrap_or_default());
        self.engine.handle_frame(now, from, &frame[ETHERNET..]);
    }

    /// Pages of a message that is pulled.
    fn pages_of(&self, bytes: u64) -> u64 {
        let is_pulled = bytes > self.engine.config().eager_max.into();
        if is_pulled { bytes.div_ceil(PAGE) } else { 0 }
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
                let peer = status.peer.and_then(|peer| self.numbers.get(&peer).copied());
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

impl MxStack {
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

    /// What a process sends.
    fn next_frame(
        &mut self,
        now: Instant,
        costs: &Costs,
        process: usize,
    ) -> Option<Step<MxAction>> {
        let nic = self.nic;
        let channel = &mut self.channels[process];
        if let Some((frame, out)) = channel.notifies.pop_front() {
            let ns = costs.event + send_ns(&out, costs);
            let work = Work { ns, received: 1.0, transmitted: 1.0 };
            return Some(Step { work, action: StepAction::Send(frame) });
        }
        if let Some((frame, out)) = channel.transmit(now, nic, &mut self.place) {
            let is_medium = out.frame_type == Some(FrameType::Medium);
            let transmitted = if is_medium { costs.moved_send } else { 1.0 };
            let work = Work { ns: send_ns(&out, costs), received: 0.0, transmitted };
            return Some(Step { work, action: StepAction::Send(frame) });
        }
        channel.process_sends = false;
        None
    }

    /// What the program of a process does next, unless it waits.
    fn ask(&mut self, now: Instant, costs: &Costs, process: usize) -> Option<Step<MxAction>> {
        let channel = &mut self.channels[process];
        match channel.program.next(now) {
            Next::Send { peer, match_info, message } => {
                if channel.local.process_of(peer).is_some() {
                    let ns = costs.library + costs.copy * message.length as f64;
                    return Some(own(ns, MxAction::Send(peer, match_info, message)));
                }
                let pages = channel.pages_of(message.length) as f64;
                let ns = costs.page * pages + costs.clock * f64::from(SENDING);
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

/// The endpoint that a frame is for.
fn channel_of(channels: &[Channel], frame: &[u8]) -> Option<usize> {
    let (header, _) = wire::parse(&frame[ETHERNET..]).ok()?;
    channels.iter().position(|channel| channel.number == header.to)
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
        let bytes = frame.whole(&mut self.place);
        let (kind, process) = (kind_of(bytes), channel_of(&self.channels, bytes)?);
        let channel = &mut self.channels[process];
        match kind {
            Kind::Pull | Kind::Reply(_) if self.in_kernel => {
                channel.handle(now, &frame, &mut self.place);
                channel.kernel_sends = true;
            }
            _ => channel.ring.push_back((kind, frame)),
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
            while let Some((frame, out)) = channel.transmit(now, self.nic, &mut self.place) {
                if out.frame_type == Some(FrameType::Notify) {
                    channel.notifies.push_back((frame, out));
                    channel.process_sends = true;
                    continue;
                }
                // A reply touches the ring and the buffer, but no endpoint of a process.
                let transmitted = costs.moved_reply;
                let work = Work { ns: send_ns(&out, costs), received: 0.0, transmitted };
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
        let channel = &mut self.channels[process];
        let pages = take(&mut channel.pages);
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
            let looks = channel.looks_at_end(&event);
            let ns = costs.clock * f64::from(looks) + costs.library;
            return Some(own(ns, MxAction::Event(event)));
        }
        if let Some((kind, frame)) = channel.ring.pop_front() {
            let is_copied = matches!(kind, Kind::Medium(_) | Kind::Reply(_));
            let copied = if is_copied { kind.bytes() } else { 0.0 };
            let mut looks = 0;
            if !replace(&mut channel.is_awake, true) {
                looks = WAKING;
                (channel.looks, channel.has_handled) = (GOING_TO_SLEEP, true);
            }
            if let Kind::Rendezvous(total) = kind {
                channel.pages += total.div_ceil(PAGE);
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
                channel.handle(now, &frame, &mut self.place);
                channel.process_sends = true;
            }
            MxAction::Send(peer, match_info, message) => {
                let number = channel.sent;
                channel.sent += 1;
                if let Some(peer) = channel.peers.get(peer)
                    && channel.engine.isend(now, *peer, match_info, message, number).is_ok()
                {
                    channel.outstanding += 1;
                }
                channel.process_sends = true;
                channel.program.sent(now, number, channel.outstanding);
            }
            MxAction::Compute => channel.program.computed(),
            MxAction::Event(event) => channel.ended(now, &event),
            MxAction::Local(LocalMessage { peer, match_info, message }) => {
                channel.program.received(now, peer, match_info, message);
            }
            MxAction::Register | MxAction::Look => {}
        }
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        let of = |channel: &Channel| [channel.engine.deadline(), channel.program.until()];
        // What is overdue would hide what is not.
        self.channels.iter().flat_map(of).flatten().filter(|at| *at > now).min()
    }
}
