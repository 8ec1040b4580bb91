//! A card: registers, rings and interrupts, as Linux's drivers find them.
//!
//! It knows no socket and no clock. Its owner hands on what the guest reads and writes, takes the
//! frames that it sends, gives it those that come, and lets its timers run out.

mod interrupts;
mod memory;
mod receive;
mod register;
mod statistics;
mod transmit;

use base::time::{Duration, Instant};
use hostside::Route;
use vhost::transport::memory::MemoryError;

use super::configuration::Configuration;
use super::dma::Dma;
use super::function::{PciFunction, Raised, Sent};
use super::message::Signal;
use super::model::{Model, VECTORS};
use interrupts::{Interrupts, Line};
use memory::{Microwire, Nvm, Phy};
use receive::{ReceivedFrame, Ring};
use register::{self as r, Registers, cause};
use statistics::Statistics;
use transmit::Transmitter;

/// One emulated card, 82574L or 82545GM.
#[derive(Debug)]
pub(crate) struct Card {
    model: Model,
    mac: [u8; 6],
    configuration: Configuration,
    registers: Registers,
    nvm: Nvm,
    microwire: Microwire,
    phy: Phy,
    interrupts: Interrupts,
    transmitter: Transmitter,
    statistics: Statistics,
    link: bool,
    packet: ReceivedFrame,
    /// Interrupts that no line has to fire for any more: their vectors were masked meanwhile, or
    /// they are for nothing.
    signals: Vec<Signal>,
}

impl Card {
    pub(crate) fn new(model: Model, mac: [u8; 6]) -> Self {
        let mut card = Self {
            model,
            mac,
            configuration: Configuration::new(model.identity()),
            registers: Registers::new(),
            nvm: Nvm::new(model, mac),
            microwire: Microwire::default(),
            phy: Phy::new(model),
            interrupts: Interrupts::new(),
            transmitter: Transmitter::default(),
            statistics: Statistics::new(),
            link: true,
            packet: ReceivedFrame::default(),
            signals: Vec::new(),
        };
        card.reset();
        card
    }

    fn reset(&mut self) {
        self.registers = Registers::new();
        self.interrupts = Interrupts::new();
        self.transmitter = Transmitter::default();
        self.statistics = Statistics::new();
        let registers = &mut self.registers;
        registers.set(r::STATUS, self.model.status());
        // The NVM is there; the 82574 has loaded it by itself.
        registers.set(r::EECD, if self.model == Model::E82574 { 0x300 } else { 0x100 });
        registers.set(r::EEMNGCTL, 0x000C_0000);
        registers.set(r::PBA, 0x0014_0014);
        registers.set(r::VET, 0x8100);
        let [a, b, c, d, e, f] = self.mac;
        registers.set(r::RAL, u32::from_le_bytes([a, b, c, d]));
        registers.set(r::RAL + 4, u32::from(u16::from_le_bytes([e, f])) | r::RAH_AV);
    }

    fn control(&mut self, value: u32) {
        let status = self.registers.get(r::STATUS) & !r::STATUS_GIO_MASTER_ENABLE;
        let masters = self.model == Model::E82574 && value & r::CTRL_GIO_MASTER_DISABLE == 0;
        let status = if masters { status | r::STATUS_GIO_MASTER_ENABLE } else { status };
        self.registers.set(r::STATUS, status);
        self.registers.set(r::CTRL, value);
        self.registers.set(r::CTRL_DUP, value);
    }

    fn nvm_control(&mut self, value: u32) -> u32 {
        match self.model {
            Model::E82545 => self.microwire.write(value, &self.nvm),
            // Every request for the NVM is granted.
            Model::E82574 => value | 0x300 | if value & 0x40 != 0 { 0x80 } else { 0 },
        }
    }

    /// `MDIC`: the answer of the PHY, which has address 1.
    fn talk_to_phy(&mut self, value: u32) -> u32 {
        const READY: u32 = 1 << 28;
        const ERROR: u32 = 1 << 30;
        let (register, address, operation) = (value >> 16 & 31, value >> 21 & 31, value >> 26 & 3);
        match (address, operation) {
            (1, 2) => u32::from(self.phy.read(register, self.link)) | value & 0x0FFF_0000 | READY,
            (1, 1) => {
                self.phy.write(register, value as u16);
                value | READY
            }
            _ => value | READY | ERROR,
        }
    }

