//! Causes, masks, timers and vectors: from something that happened to an interrupt.
//!
//! ```text
//!   frame ─▶ RDTR, RADV ─┐
//!   write-back ─▶ TIDV ──┼─▶ ICR ─▶ IMS ─▶ ITR, or EITR of the vector ─▶ pin A, or MSI-X
//!   link, ICS ───────────┘
//! ```
//!
//! The timers are those of `nic`: `RDTR` and `RADV` are [`Quiet`], the throttles are [`Throttle`].

use base::time::{Duration, Instant};
use nic::descriptor::Descriptor;
use nic::moderation::{Moderator, Quiet, Throttle};

use super::register::cause;

/// A tick of the delay timers: 1.024 us (`RDTR`, `RADV`, `TIDV`, `TADV`).
const DELAY_TICK: u64 = 1_024;
/// A tick of the throttles: 256 ns (`ITR`, `EITR`).
const THROTTLE_TICK: u64 = 256;

/// What `ITR` and `EITR` keep.
pub(super) const INTERVAL: u32 = 0xFFFF;

/// The MSI-X vectors of an 82574.
const VECTORS: usize = crate::model::VECTORS as usize;

/// The causes that a vector of `IVAR` is allocated to: where in the register, and which.
const ALLOCATED: [(u32, u32); 5] =
    [(0, cause::RXQ0), (4, cause::RXQ1), (8, cause::TXQ0), (12, cause::TXQ1), (16, cause::OTHER)];

/// Which way an interrupt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Pin A, for everything.
    Pin,
    /// An MSI-X vector.
    Vector(u8),
}

/// How interrupts are wired at the moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wiring {
    pub msix: bool,
    /// `IVAR`: vectors of the causes.
    pub allocation: u32,
    /// `EIAC`: causes that a message clears.
    pub auto_clear: u32,
    /// A message masks its causes (`CTRL_EXT`).
    pub auto_mask: bool,
}

impl Wiring {
    fn causes(&self, vector: u8) -> u32 {
        let is_its =
            |&(shift, _): &(u32, u32)| self.allocation >> shift & 0xF == 8 | u32::from(vector);
        ALLOCATED.iter().filter(|entry| is_its(entry)).fold(0, |causes, entry| causes | entry.1)
    }

    pub(super) fn receive_line(&self) -> Option<Line> {
        if !self.msix {
            return Some(Line::Pin);
        }
        let vector = self.allocation & 0xF;
        (vector & 8 != 0).then_some(Line::Vector(vector as u8 & 7))
    }
}

/// A pair of timers, the second of which bounds the first.
#[derive(Debug)]
struct Delay {
    ticks: u32,
    bound_ticks: u32,
    timers: Quiet,
    causes: u32,
}

impl Delay {
    fn new(causes: u32) -> Self {
        Self {
            ticks: 0,
            bound_ticks: 0,
            timers: Quiet::new(Duration::ZERO, Duration::ZERO),
            causes,
        }
    }

    fn set(&mut self, ticks: u32, bound_ticks: u32) {
        if (ticks, bound_ticks) == (self.ticks, self.bound_ticks) {
            return;
        }
        (self.ticks, self.bound_ticks) = (ticks, bound_ticks);
        let span = |ticks: u32| Duration::from_nanos(u64::from(ticks) * DELAY_TICK);
        // Without a bound the delay may begin anew for ever.
        let bound = if bound_ticks == 0 { u32::MAX } else { bound_ticks };
        self.timers = Quiet::new(span(ticks), span(bound));
    }
}

/// Everything between a cause and an interrupt.
#[derive(Debug)]
pub(super) struct Interrupts {
    /// `ICR`: causes that are pending.
    causes: u32,
    /// `IMS`: causes that are enabled.
    mask: u32,
    pub(super) wiring: Wiring,
    /// The pin is asserted.
    asserted: bool,
    receive: Delay,
    transmit: Delay,
    pin: Throttle,
    vectors: [Throttle; VECTORS],
    fired: Vec<Line>,
    /// The driver has unmasked the causes of received frames.
    rearmed: bool,
}

