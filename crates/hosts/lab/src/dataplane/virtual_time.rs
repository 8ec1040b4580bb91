//! The data plane in virtual time: the calendar of its guests, and their NIC.
//!
//! While a guest runs, time is *held*: the thread takes the messages of
//! its clock and its device, and nothing else happens. When all guests wait, time jumps to whatever
//! comes first, and at one moment the order is always the same: commands, then the NIC, then
//! guests.
//!
//! A guest that is interrupted gets a turn at the same moment, so an interrupt costs no time there,
//! and no host waits for an answer. On its way an interrupt takes the latency of the device's
//! settings, and until then guests run.
//! After every turn the rings are looked at, which is how the NIC learns at which moment a host has
//! re-armed.
//!
//! A guest that runs may go on until the next known event of any host, or until it has
//! kicked its device: what it put into its rings is taken when its turn ends. While it waits,
//! its own clock may therefore be ahead of the calendar, though never beyond that event, and
//! nothing may reach it before its time. So whatever comes from outside, a command or an interrupt
//! that it caused, takes effect at an event.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use base::time::{Duration, Instant};

use super::handle::{
    DataPlane, DataPlaneError, Handle, PlaneCommand, Start, WAKE, answering, port_of,
};
use crate::calendar::{Calendar, State};
use crate::capture::Capture;
use crate::plane::PortPlan;
use crate::wait::Waiting;
use sys::{clock, cpu};

/// Tokens of the guests' clocks; those of ports are below.
const CLOCK: u64 = 1 << 32;

/// When virtual time ends, and when it is given up.
#[derive(Clone, Debug)]
pub struct VirtualSettings {
    /// The guests whose end is the end of time; none: all of them.
    pub end_with: Option<Vec<usize>>,
    /// A guest that computes for longer than this, in real time, without a message is given up.
    pub timeout: std::time::Duration,
}

impl Default for VirtualSettings {
    fn default() -> Self {
        Self { end_with: None, timeout: std::time::Duration::from_secs(120) }
    }
}

/// Whether virtual time goes on. It can be read while a guest runs, when no command does.
#[derive(Clone, Debug, Default)]
pub struct Outlook {
    /// Virtual time has ended: the guests that it was to end with have gone, or all have.
    pub is_over: bool,
    /// Why time stands still for good, if it does.
    pub failure: Option<String>,
    /// For each guest: whether it has connected its clock.
    pub clocks: Vec<bool>,
    /// The time of the last event.
    pub now: Instant,
}

struct Planned {
    at: Instant,
    command: PlaneCommand,
}

/// A data plane that runs in virtual time. It stops when this, and what others have of its
/// [`data_plane`](Self::data_plane), is dropped.
#[derive(Debug)]
pub struct VirtualHandle {
    data_plane: Arc<Handle>,
    planned: Sender<Planned>,
    outlook: Arc<Mutex<Outlook>>,
}

impl VirtualHandle {
    /// Starts the thread: port `n` is that of the calendar's guest `n`. Nothing happens until every
    /// guest has connected.
    pub fn start(
        plans: Vec<PortPlan>,
        calendar: Calendar,
        settings: VirtualSettings,
        capture: Option<Capture>,
    ) -> Result<Self, DataPlaneError> {
        let (planned, plans_to_come) = channel();
        let outlook = Arc::new(Mutex::new(Outlook::default()));
        let shown = Arc::clone(&outlook);
        // No event is late in virtual time, so the thread need not come first.
        let (waiting, now, comes_first) = (Waiting::Sleep, calendar.now(), false);
        let start = Start { plans, capture, waiting, now, comes_first };
        let run = move |data| {
            let owner = VirtualTime {
                data,
                calendar,
                settings,
                schedule: Vec::new(),
                planned: plans_to_come,
                last_message_at: clock::now(),
                failure: None,
                outlook: shown,
            };
            owner.run();
        };
        Ok(Self { data_plane: Arc::new(Handle::spawn(start, run)?), planned, outlook })
    }

    /// The data plane, for commands that do not wait for their time.
    pub fn data_plane(&self) -> &Arc<Handle> {
        &self.data_plane
    }

