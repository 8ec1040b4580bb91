//! The memcached client: sets one value, then gets it over and over, in the text protocol.
//!
//! Latency is what the web server of the bge story measured: from the write of the request to when
//! the first five bytes of the answer have been read. Five bytes tell a hit (`VALUE`) from a miss
//! (`END\r\n`), so the first packet of the answer decides, however large the value is. The rest is
//! drained before the next get.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{
    Action, Counter, Duration, Instant, MemcachedClientSpec, Now, Prng, Recorder, Timing, Workload,
    WorkloadEvent, random_duration,
};

/// The seed's datum: how many bytes the caller reads first.
const FIRST_BYTES: usize = 5;
/// Longer than any line that memcached answers a `set` or a `get` of our key with.
const LINE_BYTES_MAX: usize = 256;
const GET: &[u8] = b"get earmark\r\n";
const CLOSED: &str = "memcached closed the connection before the end; look at its log";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientState {
    /// The value has to be stored, first of all or after a miss.
    ToSet,
    Setting,
    Thinking {
        until: Instant,
    },
    /// Reading the first line of the answer to a get.
    Getting {
        since: Instant,
    },
    /// Reading the value and the closing `END`; this many bytes are missing.
    Draining {
        bytes: usize,
    },
}

/// See the module.
#[derive(Debug)]
pub struct MemcachedClient {
    set: Vec<u8>,
    value_bytes: usize,
    think: Duration,
    prng: Prng,
    state: ClientState,
    /// The line being read, without its end.
    line: Vec<u8>,
    /// Everything read of the current answer's first line so far, line end included.
    seen: usize,
    failure: String,
}

impl MemcachedClient {
    /// A client for `spec`, whose think times follow from `seed`.
    pub fn new(spec: &MemcachedClientSpec, seed: u64) -> Self {
        let mut set = format!("set earmark 0 0 {}\r\n", spec.value_bytes).into_bytes();
        set.resize(set.len() + spec.value_bytes, b'v');
        set.extend_from_slice(b"\r\n");
        Self {
            set,
            value_bytes: spec.value_bytes,
            think: Duration::from_micros(spec.think_us_max),
            prng: Prng::new(seed),
            state: ClientState::ToSet,
            line: Vec::with_capacity(LINE_BYTES_MAX),
            seen: 0,
            failure: String::new(),
        }
    }

    fn think(&mut self, from: Instant) {
        self.state =
            ClientState::Thinking { until: from + random_duration(&mut self.prng, self.think) };
    }

    /// Takes bytes of a line until its end; true when the line is complete.
    fn take_line(&mut self, bytes: &mut &[u8]) -> Result<bool, String> {
        while let Some((&byte, rest)) = bytes.split_first() {
            *bytes = rest;
            self.seen += 1;
            match byte {
                b'\n' => return Ok(true),
                b'\r' => {}
                _ if self.line.len() < LINE_BYTES_MAX => self.line.push(byte),
                _ => return Err(self.unexpected()),
            }
        }
        Ok(false)
    }

    fn unexpected(&self) -> String {
        let line = String::from_utf8_lossy(&self.line);
        format!("unexpected answer \"{line}\"; is the server a memcached with the text protocol?")
    }