impl Interrupts {
    pub(super) fn new() -> Self {
        Self {
            causes: 0,
            mask: 0,
            wiring: Wiring::default(),
            asserted: false,
            receive: Delay::new(cause::RXT0 | cause::RXQ0),
            transmit: Delay::new(cause::TXDW | cause::TXQ0),
            pin: Throttle::new(Duration::ZERO),
            vectors: std::array::from_fn(|_| Throttle::new(Duration::ZERO)),
            fired: Vec::new(),
            rearmed: false,
        }
    }

    /// Sets the delay timers, in ticks of 1.024 us; 0: no delay, and no bound.
    pub(super) fn set_receive_delay(&mut self, ticks: u32, bound: u32) {
        self.receive.set(ticks, bound);
    }

    /// The same for transmission.
    pub(super) fn set_transmit_delay(&mut self, ticks: u32, bound: u32) {
        self.transmit.set(ticks, bound);
    }

    /// Sets a throttle, in ticks of 256 ns.
    pub(super) fn set_interval(&mut self, line: Line, ticks: u32) {
        let gap = Duration::from_nanos(u64::from(ticks & INTERVAL) * THROTTLE_TICK);
        match line {
            Line::Pin => self.pin.set_gap(gap),
            Line::Vector(vector) => {
                self.vectors
                    .get_mut(usize::from(vector))
                    .into_iter()
                    .for_each(|it| it.set_gap(gap));
            }
        }
    }

    /// The throttle of the line that frames interrupt on.
    pub(super) fn interval(&self) -> Duration {
        match self.wiring.receive_line() {
            Some(Line::Pin) => self.pin.gap(),
            Some(Line::Vector(vector)) => {
                self.vectors.get(usize::from(vector)).map_or(Duration::ZERO, Throttle::gap)
            }
            None => Duration::ZERO,
        }
    }

    /// A frame is in memory: it is a cause when its delay is over.
    pub(super) fn frame_received(&mut self, now: Instant) {
        delayed(&mut self.receive, now, &mut self.causes);
    }

    /// A descriptor was written back; `delays` if it asks for the delay.
    pub(super) fn frame_sent(&mut self, now: Instant, delays: bool) {
        if delays {
            delayed(&mut self.transmit, now, &mut self.causes);
        } else {
            self.causes |= self.transmit.causes;
        }
    }

    /// What waits for the delay of received frames waits no longer.
    pub(super) fn flush_received(&mut self, now: Instant) {
        flush(&mut self.receive, now, &mut self.causes);
    }

    /// What waits for the delay of sent frames waits no longer.
    pub(super) fn flush_sent(&mut self, now: Instant) {
        flush(&mut self.transmit, now, &mut self.causes);
    }

    /// Sets bits of `ICR`.
    pub(super) fn add(&mut self, causes: u32) {
        self.causes |= causes;
    }

    /// The driver reads what happened, which clears it; `masks` what it masks with that.
    pub(super) fn read(&mut self, masks: u32) -> u32 {
        let causes = std::mem::take(&mut self.causes);
        self.asserted = false;
        if causes & self.mask == 0 {
            return causes;
        }
        self.mask &= !masks;
        causes | cause::INT_ASSERTED
    }

    pub(super) fn clear(&mut self, causes: u32) {
        self.causes &= !causes;
        self.release();
    }

    pub(super) fn mask(&self) -> u32 {
        self.mask
    }

    pub(super) fn unmask(&mut self, causes: u32) {
        let frames = if self.wiring.msix { cause::RXQ0 } else { cause::RXT0 };
        self.rearmed |= causes & frames != 0;
        self.mask |= causes;
    }

    pub(super) fn mask_off(&mut self, causes: u32) {
        self.mask &= !causes;
        self.release();
    }

    fn release(&mut self) {
        if self.causes & self.mask == 0 {
            self.asserted = false;
        }
    }

    /// Interrupts for a frame, whatever the timers say, if the driver takes interrupts; whether.
    pub(super) fn interrupt_for_frames(&mut self, now: Instant) {
        self.causes |= self.receive.causes;
        if let Some(line) = self.wiring.receive_line()
            && self.pending(line)
        {
            self.fire(line, now);
        }
    }

