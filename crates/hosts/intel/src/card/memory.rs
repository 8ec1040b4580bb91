//! What a card remembers without power: the NVM with its address, and the registers of the PHY.

use crate::configuration::INTEL;
use crate::model::Model;

/// Words of the NVM.
const WORDS: usize = 64;

/// What all words have to add up to (82574 datasheet, 6.1.1.26).
const SUM: u16 = 0xBABA;

#[derive(Debug)]
pub(super) struct Nvm([u16; WORDS]);

impl Nvm {
    pub(super) fn new(model: Model, mac: [u8; 6]) -> Self {
        let identity = model.identity();
        let mut words = [0xFFFF_u16; WORDS];
        for (word, bytes) in words.iter_mut().zip(mac.chunks_exact(2)) {
            *word = u16::from_le_bytes([bytes[0], bytes[1]]);
        }
        words[0x03] = 0;
        words[0x05] = 0x1234;
        words[0x0A] = if model == Model::E82545 { 0x4408 } else { 0 };
        words[0x0B..0x0F].copy_from_slice(&[identity.subsystem, INTEL, identity.device, INTEL]);
        (words[0x0F], words[0x14], words[0x24]) = (0, 0, 0);
        let sum = words[..WORDS - 1].iter().fold(0_u16, |sum, word| sum.wrapping_add(*word));
        words[WORDS - 1] = SUM.wrapping_sub(sum);
        Self(words)
    }

    /// One word; addresses wrap.
    pub(super) fn word(&self, address: u32) -> u16 {
        self.0[address as usize % WORDS]
    }
}

/// Bits of `EECD`: the driver moves the pins of the NVM itself.
mod pin {
    pub(super) const CLOCK: u32 = 1 << 0;
    pub(super) const SELECT: u32 = 1 << 1;
    pub(super) const INPUT: u32 = 1 << 2;
    pub(super) const OUTPUT: u32 = 1 << 3;
    pub(super) const REQUEST: u32 = 1 << 6;
    pub(super) const GRANT: u32 = 1 << 7;
    pub(super) const PRESENT: u32 = 1 << 8;
}

/// The bits of a read: start, opcode 2, six bits of address.
const COMMAND_BITS: u32 = 9;
const START_AND_READ: u16 = 0b110;

/// The serial interface of a Microwire NVM, which the 82545's driver reads bit by bit.
#[derive(Debug, Default)]
pub(super) struct Microwire {
    clock: bool,
    /// What has come of a command, and how many bits.
    command: (u16, u32),
    /// What is still to go out, the next bit on top, and how many bits.
    output: (u32, u32),
}

impl Microwire {
    /// The driver has written to `EECD`; what it reads there then.
    pub(super) fn write(&mut self, value: u32, nvm: &Nvm) -> u32 {
        let clock = value & pin::CLOCK != 0;
        if value & pin::SELECT == 0 {
            *self = Self::default();
        } else if clock && !self.clock {
            self.tick(value & pin::INPUT != 0, nvm);
        }
        self.clock = clock;
        let out = if self.output.1 > 0 && self.output.0 >> 31 != 0 { pin::OUTPUT } else { 0 };
        let grant = if value & pin::REQUEST != 0 { pin::GRANT } else { 0 };
        let own = pin::OUTPUT | pin::GRANT;
        value & 0xFF & !own | out | grant | pin::PRESENT
    }

    fn tick(&mut self, input: bool, nvm: &Nvm) {
        if self.output.1 > 0 {
            self.output = (self.output.0 << 1, self.output.1 - 1);
            return;
        }
        let (bits, count) = self.command;
        if count == 0 && !input {
            return; // No start bit yet.
        }
        self.command = (bits << 1 | u16::from(input), count + 1);
        let (bits, count) = self.command;
        if count == COMMAND_BITS {
            self.command = (0, 0);
            if bits >> 6 == START_AND_READ {
                // A zero goes before the word.
                self.output = (u32::from(nvm.word((bits & 0x3F).into())) << 15, 17);
            }
        }
    }
}

