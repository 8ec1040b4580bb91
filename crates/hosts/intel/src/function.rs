//! A PCI function, a card or a virtual function, as the device deals with it.
//!
//! Calls that reach the guest's memory fail if an address that its driver gave is none of the
//! guest's.

use std::fmt::Debug;

use base::time::{Duration, Instant};
use hostside::Route;
use vhost::transport::memory::MemoryError;

use super::configuration::{Configuration, MSIX_BAR};
use super::dma::Dma;
use super::message::{BusCommand, Signal};
use super::model::REGISTERS;

/// What came of looking for a frame that the driver sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Frame,
    /// None yet, though there are descriptors.
    More,
    Nothing,
}

/// An interrupt that went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raised {
    /// The message for the guest's bus; none if the vector is masked there.
    pub signal: Option<Signal>,
    /// The receive queues whose frames interrupt this way, a bit for each.
    pub queues: u32,
}

/// A function: a configuration space with its MSI-X table, registers of 32 bits, and queues.
pub(crate) trait PciFunction: Debug + Send {
    fn configuration(&mut self) -> &mut Configuration;

    /// The configuration space, or the MSI-X table, was written.
    fn reconfigured(&mut self);

    fn read(&mut self, at: u32) -> u32;

    fn write(&mut self, now: Instant, at: u32, value: u32);

    /// Answers messages of the driver, where it sends any.
    fn attend(&mut self, memory: &dyn Dma) -> Result<(), MemoryError> {
        let _ = memory;
        Ok(())
    }

    fn set_link(&mut self, link: bool);

    /// The least time between two interrupts for frames of a queue.
    fn interval(&self, queue: usize) -> Duration;

    /// Frames that the driver has buffers for in a queue, if each takes one.
    fn room(&self, queue: usize) -> usize;

    /// Whether the cable is in, and what comes from there is received.
    fn listens(&self) -> bool;

    /// Where a frame off the wire goes; what is refused is counted.
    fn route(&mut self, frame: &[u8]) -> Route;

    /// A frame that [`route`](Self::route) let in goes into the driver's buffers of a queue, unless
    /// there are too few; whether it does. It is a cause of an interrupt if `is_cause`.
    fn receive(
        &mut self,
        now: Instant,
        queue: usize,
        frame: &[u8],
        memory: &dyn Dma,
        is_cause: bool,
    ) -> Result<bool, MemoryError>;

    /// A frame that [`route`](Self::route) let in will be in memory later: it is a cause of an
    /// interrupt, if there is a buffer.
    fn notice(&mut self, now: Instant, queue: usize, frame: &[u8]);

    /// Shows the driver a frame that is not the wire's, and interrupts for it, without cost and
    /// without a trace in the timers; whether there was room.
    fn show(&mut self, frame: &[u8], memory: &dyn Dma) -> Result<bool, MemoryError>;

    /// Counts frames that found no buffer.
    fn miss(&mut self, frames: u32);

    /// Takes the next frame that the driver sends, in place of what is in `frame`.
    fn transmit(
        &mut self,
        now: Instant,
        frame: &mut Vec<u8>,
        memory: &dyn Dma,
    ) -> Result<Sent, MemoryError>;

    /// Packets of the driver that were longer than any port takes.
    fn too_long(&self) -> u64;

    fn pairs_used(&self) -> u16;

    /// Interrupts for the frames of a queue at once, whatever the registers say of delays.
    fn interrupt_for_frames(&mut self, now: Instant, queue: usize);

    /// Lets timers run out, and interrupts for what is due.
    fn advance(&mut self, now: Instant);

    fn deadline(&self) -> Option<Instant>;

    /// Interrupts since the last call, in their order.
    fn take_raised(&mut self) -> Vec<Raised>;

    /// The queues, a bit for each, whose interrupts the driver has unmasked since the last call.
    fn take_rearmed(&mut self) -> u32;

