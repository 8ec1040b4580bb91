//! From events to the paths of requests. Pure.
//!
//! A packet that arrives is an [`Arrival`]: what its processor did just before (interrupt,
//! software interrupt), that it entered the stack, that a socket got it, which thread that woke. A
//! call that sends is a [`Departure`]: which packet it gave to a device, when the driver had it. A
//! request is a departure, and the first arrival on the same socket after it, up to the return of
//! the call that takes it; a served request is the other way round. Which of the two a socket is
//! for, its events do not show: an answer is followed by the next request just as a request is by
//! its answer. So the engine reports both, and its caller picks ([`Role`]).
//!
//! Events belong together by addresses: a socket's is in the events of sending, of data that
//! is ready, and of receiving; a packet's in those of the device and of copying. Where a kernel
//! has no event that names the socket, the packet that was copied shows it.
//!
//! Call [`Engine::see`] with events in the order of their times. Where events were lost nothing is
//! guessed: all that was under way is forgotten, and counted.

use std::collections::{BTreeMap, VecDeque};

use super::event::{Context, TraceEvent, What};

/// Arrivals that are remembered for each socket, and packets for all.
const ARRIVALS: usize = 16;
const PACKETS: usize = 4_096;

/// How long ago the interrupt may have been that raised a software interrupt, in nanoseconds.
const SAME_INTERRUPT: u64 = 1_000_000;

/// A packet on its way from a device to a program. Times are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub number: u64,
    /// The device, as the decoder numbers it.
    pub device: u16,
    pub cpu: u32,
    /// When the interrupt was served that asked for the software interrupt.
    pub interrupt: Option<u64>,
    /// When the software interrupt was asked for.
    pub raised: Option<u64>,
    pub softirq: Option<u64>,
    /// When the packet entered the stack.
    pub received: Option<u64>,
    /// When it was in the socket.
    pub ready: Option<u64>,
    /// When a thread was woken for it.
    pub woken: Option<u64>,
    pub task: u32,
    /// When that thread ran.
    pub runs: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Departure {
    pub enter: u64,
    /// The packet was given to the device.
    pub queued: Option<u64>,
    /// It was given to the driver.
    pub called: Option<u64>,
    /// The driver has taken it.
    pub done: Option<u64>,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// The traced program asks and waits for the answer.
    Asks,
    /// The traced program is asked, and answers.
    Answers,
    /// Packets were only received.
    Receives,
}

