//! The admin queues: messages of the driver to the physical function, which is us, and back.
//!
//! Descriptors have 32 bytes (`struct iavf_aq_desc`), each with a buffer of its own.

use std::collections::VecDeque;

use vhost::transport::memory::MemoryError;

use crate::dma::Dma;

const DESCRIPTOR: u64 = 32;

/// The longest message in either direction (`IAVF_MAX_AQ_BUF_SIZE`).
const MAX_MESSAGE: usize = 4_096;

/// Bits of the length registers: descriptors, an answer found no buffer, enabled.
const LENGTH: u32 = 0x3FF;
const OVERFLOW: u32 = 1 << 29;
pub(super) const ENABLE: u32 = 1 << 31;

/// Flags of a descriptor: done, complete, an error, a buffer of more than 512 bytes, a buffer.
const DONE: u16 = 1 << 0;
const COMPLETE: u16 = 1 << 1;
const ERROR: u16 = 1 << 2;
const LARGE: u16 = 1 << 9;
const BUFFER: u16 = 1 << 12;

const QUEUE_SHUTDOWN: u16 = 0x0003;
const MESSAGE_TO_PF: u16 = 0x0801;
const MESSAGE_TO_VF: u16 = 0x0802;
/// There is no such command (`IAVF_AQ_RC_ESRCH`).
const BAD_OPCODE: u16 = 3;
/// The message is too long (`IAVF_AQ_RC_E2BIG`).
const TOO_LONG: u16 = 7;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AdminMessage {
    pub operation: u32,
    pub status: i32,
    pub data: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct AdminQueue {
    pub base: u64,
    pub length: u32,
    pub head: u32,
    pub tail: u32,
}

impl AdminQueue {
    /// Its next descriptor, if it has one and can be used.
    fn next(&self) -> Option<u64> {
        let length = self.length & LENGTH;
        let usable = self.length & ENABLE != 0 && self.head < length && self.tail < length;
        let at = self.base.wrapping_add(u64::from(self.head) * DESCRIPTOR);
        (usable && self.head != self.tail).then_some(at)
    }

    fn advance(&mut self) {
        self.head = (self.head + 1) % (self.length & LENGTH).max(1);
    }
}

/// A descriptor of an admin queue.
struct Descriptor([u8; DESCRIPTOR as usize]);

impl Descriptor {
    fn read(at: u64, memory: &dyn Dma) -> Result<Self, MemoryError> {
        let mut bytes = [0; DESCRIPTOR as usize];
        memory.read(at, &mut bytes)?;
        Ok(Self(bytes))
    }

    fn half(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    fn word(&self, at: usize) -> u32 {
        u32::from(self.half(at + 2)) << 16 | u32::from(self.half(at))
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn flags(&self) -> u16 {
        self.half(0)
    }

    fn data_length(&self) -> usize {
        self.half(4).into()
    }

    fn buffer(&self) -> u64 {
        u64::from(self.word(24)) << 32 | u64::from(self.word(28))
    }
}

/// Both queues, and messages that wait for a buffer.
#[derive(Debug, Default)]
pub(super) struct Admin {
    /// From the driver (ATQ).
    pub sent: AdminQueue,
    /// To the driver (ARQ).
    pub received: AdminQueue,
    /// The driver has moved the tail of what it sends. Nothing else makes the queue be read: a
    /// driver that ends it sets its head back first, in front of what was there.
    rung: bool,
    waiting: VecDeque<AdminMessage>,
}

impl Admin {
    /// The driver moves the tail of what it sends.
    pub(super) fn ring(&mut self, tail: u32) {
        self.sent.tail = tail;
        self.rung = true;
    }

    /// Takes the next message of the driver, unless answers wait; commands that are none are
    /// answered in their descriptors.
    pub(super) fn take(&mut self, memory: &dyn Dma) -> Result<Option<AdminMessage>, MemoryError> {
        while self.rung && self.waiting.is_empty() {
            let Some(at) = self.sent.next() else {
                self.rung = false;
                break;
            };
            let mut descriptor = Descriptor::read(at, memory)?;
            self.sent.advance();
            let has_buffer = descriptor.flags() & BUFFER != 0;
            let length = if has_buffer { descriptor.data_length() } else { 0 };
            let error = match descriptor.half(2) {
                MESSAGE_TO_PF if length > MAX_MESSAGE => TOO_LONG,
                MESSAGE_TO_PF | QUEUE_SHUTDOWN => 0,
                _ => BAD_OPCODE,
            };
            let flags = DONE | COMPLETE | if error == 0 { 0 } else { ERROR };
            descriptor.put(0, &(descriptor.flags() | flags).to_le_bytes());
            descriptor.put(6, &error.to_le_bytes());
            memory.write(at, &descriptor.0)?;
            if error == 0 && descriptor.half(2) == MESSAGE_TO_PF {
                let mut data = vec![0; length];
                if !data.is_empty() {
                    memory.read(descriptor.buffer(), &mut data)?;
                }
                return Ok(Some(AdminMessage { operation: descriptor.word(8), status: 0, data }));
            }
        }
        Ok(None)
    }

    /// A message for the driver; it goes out with the next [`flush`](Self::flush).
    pub(super) fn post(&mut self, message: AdminMessage) {
        self.waiting.push_back(message);
    }

    /// Puts what waits into buffers of the driver; whether there was one.
    pub(super) fn flush(&mut self, memory: &dyn Dma) -> Result<bool, MemoryError> {
        let mut written = false;
        while let Some(message) = self.waiting.front()
            && let Some(at) = self.received.next()
        {
            let mut descriptor = Descriptor::read(at, memory)?;
            let room = descriptor.data_length();
            if message.data.len() > room {
                self.received.length |= OVERFLOW;
            } else {
                if !message.data.is_empty() {
                    memory.write(descriptor.buffer(), &message.data)?;
                }
                let large = if message.data.len() > 512 { LARGE } else { 0 };
                descriptor.put(0, &(DONE | COMPLETE | BUFFER | large).to_le_bytes());
                descriptor.put(2, &MESSAGE_TO_VF.to_le_bytes());
                descriptor.put(4, &(message.data.len() as u16).to_le_bytes());
                descriptor.put(6, &[0; 2]);
                descriptor.put(8, &message.operation.to_le_bytes());
                descriptor.put(12, &message.status.to_le_bytes());
                memory.write(at, &descriptor.0)?;
                self.received.advance();
                written = true;
            }
            self.waiting.pop_front();
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bytes;

    fn queue(base: u64, tail: u32) -> AdminQueue {
        AdminQueue { base, length: ENABLE | 4, head: 0, tail }
    }

    /// A descriptor with this opcode, length, operation and buffer.
    fn descriptor(opcode: u16, length: u16, operation: u32, buffer: u32) -> [u8; 32] {
        let mut descriptor = Descriptor([0; 32]);
        descriptor.put(0, &(BUFFER | LARGE).to_le_bytes());
        descriptor.put(2, &opcode.to_le_bytes());
        descriptor.put(4, &length.to_le_bytes());
        descriptor.put(8, &operation.to_le_bytes());
        descriptor.put(28, &buffer.to_le_bytes());
        descriptor.0
    }

    #[test]
    fn messages_go_there_and_back() {
        let memory = Bytes::new(0x8000);
        memory.write(0, &descriptor(0x0001, 0, 0, 0)).unwrap();
        memory.write(32, &descriptor(MESSAGE_TO_PF, 8, 1, 0x1000)).unwrap();
        memory.write(0x1000, &[1, 0, 0, 0, 1, 0, 0, 0]).unwrap();
        memory.write(0x400, &descriptor(0, 4_096, 0, 0x2000)).unwrap();
        let mut admin = Admin { sent: queue(0, 0), received: queue(0x400, 1), ..Admin::default() };
        admin.ring(2);
        let message = admin.take(&memory).unwrap().unwrap();
        assert_eq!((message.operation, &message.data[..]), (1, &[1, 0, 0, 0, 1, 0, 0, 0][..]));
        assert_eq!((admin.sent.head, admin.take(&memory).unwrap()), (2, None));
        let done = |at| Descriptor::read(at, &memory).unwrap();
        assert_eq!((done(0).flags() & 7, done(0).half(6)), (DONE | COMPLETE | ERROR, BAD_OPCODE));
        assert_eq!((done(32).flags() & 7, done(32).half(6)), (DONE | COMPLETE, 0));

        admin.post(AdminMessage { operation: 1, status: -5, data: vec![7; 8] });
        admin.post(AdminMessage { operation: 2, status: 0, data: Vec::new() });
        assert!(admin.flush(&memory).unwrap());
        let answer = done(0x400);
        assert_eq!((answer.half(2), answer.data_length(), answer.word(8)), (MESSAGE_TO_VF, 8, 1));
        assert_eq!((answer.word(12) as i32, admin.received.head), (-5, 1));
        assert!(!admin.flush(&memory).unwrap(), "there is no buffer");

        admin.waiting.clear();
        admin.sent.head = 0;
        assert_eq!(admin.take(&memory).unwrap(), None, "the driver has sent nothing");
    }

    #[test]
    fn nonsense_in_the_registers_is_no_queue() {
        let memory = Bytes::new(0x100);
        for queue in [
            AdminQueue { length: 4, ..queue(0, 1) },
            AdminQueue { length: ENABLE, ..queue(0, 1) },
            AdminQueue { head: 5, ..queue(0, 1) },
            AdminQueue { tail: 0x1_0000, ..queue(0, 1) },
        ] {
            let mut admin = Admin { sent: queue, rung: true, ..Admin::default() };
            assert_eq!(admin.take(&memory).unwrap(), None);
        }
        let mut admin = Admin { sent: queue(0x1_0000, 1), rung: true, ..Admin::default() };
        assert!(admin.take(&memory).is_err());
    }

    #[test]
    fn a_message_that_no_buffer_holds_is_lost_and_shows() {
        let memory = Bytes::new(0x1000);
        memory.write(0, &descriptor(0, 4, 0, 0x800)).unwrap();
        let mut admin = Admin { received: queue(0, 1), ..Admin::default() };
        admin.post(AdminMessage { operation: 1, status: 0, data: vec![1; 5] });
        assert!(!admin.flush(&memory).unwrap());
        assert_ne!(admin.received.length & OVERFLOW, 0);
        assert!(!admin.flush(&memory).unwrap());
    }
}
