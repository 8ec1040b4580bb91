//! A card and a driver's reads and writes, in time that the tests make.

use super::*;
use crate::message::BusCommand;
use crate::testing::Bytes;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

impl Card {
    fn get(&mut self, register: u32) -> u32 {
        let mut answer = Vec::new();
        let command = BusCommand::Read { bar: 0, offset: register.into(), size: 4 };
        self.obey(at(0), command, &mut answer);
        u32::from_le_bytes(answer.try_into().expect("as much as was asked for"))
    }

    fn put(&mut self, now: Instant, register: u32, value: u32) {
        let data = value.to_le_bytes();
        let command = BusCommand::Write { bar: 0, offset: register.into(), data: &data };
        self.obey(now, command, &mut Vec::new());
    }

    /// What a driver does until it receives: MSI-X with three vectors, or the pin.
    fn start(&mut self) -> Bytes {
        let memory = Bytes::new(0x2_0000);
        if self.model == Model::E82574 {
            let command = BusCommand::WriteConfiguration { offset: 0xA2, data: &[0, 0x80] };
            self.obey(at(0), command, &mut Vec::new());
            for vector in 0..3_u8 {
                let entry = [&0xA_0000_u64.to_le_bytes()[..], &[vector, 0, 0, 0, 0, 0, 0, 0]];
                let (offset, data) = (16 * u64::from(vector), entry.concat());
                let command = BusCommand::Write { bar: 3, offset, data: &data };
                self.obey(at(0), command, &mut Vec::new());
            }
            self.put(at(0), r::IVAR, 1 << 31 | 0xA << 16 | 9 << 8 | 8);
            self.put(at(0), r::CTRL_EXT, r::CTRL_EXT_EIAME);
            self.put(at(0), r::EIAC, cause::RXQ0 | cause::TXQ0);
        }
        for number in 0..16_u64 {
            memory.write(16 * number, &(0x1_0000 + 0x800 * number).to_le_bytes()).unwrap();
        }
        self.put(at(0), r::RFCTL, r::RFCTL_EXSTEN);
        self.put(at(0), r::RDLEN, 16 * 16);
        self.put(at(0), r::RDT, 15);
        self.put(at(0), r::RCTL, r::RCTL_EN | r::RCTL_BAM | r::RCTL_SECRC | 2 << 8);
        self.put(at(0), r::IMS, cause::RXT0 | cause::RXQ0);
        assert_eq!(self.take_rearmed(), 1);
        memory
    }
}

fn frame() -> Vec<u8> {
    [&MAC[..], &[0; 54]].concat()
}

#[test]
fn a_frame_interrupts_after_the_delay_that_the_driver_sets() {
    for model in [Model::E82574, Model::E82545] {
        let mut card = Card::new(model, MAC);
        let memory = card.start();
        card.put(at(0), r::RDTR, 32);
        assert!(card.receive(at(1), 0, &frame(), &memory, true).unwrap());
        card.advance(at(1));
        assert!(card.take_raised().is_empty());
        let due = card.deadline().unwrap();
        assert_eq!(due.since(at(1)).as_nanos(), 32_768);
        card.advance(due);
        let raised = card.take_raised();
        assert!(raised.len() == 1 && raised[0].queues == 1, "{raised:?}");
        let expected = match model {
            Model::E82574 => Signal::Msix { address: 0xA_0000, data: 0 },
            Model::E82545 => Signal::Intx,
        };
        assert_eq!(raised[0].signal, Some(expected));
    }
}

#[test]
fn what_is_not_for_the_card_is_refused_and_counted_while_it_receives() {
    let mut card = Card::new(Model::E82574, MAC);
    let others = [2; 60];
    assert!(card.accepts(&others), "it does not look");
    card.start();
    card.put(at(0), r::RDTR, 32);
    assert!(card.accepts(&frame()) && !card.accepts(&others) && !card.accepts(&[0xFF; 1_519]));
    let [total, oversize] = [0x40D0, 0x40AC].map(|register| card.get(register));
    assert_eq!((total, oversize, card.deadline()), (2, 1, None));
}