/// One request's path, or the part of it that is on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// The socket's address in the kernel; 0 if it is not known.
    pub socket: u64,
    /// The descriptor that the program sent through or received from; -1 if it is not known.
    pub fd: i32,
    /// The thread, as the kernel numbers it.
    pub task: u32,
    pub role: Role,
    /// What was sent; of an answer, the answer.
    pub departure: Option<Departure>,
    pub arrival: Arrival,
    /// When the receiving call was entered, and when it returned.
    pub take: (u64, u64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Untracked {
    /// Events that found no room.
    pub lost_events: u64,
    /// Requests that were under way then.
    pub forgotten: u64,
    /// Requests whose answer's arrival was not seen.
    pub unmatched: u64,
    /// Requests that were sent before the last one was answered.
    pub overlapping: u64,
}

#[derive(Default)]
struct Cpu {
    interrupt: Option<u64>,
    raised: Option<(u64, Option<u64>)>,
    entry: Option<SoftirqEntry>,
    /// The arrival that this processor works on, and who does.
    current: Option<(u64, u32, Context)>,
}

#[derive(Clone, Copy)]
struct SoftirqEntry {
    at: u64,
    raised: Option<u64>,
    interrupt: Option<u64>,
}

#[derive(Default)]
struct TaskState {
    call: Option<SystemCall>,
    /// When it was woken last, and for which arrival.
    woken: Option<(u64, Option<u64>)>,
    /// The same, after it has run.
    awake: Option<(u64, Option<u64>, u64)>,
    /// It has copied a packet, in a call whose end was not seen.
    has_copied: bool,
}

#[derive(Default)]
struct SystemCall {
    enter: u64,
    fd: i32,
    departure: Departure,
    copied: Option<u64>,
    /// A path that ends with this call.
    ending: Option<Path>,
    /// The socket that a request was taken from.
    taking: Option<u64>,
}

#[derive(Default)]
struct Socket {
    arrivals: VecDeque<u64>,
    /// A request that waits for its answer.
    asked: Option<(Departure, u32, i32)>,
    /// A request that was taken and not answered yet.
    taken: Option<Path>,
}

#[derive(Default)]
pub(crate) struct Engine {
    cpus: BTreeMap<u32, Cpu>,
    tasks: BTreeMap<u32, TaskState>,
    sockets: BTreeMap<u64, Socket>,
    arrivals: VecDeque<Arrival>,
    packets: BTreeMap<u64, u64>,
    /// Packets that a driver has not taken yet, and whose departures they are.
    leaving: BTreeMap<u64, (u32, u64)>,
    next: u64,
    /// Receiving alone is of interest: a path ends when its packet is copied.
    only_receiving: bool,
    /// This kernel has an event for data that is ready.
    names_sockets: bool,
    /// What could not be followed.
    pub untracked: Untracked,
}

impl Engine {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Follows packets that are received, by any thread.
    pub(crate) fn of_arrivals() -> Self {
        Self { only_receiving: true, ..Self::default() }
    }

    /// Sees an event; the path that ends with it.
    pub(crate) fn see(&mut self, event: &TraceEvent) -> Option<Path> {
        let TraceEvent { at, task, .. } = *event;
        match event.what {
            What::Interrupt { .. } | What::SoftirqRaised | What::SoftirqBegan => {
                self.interrupted(event);
            }
            What::Received { packet, device } => self.received(event, packet, device),
            What::SocketReady { socket } => self.ready(event, socket),
            What::Woken { task } => self.woken(event, task),
            What::Runs { task } => self.runs(at, task),
            What::Left { task } => {
                let task = self.tasks.entry(task).or_default();
                (task.woken, task.awake) = (None, None);
            }
            What::DeviceQueued { packet } if event.context == Context::Task => {
                self.queued(at, task, packet);
            }
            What::DeviceQueued { .. } => {}
            What::DriverCalled { packet } => {
                self.leaves(packet, |departure| departure.called = Some(at));
            }
            What::DriverDone { packet } => {
                self.leaves(packet, |departure| departure.done = Some(at));
                self.leaving.remove(&packet);
            }
            What::CallEnter { fd } => {
                let departure = Departure { enter: at, ..Departure::default() };
                let call = SystemCall { enter: at, fd, departure, ..SystemCall::default() };
                self.tasks.entry(task).or_default().call = Some(call);
            }
            What::Sent { socket, bytes } if bytes > 0 => self.sent(task, socket),
            What::Took { socket, bytes } if bytes > 0 => {
                if self.only_receiving {
                    return self.took_one(event, socket);
                }
                self.took(task, socket);
            }
            What::Sent { .. } | What::Took { .. } => {}
            What::Copied { packet } => return self.copied(event, packet),
            What::CallExit => return self.exit(at, task),
            What::Lost { count } => {
                self.untracked.lost_events += count;
                self.pause();
            }
        }
        None
    }

    /// Forgets what is under way: there will be a gap.
    pub(crate) fn pause(&mut self) {
        let waiting = self.sockets.values().filter(|socket| socket.asked.is_some()).count();
        self.untracked.forgotten += waiting as u64;
        self.cpus.clear();
        self.tasks.clear();
        self.sockets.clear();
        self.arrivals.clear();
        self.packets.clear();
        self.leaving.clear();
    }

    fn interrupted(&mut self, event: &TraceEvent) {
        let cpu = self.cpus.entry(event.cpu).or_default();
        match event.what {
            What::Interrupt { .. } => cpu.interrupt = Some(event.at),
            What::SoftirqRaised if cpu.raised.is_none() => {
                let recent = |at: &u64| event.at.saturating_sub(*at) < SAME_INTERRUPT;
                let by = cpu.interrupt.filter(recent).filter(|_| event.context == Context::Hardirq);
                cpu.raised = Some((event.at, by));
            }
            What::SoftirqBegan => {
                let raised = cpu.raised.take();
                cpu.entry = Some(SoftirqEntry {
                    at: event.at,
                    raised: raised.map(|(at, _)| at),
                    interrupt: raised.and_then(|(_, by)| by),
                });
                cpu.current = None;
            }
            _ => {}
        }
    }

    fn received(&mut self, event: &TraceEvent, packet: u64, device: u16) {
        let number = self.next;
        self.next += 1;
        let cpu = self.cpus.entry(event.cpu).or_default();
        let entry = cpu.entry.filter(|_| event.context == Context::Softirq);
        cpu.current = Some((number, event.task, event.context));
        self.arrivals.push_back(Arrival {
            number,
            device,
            cpu: event.cpu,
            interrupt: entry.and_then(|entry| entry.interrupt),
            raised: entry.and_then(|entry| entry.raised),
            softirq: entry.map(|entry| entry.at),
            received: Some(event.at),
            ..Arrival::default()
        });
        if self.arrivals.len() > PACKETS {
            self.arrivals.pop_front();
        }
        if self.packets.len() >= 2 * PACKETS {
            let oldest = self.arrivals.front().map_or(0, |arrival| arrival.number);
            self.packets.retain(|_, number| *number >= oldest);
        }
        self.packets.insert(packet, number);
    }

    /// The arrival of that number, if it is still remembered.
    fn arrival(&mut self, number: u64) -> Option<&mut Arrival> {
        let first = self.arrivals.front()?.number;
        self.arrivals.get_mut(number.checked_sub(first)? as usize)
    }

    /// The arrival that a processor works on in this very context.
    fn current(&self, event: &TraceEvent) -> Option<u64> {
        let (number, task, context) = self.cpus.get(&event.cpu)?.current?;
        (task == event.task && context == event.context).then_some(number)
    }

    fn ready(&mut self, event: &TraceEvent, socket: u64) {
        self.names_sockets = true;
        // A socket that was in use gets its data later, from the thread that used it.
        let Some(number) = self.current(event) else { return };
        let at = event.at;
        let Some(arrival) = self.arrival(number) else { return };
        arrival.ready.get_or_insert(at);
        let arrivals = &mut self.sockets.entry(socket).or_default().arrivals;
        if arrivals.len() == ARRIVALS {
            arrivals.pop_front();
        }
        arrivals.push_back(number);
    }

    fn woken(&mut self, event: &TraceEvent, task: u32) {
        let number = self.current(event);
        if let Some(arrival) = number.and_then(|number| self.arrival(number)) {
            arrival.woken.get_or_insert(event.at);
            if arrival.task == 0 {
                arrival.task = task;
            }
        }
        self.tasks.entry(task).or_default().woken = Some((event.at, number));
    }

    fn runs(&mut self, at: u64, task: u32) {
        let Some(known) = self.tasks.get_mut(&task) else { return };
        let Some((woken, number)) = known.woken.take() else { return };
        known.awake = Some((woken, number, at));
        if let Some(arrival) = number.and_then(|number| self.arrival(number))
            && arrival.task == task
        {
            arrival.runs.get_or_insert(at);
        }
    }

    fn call(&mut self, task: u32) -> Option<&mut SystemCall> {
        self.tasks.get_mut(&task)?.call.as_mut()
    }

    fn queued(&mut self, at: u64, task: u32, packet: u64) {
        let Some(call) = self.call(task) else { return };
        if call.departure.queued.is_none() {
            call.departure.queued = Some(at);
            let enter = call.enter;
            self.leaving.insert(packet, (task, enter));
        }
    }

    /// Notes something of a packet that leaves, in the call or, if that is over, in the request.
    fn leaves(&mut self, packet: u64, note: impl Fn(&mut Departure)) {
        let Some((task, enter)) = self.leaving.get(&packet).copied() else { return };
        if let Some(call) = self.call(task).filter(|call| call.enter == enter) {
            note(&mut call.departure);
        }
        for socket in self.sockets.values_mut() {
            if let Some((departure, ..)) = &mut socket.asked
                && departure.enter == enter
            {
                note(departure);
            }
        }
    }

    fn sent(&mut self, task: u32, socket: u64) {
        let Some(call) = self.tasks.get_mut(&task).and_then(|task| task.call.as_mut()) else {
            return;
        };
        let known = self.sockets.entry(socket).or_default();
        if let Some(mut path) = known.taken.take() {
            path.departure = Some(call.departure);
            call.ending = Some(path);
        }
        if known.asked.is_some() {
            self.untracked.overlapping += 1;
        }
        known.asked = Some((call.departure, task, call.fd));
    }

    fn took(&mut self, task: u32, socket: u64) {
        let Some(call) = self.call(task) else { return };
        let (enter, fd, copied) = (call.enter, call.fd, call.copied);
        let known = self.sockets.entry(socket).or_default();
        let asked = known.asked.take();
        let since = asked.map_or(0, |(departure, ..)| departure.enter);
        let candidates = std::mem::take(&mut known.arrivals);
        let ready = |engine: &mut Self, number: u64| {
            engine.arrival(number).filter(|arrival| arrival.ready >= Some(since)).copied()
        };
        let by_socket = candidates.iter().find_map(|number| ready(self, *number));
        let by_packet = copied
            .and_then(|packet| self.packets.get(&packet).copied())
            .and_then(|number| self.arrival(number).copied())
            .filter(|arrival| arrival.received >= Some(since));
        let Some(mut arrival) = by_socket.or(by_packet) else {
            self.untracked.unmatched += u64::from(asked.is_some());
            return;
        };
        self.who_woke(task, &mut arrival);
        let answers = Path {
            socket,
            fd,
            task,
            role: Role::Answers,
            departure: None,
            arrival,
            take: (enter, 0),
        };
        self.sockets.entry(socket).or_default().taken = Some(answers);
        if let Some(call) = self.call(task) {
            call.taking = Some(socket);
            call.ending = asked.map(|(departure, ..)| Path {
                role: Role::Asks,
                departure: Some(departure),
                ..answers
            });
        }
    }

    /// Keeps the wake-up of an arrival only if it is that of the thread which takes it.
    fn who_woke(&self, task: u32, arrival: &mut Arrival) {
        let awake = self.tasks.get(&task).and_then(|task| task.awake);
        match awake {
            Some((woken, number, runs)) if number == Some(arrival.number) => {
                (arrival.woken, arrival.runs, arrival.task) = (Some(woken), Some(runs), task);
            }
            // Another thread was woken, or this one for another reason.
            _ if arrival.task != task => (arrival.woken, arrival.runs) = (None, None),
            _ => {}
        }
    }

    fn copied(&mut self, event: &TraceEvent, packet: u64) -> Option<Path> {
        let number = self.packets.get(&packet).copied();
        if self.only_receiving {
            self.packets.remove(&packet);
            self.tasks.entry(event.task).or_default().has_copied = true;
            let arrival = *number.and_then(|number| self.arrival(number))?;
            // Its address was used again, for a packet that another thread copies.
            if arrival.ready.is_none() && self.names_sockets {
                return None;
            }
            return Some(self.reception(event, 0, arrival));
        }
        self.call(event.task)?.copied.get_or_insert(packet);
        None
    }

    /// Something was received from a socket. The kernel copies short datagrams without an event for
    /// it; then it was the first one that was there.
    fn took_one(&mut self, event: &TraceEvent, socket: u64) -> Option<Path> {
        let task = self.tasks.entry(event.task).or_default();
        let has_copied = std::mem::take(&mut task.has_copied);
        let arrivals = &mut self.sockets.get_mut(&socket)?.arrivals;
        if has_copied {
            arrivals.clear();
            return None;
        }
        let number = arrivals.pop_front()?;
        let arrival = *self.arrival(number)?;
        Some(self.reception(event, socket, arrival))
    }

    /// A packet that was received and is taken now.
    fn reception(&self, event: &TraceEvent, socket: u64, mut arrival: Arrival) -> Path {
        self.who_woke(event.task, &mut arrival);
        Path {
            socket,
            fd: -1,
            task: event.task,
            role: Role::Receives,
            departure: None,
            arrival,
            take: (event.at, event.at),
        }
    }

    fn exit(&mut self, at: u64, task: u32) -> Option<Path> {
        let call = self.tasks.get_mut(&task)?.call.take()?;
        if let Some(taken) = call
            .taking
            .and_then(|socket| self.sockets.get_mut(&socket))
            .and_then(|socket| socket.taken.as_mut())
        {
            taken.take.1 = at;
        }
        let mut path = call.ending?;
        if path.role == Role::Answers {
            path.departure = Some(call.departure);
        } else {
            path.take.1 = at;
        }
        Some(path)
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
