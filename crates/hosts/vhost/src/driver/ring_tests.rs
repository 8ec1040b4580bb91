//! The driver's half of a queue against a device's half, in one process and without a socket.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, fence};

use rustix::event::{EventfdFlags, eventfd};

use super::layout::{BUFFER_BASE, HEADER, QueueLayout};
use super::receive::Receiver;
use super::ring::{Ring, RingError, Used, WRITE};
use super::transmit::Transmitter;
use sys::memory::{Layout, SharedMemory, Words};

/// A device, which believes what the driver says: it is the driver that is tested.
struct Device {
    place: QueueLayout,
    bytes: Words<AtomicU8>,
    descriptors: Words<AtomicU64>,
    available: Words<AtomicU16>,
    used: Words<AtomicU16>,
    elements: Words<AtomicU32>,
    event: Words<AtomicU16>,
    next: u16,
    done: u16,
}

impl Device {
    fn new(memory: &Arc<SharedMemory>, place: QueueLayout) -> Self {
        let size = usize::from(place.ring.size);
        Self {
            place,
            bytes: Words::new(memory, 0, memory.bytes()),
            descriptors: Words::new(memory, place.ring.descriptors, 2 * size),
            available: Words::new(memory, place.ring.available, size + 3),
            used: Words::new(memory, place.ring.used, 2),
            elements: Words::new(memory, place.ring.used + 4, 2 * size),
            event: Words::new(memory, place.ring.used + 4 + 8 * size, 1),
            next: 0,
            done: 0,
        }
    }

    fn slot(&self, index: u16) -> usize {
        usize::from(index & (self.place.ring.size - 1))
    }

    /// The next buffer that the driver has made available: its id, address, length and flags.
    fn take(&mut self) -> Option<(u16, usize, u32, u16)> {
        if self.available[1].load(Acquire) == self.next {
            return None;
        }
        let id = self.available[2 + self.slot(self.next)].load(Relaxed);
        self.next = self.next.wrapping_add(1);
        let address = self.descriptors[2 * usize::from(id)].load(Relaxed);
        let what = self.descriptors[2 * usize::from(id) + 1].load(Relaxed);
        Some((id, (address - BUFFER_BASE) as usize, what as u32, (what >> 32) as u16))
    }

    fn read(&self, at: usize, length: usize) -> Vec<u8> {
        self.bytes[at..][..length].iter().map(|byte| byte.load(Relaxed)).collect()
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        self.bytes[at..].iter().zip(bytes).for_each(|(to, byte)| to.store(*byte, Relaxed));
    }

    /// Gives a buffer back, to be seen with `publish`.
    fn give(&mut self, id: u32, length: u32) {
        let slot = self.slot(self.done);
        self.elements[2 * slot].store(id, Relaxed);
        self.elements[2 * slot + 1].store(length, Relaxed);
        self.done = self.done.wrapping_add(1);
    }

    /// Publishes what was given back; whether the driver wants an interrupt.
    fn flush_used(&mut self) -> bool {
        let old = self.used[1].load(Relaxed);
        self.used[1].store(self.done, Release);
        fence(SeqCst);
        let event = self.available[2 + usize::from(self.place.ring.size)].load(Relaxed);
        self.done.wrapping_sub(event).wrapping_sub(1) < self.done.wrapping_sub(old)
    }

    /// Asks for a kick when `after` more buffers are made available; how many are there already.
    fn ask(&self, after: u16) -> u16 {
        self.event[0].store(self.next.wrapping_add(after).wrapping_sub(1), Relaxed);
        fence(SeqCst);
        self.available[1].load(Relaxed).wrapping_sub(self.next)
    }

    /// Fills the next buffers with a frame, as `VIRTIO_NET_F_MRG_RXBUF` says.
    fn deliver(&mut self, frame: &[u8]) {
        let mut rest = frame;
        let mut buffers = 0_u16;
        let mut first = 0;
        while buffers == 0 || !rest.is_empty() {
            let (id, at, room, flags) = self.take().expect("a free buffer");
            assert_eq!(flags, WRITE);
            let header = if buffers == 0 { HEADER } else { 0 };
            first = if buffers == 0 { at } else { first };
            let (part, others) = rest.split_at(rest.len().min(room as usize - header));
            self.write(at + header, part);
            self.give(u32::from(id), (header + part.len()) as u32);
            (rest, buffers) = (others, buffers + 1);
        }
        self.write(first + 10, &buffers.to_le_bytes());
    }
}

