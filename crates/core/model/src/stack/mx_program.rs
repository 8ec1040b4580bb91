//! A workload as the program at an endpoint of MX, with the records of an agent.
//!
//! A connection is a peer and the match information that it sends with: a client numbers its
//! connections so, and the answer has the number of the request.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use base::time::{Duration, Instant};
use workload::{ConnectionId, Counter, Timing};

use super::driver::{Demand, Reported, WorkloadDriver};
use super::mx::{HEAD, MxProgram, Next, SizedMessage};

/// A message that has come, or a report.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    Message(ConnectionId, SizedMessage),
    Drained(ConnectionId),
}

/// A workload with an endpoint.
pub struct WorkloadProgram {
    /// The workload and what it has measured.
    pub driver: WorkloadDriver,
    /// Peers and match information, by the number of the connection.
    connections: Vec<(usize, u64)>,
    numbers: BTreeMap<(usize, u64), ConnectionId>,
    /// Messages that may be on their way before a sender has a backlog; 0: not limited.
    in_flight: usize,
    /// Those whose end is recorded, by number: their connections, and when they were handed over.
    sends: BTreeMap<u64, (ConnectionId, Instant)>,
    /// The connection and the length of the message that is handed over.
    sending: (ConnectionId, usize),
    inbox: VecDeque<Waiting>,
}

impl WorkloadProgram {
    /// A program that talks to so many peers in turn through so many connections, a server through
    /// those that come.
    pub fn new(
        driver: WorkloadDriver,
        (connections, peers): (usize, usize),
        in_flight: usize,
    ) -> Self {
        let connection = |number| (number % peers.max(1), number as u64);
        let connections: Vec<_> = (0..connections).map(connection).collect();
        Self {
            driver,
            numbers: connections.iter().copied().zip(0..).collect(),
            connections,
            in_flight,
            sends: BTreeMap::new(),
            sending: (0, 0),
            inbox: VecDeque::new(),
        }
    }

    /// How many bytes of what its workload sends are wanted.
    pub const KEEPS: usize = HEAD;

    fn connection(&mut self, of: (usize, u64)) -> ConnectionId {
        *self.numbers.entry(of).or_insert_with(|| {
            self.connections.push(of);
            self.connections.len() - 1
        })
    }

    /// Reports what has waited longest, or that its time has come.
    fn report_next(&mut self, now: Instant) {
        match self.inbox.pop_front() {
            Some(Waiting::Message(connection, SizedMessage { length, head })) => {
                let read = |place: &mut [u8]| {
                    let count = place.len().min(HEAD);
                    place[..count].copy_from_slice(&head[..count]);
                };
                self.driver.received(connection, length as usize, read);
            }
            Some(Waiting::Drained(connection)) => self.driver.report(Reported::Drained(connection)),
            None if self.driver.until().is_some_and(|until| until <= now) => {
                self.driver.report(Reported::Woke);
            }
            None => {}
        }
    }
}

impl MxProgram for WorkloadProgram {
    fn next(&mut self, now: Instant) -> Next {
        loop {
            if self.driver.waits() {
                self.report_next(now);
            }
            match self.driver.next(now) {
                // MX sends no batches: the datagrams of one are a message.
                Demand::Send { connection, length, .. } => {
                    self.sending = (connection, length);
                    let (peer, match_info) =
                        self.connections.get(connection).copied().unwrap_or_default();
                    let mut message = SizedMessage::of(length as u64);
                    let bytes = self.driver.outgoing();
                    message.head[..bytes.len()].copy_from_slice(bytes);
                    return Next::Send { peer, match_info, message };
                }
                Demand::Compute(Duration::ZERO) => self.driver.report(Reported::Computed),
                Demand::Compute(lasts) => return Next::Compute(lasts),
                Demand::Report(until)
                    if self.inbox.is_empty() && until.is_none_or(|until| until > now) =>
                {
                    return Next::Wait;
                }
                Demand::Report(_) => {}
                Demand::Nothing => return Next::Wait,
            }
        }
    }

    fn sent(&mut self, now: Instant, number: u64, outstanding: usize) {
        let (connection, length) = self.sending;
        if self.in_flight > 0 {
            self.sends.insert(number, (connection, now));
        }
        let is_full = self.in_flight > 0 && outstanding >= self.in_flight;
        let backlog = if is_full { length.max(1) } else { 0 };
        self.driver.report(Reported::Sent(connection, backlog));
    }

    fn drained(&mut self, now: Instant, number: u64, _outstanding: usize) {
        let Some((connection, sent_at)) = self.sends.remove(&number) else { return };
        let lasted = now.since(sent_at).as_nanos() as i64;
        let now = self.driver.own_clock(now);
        self.driver.recorder_mut().record(now, Timing::Transfer, lasted);
        self.inbox.push_back(Waiting::Drained(connection));
    }

    fn received(&mut self, now: Instant, peer: usize, match_info: u64, message: SizedMessage) {
        let connection = self.connection((peer, match_info));
        let now = self.driver.own_clock(now);
        let recorder = self.driver.recorder_mut();
        recorder.count(now, Counter::MessagesReceived, 1);
        recorder.count(now, Counter::MessageBytes, message.length);
        self.inbox.push_back(Waiting::Message(connection, message));
    }

    fn computed(&mut self) {
        self.driver.report(Reported::Computed);
    }

    fn wants_ends(&self) -> bool {
        self.in_flight > 0
    }

    fn until(&self) -> Option<Instant> {
        self.driver.until()
    }
}