    /// Whether virtual time goes on; does not wait for anything.
    pub fn outlook(&self) -> Outlook {
        self.outlook.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs `command` at the virtual time `at`, before anything else that happens at that moment;
    /// what it returns can be received then. If time never gets there, nothing is.
    pub fn at<T: Send + 'static>(
        &self,
        at: Instant,
        command: impl FnOnce(&mut DataPlane) -> T + Send + 'static,
    ) -> Result<Receiver<T>, DataPlaneError> {
        let (command, answered) = answering(command);
        self.planned.send(Planned { at, command }).map_err(|_| DataPlaneError::Gone)?;
        // What is planned before a command is in the schedule right after it.
        self.data_plane.call(|_| ())?;
        Ok(answered)
    }
}

struct VirtualTime {
    data: DataPlane,
    calendar: Calendar,
    settings: VirtualSettings,
    /// Commands for moments to come, the first one first.
    schedule: Vec<Planned>,
    planned: Receiver<Planned>,
    /// When, in real time, the last message of a guest came.
    last_message_at: Instant,
    failure: Option<String>,
    outlook: Arc<Mutex<Outlook>>,
}

impl VirtualTime {
    fn run(mut self) {
        if let Some(cpu) = cpu::of_this_process() {
            // Elsewhere it only takes longer.
            let _ = cpu::pin(None, cpu);
        }
        for number in 0..self.calendar.len() {
            if let Err(errno) =
                self.data.waiter.add(self.calendar.fd(number), CLOCK | number as u64)
            {
                self.failure = Some(format!("watch the clock of a guest: {errno}"));
            }
        }
        self.last_message_at = clock::now();
        self.show();
        while !self.data.stopped {
            if self.failure.is_none() && self.step() {
                continue;
            }
            // Nothing will ever happen by itself again.
            if self.failure.is_none() && !self.is_over() && !self.calendar.is_empty() {
                self.fail("virtual time stands still: all guests wait, and for nothing".into());
            }
            if !self.data.has_commands() {
                self.take_messages(None);
            }
            self.run_commands();
        }
    }