struct Queues {
    memory: Arc<SharedMemory>,
    place: QueueLayout,
}

impl Queues {
    fn new(size: u16, room: usize) -> Self {
        let mut layout = Layout::default();
        // Rings that do not begin where the memory does.
        layout.take(1);
        let place = QueueLayout::take(&mut layout, size, room);
        Self { memory: SharedMemory::new(layout.bytes()).unwrap(), place }
    }

    fn ring(&self, event_index: bool) -> Ring {
        let kick = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        Ring::new(&self.memory, self.place.ring, kick, event_index)
    }

    fn transmitter(&self) -> (Transmitter, Device) {
        let transmitter = Transmitter::new(&self.memory, &self.place, self.ring(true));
        (transmitter, Device::new(&self.memory, self.place))
    }

    fn receiver(&self, merges: bool, largest: usize) -> (Receiver, Device) {
        let mut receiver =
            Receiver::new(&self.memory, &self.place, self.ring(true), merges, largest);
        receiver.ring().flush();
        (receiver, Device::new(&self.memory, self.place))
    }
}

fn frame(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (number * 31 + at * 7) as u8).collect()
}

#[test]
fn frames_go_out_as_they_are_over_many_laps() {
    let (mut transmitter, mut device) = Queues::new(4, 100).transmitter();
    let mut seen = 0;
    for number in 0..70_000 {
        let length = 14 + number % 70;
        assert!(transmitter.send(&frame(number, length)).unwrap());
        assert_eq!(device.take(), None, "before the flush");
        transmitter.ring().flush();
        let (id, at, room, flags) = device.take().unwrap();
        assert_eq!((room as usize, flags), (HEADER + length, 0));
        assert_eq!(device.read(at, HEADER), [0; HEADER]);
        assert_eq!(device.read(at + HEADER, length), frame(number, length));
        device.give(id.into(), 0);
        seen += usize::from(device.flush_used());
    }
    // The event index comes round once in 65,536 frames if it is not moved.
    assert_eq!(seen, 0, "interrupts that were not asked for");
}

#[test]
fn full_ring_says_so_and_goes_on_in_any_order() {
    let (mut transmitter, mut device) = Queues::new(4, 100).transmitter();
    for lap in 0..100 {
        let mut taken: Vec<_> = (0..4)
            .map(|at| {
                assert!(transmitter.send(&frame(lap, 20 + at)).unwrap());
                transmitter.ring().flush();
                device.take().unwrap().0
            })
            .collect();
        assert!(!transmitter.send(&frame(lap, 20)).unwrap());
        assert!(!transmitter.arm().unwrap());
        taken.rotate_left(lap % 4);
        taken.iter().for_each(|id| device.give((*id).into(), 0));
        assert!(device.flush_used(), "the driver waits for room");
        assert!(transmitter.arm().unwrap());
    }
    assert_eq!(transmitter.counters()[..2], [400, 100]);
}

#[test]
fn frames_come_in_whole_and_merged() {
    let (mut receiver, mut device) = Queues::new(8, 100).receiver(true, 500);
    for number in 0..2_000 {
        let length = 14 + number * 13 % 487;
        device.deliver(&frame(number, length));
        device.flush_used();
        let mut delivered = Vec::new();
        assert_eq!(receiver.receive(64, |frame| delivered.push(frame.to_vec())).unwrap(), 1);
        assert_eq!(delivered, [frame(number, length)]);
    }
}

#[test]
fn budget_is_kept_and_long_frames_are_dropped() {
    let (mut receiver, mut device) = Queues::new(16, 100).receiver(true, 80);
    for length in [80, 81, 150, 300, 20, 21] {
        device.deliver(&frame(length, length));
    }
    device.flush_used();
    let mut lengths = Vec::new();
    let mut poll = |budget| receiver.receive(budget, |frame| lengths.push(frame.len())).unwrap();
    assert_eq!([poll(5), poll(5), poll(5)], [5, 1, 0]);
    assert_eq!(lengths, [80, 20, 21]);
    assert_eq!(receiver.counters()[..2], [6, 3]);
}

