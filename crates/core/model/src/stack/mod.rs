//! What a host runs above its driver: a protocol in the kernel, and processes.
//!
//! A stack is a state machine. The [world](crate::world) asks it what there is to do, lets that
//! take its time on a core, and has it done. It asks a process only while its core has nothing
//! better to do, and the kernel's half only within a poll.

pub mod driver;
pub mod joined;
pub mod mx;
pub mod mx_program;
pub mod net;

use base::time::Instant;

use crate::frame::Frame;
use crate::machine::Costs;

/// What a piece of work costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Nanoseconds of a core, before they vary.
    pub ns: f64,
    /// Sets of cache lines that it needs from the core that received before, if that was another.
    pub received: f64,
    /// Those that it needs from the core that has cleaned up transmissions.
    pub transmitted: f64,
}

impl Work {
    /// Work that needs no cache lines of others.
    pub const fn of(ns: f64) -> Self {
        Self { ns, received: 0.0, transmitted: 0.0 }
    }
}

/// A piece of work of a process.
#[derive(Debug)]
pub struct Step<A> {
    /// What it costs.
    pub work: Work,
    /// What is done when that time has passed.
    pub action: StepAction<A>,
}

/// What a process does.
#[derive(Debug)]
pub enum StepAction<A> {
    /// It sends a frame, which leaves before a softirq runs on its core.
    Send(Frame),
    /// Something of its own.
    Own(A),
}

/// A frame that the kernel sends by itself.
#[derive(Debug)]
pub struct KernelFrame {
    /// The process that it is sent for.
    pub process: usize,
    /// What sending costs; of cache lines, those of [`Work::transmitted`].
    pub work: Work,
    /// What is sent, from the Ethernet header on.
    pub frame: Frame,
}

/// A process, and how it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The core that it is bound to.
    pub core: usize,
    /// It sleeps in the kernel while there is nothing to do; or else it polls.
    pub blocks: bool,
}

/// Protocols and processes of one host.
pub trait Stack {
    /// What its processes do.
    type StepAction;

    /// Its processes, which stay the same.
    fn processes(&self) -> &[Process];

    /// What the kernel's handler of a frame costs.
    fn receive_work(&self, costs: &Costs, frame: &[u8]) -> Work;

    /// The handler has done with a frame; the process that it is for.
    fn receive(&mut self, now: Instant, frame: Frame) -> Option<usize>;

    /// Whether the kernel has something to send by itself.
    fn has_kernel_frames(&self) -> bool;

    /// The next frame that it sends.
    fn kernel_frame(&mut self, now: Instant, costs: &Costs) -> Option<KernelFrame>;

    /// What a process does next. `may_send` is false while the NIC has no room for its frames.
    fn next(
        &mut self,
        now: Instant,
        costs: &Costs,
        process: usize,
        may_send: bool,
    ) -> Option<Step<Self::StepAction>>;

    /// A process has done something of its own.
    fn done(&mut self, now: Instant, process: usize, action: Self::StepAction);

    /// When a process has something to do if nothing comes before, after `now`: what is overdue it
    /// finds by itself when it has time.
    fn deadline(&self, now: Instant) -> Option<Instant>;
}