    /// Lets the next thing happen; whether there was one.
    fn step(&mut self) -> bool {
        if self.is_over() {
            return false;
        }
        if self.calendar.is_held() {
            self.take_messages(Some(self.last_message_at + self.timeout()));
            if !self.calendar.has_begun() {
                self.run_commands();
            }
            return true;
        }
        let now = self.calendar.now();
        (0..self.data.plane.len()).for_each(|number| self.data.plane.sync(now, number, false));
        self.raise_irqs(now);
        let planned = self.schedule.first().map(|planned| planned.at);
        let device = self.data.plane.deadline();
        let interrupt = self.next_irq_at();
        let guest = self.calendar.next_request();
        let Some(next) = [planned, device, interrupt, guest].into_iter().flatten().min() else {
            return false;
        };
        self.calendar.advance_to(next);
        self.outlook.lock().unwrap_or_else(PoisonError::into_inner).now = next;
        if self.data.has_commands() {
            self.run_commands();
            return true;
        }
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= next);
        if due(planned) {
            let planned = self.schedule.remove(0);
            self.data.now = self.calendar.now();
            (planned.command)(&mut self.data);
        } else if due(device) {
            self.data.plane.carry(self.calendar.now());
            self.data.plane.serve(self.calendar.now());
        } else if !due(interrupt) {
            // Interrupts that are due are raised by the next step, before any guest runs.
            let until = self.next_event();
            let plane = &mut self.data.plane;
            self.calendar.run_next(until, |number, sees_interrupts| {
                match plane.virtual_host(number) {
                    Some(host) if sees_interrupts => host.take_irqs(),
                    Some(host) => {
                        host.send_irqs();
                        0
                    }
                    None => 0,
                }
            });
        }
        true
    }

    /// When something happens next that is not a guest's turn.
    fn next_event(&mut self) -> Option<Instant> {
        let planned = self.schedule.first().map(|planned| planned.at);
        [planned, self.data.plane.deadline(), self.next_irq_at()].into_iter().flatten().min()
    }

    fn next_irq_at(&mut self) -> Option<Instant> {
        self.data.plane.virtual_hosts().filter_map(|host| host.next_irq_at()).min()
    }

    /// Guests whose interrupts are due want to run now. One that is gone never will.
    fn raise_irqs(&mut self, now: Instant) {
        for number in 0..self.calendar.len() {
            let host = self.data.plane.virtual_host(number);
            if host.is_some_and(|host| host.raise_irqs(now))
                && let Err(error) = self.calendar.wake(number)
            {
                self.fail(error);
            }
        }
    }

    fn run_commands(&mut self) {
        self.data.run_commands(self.calendar.now(), Duration::ZERO);
        while let Ok(planned) = self.planned.try_recv() {
            let position = self.schedule.partition_point(|other| other.at <= planned.at);
            self.schedule.insert(position, planned);
        }
    }

    fn timeout(&self) -> Duration {
        clock::span(self.settings.timeout)
    }

    /// Waits for messages, in real time, and takes them.
    fn take_messages(&mut self, until: Option<Instant>) {
        let mut ready = Vec::with_capacity(64);
        match self.data.waiter.wait(until, &mut ready) {
            Ok(()) => {}
            Err(rustix::io::Errno::INTR) => return,
            Err(errno) => self.fail(format!("wait for the guests: {errno}")),
        }
        if ready.is_empty() && until.is_some_and(|until| until <= clock::now()) {
            let names = self.calendar.holding().join(", ");
            self.fail(format!(
                "guest {names} has been running for {} s without a word; does a program in it spin?",
                self.timeout().as_micros() / 1_000_000
            ));
        }
        for &token in &ready {
            match token {
                // Commands run at the next event; until then the descriptor must not be readable.
                WAKE => self.data.take_commands(),
                clock if clock & CLOCK != 0 => self.clock_message((clock & !CLOCK) as usize),
                port => self.port_message(port_of(port)),
            }
        }
        if ready.iter().any(|token| *token != WAKE) {
            self.last_message_at = clock::now();
        }
        if let Err(error) = self.calendar.begin_next() {
            self.fail(format!("start the clock of a guest: {error}"));
        }
    }

    fn clock_message(&mut self, number: usize) {
        let token = CLOCK | number as u64;
        let before = self.calendar.state(number);
        if before == State::Absent {
            let watched = match self.calendar.accept(number) {
                Ok(true) => {
                    self.data.waiter.add(self.calendar.fd(number), token).map_err(Into::into)
                }
                accepted => accepted.map(drop),
            };
            if let Err(error) = watched {
                return self.fail(format!("watch the clock of a guest: {error}"));
            }
        }
        if let Err(error) = self.calendar.listen(number) {
            self.fail(error);
        }
        if self.calendar.take_kick(number) {
            self.take_kicked(number);
        }
        if self.calendar.state(number) == State::Gone {
            let _ = self.data.waiter.remove(self.calendar.fd(number));
            self.show();
        } else if before == State::Absent {
            self.show();
        }
    }

    /// A guest has sent a message to its device. It waits for the answer, so all of it happens now.
    fn port_message(&mut self, number: usize) {
        self.calendar.take_time();
        self.data.plane.sync(self.calendar.now(), number, true);
        self.take_kicked(number);
        // What the guest did may make something happen earlier than the time until which it was
        // allowed to run; it must know before it gets its answer and goes on.
        let until = self.next_event();
        self.calendar.let_run_until(until);
        if let Some(host) = self.data.plane.virtual_host(number) {
            host.answer_kick();
        }
    }

    /// Takes what guest `number` has put into its rings.
    fn take_kicked(&mut self, number: usize) {
        let now = self.calendar.now();
        self.data.plane.take_all(now, number);
        self.data.plane.carry(now);
        self.data.plane.serve(now);
    }

    fn show(&self) {
        let clocks = (0..self.calendar.len()).map(|n| self.calendar.state(n) != State::Absent);
        let outlook = Outlook {
            is_over: self.is_over(),
            failure: self.failure.clone(),
            clocks: clocks.collect(),
            now: self.calendar.now(),
        };
        *self.outlook.lock().unwrap_or_else(PoisonError::into_inner) = outlook;
    }

    fn is_over(&self) -> bool {
        let gone = |number: usize| self.calendar.state(number) == State::Gone;
        match &self.settings.end_with {
            Some(guests) => guests.iter().all(|&guest| gone(guest)),
            None => (0..self.calendar.len()).all(gone),
        }
    }

    fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
        self.show();
    }
}
