//! A function and a driver's registers, rings and messages.

use super::virtchnl::{op, status};
use super::*;
use crate::message::BusCommand;
use crate::testing::Bytes;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Where the driver has its rings and buffers.
const SENT: u64 = 0x1000;
const RECEIVED: u64 = 0x2000;
const SENT_BUFFER: u64 = 0x3000;
const RECEIVED_BUFFERS: u64 = 0x1_0000;
const RINGS: u64 = 0x6000;
const BUFFERS: u64 = 0x4_0000;

/// Descriptors of the admin queues.
const LENGTH: u32 = 8;

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

struct Rig {
    function: VirtualFunction,
    memory: Bytes,
    cleaned: u32,
}

impl Rig {
    fn new(pairs: u16) -> Self {
        let properties = Properties { pairs, mac: MAC, speed_mbit: 1_000 };
        let mut rig = Self {
            function: VirtualFunction::new(properties),
            memory: Bytes::new(0x10_0000),
            cleaned: 0,
        };
        rig.set_up_admin_queues();
        rig
    }

    fn set_up_admin_queues(&mut self) {
        self.cleaned = 0;
        for number in 0..u64::from(LENGTH) {
            self.post_buffer(number);
        }
        for (register, value) in [
            (r::ATQBAL, SENT as u32),
            (r::ATQLEN, LENGTH | admin::ENABLE),
            (r::ARQBAL, RECEIVED as u32),
            (r::ARQLEN, LENGTH | admin::ENABLE),
            (r::ARQT, LENGTH - 1),
        ] {
            self.put(register, value);
        }
        let msix = BusCommand::WriteConfiguration { offset: 0xA2, data: &[0, 0x80] };
        self.function.obey(at(0), msix, &mut Vec::new());
        for vector in 0..=self.function.properties.pairs as u8 {
            let entry = [&0xA_0000_u64.to_le_bytes()[..], &[vector, 0, 0, 0, 0, 0, 0, 0]].concat();
            let offset = 16 * u64::from(vector);
            let command = BusCommand::Write { bar: 3, offset, data: &entry };
            self.function.obey(at(0), command, &mut Vec::new());
        }
    }

    fn post_buffer(&mut self, number: u64) {
        let mut descriptor = [0; 32];
        descriptor[4..6].copy_from_slice(&4_096_u16.to_le_bytes());
        let buffer = (RECEIVED_BUFFERS + 0x1000 * number) as u32;
        descriptor[28..].copy_from_slice(&buffer.to_le_bytes());
        self.memory.write(RECEIVED + 32 * number, &descriptor).unwrap();
    }

    fn get(&mut self, register: u32) -> u32 {
        self.function.read(register)
    }

    fn put(&mut self, register: u32, value: u32) {
        self.function.write(at(0), register, value);
        self.function.attend(&self.memory).unwrap();
    }

    fn send(&mut self, operation: u32, data: &[u8]) {
        let tail = self.get(r::ATQT);
        let mut descriptor = [0; 32];
        descriptor[..2].copy_from_slice(&0x1000_u16.to_le_bytes());
        descriptor[2..4].copy_from_slice(&0x0801_u16.to_le_bytes());
        descriptor[4..6].copy_from_slice(&(data.len() as u16).to_le_bytes());
        descriptor[8..12].copy_from_slice(&operation.to_le_bytes());
        descriptor[28..].copy_from_slice(&(SENT_BUFFER as u32).to_le_bytes());
        if !data.is_empty() {
            self.memory.write(SENT_BUFFER, data).unwrap();
        }
        self.memory.write(SENT + 32 * u64::from(tail), &descriptor).unwrap();
        self.put(r::ATQT, (tail + 1) % LENGTH);
    }