    /// Lets timers run out, and interrupts for what is due.
    pub(super) fn advance(&mut self, now: Instant) {
        for delay in [&mut self.receive, &mut self.transmit] {
            if delay.timers.deadline().is_some_and(|at| at <= now)
                && delay.timers.timer_expired(now).is_some()
            {
                self.causes |= delay.causes;
            }
        }
        for line in self.lines() {
            let ended = self.throttle(line).deadline().is_some_and(|at| at <= now);
            if ended {
                let _ = self.throttle_mut(line).timer_expired(now);
            }
            if !self.pending(line) {
                continue;
            }
            let waits = self.throttle(line).deadline().is_some();
            // Its only moderator method that takes nothing but the time.
            if ended || !waits && self.throttle_mut(line).transmit_completed(now).is_some() {
                self.fire(line, now);
            }
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let delays = [&self.receive, &self.transmit].map(|delay| delay.timers.deadline());
        let throttles = self.lines().map(|line| self.throttle(line).deadline());
        delays.into_iter().chain(throttles).flatten().min()
    }

    pub(super) fn take_fired(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.fired)
    }

    /// Whether the driver has unmasked the causes of frames since the last call.
    pub(super) fn take_rearmed(&mut self) -> bool {
        std::mem::take(&mut self.rearmed)
    }

    fn lines(&self) -> impl Iterator<Item = Line> + use<> {
        let vectors = if self.wiring.msix { VECTORS as u8 } else { 0 };
        let pin = (!self.wiring.msix).then_some(Line::Pin);
        pin.into_iter().chain((0..vectors).map(Line::Vector))
    }

    fn throttle(&self, line: Line) -> &Throttle {
        match line {
            Line::Pin => &self.pin,
            Line::Vector(vector) => &self.vectors[usize::from(vector) % VECTORS],
        }
    }

    fn throttle_mut(&mut self, line: Line) -> &mut Throttle {
        match line {
            Line::Pin => &mut self.pin,
            Line::Vector(vector) => &mut self.vectors[usize::from(vector) % VECTORS],
        }
    }

    /// Whether there is an unmasked cause for a line that is not interrupting already.
    fn pending(&self, line: Line) -> bool {
        let unmasked = self.causes & self.mask;
        match line {
            Line::Pin => unmasked != 0 && !self.asserted,
            Line::Vector(vector) => unmasked & self.wiring.causes(vector) != 0,
        }
    }

    /// A frame that is not the wire's is in memory; the line to interrupt on for it, if the driver
    /// takes interrupts, without a trace in the timers.
    pub(super) fn announce(&mut self) -> Option<Line> {
        self.causes |= self.receive.causes;
        let line = self.wiring.receive_line().filter(|line| self.pending(*line))?;
        self.assert(line);
        Some(line)
    }

    fn fire(&mut self, line: Line, now: Instant) {
        self.throttle_mut(line).interrupt_raised(now);
        self.assert(line);
        self.fired.push(line);
    }

    fn assert(&mut self, line: Line) {
        match line {
            Line::Pin => self.asserted = true,
            Line::Vector(vector) => {
                let causes = self.wiring.causes(vector);
                self.causes &= !(causes & self.wiring.auto_clear);
                // Without automatic masks a cause that is not cleared would interrupt for ever.
                if self.wiring.auto_mask || self.causes & self.mask & causes != 0 {
                    self.mask &= !causes;
                }
            }
        }
    }
}

/// Something happened whose cause may be delayed.
fn delayed(delay: &mut Delay, now: Instant, causes: &mut u32) {
    let happened = Descriptor { length: 0, marked: false, arrived_at: now, completed_at: now };
    if delay.ticks == 0 || delay.timers.dma_completed(now, &happened, 0).is_some() {
        delay.timers.interrupt_raised(now);
        *causes |= delay.causes;
    }
}

