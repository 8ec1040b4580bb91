//! NTP: four timestamps, and what interrupt coalescing does to the clock they set.
//!
//! A client polls a server with real NTPv4 packets (RFC 5905; any NTP decoder reads them). It
//! leaves at t1, reaches the server at t2, the answer leaves at t3 and is back at t4, each in the
//! time of day of the host that takes it, as soon as that host's program has the packet. A hold on
//! the way adds to one half only, and the offset that a clock discipline would act upon is wrong by
//! half the hold:
//!
//! ```text
//! round trip = (t4 - t1) - (t3 - t2)     request half  = t2 - t1
//! offset = ((t2 - t1) + (t3 - t4)) / 2   response half = t4 - t3
//! ```
//!
//! Timestamps count in units of 2^-32 s, finer than a nanosecond, so no precision is lost on the
//! wire.

use crate::pacer::Pacer;
use crate::{
    Action, ConnectionId, Counter, Duration, Instant, Now, NtpClientSpec, NtpServerSpec, Prng,
    Recorder, Timing, Workload, WorkloadEvent, random_duration,
};
use alloc::collections::VecDeque;

/// The length of an NTP packet without extensions, in bytes.
pub(crate) const PACKET_BYTES: usize = 48;
/// From the NTP epoch (1900) to the Unix epoch (1970), in seconds.
const UNIX_EPOCH_S: u64 = 2_208_988_800;
/// Leap indicator "none", version 4.
const LEAP_VERSION: u8 = 4 << 3;
const MODE_CLIENT: u8 = 3;
const MODE_SERVER: u8 = 4;

/// An NTP timestamp of a time of day. The era that began in 1900 ends in 2036; differences survive
/// that.
fn to_ntp(wall_ns: u64) -> u64 {
    let seconds = (wall_ns / 1_000_000_000).wrapping_add(UNIX_EPOCH_S) << 32;
    // Rounded up, so that rounding down on the way back returns the same nanosecond.
    seconds | ((wall_ns % 1_000_000_000) << 32).div_ceil(1_000_000_000)
}

/// The time of day of an NTP timestamp, taken to lie within 68 years of `near_ns`: that may be
/// before 1970.
fn from_ntp(timestamp: u64, near_ns: u64) -> i128 {
    let near = to_ntp(near_ns);
    let seconds_apart = ((timestamp >> 32) as u32).wrapping_sub((near >> 32) as u32) as i32;
    let seconds = i128::from(near_ns / 1_000_000_000) + i128::from(seconds_apart);
    let nanos = ((timestamp & 0xffff_ffff) * 1_000_000_000) >> 32;
    seconds * 1_000_000_000 + i128::from(nanos)
}

/// The fields that this workload reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    mode: u8,
    stratum: u8,
    reference: u64,
    origin: u64,
    receive: u64,
    transmit: u64,
}

impl Packet {
    fn encode(&self) -> [u8; PACKET_BYTES] {
        let mut bytes = [0; PACKET_BYTES];
        bytes[0] = LEAP_VERSION | self.mode;
        bytes[1] = self.stratum;
        // Poll every 2^6 s, the usual claim (the field cannot say milliseconds); precision 2^-20 s,
        // about 1 us.
        bytes[2] = 6;
        bytes[3] = 0u8.wrapping_sub(20);
        if self.mode == MODE_SERVER {
            // The reference "local clock": we tell the time that the host has, and vouch for
            // nothing.
            bytes[12..16].copy_from_slice(&[127, 127, 1, 1]);
        }
        bytes[16..24].copy_from_slice(&self.reference.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.origin.to_be_bytes());
        bytes[32..40].copy_from_slice(&self.receive.to_be_bytes());
        bytes[40..48].copy_from_slice(&self.transmit.to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; PACKET_BYTES] = bytes.get(..PACKET_BYTES)?.try_into().ok()?;
        let timestamp = |from: usize| {
            u64::from_be_bytes(bytes[from..from + 8].try_into().expect("8 bytes of 48"))
        };
        let known_version = matches!((bytes[0] >> 3) & 7, 3 | 4);
        known_version.then(|| Self {
            mode: bytes[0] & 7,
            stratum: bytes[1],
            reference: timestamp(16),
            origin: timestamp(24),
            receive: timestamp(32),
            transmit: timestamp(40),
        })
    }
}

/// A poll without an answer yet.
#[derive(Clone, Copy, Debug)]
struct Poll {
    transmit: u64,
    t1_ns: u64,
    sent: Instant,
}

/// Polls, and records halves and offset.
#[derive(Debug)]
pub struct NtpClient {
    jitter: Duration,
    timeout: Duration,
    pacer: Pacer,
    due: Instant,
    prng: Prng,
    polls: VecDeque<Poll>,
    packet: [u8; PACKET_BYTES],
}

impl NtpClient {
    /// A client for `spec`, whose phases follow from `seed`.
    pub fn new(spec: &NtpClientSpec, seed: u64) -> Self {
        let interval = Duration::from_micros(spec.interval_us);
        Self {
            jitter: if spec.random_phase { interval } else { Duration::ZERO },
            timeout: Duration::from_millis(spec.timeout_ms),
            pacer: Pacer::every(interval),
            due: Instant::ZERO,
            prng: Prng::new(seed),
            polls: VecDeque::with_capacity(64),
            packet: [0; PACKET_BYTES],
        }
    }