/// The control register of the PHY: bits that clear themselves.
const RESET_AND_RESTART: u16 = 0x8200;
/// What is sent comes back.
const LOOPBACK: u16 = 0x4000;
/// The page of registers from 16 on, on the 82574: all but the first read as zeros.
const PAGE: u32 = 22;
/// The status register: negotiation is complete, and the link is up.
const STATUS_UP: u16 = 1 << 5 | 1 << 2;
/// Marvell's status register: gigabit, full duplex, resolved, link.
const MARVELL_STATUS: u16 = 0xAC00;
const MARVELL_LINK: u16 = 1 << 10;

/// The registers of the PHY, Marvell's 88E1011 or the BM of the 82574.
#[derive(Debug)]
pub(super) struct Phy {
    registers: [u16; 32],
    has_pages: bool,
}

impl Phy {
    pub(super) fn new(model: Model) -> Self {
        let mut registers = [0; 32];
        let identifier = if model == Model::E82574 { 0x0CB1 } else { 0x0C20 };
        (registers[0], registers[2], registers[3]) = (0x1140, 0x0141, identifier);
        // What both ends can do, 1000 Mbit/s full duplex among it.
        (registers[4], registers[5], registers[6]) = (0x01E1, 0xCDE1, 0x000F);
        (registers[9], registers[10], registers[15]) = (0x0E00, 0x7C00, 0x3000);
        Self { registers, has_pages: model == Model::E82574 }
    }

    /// Whether what is sent comes back.
    pub(super) fn loops(&self) -> bool {
        self.registers[0] & LOOPBACK != 0
    }

    fn is_on_another_page(&self, register: u32) -> bool {
        self.has_pages && register > 15 && register != PAGE && self.registers[PAGE as usize] != 0
    }

    pub(super) fn read(&self, register: u32, link: bool) -> u16 {
        let status = if link { STATUS_UP } else { 0 };
        match register % 32 {
            register if self.is_on_another_page(register) => 0,
            1 => 0x7949 | status,
            17 => MARVELL_STATUS & !MARVELL_LINK | if link { MARVELL_LINK } else { 0 },
            register => self.registers[register as usize],
        }
    }

    pub(super) fn write(&mut self, register: u32, value: u16) {
        match register % 32 {
            register if self.is_on_another_page(register) => {}
            0 => self.registers[0] = value & !RESET_AND_RESTART,
            // Status and identifiers.
            1..=3 | 17 => {}
            register => self.registers[register as usize] = value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];

    #[test]
    fn the_words_add_up() {
        for model in [Model::E82574, Model::E82545] {
            let nvm = Nvm::new(model, MAC);
            let sum = (0..64).fold(0_u16, |sum, at| sum.wrapping_add(nvm.word(at)));
            assert_eq!(sum, SUM);
            assert_eq!((nvm.word(0), nvm.word(2)), (2, 0x0700));
        }
    }

    #[test]
    fn a_word_comes_out_bit_by_bit() {
        let nvm = Nvm::new(Model::E82545, MAC);
        let mut wire = Microwire::default();
        for address in [0, 2, 63] {
            let command = u32::from(START_AND_READ) << 6 | address;
            for bit in (0..COMMAND_BITS).rev() {
                let input = if command >> bit & 1 != 0 { pin::INPUT } else { 0 };
                wire.write(pin::SELECT | input, &nvm);
                wire.write(pin::SELECT | input | pin::CLOCK, &nvm);
            }
            let mut word = 0;
            for _ in 0..16 {
                wire.write(pin::SELECT, &nvm);
                let read = wire.write(pin::SELECT | pin::CLOCK, &nvm);
                word = word << 1 | u16::from(read & pin::OUTPUT != 0);
            }
            assert_eq!(word, nvm.word(address));
            wire.write(0, &nvm);
        }
    }

    #[test]
    fn the_phy_reports_the_link() {
        let mut phy = Phy::new(Model::E82574);
        assert_eq!(phy.read(1, true) & STATUS_UP, STATUS_UP);
        assert_eq!(phy.read(1, false) & STATUS_UP, 0);
        phy.write(0, 0x9340);
        assert_eq!(phy.read(0, true), 0x1140);
        phy.write(2, 0);
        assert_eq!(phy.read(2, true), 0x0141);
        phy.write(PAGE, 769);
        phy.write(16, 9);
        phy.write(0, LOOPBACK | 0x0140);
        assert!(phy.loops(), "the first registers are the same on all pages");
        assert_eq!(phy.read(16, true), 0);
        phy.write(PAGE, 0);
        assert_eq!(phy.read(16, true), 0, "that was another page");
    }
}