#[test]
fn a_reset_ends_everything_but_the_address() {
    let mut card = Card::new(Model::E82574, MAC);
    card.start();
    card.put(at(0), r::CTRL, r::CTRL_RST);
    assert_eq!((card.get(r::IMS), card.get(r::RCTL), card.room(0)), (0, 0, 0));
    assert_eq!(card.get(r::RAL), 2);
    assert_ne!(card.get(r::STATUS) & r::STATUS_LU, 0);
}

#[test]
fn the_link_is_reported_and_interrupts() {
    let mut card = Card::new(Model::E82545, MAC);
    card.start();
    card.put(at(0), r::IMS, cause::LSC);
    card.set_link(false);
    card.advance(at(1));
    assert_eq!(card.take_raised().len(), 1);
    assert_eq!(card.get(r::STATUS) & r::STATUS_LU, 0);
    assert_ne!(card.get(r::ICR) & cause::LSC, 0);
    card.set_link(false);
    assert_eq!(card.get(r::ICR), 0);
}

#[test]
fn a_message_that_is_due_while_its_entry_is_masked_is_sent_when_it_is_unmasked() {
    let mut card = Card::new(Model::E82574, MAC);
    let memory = card.start();
    let mask = |card: &mut Card, value: u8| {
        let command = BusCommand::Write { bar: 3, offset: 12, data: &[value, 0, 0, 0] };
        card.obey(at(1), command, &mut Vec::new());
    };
    mask(&mut card, 1);
    card.receive(at(1), 0, &frame(), &memory, true).unwrap();
    card.advance(at(1));
    assert_eq!(card.take_raised(), [Raised { signal: None, queues: 1 }]);
    mask(&mut card, 0);
    let signal = Some(Signal::Msix { address: 0xA_0000, data: 0 });
    assert_eq!(card.take_raised(), [Raised { signal, queues: 0 }]);
    mask(&mut card, 0);
    assert_eq!(card.take_raised(), []);
}

/// What the drivers' self-tests do: the patterns that registers keep, and frames that come back.
#[test]
fn what_is_sent_comes_back_in_loopback_and_nothing_else_comes() {
    for model in [Model::E82574, Model::E82545] {
        let mut card = Card::new(model, MAC);
        let memory = card.start();
        assert!(card.listens());
        card.put(at(1), r::MDIC, 1 << 26 | 1 << 21 | 0x4140);
        assert!(!card.listens());
        card.set_link(false);
        memory.write(0x1000, &0x1_8000_u64.to_le_bytes()).unwrap();
        memory.write(0x1008, &(100_u32 | 1 << 24).to_le_bytes()).unwrap();
        memory.write(0x1_8000, &[0xFF; 100]).unwrap();
        for (register, value) in
            [(r::TDBAL, 0x1000), (r::TDLEN, 128), (r::TDT, 1), (r::TCTL, r::TCTL_EN)]
        {
            card.put(at(1), register, value);
        }
        let mut sent = Vec::new();
        assert_eq!(card.transmit(at(1), &mut sent, &memory).unwrap(), Sent::More);
        let mut bytes = [0; 100];
        memory.read(0x1_0000, &mut bytes).unwrap();
        assert_eq!(bytes, [0xFF; 100]);
        card.put(at(1), r::MDIC, 1 << 26 | 1 << 21 | 0x1140);
        assert_eq!(card.transmit(at(1), &mut sent, &memory).unwrap(), Sent::Nothing);
        for (register, kept) in
            [(r::RDTR, 0xFFFF), (r::RDLEN, 0xF_FF80), (r::RDBAL, !0xF), (r::RAL + 4, 0x8003_FFFF)]
        {
            card.put(at(1), register, 0xA5A5_A5A5);
            assert_eq!(card.get(register), 0xA5A5_A5A5 & kept);
        }
    }
}

#[test]
fn the_nvm_and_the_phy_answer() {
    let mut card = Card::new(Model::E82574, MAC);
    card.put(at(0), r::EERD, 2 << 2 | 1);
    assert_eq!(card.get(r::EERD), 0x0100 << 16 | 2 << 2 | 2);
    card.put(at(0), r::MDIC, 2 << 26 | 1 << 21 | 2 << 16);
    assert_eq!(card.get(r::MDIC) & 0x1000_FFFF, 1 << 28 | 0x0141);
    card.put(at(0), r::MDIC, 2 << 26 | 5 << 21);
    assert_ne!(card.get(r::MDIC) & 1 << 30, 0, "there is no other PHY");
}
