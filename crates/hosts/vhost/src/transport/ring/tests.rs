//! A driver in a few lines, and what a hostile one can do.

use super::*;
use crate::transport::memory::tests::{file, mapped};
use crate::transport::message::Region;

const SIZE: u16 = 8;
const TABLE: u64 = 0x1000;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const BUFFERS: u64 = 0x4000;
const READ: u16 = 0;
const NEXT: u16 = VRING_DESC_F_NEXT as u16;
const WRITE: u16 = VRING_DESC_F_WRITE as u16;
const INDIRECT: u16 = VRING_DESC_F_INDIRECT as u16;

struct RingDriver {
    memory: Memory,
    ring: Ring,
    offered: u16,
}

fn memory() -> Memory {
    let region = Region { guest_address: 0, size: 0x8000, user_address: 0, file_offset: 0 };
    mapped(&[region], [file(0x8000)]).unwrap()
}

const ADDRESS: VringAddress = VringAddress {
    index: 0,
    flags: 0,
    descriptors: TABLE,
    used: USED,
    available: AVAILABLE,
    log: 0,
};

impl RingDriver {
    fn new(event_index: bool) -> Self {
        let memory = memory();
        let ring = Ring::new(&memory, &ADDRESS, SIZE.into(), 0, event_index).unwrap();
        Self { memory, ring, offered: 0 }
    }

    fn describe_at(&self, at: u64, buffer: (u64, u32), flags: u16, next: u16) {
        self.memory.write(at, &buffer.0.to_le_bytes()).unwrap();
        self.memory.write(at + 8, &buffer.1.to_le_bytes()).unwrap();
        self.memory.write(at + 12, &flags.to_le_bytes()).unwrap();
        self.memory.write(at + 14, &next.to_le_bytes()).unwrap();
    }

    fn describe(&self, index: u64, length: u32, flags: u16, next: u16) {
        self.describe_at(TABLE + 16 * index, (BUFFERS, length), flags, next);
    }

    fn offer(&mut self, head: u16) {
        let at = AVAILABLE + 4 + 2 * u64::from(self.offered % SIZE);
        self.memory.write(at, &head.to_le_bytes()).unwrap();
        self.offered = self.offered.wrapping_add(1);
        self.memory.write(AVAILABLE + 2, &self.offered.to_le_bytes()).unwrap();
    }

    fn take(&mut self) -> Result<Option<(u16, Chain)>, RingError> {
        let mut chain = Chain::default();
        Ok(self.ring.take(&self.memory, &mut chain)?.map(|head| (head, chain)))
    }

    fn used(&self, at: u64) -> u16 {
        let mut bytes = [0; 2];
        self.memory.read(USED + at, &mut bytes).unwrap();
        u16::from_le_bytes(bytes)
    }
}

#[test]
fn buffers_go_round_the_ring() {
    let mut driver = RingDriver::new(true);
    driver.describe(0, 12, NEXT, 1);
    driver.describe(1, 100, NEXT | WRITE, 2);
    driver.describe(2, 50, WRITE, 0);
    for round in 0..40_u16 {
        assert!(driver.take().unwrap().is_none());
        driver.offer(0);
        let (head, chain) = driver.take().unwrap().unwrap();
        assert_eq!((head, length(&chain.readable), length(&chain.writable)), (0, 12, 150));
        driver.ring.add_used(head, 7);
        assert_eq!(driver.used(2), round);
        assert!(driver.ring.flush_used());
        assert!(!driver.ring.flush_used());
        assert_eq!(driver.used(2), round + 1);
        assert_eq!(driver.used(4 + 8 * u64::from(round % SIZE) + 4), 7);
    }
    assert_eq!(driver.ring.base(), 40);
}

#[test]
fn buffers_that_were_put_back_are_taken_again() {
    let mut driver = RingDriver::new(true);
    driver.describe(3, 12, WRITE, 0);
    driver.offer(3);
    assert!(driver.take().unwrap().is_some());
    assert_eq!(driver.ring.available().unwrap(), 0);
    driver.ring.put_back(1);
    assert_eq!(driver.ring.available().unwrap(), 1);
    assert_eq!(driver.take().unwrap().unwrap().0, 3);
}