    /// Goes through what one read returned.
    fn received(
        &mut self,
        at: Instant,
        mut bytes: &[u8],
        recorder: &mut Recorder,
    ) -> Result<(), String> {
        recorder.count(at, Counter::BytesReceived, bytes.len() as u64);
        while !bytes.is_empty() {
            match self.state {
                ClientState::Setting => {
                    if self.take_line(&mut bytes)? {
                        self.stored(at)?;
                    }
                }
                ClientState::Getting { since } => {
                    let before = self.seen;
                    let complete = self.take_line(&mut bytes)?;
                    if before < FIRST_BYTES && self.seen >= FIRST_BYTES {
                        let latency_ns = at.since(since).as_nanos() as i64;
                        recorder.record(at, Timing::Latency, latency_ns);
                        recorder.sample(at, &[(Timing::Latency, latency_ns)]);
                    }
                    if complete {
                        self.header(at, recorder)?;
                    }
                }
                ClientState::Draining { bytes: missing } => {
                    let taken = missing.min(bytes.len());
                    bytes = &bytes[taken..];
                    self.state = ClientState::Draining { bytes: missing - taken };
                    if taken == missing {
                        recorder.count(at, Counter::Transactions, 1);
                        self.think(at);
                    }
                }
                ClientState::ToSet | ClientState::Thinking { .. } => {
                    self.line = bytes[..bytes.len().min(LINE_BYTES_MAX)].to_vec();
                    return Err(self.unexpected());
                }
            }
        }
        Ok(())
    }

    /// The answer to `set`.
    fn stored(&mut self, at: Instant) -> Result<(), String> {
        if self.line != b"STORED" {
            let line = String::from_utf8_lossy(&self.line);
            return Err(format!(
                "memcached did not store the value of {} bytes: \"{line}\"; lower value_bytes",
                self.value_bytes
            ));
        }
        self.think(at);
        Ok(())
    }

    /// The first line of the answer to `get`: `VALUE <key> <flags> <bytes>`, `END`, or an error.
    fn header(&mut self, at: Instant, recorder: &mut Recorder) -> Result<(), String> {
        if self.line == b"END" {
            // Evicted or expired: store it again.
            recorder.count(at, Counter::Misses, 1);
            self.state = ClientState::ToSet;
        } else if self.line.starts_with(b"SERVER_ERROR") {
            recorder.count(at, Counter::Errors, 1);
            self.think(at);
        } else {
            let bytes = value_bytes(&self.line)
                .and_then(|bytes| bytes.checked_add(b"\r\nEND\r\n".len()))
                .ok_or_else(|| self.unexpected())?;
            self.state = ClientState::Draining { bytes };
        }
        Ok(())
    }

    fn decide(&mut self, at: Instant, recorder: &mut Recorder) -> Action<'_> {
        let end = recorder.window().end;
        if at >= end {
            return Action::Done;
        }
        let bytes = match self.state {
            ClientState::ToSet => {
                self.state = ClientState::Setting;
                &self.set
            }
            ClientState::Thinking { until } if until <= at => {
                self.state = ClientState::Getting { since: at };
                GET
            }
            ClientState::Thinking { until } => return Action::Wait { until: Some(until.min(end)) },
            _ => return Action::Wait { until: Some(end) },
        };
        self.line.clear();
        self.seen = 0;
        recorder.count(at, Counter::BytesSent, bytes.len() as u64);
        Action::Send { connection: 0, bytes }
    }
}

/// The length in `VALUE <key> <flags> <bytes>`.
fn value_bytes(line: &[u8]) -> Option<usize> {
    let mut words = core::str::from_utf8(line).ok()?.split(' ');
    let is_ours = words.next() == Some("VALUE") && words.next() == Some("earmark");
    let _flags = words.next()?;
    words.next()?.parse().ok().filter(|_| is_ours)
}