    /// The next message of the function: operation, status, data.
    fn take(&mut self) -> Option<(u32, i32, Vec<u8>)> {
        let number = self.cleaned;
        if self.get(r::ARQH) == number {
            return None;
        }
        let mut descriptor = [0; 32];
        self.memory.read(RECEIVED + 32 * u64::from(number), &mut descriptor).unwrap();
        let word = |at: usize| u32::from_le_bytes(*descriptor[at..].first_chunk().unwrap());
        let mut data = vec![0; usize::from(descriptor[4]) | usize::from(descriptor[5]) << 8];
        if !data.is_empty() {
            self.memory.read(RECEIVED_BUFFERS + 0x1000 * u64::from(number), &mut data).unwrap();
        }
        self.post_buffer(number.into());
        self.cleaned = (number + 1) % LENGTH;
        self.put(r::ARQT, number);
        Some((word(8), word(12) as i32, data))
    }

    /// What the function answers.
    #[track_caller]
    fn ask(&mut self, operation: u32, data: &[u8]) -> (i32, Vec<u8>) {
        self.send(operation, data);
        let (answered, status, data) = self.take().expect("an answer");
        assert_eq!(answered, operation);
        (status, data)
    }

    #[track_caller]
    fn grants(&mut self, operation: u32, data: &[u8]) -> Vec<u8> {
        let (status, data) = self.ask(operation, data);
        assert_eq!(status, status::SUCCESS, "{operation}");
        data
    }

    /// Everything until frames go both ways, as `iavf` does it.
    fn start(&mut self) {
        let pairs = self.function.properties.pairs;
        let all = (1_u32 << pairs) - 1;
        self.grants(op::VERSION, &[1, 0, 0, 0, 1, 0, 0, 0]);
        self.grants(op::GET_VF_RESOURCES, &u32::MAX.to_le_bytes());
        self.grants(op::ADD_ETH_ADDR, &[&[1, 0, 1, 0][..], &MAC, &[1, 0]].concat());
        let mut queues = vec![1, 0, pairs as u8, 0, 0, 0, 0, 0];
        let mut maps = vec![pairs as u8, 0];
        for pair in 0..pairs as u8 {
            let ring = RINGS + 0x1000 * u64::from(pair);
            queues.extend([1, 0, pair, 0, 32, 0, 0, 0]);
            queues.extend((ring + 0x800).to_le_bytes());
            queues.extend([0; 8]);
            queues.extend([1, 0, pair, 0, 32, 0, 0, 0, 0, 0, 0, 0]);
            queues.extend([2_048_u32.to_le_bytes(), 1_522_u32.to_le_bytes(), [0; 4]].concat());
            queues.extend(ring.to_le_bytes());
            queues.extend([0; 8]);
            maps.extend([1, 0, pair + 1, 0, 1 << pair, 0, 1 << pair, 0, 0, 0, 1, 0]);
            for number in 0..32_u64 {
                let buffer = BUFFERS + 0x1_0000 * u64::from(pair) + 0x800 * number;
                self.memory.write(ring + 32 * number, &buffer.to_le_bytes()).unwrap();
            }
            self.put(r::QRX_TAIL + 4 * u32::from(pair), 31);
        }
        self.grants(op::CONFIG_VSI_QUEUES, &queues);
        self.grants(op::CONFIG_IRQ_MAP, &maps);
        let select = [[1, 0, 0, 0], all.to_le_bytes(), all.to_le_bytes()].concat();
        self.grants(op::ENABLE_QUEUES, &select);
        let (operation, _, event) = self.take().expect("the link");
        assert_eq!((operation, event[0], event[8]), (op::EVENT, 1, 1));
        assert_eq!(event[4..8], 1_000_u32.to_le_bytes());
        for pair in 0..u32::from(pairs) {
            self.put(r::DYN_CTLN + 4 * pair, REARM);
        }
        assert_eq!(self.function.take_rearmed(), all);
    }

    fn interrupts(&mut self, now: Instant) -> Vec<Raised> {
        self.function.advance(now);
        self.function.take_raised()
    }
}

/// Enabled, no interval changed.
const REARM: u32 = 1 | 3 << 3;

fn frame() -> Vec<u8> {
    [&MAC[..], &[0; 54]].concat()
}