    fn rewire(&mut self) {
        let wiring = &mut self.interrupts.wiring;
        wiring.msix = self.configuration.uses_msix();
        wiring.allocation = self.registers.get(r::IVAR);
        wiring.auto_clear = self.registers.get(r::EIAC);
        wiring.auto_mask = self.registers.get(r::CTRL_EXT) & r::CTRL_EXT_EIAME != 0;
    }

    /// Whether a frame is for this card, and not longer than the driver wants any; others are
    /// counted. A card that does not receive looks at none.
    fn accepts(&mut self, frame: &[u8]) -> bool {
        if self.registers.get(r::RCTL) & r::RCTL_EN == 0 {
            return true;
        }
        let is_oversize = receive::is_oversize(&self.registers, frame);
        let is_accepted = !is_oversize && receive::accepts(&self.registers, frame);
        if is_oversize {
            self.statistics.oversize(frame);
        } else if !is_accepted {
            self.statistics.filtered(frame);
        }
        is_accepted
    }

    /// Whether what is sent comes back, in the PHY or in the MAC, and nothing else comes.
    fn loops(&self) -> bool {
        self.phy.loops() || self.registers.get(r::RCTL) & r::RCTL_LBM == r::RCTL_LBM_MAC
    }

    fn signal(&mut self, line: Line) -> Option<Signal> {
        match line {
            Line::Pin => Some(Signal::Intx),
            Line::Vector(vector) => self.configuration.message(vector),
        }
    }

    /// Buffers at which the driver learns that they run out (`RCTL.RDMTS`).
    fn least_room(&self) -> usize {
        let part = self.registers.get(r::RCTL) >> 8 & 3;
        receive::descriptors(&self.registers) >> (part + 1)
    }
}

impl PciFunction for Card {
    fn configuration(&mut self) -> &mut Configuration {
        &mut self.configuration
    }

    fn reconfigured(&mut self) {
        self.signals.extend(self.configuration.take_unmasked());
        self.rewire();
    }

    fn read(&mut self, at: u32) -> u32 {
        match at {
            r::ICR => {
                let masks = self.registers.get(r::CTRL_EXT) & r::CTRL_EXT_IAME != 0;
                let masks = if masks { self.registers.get(r::IAM) } else { 0 };
                self.interrupts.read(masks)
            }
            r::IMS => self.interrupts.mask(),
            r::STATUS => self.registers.get(at) | if self.link { r::STATUS_LU } else { 0 },
            statistics::FIRST..=statistics::LAST => self.statistics.read(at),
            _ => self.registers.get(at),
        }
    }

    fn write(&mut self, now: Instant, at: u32, value: u32) {
        match at {
            r::CTRL | r::CTRL_DUP if value & r::CTRL_RST != 0 => return self.reset(),
            r::CTRL | r::CTRL_DUP => return self.control(value & !r::CTRL_PHY_RST),
            r::EERD if value & 1 != 0 => {
                let word = u32::from(self.nvm.word(value >> 2 & 0x3FFF));
                return self.registers.set(at, word << 16 | value & 0xFFFC | 2);
            }
            r::EECD => {
                let answer = self.nvm_control(value);
                return self.registers.set(at, answer);
            }
            r::MDIC => {
                let answer = self.talk_to_phy(value);
                return self.registers.set(at, answer);
            }
            r::ICR => return self.interrupts.clear(value),
            r::ICS => return self.interrupts.add(value & !cause::INT_ASSERTED),
            r::IMS => return self.interrupts.unmask(value),
            r::IMC => return self.interrupts.mask_off(value),
            // Read-only.
            r::STATUS | statistics::FIRST..=statistics::LAST => return,
            r::RDTR if value & r::FLUSH_PARTIAL != 0 => self.interrupts.flush_received(now),
            r::TIDV if value & r::FLUSH_PARTIAL != 0 => self.interrupts.flush_sent(now),
            _ => {}
        }
        self.registers.set(at, value & r::writable(at));
        match at {
            r::RDTR | r::RADV => {
                let (ticks, bound) = (self.registers.get(r::RDTR), self.registers.get(r::RADV));
                self.interrupts.set_receive_delay(ticks, bound);
            }
            r::TIDV | r::TADV => {
                let (ticks, bound) = (self.registers.get(r::TIDV), self.registers.get(r::TADV));
                self.interrupts.set_transmit_delay(ticks, bound);
            }
            r::ITR => self.interrupts.set_interval(Line::Pin, value),
            r::IVAR | r::EIAC | r::CTRL_EXT => self.rewire(),
            _ => {
                let vector = at.wrapping_sub(r::EITR) / 4;
                if vector < VECTORS.into() {
                    self.interrupts.set_interval(Line::Vector(vector as u8), value);
                }
            }
        }
    }

