//! The messages between a guest's clock and its calendar.
//!
//! Each has 16 bytes and goes in both directions (Linux, `include/uapi/linux/um_timetravel.h`).
//! Every message is answered by an ACK with its number, those of the calendar included.

pub(super) const SIZE: usize = 16;

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Op {
    /// The answer to any other message.
    Ack = 0,
    /// A guest introduces itself.
    Start = 1,
    /// A guest wants to run at the time given. A later request replaces an earlier one.
    Request = 2,
    /// A guest waits for its turn.
    Wait = 3,
    /// A guest asks for the time.
    Get = 4,
    /// A guest says what time it is for it, for example before it kicks a device.
    Update = 5,
    /// The calendar gives a guest its turn, at the time given.
    Run = 6,
    /// The calendar lets a guest do as it likes until the time given.
    FreeUntil = 7,
    /// A guest asks for the time of day, in nanoseconds since 1970.
    GetTimeOfDay = 8,
}

impl Op {
    pub(super) const ALL: [Self; 9] = [
        Self::Ack,
        Self::Start,
        Self::Request,
        Self::Wait,
        Self::Get,
        Self::Update,
        Self::Run,
        Self::FreeUntil,
        Self::GetTimeOfDay,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) op: Op,
    /// Its number, which the answer repeats.
    pub(super) seq: u32,
    /// Nanoseconds, where the operation has a time.
    pub(super) time: u64,
}

impl Message {
    pub(super) fn to_bytes(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..4].copy_from_slice(&(self.op as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.seq.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }

    /// The message in `bytes`; `None` if its operation is not one that a guest may send.
    pub(super) fn from_bytes(bytes: [u8; SIZE]) -> Option<Self> {
        let word = |at: usize| bytes[at..at + 4].first_chunk().copied().map(u32::from_ne_bytes);
        let number = word(0)?;
        let op = Op::ALL.into_iter().find(|op| *op as u32 == number)?;
        let time = bytes[8..].first_chunk().copied().map(u64::from_ne_bytes)?;
        Some(Self { op, seq: word(4)?, time })
    }

    pub(super) fn ack(self, time: u64) -> Self {
        Self { op: Op::Ack, seq: self.seq, time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_socket() {
        for op in Op::ALL {
            let message = Message { op, seq: 7, time: u64::MAX - 1 };
            assert_eq!(Message::from_bytes(message.to_bytes()), Some(message));
        }
    }

    #[test]
    fn an_unknown_operation_is_refused() {
        let mut bytes = Message { op: Op::Wait, seq: 0, time: 0 }.to_bytes();
        bytes[0] = 10;
        assert_eq!(Message::from_bytes(bytes), None);
    }
}