fn flush(delay: &mut Delay, now: Instant, causes: &mut u32) {
    if delay.timers.deadline().is_some() {
        delay.timers.interrupt_raised(now);
        *causes |= delay.causes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn armed() -> Interrupts {
        let mut interrupts = Interrupts::new();
        let allocation = 1 << 31 | (8 | 2) << 16 | (8 | 1) << 8 | 8;
        interrupts.wiring =
            Wiring { msix: true, allocation, auto_clear: 0x1F0_0000, auto_mask: true };
        interrupts.unmask(cause::RXQ0 | cause::TXQ0 | cause::OTHER);
        assert!(interrupts.take_rearmed());
        interrupts
    }

    /// When interrupts come for frames at `frames`, if the driver re-arms at once.
    fn interrupts_at(interrupts: &mut Interrupts, frames: &[u64]) -> Vec<u64> {
        let mut seen = Vec::new();
        let mut frames = frames.iter().map(|at| Instant::from_nanos(*at)).peekable();
        let next = |frame: Option<&Instant>, interrupts: &Interrupts| {
            [frame.copied(), interrupts.deadline()].into_iter().flatten().min()
        };
        while let Some(now) = next(frames.peek(), interrupts) {
            if frames.next_if_eq(&now).is_some() {
                interrupts.frame_received(now);
            }
            interrupts.advance(now);
            for line in interrupts.take_fired() {
                assert_eq!(line, Line::Vector(0));
                seen.push(now.as_nanos());
                interrupts.unmask(cause::RXQ0);
            }
        }
        seen
    }

    #[test]
    fn a_throttle_keeps_interrupts_apart_in_ticks_of_256_ns() {
        let mut interrupts = armed();
        interrupts.set_interval(Line::Vector(0), 195);
        let seen = interrupts_at(&mut interrupts, &[1_000, 2_000, 3_000, 200_000]);
        assert_eq!(seen, [1_000, 1_000 + 195 * 256, 200_000]);
    }

    #[test]
    fn a_delay_begins_anew_up_to_its_bound_in_ticks_of_1024_ns() {
        let mut interrupts = armed();
        interrupts.set_receive_delay(32, 0);
        assert_eq!(interrupts_at(&mut interrupts, &[0]), [32_768]);
        interrupts.set_receive_delay(32, 40);
        let frames = [100_000, 120_000, 140_000];
        assert_eq!(interrupts_at(&mut interrupts, &frames), [100_000 + 40 * 1_024]);
    }

    #[test]
    fn what_came_while_masked_interrupts_when_it_is_unmasked() {
        let mut interrupts = armed();
        interrupts.frame_received(at(1));
        interrupts.advance(at(1));
        assert_eq!(interrupts.take_fired(), [Line::Vector(0)]);
        interrupts.frame_received(at(2));
        interrupts.advance(at(2));
        assert!(interrupts.take_fired().is_empty(), "the message has masked its cause");
        interrupts.unmask(cause::RXQ0);
        interrupts.advance(at(3));
        assert_eq!(interrupts.take_fired(), [Line::Vector(0)]);
    }

    #[test]
    fn the_pin_is_for_everything_and_is_asserted_once() {
        let mut interrupts = Interrupts::new();
        interrupts.unmask(cause::RXT0 | cause::LSC | cause::TXDW);
        interrupts.frame_sent(at(1), false);
        interrupts.advance(at(1));
        interrupts.frame_received(at(2));
        interrupts.advance(at(2));
        assert_eq!(interrupts.take_fired(), [Line::Pin]);
        let causes = interrupts.read(0);
        assert_eq!(causes & (cause::RXT0 | cause::TXDW), cause::RXT0 | cause::TXDW);
        assert_ne!(causes & cause::INT_ASSERTED, 0);
        interrupts.advance(at(3));
        assert!(interrupts.take_fired().is_empty());
        interrupts.add(cause::LSC);
        interrupts.advance(at(4));
        assert_eq!(interrupts.take_fired(), [Line::Pin]);
    }

    #[test]
    fn a_mark_passes_every_timer_but_not_the_mask() {
        let mut interrupts = armed();
        interrupts.set_interval(Line::Vector(0), 1_000);
        interrupts.interrupt_for_frames(at(1));
        interrupts.unmask(cause::RXQ0);
        interrupts.interrupt_for_frames(at(2));
        assert_eq!(interrupts.take_fired().len(), 2);
        interrupts.interrupt_for_frames(at(3));
        assert!(interrupts.take_fired().is_empty());
    }
}
