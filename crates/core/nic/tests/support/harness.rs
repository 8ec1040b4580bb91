//! A queue and the model, given the same operations and compared after each.

use nic::descriptor::Descriptor;
use nic::moderation::{Moderation, Phase, Profile, Reason, TimerKind};
use nic::observer::{Delivered, Interrupted, Observer};
use nic::queue::Queue;
use nic::time::{Duration, Instant};

use super::model::{Model, Packet, throttle};
use super::op::Op;

/// Small, so that random operations fill the ring.
pub const SMALL_RING: usize = 6;

/// The lengths of packets, in turns: every class of the dynamic throttle meets something that
/// changes it.
pub fn length(id: u32) -> u32 {
    [64, 600, 64, 9_000, 1_514, 64, 8_500][id as usize % 7]
}

/// What the host saw, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Interrupted(Interrupted),
    Delivered(u32, Delivered),
}

#[derive(Default)]
struct Recorder {
    interrupts: Vec<Interrupted>,
    delivered: Vec<Delivered>,
}

impl Observer for Recorder {
    fn interrupted(&mut self, interrupt: &Interrupted) {
        self.interrupts.push(*interrupt);
    }

    fn delivered(&mut self, delivered: &Delivered) {
        self.delivered.push(*delivered);
    }
}

/// What an operation asks of the comparison that follows it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decides {
    /// Nothing: the queue is not asked for a decision.
    Nothing,
    /// An interrupt, if one is due, for the reason that holds.
    Anew,
    /// An interrupt, if one is due, because the host re-armed.
    AtRearm,
}

#[derive(Clone, Debug)]
pub struct Harness {
    pub now: Instant,
    pub queue: Queue<u32>,
    pub model: Model,
    /// Everything the host saw; not kept by [`Harness::forgetful`].
    pub trace: Vec<Event>,
    /// Whether the host has polled since the last interrupt.
    pub polled_since_interrupt: bool,
    keeps_trace: bool,
    ring: usize,
    next_id: u32,
    dropped: u64,
    marked: u64,
    transmitted: u64,
    interrupts: u64,
    pub delivered: u32,
}

macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(format!($($message)*));
        }
    };
}

impl Harness {
    pub fn new(setting: Moderation, phase: Phase, ring: usize) -> Self {
        let now = Instant::from_micros(100);
        let mut harness = Self {
            now,
            queue: Queue::in_phase(0, ring, setting, phase, now),
            model: Model::new(setting, phase, now),
            trace: Vec::new(),
            polled_since_interrupt: false,
            keeps_trace: true,
            ring,
            next_id: 0,
            dropped: 0,
            marked: 0,
            transmitted: 0,
            interrupts: 0,
            delivered: 0,
        };
        harness.model.picked = harness.picked();
        harness
    }

    /// A harness that is cheap to clone.
    pub fn forgetful(setting: Moderation, phase: Phase) -> Self {
        Self { keeps_trace: false, ..Self::new(setting, phase, SMALL_RING) }
    }

    /// Applies every operation and, after each, predicts the next interrupt and looks ahead whether
    /// it comes true.
    pub fn run(setting: Moderation, phase: Phase, ops: &[Op]) -> Result<Self, String> {
        let mut harness = Self::new(setting, phase, SMALL_RING);
        for (index, op) in ops.iter().enumerate() {
            let step = harness.apply(*op).and_then(|()| harness.look_ahead());
            step.map_err(|difference| {
                format!("{setting}, operation {index} {op:?}: {difference}")
            })?;
        }
        Ok(harness)
    }

