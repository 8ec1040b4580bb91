//! Two stacks on one host: that of a protocol of its own, and that of everything else.

use alloc::vec::Vec;

use base::time::Instant;

use super::{KernelFrame, Process, Stack, Step, StepAction, Work};
use crate::frame::Frame;
use crate::machine::Costs;

/// `A` has the frames of one EtherType, `B` has the others. The processes of `B` come after those
/// of `A`.
pub struct Joined<A, B> {
    /// The stack of the one protocol.
    pub one: A,
    /// The stack of the others.
    pub other: B,
    ether_type: [u8; 2],
    processes: Vec<Process>,
}

/// What a process of one of the two does.
#[derive(Debug)]
pub enum Either<A, B> {
    /// A process of the first stack.
    One(A),
    /// A process of the second one.
    Other(B),
}

impl<A: Stack, B: Stack> Joined<A, B> {
    /// Joins two stacks; frames with `ether_type` are for `one`.
    pub fn new(one: A, other: B, ether_type: u16) -> Self {
        let processes = [one.processes(), other.processes()].concat();
        Self { one, other, ether_type: ether_type.to_be_bytes(), processes }
    }

    fn is_for_one(&self, frame: &[u8]) -> bool {
        frame.get(12..14) == Some(&self.ether_type)
    }

    fn split(&self) -> usize {
        self.one.processes().len()
    }
}

fn step<A, B>(step: Step<A>, of: impl Fn(A) -> B) -> Step<B> {
    let action = match step.action {
        StepAction::Send(frame) => StepAction::Send(frame),
        StepAction::Own(action) => StepAction::Own(of(action)),
    };
    Step { work: step.work, action }
}

impl<A: Stack, B: Stack> Stack for Joined<A, B> {
    type StepAction = Either<A::StepAction, B::StepAction>;

    fn processes(&self) -> &[Process] {
        &self.processes
    }

    fn receive_work(&self, costs: &Costs, frame: &[u8]) -> Work {
        if self.is_for_one(frame) {
            self.one.receive_work(costs, frame)
        } else {
            self.other.receive_work(costs, frame)
        }
    }

    fn receive(&mut self, now: Instant, frame: Frame) -> Option<usize> {
        if self.is_for_one(frame.head()) {
            return self.one.receive(now, frame);
        }
        self.other.receive(now, frame).map(|process| self.split() + process)
    }

    fn has_kernel_frames(&self) -> bool {
        self.one.has_kernel_frames() || self.other.has_kernel_frames()
    }

    fn kernel_frame(&mut self, now: Instant, costs: &Costs) -> Option<KernelFrame> {
        self.one.kernel_frame(now, costs).or_else(|| {
            let frame = self.other.kernel_frame(now, costs)?;
            Some(KernelFrame { process: self.split() + frame.process, ..frame })
        })
    }

    fn next(
        &mut self,
        now: Instant,
        costs: &Costs,
        process: usize,
        may_send: bool,
    ) -> Option<Step<Self::StepAction>> {
        match process.checked_sub(self.split()) {
            None => Some(step(self.one.next(now, costs, process, may_send)?, Either::One)),
            Some(process) => {
                Some(step(self.other.next(now, costs, process, may_send)?, Either::Other))
            }
        }
    }

    fn done(&mut self, now: Instant, process: usize, action: Self::StepAction) {
        match action {
            Either::One(action) => self.one.done(now, process, action),
            Either::Other(action) => self.other.done(now, process - self.split(), action),
        }
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        [self.one.deadline(now), self.other.deadline(now)].into_iter().flatten().min()
    }
}