    /// Chooses the moment of the next poll: somewhere in the next interval to begin at `at` or
    /// later. A client that was kept from polling skips polls, as a clock discipline would; it does
    /// not send a burst.
    fn schedule(&mut self, at: Instant) {
        while self.pacer.due() < at {
            self.pacer.advance();
        }
        self.due = self.pacer.due() + random_duration(&mut self.prng, self.jitter);
        self.pacer.advance();
    }

    fn received(&mut self, now: Now, bytes: &[u8], recorder: &mut Recorder) {
        let answer = Packet::decode(bytes).filter(|packet| packet.mode == MODE_SERVER);
        let place = answer.and_then(|a| self.polls.iter().position(|p| p.transmit == a.origin));
        let (Some(answer), Some(place)) = (answer, place) else {
            recorder.count(now.at, Counter::Stray, 1);
            return;
        };
        let poll = self.polls.remove(place).expect("position was just found");
        let t1 = i128::from(poll.t1_ns);
        let t2 = from_ntp(answer.receive, now.wall_ns);
        let t3 = from_ntp(answer.transmit, now.wall_ns);
        let t4 = i128::from(now.wall_ns);
        let values = [
            (Timing::RoundTrip, ((t4 - t1) - (t3 - t2)) as i64),
            (Timing::RequestHalf, (t2 - t1) as i64),
            (Timing::ResponseHalf, (t4 - t3) as i64),
            (Timing::Offset, (((t2 - t1) + (t3 - t4)) / 2) as i64),
        ];
        recorder.count(now.at, Counter::Transactions, 1);
        values.iter().for_each(|&(timing, ns)| recorder.record(now.at, timing, ns));
        recorder.sample(now.at, &values);
    }

    fn poll(&mut self, now: Now, recorder: &mut Recorder) -> Action<'_> {
        self.schedule(now.at);
        let transmit = to_ntp(now.wall_ns);
        self.polls.push_back(Poll { transmit, t1_ns: now.wall_ns, sent: now.at });
        let (mode, none) = (MODE_CLIENT, 0);
        let packet =
            Packet { mode, stratum: 0, reference: none, origin: none, receive: none, transmit };
        self.packet = packet.encode();
        recorder.count(now.at, Counter::BytesSent, PACKET_BYTES as u64);
        Action::Send { connection: 0, bytes: &self.packet }
    }
}

impl Workload for NtpClient {
    fn next(&mut self, now: Now, event: WorkloadEvent<'_>, recorder: &mut Recorder) -> Action<'_> {
        match event {
            WorkloadEvent::Start => self.schedule(Instant::ZERO),
            WorkloadEvent::Received { bytes, .. } => self.received(now, bytes, recorder),
            _ => {}
        }
        let end = recorder.window().end;
        if now.at >= end {
            return Action::Done;
        }
        while self.polls.front().is_some_and(|poll| poll.sent + self.timeout <= now.at) {
            self.polls.pop_front();
            recorder.count(now.at, Counter::Lost, 1);
        }
        if self.due <= now.at {
            return self.poll(now, recorder);
        }
        // Losses need no wake-up of their own: the next poll notices them.
        Action::Wait { until: Some(self.due.min(end)) }
    }

    fn reads_wall_clock(&self) -> bool {
        true
    }
}

/// Answers polls with the time of day of its host.
#[derive(Debug)]
pub struct NtpServer {
    packet: [u8; PACKET_BYTES],
    stratum: u8,
    /// The poll being answered: where from, when it arrived, and its transmit timestamp.
    poll: Option<(ConnectionId, u64, u64)>,
}

impl NtpServer {
    /// A server for `spec`.
    pub fn new(spec: &NtpServerSpec) -> Self {
        Self { packet: [0; PACKET_BYTES], stratum: spec.stratum, poll: None }
    }
}

impl Workload for NtpServer {
    fn next(&mut self, now: Now, event: WorkloadEvent<'_>, recorder: &mut Recorder) -> Action<'_> {
        match event {
            WorkloadEvent::Received { connection, bytes } => {
                let Some(poll) = Packet::decode(bytes).filter(|p| p.mode == MODE_CLIENT) else {
                    recorder.count(now.at, Counter::Stray, 1);
                    return Action::Wait { until: None };
                };
                self.poll = Some((connection, now.wall_ns, poll.transmit));
                // A round through the driver, so that t3 is read just before the answer leaves.
                Action::Compute(Duration::ZERO)
            }
            WorkloadEvent::Computed => {
                let Some((connection, t2_ns, origin)) = self.poll.take() else {
                    return Action::Wait { until: None };
                };
                let (receive, transmit) = (to_ntp(t2_ns), to_ntp(now.wall_ns));
                let (mode, stratum, reference) = (MODE_SERVER, self.stratum, receive);
                self.packet =
                    Packet { mode, stratum, reference, origin, receive, transmit }.encode();
                recorder.count(now.at, Counter::Transactions, 1);
                Action::Send { connection, bytes: &self.packet }
            }
            _ => Action::Wait { until: None },
        }
    }

    fn reads_wall_clock(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[path = "ntp_tests.rs"]
mod tests;