#[test]
fn kicks_and_interrupts_come_when_asked_for() {
    let (mut receiver, mut device) = Queues::new(8, 100).receiver(false, 80);
    device.deliver(&frame(0, 20));
    assert!(!device.flush_used(), "not asked for");
    assert_eq!(receiver.receive(1, |_| ()), Ok(1));
    // 8 buffers were posted at first, which the device was notified of, and one more since.
    assert_eq!(device.ask(8), 8);
    device.deliver(&frame(0, 20));
    device.flush_used();
    assert_eq!(receiver.receive(1, |_| ()), Ok(1));
    assert_eq!(device.ask(10), 8);
    assert_eq!(receiver.counters()[2], 1);
    device.deliver(&frame(0, 20));
    device.flush_used();
    assert_eq!(receiver.receive(1, |_| ()), Ok(1));
    assert_eq!(receiver.counters()[2], 1, "nine of ten are there");
    device.deliver(&frame(0, 20));
    device.flush_used();
    assert_eq!(receiver.receive(1, |_| ()), Ok(1));
    assert_eq!(receiver.counters()[2], 2);

    assert!(!receiver.ring().arm(1));
    device.deliver(&frame(0, 20));
    assert!(device.flush_used(), "asked for");
    assert!(receiver.ring().arm(1), "slipped in");
}

#[test]
fn flags_stand_in_for_event_indices() {
    let queues = Queues::new(4, 100);
    let mut ring = queues.ring(false);
    let mut device = Device::new(&queues.memory, queues.place);
    ring.place(0, BUFFER_BASE);
    let flags = |device: &Device| device.available[0].load(Relaxed);
    assert_eq!(flags(&device), 1);
    assert!(!ring.arm(1));
    assert_eq!(flags(&device), 0);
    ring.disarm();
    assert_eq!(flags(&device), 1);
    for (no_notify, kicks) in [(0, 1), (1, 1), (0, 2)] {
        device.used[0].store(no_notify, Relaxed);
        ring.post(0);
        ring.flush();
        assert_eq!(ring.kicks(), kicks);
        let (id, ..) = device.take().unwrap();
        device.give(id.into(), 0);
        device.flush_used();
        assert_eq!(ring.take(), Ok(Some(Used { id: 0, length: 0 })));
    }
}

#[test]
fn device_that_lies_is_found_out_and_stays_so() {
    type Lie = fn(&mut Device);
    let lies: [(Lie, RingError); 8] = [
        (|device| device.give(4, 50), RingError::Buffer(4)),
        (|device| device.give(u32::MAX, 50), RingError::Buffer(u32::MAX)),
        (
            |device| {
                device.give(0, 50);
                device.give(0, 50);
            },
            RingError::Buffer(0),
        ),
        (|device| device.give(0, 25), RingError::Length(25, 26, 100)),
        (|device| device.give(0, 101), RingError::Length(101, 26, 100)),
        (|device| device.done = 5, RingError::Index(5, 4)),
        (|device| device.done = u16::MAX, RingError::Index(u16::MAX, 4)),
        (
            |device| {
                device.deliver(&[0; 50]);
                let at = device.place.buffers + 10;
                device.write(at, &3_u16.to_le_bytes());
            },
            RingError::Merge(3, 1),
        ),
    ];
    for (lie, expected) in lies {
        let (mut receiver, mut device) = Queues::new(4, 100).receiver(true, 80);
        // Buffers that are not lied about are one whole frame each.
        (0..4).for_each(|id| {
            let at = device.place.buffers + id * device.place.stride + 10;
            device.write(at, &1_u16.to_le_bytes());
        });
        lie(&mut device);
        device.flush_used();
        let found = receiver.receive(64, |frame| assert_eq!(frame.len(), 38));
        assert_eq!(found, Err(expected));
        assert_eq!(receiver.receive(64, |_| ()), Err(RingError::Before));
    }
}