#[test]
fn a_driver_finds_what_is_offered_and_nothing_else() {
    let mut rig = Rig::new(4);
    assert_eq!(rig.get(r::RSTAT), r::VFACTIVE);
    assert_eq!(rig.grants(op::VERSION, &[1, 0, 0, 0, 9, 0, 0, 0])[4..], [1, 0, 0, 0]);
    let resources = rig.grants(op::GET_VF_RESOURCES, &u32::MAX.to_le_bytes());
    assert_eq!(resources[..6], [1, 0, 4, 0, 5, 0]);
    assert_eq!(resources[8..12], virtchnl::capability::ALL.to_le_bytes());
    assert_eq!((resources.len(), &resources[30..]), (36, &MAC[..]));
    for (operation, data) in [(29, &[4, 0][..]), (30, &[]), (44, &[]), (45, &[0; 9]), (99, &[])] {
        assert_eq!(rig.ask(operation, data), (status::NOT_SUPPORTED, Vec::new()), "{operation}");
    }
    assert_eq!(rig.ask(op::ENABLE_QUEUES, &[1, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0]).0, status::PARAM);
    assert_eq!(rig.ask(op::ENABLE_QUEUES, &[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]).0, status::PARAM);
}

#[test]
fn messages_interrupt_by_the_first_vector() {
    let mut rig = Rig::new(1);
    rig.put(r::DYN_CTL0, REARM);
    rig.put(r::ICR0_ENA, r::ADMINQ);
    rig.send(op::VERSION, &[1, 0, 0, 0, 1, 0, 0, 0]);
    let raised = rig.interrupts(at(1));
    let signal = Some(Signal::Msix { address: 0xA_0000, data: 0 });
    assert_eq!(raised, [Raised { signal, queues: 0 }]);
    assert_eq!((rig.get(r::ICR0), rig.get(r::ICR0)), (r::ADMINQ, 0));
    assert!(rig.interrupts(at(2)).is_empty());
}

#[test]
fn each_queue_has_its_own_interval_and_vector() {
    let mut rig = Rig::new(2);
    rig.start();
    rig.put(r::ITRN + 4, 25);
    for (queue, due) in [(0, 10), (1, 60)] {
        let register = r::DYN_CTLN + 4 * queue as u32;
        for arrival in [1, 10] {
            assert!(rig.function.receive(at(0), queue, &frame(), &rig.memory, true).unwrap());
            let raised = rig.interrupts(at(10));
            if arrival == 1 {
                let data = queue as u32 + 1;
                let signal = Some(Signal::Msix { address: 0xA_0000, data });
                assert_eq!(raised, [Raised { signal, queues: 1 << queue }]);
                rig.put(register, REARM);
            } else if due == 10 {
                assert_eq!(raised.len(), 1, "it has no interval");
            } else {
                assert!(raised.is_empty());
                assert_eq!(rig.function.deadline(), Some(at(due)));
                assert_eq!(rig.interrupts(at(due)).len(), 1);
            }
        }
    }
    assert_eq!((rig.function.room(0), rig.function.room(1), rig.function.room(2)), (29, 29, 0));
    assert_eq!(rig.function.pairs_used(), 2);
}

#[test]
fn a_strategy_may_interrupt_in_place_of_the_intervals() {
    let mut rig = Rig::new(1);
    rig.start();
    rig.put(r::ITRN, 500);
    for now in [1, 2] {
        rig.function.receive(at(0), 0, &frame(), &rig.memory, false).unwrap();
        assert!(rig.interrupts(at(now)).is_empty());
        rig.function.interrupt_for_frames(at(0), 0);
        assert_eq!(rig.interrupts(at(now)).len(), 1);
        rig.put(r::DYN_CTLN, REARM);
    }
}

