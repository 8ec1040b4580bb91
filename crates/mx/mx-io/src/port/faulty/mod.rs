//! A port that loses, doubles and reorders what it sends, on purpose: for those who want to see
//! what their program, or the protocol, does about it.
//!
//! What goes wrong is a [`Faults`], whose text is a list such as
//! `drop:medium:100,duplicate:ack:7,delay:50`: every 100th piece of a medium message is lost, every
//! 7th acknowledgement goes twice, and every 50th frame of any type goes after the one that follows
//! it. It is the same in every run that sends the same frames.
//!
//! Only frames that go are touched; wrap both ports for faults in both directions.

mod setting;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::mx::wire::FrameType;

pub use self::setting::{BadFaults, Fault, Faults, Rule};
use super::{
    Address, BulkState, Filtered, Identity, Outgoing, Port, PortCounters, PortError, Reference,
    TakeFrame, Transmitted, WriteFrame,
};

/// How many frames were lost, doubled and delayed; clones count together.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<[AtomicU64; Fault::ALL.len()]>);

impl Tally {
    /// How often this fault was made.
    #[must_use]
    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize].load(Ordering::Relaxed)
    }

    fn add(&self, fault: Fault) {
        self.0[fault as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// A port, and what goes wrong with the frames that it sends.
pub struct FaultyPort {
    port: Box<dyn Port>,
    injector: FaultInjector,
}

struct FaultInjector {
    rules: Vec<(Rule, u64)>,
    tally: Tally,
    /// A frame that goes before the sender is asked for the next one: the copy of one that has
    /// gone, or one that was overtaken.
    next: Option<(Outgoing, Vec<u8>)>,
    /// A frame that goes after the next one.
    held: Option<(Outgoing, Vec<u8>)>,
}

impl FaultyPort {
    /// Wraps a port.
    #[must_use]
    pub fn new(port: Box<dyn Port>, faults: &Faults) -> Self {
        let rules = faults.rules().iter().map(|rule| (*rule, 0)).collect();
        let tally = Tally::default();
        Self { port, injector: FaultInjector { rules, tally, next: None, held: None } }
    }

    /// What counts the faults that were made, even when the port belongs to an endpoint.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.injector.tally.clone()
    }
}

impl FaultInjector {
    fn write(
        &mut self,
        into: &mut [u8],
        mtu: usize,
        write: &mut WriteFrame<'_>,
    ) -> Option<Outgoing> {
        if let Some((outgoing, frame)) = self.next.take() {
            into[..frame.len()].copy_from_slice(&frame);
            return Some(outgoing);
        }
        loop {
            let outgoing = write.next(into)?;
            let length = outgoing.length.min(into.len());
            if length > mtu {
                // The path of bulk frames loses nothing.
                return Some(outgoing);
            }
            let fault = self.fault(&into[..length]);
            let copy = || (outgoing, into[..length].to_vec());
            match fault {
                // Only one is held at a time; a second one goes as it would have.
                Some(Fault::Delay) if self.held.is_none() => {
                    self.held = Some(copy());
                    self.tally.add(Fault::Delay);
                    continue;
                }
                Some(Fault::Drop) => {
                    self.tally.add(Fault::Drop);
                    continue;
                }
                Some(Fault::Duplicate) if self.held.is_none() => {
                    self.next = Some(copy());
                    self.tally.add(Fault::Duplicate);
                }
                _ => self.next = self.held.take(),
            }
            return Some(outgoing);
        }
    }

    /// What is to go wrong with a frame: what the first rule says whose turn it is.
    fn fault(&mut self, frame: &[u8]) -> Option<Fault> {
        let number = *frame.first()?;
        let frame_type = FrameType::ALL.into_iter().find(|it| *it as u8 == number)?;
        let mut fault = None;
        for (rule, seen) in &mut self.rules {
            if rule.frames.is_none_or(|only| only == frame_type) {
                *seen += 1;
                if seen.is_multiple_of(rule.every.get()) {
                    fault = fault.or(Some(rule.fault));
                }
            }
        }
        fault
    }
}

impl Port for FaultyPort {
    fn identity(&self) -> Identity {
        self.port.identity()
    }

    fn transmit(&mut self, write: &mut WriteFrame<'_>) -> Result<Transmitted, PortError> {
        let Self { port, injector } = self;
        let mtu = port.mtu().into();
        let next = |write: &mut WriteFrame<'_>, into: &mut [u8]| injector.write(into, mtu, write);
        port.transmit(&mut Filtered { frames: write, next })
    }

    fn bulk_changes(&mut self) -> Vec<(Address, BulkState)> {
        self.port.bulk_changes()
    }

    fn close_bulk_path(&mut self, peer: Address) {
        self.port.close_bulk_path(peer);
    }

    fn read(&mut self, peer: Address, reference: Reference, place: &mut [u8]) -> bool {
        self.port.read(peer, reference, place)
    }

    fn receive(&mut self, budget: usize, take: &mut TakeFrame<'_>) -> Result<usize, PortError> {
        self.port.receive(budget, take)
    }

    fn arm(&mut self) -> Result<bool, PortError> {
        self.port.arm()
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.port.readiness()
    }

    fn more_readiness(&self) -> Vec<BorrowedFd<'_>> {
        self.port.more_readiness()
    }

    fn clear(&mut self) -> Result<(), PortError> {
        self.port.clear()
    }

    fn counters(&mut self) -> PortCounters {
        self.port.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::NicId;
    use crate::port::wire::Wire;

    fn arriving(faults: &str, types: &[FrameType]) -> (Vec<u8>, Tally) {
        let wire = Wire::new(1500, 100).unwrap();
        let to = NicId([2, 0, 0, 0, 0, 2]);
        let mut b = wire.port(to, 2).unwrap();
        let a = wire.port(NicId([2, 0, 0, 0, 0, 1]), 1).unwrap();
        let mut a = FaultyPort::new(Box::new(a), &faults.parse().unwrap());
        let mut sent = 0;
        let outcome = a.transmit(&mut |frame: &mut [u8]| {
            let frame_type = *types.get(sent)? as u8;
            sent += 1;
            frame[..30].fill(sent as u8);
            (frame[0], frame[2]) = (frame_type, 2);
            Some(Outgoing::new(to, 2, 30))
        });
        assert_eq!(outcome.unwrap(), Transmitted::Drained);
        let mut came = Vec::new();
        b.receive(100, &mut |_, frame: &[u8]| came.push(frame[5])).unwrap();
        (came, a.tally())
    }

    #[test]
    fn faults_are_made_as_often_as_they_should() {
        use FrameType::{Ack, Small};
        let all_small = [Small; 7];
        for (faults, expected) in [
            ("drop:3", &[1, 2, 4, 5, 7][..]),
            ("drop:small:7", &[1, 2, 3, 4, 5, 6]),
            ("drop:ack:1", &[1, 2, 3, 4, 5, 6, 7]),
            ("duplicate:3", &[1, 2, 3, 3, 4, 5, 6, 6, 7]),
            ("delay:3", &[1, 2, 4, 3, 5, 7, 6]),
            ("drop:2,duplicate:3", &[1, 3, 3, 5, 7]),
            // There is none after it: it waits.
            ("delay:7", &[1, 2, 3, 4, 5, 6]),
            ("delay:1", &[2, 1, 4, 3, 6, 5]),
        ] {
            assert_eq!(arriving(faults, &all_small).0, expected, "{faults}");
        }
        let (came, tally) = arriving("drop:ack:2", &[Small, Ack, Small, Ack, Ack, Small, Ack]);
        assert_eq!(came, [1, 2, 3, 5, 6]);
        assert_eq!((tally.of(Fault::Drop), tally.of(Fault::Delay)), (2, 0));
    }
}