    fn set_link(&mut self, link: bool) {
        if std::mem::replace(&mut self.link, link) != link {
            self.interrupts.add(cause::LSC | cause::OTHER);
        }
    }

    fn room(&self, _: usize) -> usize {
        receive::room(&self.registers)
    }

    fn listens(&self) -> bool {
        self.link && !self.loops()
    }

    fn receive(
        &mut self,
        now: Instant,
        queue: usize,
        frame: &[u8],
        memory: &dyn Dma,
        is_cause: bool,
    ) -> Result<bool, MemoryError> {
        self.packet.take(frame, &self.registers);
        let before = self.room(queue);
        let ring = Ring::of(&self.registers);
        let packet = &self.packet;
        let stored =
            ring.map_or(Ok(false), |ring| ring.put(packet, memory, &mut self.registers))?;
        if !stored {
            self.miss(1);
            return Ok(false);
        }
        self.statistics.received(frame);
        if is_cause {
            self.interrupts.frame_received(now);
        }
        if (self.room(queue)..before).contains(&self.least_room()) {
            self.interrupts.add(cause::RXDMT0);
        }
        Ok(true)
    }

    fn notice(&mut self, now: Instant, queue: usize, _: &[u8]) {
        if self.room(queue) > 0 {
            self.interrupts.frame_received(now);
        }
    }

    fn show(&mut self, frame: &[u8], memory: &dyn Dma) -> Result<bool, MemoryError> {
        self.packet.take(frame, &self.registers);
        let Some(ring) = Ring::of(&self.registers) else { return Ok(false) };
        let is_stored = ring.put(&self.packet, memory, &mut self.registers)?;
        if is_stored && let Some(line) = self.interrupts.announce() {
            let signal = self.signal(line);
            self.signals.extend(signal);
        }
        Ok(is_stored)
    }

    fn miss(&mut self, frames: u32) {
        if self.registers.get(r::RCTL) & r::RCTL_EN == 0 {
            return;
        }
        self.statistics.missed(frames);
        self.interrupts.add(cause::RXO);
    }

    fn transmit(
        &mut self,
        now: Instant,
        frame: &mut Vec<u8>,
        memory: &dyn Dma,
    ) -> Result<Sent, MemoryError> {
        let loops = self.loops();
        if !self.link && !loops {
            return Ok(Sent::Nothing);
        }
        let card = (&mut self.registers, &mut self.interrupts, &mut self.statistics);
        let sent = self.transmitter.next(now, frame, card, memory)?;
        if loops && sent == Sent::Frame {
            if self.accepts(frame) {
                self.receive(now, 0, frame, memory, true)?;
            }
            return Ok(Sent::More);
        }
        Ok(sent)
    }

    fn route(&mut self, frame: &[u8]) -> Route {
        if self.accepts(frame) { Route::Port } else { Route::Nowhere }
    }

    fn pairs_used(&self) -> u16 {
        1
    }

    fn too_long(&self) -> u64 {
        self.transmitter.gathering.too_long
    }

    fn interrupt_for_frames(&mut self, now: Instant, _: usize) {
        self.interrupts.interrupt_for_frames(now);
    }

    fn interval(&self, _: usize) -> Duration {
        self.interrupts.interval()
    }

    fn advance(&mut self, now: Instant) {
        self.interrupts.advance(now);
    }

    fn deadline(&self) -> Option<Instant> {
        self.interrupts.deadline()
    }

    fn take_raised(&mut self) -> Vec<Raised> {
        let frames = self.interrupts.wiring.receive_line();
        let signals = self.signals.drain(..);
        let mut raised: Vec<Raised> =
            signals.map(|signal| Raised { signal: Some(signal), queues: 0 }).collect();
        raised.extend(self.interrupts.take_fired().into_iter().map(|line| Raised {
            signal: self.signal(line),
            queues: u32::from(Some(line) == frames),
        }));
        raised
    }

    fn take_rearmed(&mut self) -> u32 {
        self.interrupts.take_rearmed().into()
    }
}

#[cfg(test)]
mod tests;