#[test]
fn frames_go_where_rules_say_and_are_counted() {
    let mut rig = Rig::new(4);
    rig.start();
    let udp = |port| [&MAC[..], &flow::tests::udp(port)[6..]].concat();
    let layers: [flow::tests::Layer<'_>; 3] = [(1, 0, &[]), (4, 0, &[]), (7, 2, &[(2, &[0, 53])])];
    let answer = rig.grants(op::ADD_FDIR_FILTER, &flow::tests::message(&layers, (3, 2)));
    assert_eq!(answer[flow::ADD_OUTCOME..], [0; 4]);
    let number = answer[flow::ADD_NUMBER..][..4].to_vec();
    assert_eq!(rig.function.route(&udp(53)), Route::Queue(2));
    assert_eq!(rig.function.route(&udp(54)), Route::Queue(0));
    assert_eq!(rig.function.route(&flow::tests::udp(54)), Route::Nowhere, "another address");
    let answer = rig.grants(op::ADD_FDIR_FILTER, &flow::tests::message(&layers, (3, 2)));
    assert_eq!(answer[flow::ADD_OUTCOME], flow::outcome::EXISTS as u8);
    let remove = [&[1, 0, 0, 0][..], &number, &[0; 4]].concat();
    assert_eq!(rig.grants(op::DEL_FDIR_FILTER, &remove)[flow::REMOVE_OUTCOME..], [0; 4]);
    assert_eq!(rig.function.route(&udp(53)), Route::Queue(0));
    rig.grants(op::ADD_FDIR_FILTER, &flow::tests::message(&layers, (0, 0)));
    assert_eq!(rig.function.route(&udp(53)), Route::Nowhere);
    rig.function.receive(at(0), 0, &udp(54), &rig.memory, true).unwrap();
    let table = [&[1, 0, 64, 0][..], &[3; 64]].concat();
    rig.grants(op::CONFIG_RSS_LUT, &table);
    assert_eq!(rig.function.route(&udp(54)), Route::Queue(3));
    assert_eq!(
        rig.ask(op::CONFIG_RSS_LUT, &[&[1, 0, 64, 0][..], &[4; 64]].concat()).0,
        status::PARAM
    );
    let statistics = rig.grants(op::GET_STATS, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((statistics[0], statistics[8]), (60, 1));
}

#[test]
fn what_is_sent_interrupts_by_the_other_interval() {
    let mut rig = Rig::new(1);
    rig.start();
    rig.put(r::ITRN + 64, 10);
    for (number, due) in [(0_u64, 1), (1, 21)] {
        let ring = RINGS + 0x800 + 16 * number;
        rig.memory.write(ring, &BUFFERS.to_le_bytes()).unwrap();
        rig.memory.write(ring + 8, &(60_u64 << 34 | 3 << 4).to_le_bytes()).unwrap();
        rig.put(r::QTX_TAIL, number as u32 + 1);
        let mut sent = Vec::new();
        assert_eq!(rig.function.transmit(at(0), &mut sent, &rig.memory).unwrap(), Sent::Frame);
        assert_eq!(rig.function.transmit(at(0), &mut sent, &rig.memory).unwrap(), Sent::Nothing);
        assert_eq!(rig.interrupts(at(1)).len(), usize::from(due == 1));
        assert_eq!(rig.interrupts(at(due)).len(), usize::from(due > 1));
        rig.put(r::DYN_CTLN, REARM);
    }
}

#[test]
fn a_reset_ends_everything_and_shows() {
    let mut rig = Rig::new(2);
    rig.start();
    rig.send(op::RESET_VF, &[]);
    assert_eq!((rig.get(r::ARQLEN), rig.get(r::RSTAT)), (0, r::VFACTIVE));
    assert_eq!((rig.function.room(0), rig.function.pairs_used()), (0, 0));
    assert_eq!(rig.function.route(&frame()), Route::Nowhere);
    rig.set_up_admin_queues();
    rig.start();
}

#[test]
fn the_link_is_announced() {
    let mut rig = Rig::new(1);
    rig.start();
    rig.function.set_link(false);
    rig.function.attend(&rig.memory).unwrap();
    let (operation, _, event) = rig.take().expect("an event");
    assert_eq!((operation, event[8]), (op::EVENT, 0));
    assert!(!rig.function.listens());
}