impl Workload for MemcachedClient {
    fn next(&mut self, now: Now, event: WorkloadEvent<'_>, recorder: &mut Recorder) -> Action<'_> {
        match event {
            WorkloadEvent::Received { bytes, .. } => {
                if let Err(why) = self.received(now.at, bytes, recorder) {
                    self.failure = why;
                    return Action::Fail(&self.failure);
                }
            }
            WorkloadEvent::Closed { .. } if now.at < recorder.window().end => {
                return Action::Fail(CLOSED);
            }
            _ => {}
        }
        self.decide(now.at, recorder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Did, Script};

    /// A client that has stored 4 bytes and sent its first get at 1000 ns.
    fn getting() -> Script<MemcachedClient> {
        let spec = MemcachedClientSpec { value_bytes: 4, think_us_max: 0 };
        let mut script = Script::new(MemcachedClient::new(&spec, 1), 1_000_000);
        assert_eq!(script.start(), Did::Send(0, b"set earmark 0 0 4\r\nvvvv\r\n".to_vec()));
        assert_eq!(script.sent(10, 0), Did::Wait(Some(1_000_000)));
        assert_eq!(script.received(500, 0, b"STO"), Did::Wait(Some(1_000_000)));
        assert_eq!(script.received(1000, 0, b"RED\r\n"), Did::Send(0, GET.to_vec()));
        script.sent(1010, 0);
        script
    }

    #[test]
    fn latency_ends_with_the_fifth_byte() {
        let mut script = getting();
        script.received(2000, 0, b"VALU");
        assert_eq!(script.timing(Timing::Latency).count, 0);
        script.received(3000, 0, b"E earmark 0 4");
        assert_eq!(script.timing(Timing::Latency).sum_ns, 2000);
        script.received(4000, 0, b"\r\nvv");
        script.received(5000, 0, b"vv\r\nEN");
        assert_eq!(script.counter(Counter::Transactions), 0, "not drained yet");
        assert_eq!(script.received(6000, 0, b"D\r\n"), Did::Send(0, GET.to_vec()));
        assert_eq!(script.counter(Counter::Transactions), 1);
        script.sent(6010, 0);
        script.received(7000, 0, b"VALUE earmark 0 4\r\nvvvv\r\nEND\r\n");
        let latency = script.timing(Timing::Latency);
        assert_eq!((latency.count, latency.min_ns), (2, 1000));
        assert_eq!(script.counter(Counter::Transactions), 2);
    }

    #[test]
    fn a_value_that_looks_like_protocol_is_drained_by_length() {
        let mut script = getting();
        let did = script.received(2000, 0, b"VALUE earmark 0 4\r\nEND\r\r\nEND\r\n");
        assert_eq!(did, Did::Send(0, GET.to_vec()));
    }

    #[test]
    fn a_miss_is_counted_and_the_value_stored_again() {
        let mut script = getting();
        let Did::Send(0, set) = script.received(2000, 0, b"END\r\n") else { panic!() };
        assert!(set.starts_with(b"set earmark"));
        assert_eq!(script.counter(Counter::Misses), 1);
        assert_eq!(script.timing(Timing::Latency).sum_ns, 1000, "a miss is an answer too");
    }

    #[test]
    fn errors_are_counted_or_end_the_run_with_the_servers_words() {
        let mut script = getting();
        let did = script.received(2000, 0, b"VALUE earmark 0 18446744073709551615\r\n");
        assert!(matches!(did, Did::Fail(why) if why.contains("18446744073709551615")));
        let mut script = getting();
        let did = script.received(2000, 0, b"SERVER_ERROR out of memory\r\n");
        assert_eq!(did, Did::Send(0, GET.to_vec()));
        assert_eq!(script.counter(Counter::Errors), 1);
        script.sent(2010, 0);
        let did = script.received(3000, 0, b"HTTP/1.1 400 Bad Request\r\n");
        let Did::Fail(why) = did else { panic!("{did:?}") };
        assert!(why.contains("HTTP/1.1 400 Bad Request") && why.contains("memcached"), "{why}");
    }

    #[test]
    fn a_refused_set_says_what_to_change() {
        let spec = MemcachedClientSpec { value_bytes: 4, think_us_max: 0 };
        let mut script = Script::new(MemcachedClient::new(&spec, 1), 1_000_000);
        script.start();
        script.sent(10, 0);
        let did = script.received(20, 0, b"SERVER_ERROR object too large for cache\r\n");
        let Did::Fail(why) = did else { panic!("{did:?}") };
        assert!(
            why.contains("too large for cache")
                && why.contains("of 4 bytes")
                && why.contains("value_bytes"),
            "{why}"
        );
    }
}