    /// Does what the guest's bus asks for, and puts what is read into `answer`.
    fn obey(&mut self, now: Instant, command: BusCommand<'_>, answer: &mut Vec<u8>) {
        answer.clear();
        match command {
            BusCommand::ReadConfiguration { offset, size } => {
                answer.resize(size, 0);
                self.configuration().read(offset, answer);
            }
            BusCommand::WriteConfiguration { offset, data } => {
                self.configuration().write(offset, data);
                self.reconfigured();
            }
            BusCommand::Read { bar: MSIX_BAR, offset, size } => {
                answer.resize(size, 0);
                self.configuration().read_table(offset, answer);
            }
            BusCommand::Write { bar: MSIX_BAR, offset, data } => {
                self.configuration().write_table(offset, data);
                self.reconfigured();
            }
            BusCommand::Read { bar: 0, offset, size } => {
                answer.resize(size, 0);
                for (at, word) in (offset..).step_by(4).zip(answer.chunks_mut(4)) {
                    let value = register_at(at).map_or(u32::MAX, |at| self.read(at));
                    word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
                }
            }
            BusCommand::Write { bar: 0, offset, data } => {
                // Registers are written as a whole (82574 datasheet, 10.1.1).
                for (at, word) in (offset..).step_by(4).zip(data.chunks_exact(4)) {
                    let value = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                    register_at(at).into_iter().for_each(|at| self.write(now, at, value));
                }
            }
            BusCommand::Fill { bar: 0, offset, size, value } => {
                let value = u32::from_le_bytes([value; 4]);
                for at in (offset..).step_by(4).take(size / 4) {
                    register_at(at).into_iter().for_each(|at| self.write(now, at, value));
                }
            }
            // There is no device at that address.
            BusCommand::Read { size, .. } => answer.resize(size, 0xFF),
            BusCommand::Write { .. } | BusCommand::Fill { .. } => {}
        }
    }
}

/// A register's offset, if there may be one.
fn register_at(offset: u64) -> Option<u32> {
    u32::try_from(offset).ok().filter(|at| *at < REGISTERS && at.is_multiple_of(4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::Adapter;
    use crate::model::Model;
    use crate::testing::Bytes;

    /// Registers that do something, of cards and of virtual functions.
    const CARD: [u32; 24] = [
        0x2818, 0x2810, 0x2808, 0x2800, 0x3818, 0x3810, 0x3808, 0x0400, 0x0100, 0x00D0, 0x00C8,
        0x00E4, 0x00DC, 0x0018, 0x2820, 0x282C, 0x3820, 0x00C4, 0x00E8, 0x0000, 0x0020, 0x0014,
        0x0010, 0x00C0,
    ];
    const VIRTUAL: [u32; 14] = [
        0x0000, 0x2000, 0x2800, 0x3800, 0x5C00, 0x4800, 0x5000, 0x8400, 0x6400, 0x6800, 0x7C00,
        0x7000, 0x7400, 0x8000,
    ];

    /// Whatever a guest reads and writes, a function neither panics nor works without end.
    #[test]
    fn no_order_of_commands_harms_a_function() {
        let mut random = base::prng::Prng::new(1);
        for (adapter, registers) in [
            (Adapter::Card(Model::E82574), &CARD[..]),
            (Adapter::Card(Model::E82545), &CARD),
            (Adapter::Virtual, &VIRTUAL),
        ] {
            let mac = [2, 0, 0, 0, 0, 1];
            let mut function = adapter.function(mac, 4, 1_000);
            let frame = [&mac[..], &[0; 54]].concat();
            let memory = Bytes::new(0x2_0000);
            let (mut answer, mut sent) = (Vec::new(), Vec::new());
            for step in 0..20_000 {
                let (now, queue) = (Instant::from_micros(step), (step % 5) as usize);
                let number = random.next_u64();
                let known = registers[(number >> 8) as usize % registers.len()];
                let offset = match number % 4 {
                    0 => number >> 32,
                    _ => u64::from(known) + (number >> 4 & 12),
                };
                let data = (random.next_u64() >> (random.next_u64() % 64)).to_le_bytes();
                let bar = [0, 0, 0, 3, 7][(random.next_u64() % 5) as usize];
                function.obey(now, BusCommand::Write { bar, offset, data: &data }, &mut answer);
                function.obey(now, BusCommand::Read { bar, offset, size: 64 }, &mut answer);
                let configure = BusCommand::WriteConfiguration { offset, data: &data };
                function.obey(now, configure, &mut answer);
                let _ = (function.attend(&memory), function.route(&frame));
                let _ = function.receive(now, queue, &frame, &memory, true);
                let _ = function.transmit(now, &mut sent, &memory);
                function.advance(now);
                function.interrupt_for_frames(now, queue);
                let _ = function.take_rearmed();
                assert!(function.take_raised().len() < 16);
                assert!(function.deadline().is_none_or(|deadline| deadline > now));
            }
        }
    }
}