#[test]
fn indirect_tables_are_followed() {
    let mut driver = RingDriver::new(true);
    driver.describe_at(TABLE, (BUFFERS + 1, 48), INDIRECT, 0);
    driver.describe_at(BUFFERS + 1, (0x5000, 12), NEXT, 2);
    driver.describe_at(BUFFERS + 1 + 32, (0x6000, 34), WRITE, 0);
    driver.offer(0);
    let (_, chain) = driver.take().unwrap().unwrap();
    assert_eq!(chain.readable, [Segment { address: 0x5000, length: 12 }]);
    assert_eq!(chain.writable, [Segment { address: 0x6000, length: 34 }]);
}

#[test]
fn rings_that_cannot_be_are_refused() {
    let memory = memory();
    let new = |size, address| Ring::new(&memory, &address, size, 0, true).map(|_| ());
    for size in [0, 3, 65_536, u32::MAX, 0x1_0008] {
        assert!(matches!(new(size, ADDRESS), Err(RingError::Size(_))), "{size}");
    }
    assert!(matches!(new(32_768, ADDRESS), Err(RingError::Memory { .. })));
    for address in [
        VringAddress { descriptors: TABLE + 8, ..ADDRESS },
        VringAddress { available: AVAILABLE + 1, ..ADDRESS },
        VringAddress { used: USED + 2, ..ADDRESS },
        VringAddress { used: 0x8000 - 8, ..ADDRESS },
        VringAddress { descriptors: u64::MAX - 15, ..ADDRESS },
    ] {
        assert!(matches!(new(SIZE.into(), address), Err(RingError::Memory { .. })));
    }
}

#[test]
fn broken_tables_are_refused() {
    let refused = |length, inside: (u64, u16, u16)| {
        let mut driver = RingDriver::new(false);
        let (at, flags, next) = inside;
        driver.describe_at(TABLE, (at, length), INDIRECT, 0);
        if at == BUFFERS {
            driver.describe_at(at, (0x5000, 1), flags, next);
        }
        driver.offer(0);
        driver.take().unwrap_err()
    };
    assert!(matches!(refused(0, (BUFFERS, READ, 0)), RingError::Table(0)));
    assert!(matches!(refused(17, (BUFFERS, READ, 0)), RingError::Table(17)));
    assert!(matches!(refused(16, (BUFFERS, INDIRECT, 0)), RingError::Nested));
    assert!(matches!(refused(32, (BUFFERS, NEXT, 2)), RingError::Index { .. }));
    assert!(matches!(refused(32, (BUFFERS, NEXT, 0)), RingError::Endless(2)));
    assert!(matches!(refused(0xFFFF_FFF0, (BUFFERS, NEXT, 0)), RingError::Endless(1_024)));
    assert!(matches!(refused(16, (u64::MAX - 7, READ, 0)), RingError::Memory { .. }));
    assert!(matches!(refused(16, (0x8000, READ, 0)), RingError::Memory { .. }));
}

#[test]
fn driver_events_are_read_as_negotiated() {
    let driver = RingDriver::new(true);
    driver.memory.write(AVAILABLE + 4 + 2 * u64::from(SIZE), &7_u16.to_le_bytes()).unwrap();
    assert_eq!(driver.ring.driver_event(), DriverEvent::After(7));
    let driver = RingDriver::new(false);
    assert_eq!(driver.ring.driver_event(), DriverEvent::All);
    driver.memory.write(AVAILABLE, &1_u16.to_le_bytes()).unwrap();
    assert_eq!(driver.ring.driver_event(), DriverEvent::Nothing);
}

#[test]
fn kicks_are_asked_for_as_negotiated() {
    let mut driver = RingDriver::new(true);
    driver.describe(0, 1, READ, 0);
    driver.offer(0);
    driver.take().unwrap();
    driver.ring.ask_for_kick();
    assert_eq!(driver.used(4 + 8 * u64::from(SIZE)), 1);
    let mut driver = RingDriver::new(false);
    driver.ring.want_no_kick();
    assert_eq!(driver.used(0), 1);
    driver.ring.ask_for_kick();
    assert_eq!(driver.used(0), 0);
}