    /// Applies one operation to both, and compares.
    pub fn apply(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Arrive { marked, dma } => self.arrive(marked, dma),
            Op::Wait(micros) => self.advance_to(self.now + Duration::from_micros(micros.into())),
            Op::Run(micros) => {
                let end = self.now + Duration::from_micros(micros.into());
                while let Some(deadline) = self.queue.deadline().filter(|&at| at <= end) {
                    self.advance_to(deadline.max(self.now))?;
                }
                self.advance_to(end)
            }
            Op::Deadline => match self.queue.deadline() {
                Some(deadline) => self.advance_to(deadline.max(self.now)),
                None => Ok(()),
            },
            Op::Poll(budget) => self.poll(budget.into()),
            Op::Rearm => {
                self.model.masked = false;
                self.model.poll_ended(self.now);
                self.step(Decides::AtRearm, Queue::rearm)
            }
            Op::Transmit => {
                self.transmitted += 1;
                self.model.transmitted_at.get_or_insert(self.now);
                self.step(Decides::Anew, |queue, now, recorder| {
                    queue.transmit_completed(now, recorder);
                })
            }
            Op::Set(setting) => {
                self.model.setting = setting;
                self.model.set_at = self.now;
                self.model.itr = throttle(setting);
                self.model.hand_over(self.now);
                self.step(Decides::AtRearm, |queue, now, recorder| {
                    queue.set_moderation(now, setting, recorder);
                })
            }
        }
    }

    /// A host that answers at once: polls until nothing is left, and re-arms.
    pub fn serve_host(&mut self) -> Result<(), String> {
        while self.queue.is_masked() {
            self.apply(Op::Poll(64))?;
            self.apply(Op::Rearm)?;
        }
        Ok(())
    }

    /// Clones the queue, keeps all its deadlines until it interrupts, and compares that with the
    /// prediction.
    pub fn look_ahead(&self) -> Result<(), String> {
        if self.model.masked {
            return Ok(());
        }
        let predicted = self.model.next_interrupt(self.now);
        let mut queue = self.queue.clone();
        let mut recorder = Recorder::default();
        for _ in 0..=self.ring + 1 {
            let Some(deadline) = queue.deadline() else { break };
            queue.advance(deadline.max(self.now), &mut recorder);
            if !recorder.interrupts.is_empty() {
                break;
            }
        }
        match (predicted, recorder.interrupts.first()) {
            (None, None) => Ok(()),
            (Some((at, reasons)), Some(next))
                if at == next.at && reasons.contains(&next.reason) =>
            {
                Ok(())
            }
            (predicted, next) => Err(format!("next interrupt: {next:?}, predicted {predicted:?}")),
        }
    }

    fn arrive(&mut self, marked: bool, dma: u8) -> Result<(), String> {
        let due = self.now + Duration::from_micros(dma.into());
        let length = length(self.next_id);
        let descriptor = Descriptor { length, marked, arrived_at: self.now, completed_at: due };
        let accepted = self.queue.arrive(self.now, descriptor, self.next_id).is_ok();
        let room = self.model.packets.len() < self.ring;
        ensure!(accepted == room, "accepted: {accepted}, room: {room}");
        if accepted {
            let packet = Packet { id: self.next_id, marked, due, completed: None };
            self.model.packets.push_back(packet);
            self.next_id += 1;
            self.marked += u64::from(marked);
        } else {
            self.dropped += 1;
        }
        self.step(Decides::Nothing, |_, _, _| {})
    }

    fn advance_to(&mut self, now: Instant) -> Result<(), String> {
        self.now = now;
        self.model.complete(now);
        self.step(Decides::Anew, Queue::advance)
    }

    fn poll(&mut self, budget: usize) -> Result<(), String> {
        let decides = if self.model.masked { Decides::Nothing } else { Decides::AtRearm };
        let count = budget.min(self.model.backlog());
        let expected: Vec<Packet> = self.model.packets.drain(..count).collect();
        self.model.transmitted_at = None;
        self.polled_since_interrupt = true;
        self.model.taken.extend(expected.iter().map(|packet| length(packet.id)));
        self.model.poll_ended(self.now);
        let mut taken = Vec::new();
        self.step(decides, |queue, now, recorder| {
            queue.poll(now, budget, recorder, |delivered, id| {
                taken.push((delivered.descriptor, id));
            });
        })?;
        ensure!(taken.len() == count, "took {}, expected {count}", taken.len());
        for (packet, (descriptor, id)) in expected.iter().zip(taken) {
            ensure!(packet.id == id && id == self.delivered, "took packet {id}, not {packet:?}");
            ensure!(packet.completed == Some(descriptor.completed_at), "{descriptor:?} {packet:?}");
            ensure!(packet.due <= descriptor.completed_at, "before its DMA: {descriptor:?}");
            self.delivered += 1;
        }
        Ok(())
    }

    /// Lets the queue do something, then compares all that can be seen of it.
    fn step(
        &mut self,
        decides: Decides,
        act: impl FnOnce(&mut Queue<u32>, Instant, &mut Recorder),
    ) -> Result<(), String> {
        let mut recorder = Recorder::default();
        act(&mut self.queue, self.now, &mut recorder);
        self.model.picked = self.picked();
        self.compare_interrupts(decides, &recorder.interrupts)?;
        self.compare_state()?;
        if self.keeps_trace {
            let first = self.delivered;
            let delivered = recorder.delivered.into_iter().zip(first..);
            self.trace.extend(delivered.map(|(delivered, id)| Event::Delivered(id, delivered)));
            self.trace.extend(recorder.interrupts.into_iter().map(Event::Interrupted));
        }
        Ok(())
    }

    fn compare_interrupts(
        &mut self,
        decides: Decides,
        raised: &[Interrupted],
    ) -> Result<(), String> {
        let due: Vec<Reason> = match (decides, self.model.masked) {
            (Decides::Nothing, _) | (_, true) => Vec::new(),
            (Decides::Anew | Decides::AtRearm, false) => {
                let calls = self.model.calls();
                calls.iter().filter(|call| call.at <= self.now).map(|call| call.reason).collect()
            }
        };
        ensure!(raised.len() == usize::from(!due.is_empty()), "raised {raised:?}, due: {due:?}");
        ensure!(self.queue.take_interrupt() != raised.is_empty(), "the flag, {raised:?}");
        let Some(interrupt) = raised.first() else { return Ok(()) };
        let expected = match decides {
            Decides::AtRearm => interrupt.reason == Reason::Rearm,
            _ => due.contains(&interrupt.reason),
        };
        ensure!(expected, "raised for {}, due: {due:?}", interrupt.reason);
        ensure!(interrupt.at == self.now, "{interrupt:?}");
        let signalled = interrupt.packets as usize;
        ensure!(signalled <= self.model.backlog(), "packets before their DMA: {interrupt:?}");
        let transmitted = self.model.transmitted_at.is_some();
        ensure!(signalled > 0 || transmitted, "an interrupt for nothing: {interrupt:?}");
        self.interrupts += 1;
        ensure!(interrupt.number == self.interrupts, "{interrupt:?}");
        self.model.masked = true;
        self.polled_since_interrupt = false;
        self.model.interrupted_at = Some(self.now);
        self.model.taken.clear();
        Ok(())
    }

    fn compare_state(&self) -> Result<(), String> {
        let (queue, model) = (&self.queue, &self.model);
        ensure!(queue.is_masked() == model.masked, "masked: {}", queue.is_masked());
        ensure!(queue.backlog() == model.backlog(), "backlog {}", queue.backlog());
        ensure!(queue.moderation() == &model.setting, "setting {}", queue.moderation());
        let (deadline, expected) = (queue.deadline(), model.deadline());
        ensure!(deadline == expected, "deadline {deadline:?}, expected {expected:?}");
        let counters = queue.counters();
        let counted = [
            (counters.packets, self.next_id.into(), "packets"),
            (counters.bytes, (0..self.next_id).map(|id| u64::from(length(id))).sum(), "bytes"),
            (counters.marked, self.marked, "marked"),
            (counters.ring_full, self.dropped, "ring full"),
            (counters.transmit_completions, self.transmitted, "transmitted"),
            (counters.interrupts_total(), self.interrupts, "interrupts"),
            (counters.packets - counters.delivered, model.packets.len() as u64, "in the ring"),
        ];
        for (counted, expected, name) in counted {
            ensure!(counted == expected, "{name}: counted {counted}, expected {expected}");
        }
        Ok(())
    }

    fn picked(&self) -> Option<Profile> {
        let adaptive = self.queue.moderation().timer == TimerKind::Adaptive;
        adaptive.then(|| self.queue.in_force())
    }
}
