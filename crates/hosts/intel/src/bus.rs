//! The commands of a bus, for cards and functions alike.

use base::time::Instant;

use super::configuration::{Configuration, MSIX_BAR};
use super::message::Command;
use super::model::REGISTERS;

/// A function on the bus: a configuration space with its MSI-X table, and registers of 32 bits.
pub(crate) trait OnBus {
    /// The configuration space.
    fn configuration(&mut self) -> &mut Configuration;

    /// Something was written there, or into the MSI-X table.
    fn reconfigured(&mut self) {}

    /// Reads the register at `at`.
    fn read(&mut self, at: u32) -> u32;

    /// Writes it.
    fn write(&mut self, now: Instant, at: u32, value: u32);

    /// Does what the guest's bus asks for, and puts what is read into `answer`.
    fn obey(&mut self, now: Instant, command: Command<'_>, answer: &mut Vec<u8>) {
        answer.clear();
        match command {
            Command::ReadConfiguration { offset, size } => {
                answer.resize(size, 0);
                self.configuration().read(offset, answer);
            }
            Command::WriteConfiguration { offset, data } => {
                self.configuration().write(offset, data);
                self.reconfigured();
            }
            Command::Read { bar: MSIX_BAR, offset, size } => {
                answer.resize(size, 0);
                self.configuration().read_table(offset, answer);
            }
            Command::Write { bar: MSIX_BAR, offset, data } => {
                self.configuration().write_table(offset, data);
                self.reconfigured();
            }
            Command::Read { bar: 0, offset, size } => {
                answer.resize(size, 0);
                for (at, word) in (offset..).step_by(4).zip(answer.chunks_mut(4)) {
                    let value = register_at(at).map_or(u32::MAX, |at| self.read(at));
                    word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
                }
            }
            Command::Write { bar: 0, offset, data } => {
                // Registers are written as a whole (82574 datasheet, 10.1.1).
                for (at, word) in (offset..).step_by(4).zip(data.chunks_exact(4)) {
                    let value = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                    register_at(at).into_iter().for_each(|at| self.write(now, at, value));
                }
            }
            Command::Fill { bar: 0, offset, size, value } => {
                let value = u32::from_le_bytes([value; 4]);
                for at in (offset..).step_by(4).take(size / 4) {
                    register_at(at).into_iter().for_each(|at| self.write(now, at, value));
                }
            }
            // Nobody answers there.
            Command::Read { size, .. } => answer.resize(size, 0xFF),
            Command::Write { .. } | Command::Fill { .. } => {}
        }
    }
}

/// A register's offset, if there may be one.
fn register_at(offset: u64) -> Option<u32> {
    u32::try_from(offset).ok().filter(|at| *at < REGISTERS && at.is_multiple_of(4))
}
