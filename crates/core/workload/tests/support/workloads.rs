//! A workload whose peers send anything, over a driver that keeps the contract.
//!
//! The first bytes are its specification, each other one what happens while it waits: something
//! arrives (any bytes, or almost an answer), a connection closes or drains, time passes.

use base::time::{Duration, Instant};
use serde_json::{Value, json};
use workload::{Action, Counter, Framing, Now, Recorder, Window, WorkloadEvent, WorkloadSpec};

use super::input::Input;

/// Answers of a memcached, and some that it never gives.
const LINES: [&[u8]; 12] = [
    b"STORED\r\n",
    b"END\r\n",
    b"VALUE earmark 0 4\r\nvvvv\r\nEND\r\n",
    b"VALUE earmark 0 4\r\n",
    b"VALUE earmark 0 18446744073709551615\r\n",
    b"VALUE other 0 4\r\n",
    b"SERVER_ERROR out of memory\r\n",
    b"NOT_STORED\r\n",
    b"VALUE",
    b"\r\n",
    b"\n",
    b"vvvvvvvv",
];

/// Numbers of fields.
const NUMBERS: [u64; 8] = [0, 1, 8, 75, 1_000, 65_536, 10_000_000, u64::MAX];

/// The most that is done, and bytes of a message.
const STEPS: usize = 2_000;
const LONGEST: u64 = 65_536;

/// Time of the window, and of day when it begins, in nanoseconds.
const END: u64 = 20_000_000;
const TODAY: u64 = 1_700_000_000_000_000_000;

/// The specification that the bytes say, if it is one.
fn specification(input: &mut Input<'_>) -> Option<WorkloadSpec> {
    let kind = usize::from(input.u8());
    let mut number = |most: u64| NUMBERS[usize::from(input.u8()) % NUMBERS.len()].min(most);
    let spec: Value = match kind % 9 {
        0 => json!({"kind": "rr-client", "request_bytes": number(LONGEST),
            "response_bytes": number(LONGEST), "connections": number(8), "timeout_ms": number(u64::MAX),
            "think_us_max": number(u64::MAX)}),
        1 => json!({"kind": "rr-client", "request_bytes": number(LONGEST),
            "response_bytes": number(LONGEST), "connections": number(8), "timeout_ms": number(u64::MAX),
            "rate_per_s": number(100_000)}),
        2 => json!({"kind": "rr-server", "request_bytes": number(LONGEST),
            "response_bytes": number(LONGEST), "compute_us": number(100_000)}),
        3 => json!({"kind": "memcached-client", "value_bytes": number(LONGEST),
            "think_us_max": number(u64::MAX)}),
        4 => json!({"kind": "ntp-client", "interval_us": number(u64::MAX),
            "random_phase": number(1) == 1, "timeout_ms": number(u64::MAX)}),
        5 => json!({"kind": "ntp-server", "stratum": number(255)}),
        6 => json!({"kind": "bulk-sender", "chunk_bytes": number(LONGEST),
            "rate_mbit": number(1_000_000)}),
        7 => json!({"kind": "bulk-receiver"}),
        _ => json!({"kind": "pps-receiver"}),
    };
    let spec: WorkloadSpec = serde_json::from_value(spec).expect("it has the fields");
    spec.check(1).is_ok().then_some(spec)
}

/// Does what the bytes say.
pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let framing = if input.u8().is_multiple_of(2) { Framing::Stream } else { Framing::Datagram };
    let Some(spec) = specification(&mut input) else { return };
    let mut workload = spec.build(framing, 7);
    let window = Window { start: Instant::ZERO, end: Instant::from_nanos(END) };
    let mut recorder = Recorder::new(window, true);
    let (mut now, mut sent, mut came) = (Instant::ZERO, Vec::new(), 0_u64);
    let mut peers = Peers { open: (0..spec.connections()).collect(), next: spec.connections() };
    let mut event = Occurred::Start;
    for step in 0.. {
        let is_over = input.is_empty();
        let wall_ns = TODAY + now.as_nanos();
        let action = workload.next(Now { at: now, wall_ns }, event.event(), &mut recorder);
        event = match action {
            Action::Done => break,
            Action::Fail(why) => {
                assert!(!why.is_empty());
                break;
            }
            Action::Send { bytes, connection } => {
                assert!(bytes.len() as u64 <= 2 * LONGEST);
                sent.clear();
                sent.extend_from_slice(bytes);
                let backlog = usize::from(input.u8()) * 1_000;
                // As it takes time, a client whose requests are lost at once comes to an end.
                now += Duration::from_micros(1);
                Occurred::Sent(connection, backlog)
            }
            Action::SendBatch { bytes, datagram_bytes, connection } => {
                assert!(bytes.len().is_multiple_of(datagram_bytes));
                Occurred::Sent(connection, 0)
            }
            Action::Compute(work) => {
                now += work;
                Occurred::Computed
            }
            // What a server waits for does not come any more.
            Action::Wait { .. } if is_over && spec.is_server() => break,
            Action::Wait { until } if is_over => {
                now = until.unwrap_or(Instant::from_nanos(END)).max(now);
                Occurred::Woke
            }
            Action::Wait { until } => {
                let what = input.u8();
                now += Duration::from_nanos(u64::from(input.u8()) << (what / 16 * 2));
                match peers.chosen(what, spec.is_server()) {
                    Some(connection) if !what.is_multiple_of(8) => {
                        waited(&mut input, (what, connection), &sent, &mut came)
                    }
                    _ => {
                        now = until.unwrap_or(now).max(now);
                        Occurred::Woke
                    }
                }
            }
        };
        // A client of NTP may ask each microsecond, and each byte may be a request to a server.
        let most = STEPS + 2 * END as usize / 1_000 + 3 * came as usize;
        assert!(step < most, "it does not end");
    }
    assert!(recorder.counter(Counter::BytesReceived) <= came);
    for distribution in recorder.distributions().values() {
        assert!(distribution.is_sound(), "{distribution:?}");
    }
}

/// What happened, with its bytes.
enum Occurred {
    Start,
    Sent(usize, usize),
    Computed,
    Woke,
    Received(usize, Vec<u8>),
    Drained(usize),
    Closed(usize),
}

impl Occurred {
    fn event(&self) -> WorkloadEvent<'_> {
        match self {
            Self::Start => WorkloadEvent::Start,
            Self::Sent(connection, backlog) => {
                WorkloadEvent::Sent { connection: *connection, backlog: *backlog }
            }
            Self::Computed => WorkloadEvent::Computed,
            Self::Woke => WorkloadEvent::Woke,
            Self::Received(connection, bytes) => {
                WorkloadEvent::Received { connection: *connection, bytes }
            }
            Self::Drained(connection) => WorkloadEvent::Drained { connection: *connection },
            Self::Closed(connection) => WorkloadEvent::Closed { connection: *connection },
        }
    }
}

/// The connections that are open, in the order of their numbers, none of which is used again.
struct Peers {
    open: Vec<usize>,
    next: usize,
}

impl Peers {
    /// The connection that something happens to, which ends if it is closed.
    fn chosen(&mut self, what: u8, is_server: bool) -> Option<usize> {
        if is_server && (self.open.is_empty() || what & 8 != 0 && self.next < 8) {
            self.open.push(self.next);
            self.next += 1;
        }
        let at = usize::from(what / 8) % self.open.len().max(1);
        let connection = *self.open.get(at)?;
        if what % 8 == 7 {
            self.open.remove(at);
        }
        Some(connection)
    }
}

/// What happens on a connection while a workload waits.
fn waited(
    input: &mut Input<'_>,
    (what, connection): (u8, usize),
    sent: &[u8],
    came: &mut u64,
) -> Occurred {
    let bytes = match what % 8 {
        1 => LINES[usize::from(input.u8()) % LINES.len()].to_vec(),
        2 => {
            let length = usize::from(input.u8());
            input.bytes(length).to_vec()
        }
        3 => vec![input.u8(); usize::from(input.u16())],
        // What was sent, as one who answers has changed it: an NTP server, or an echo.
        4 | 5 => {
            let mut answer = sent.to_vec();
            if let Some(packet) = answer.first_chunk_mut::<48>() {
                packet[0] = 0x24;
                packet.copy_within(40..48, 24);
                packet[32..48].fill(input.u8());
            }
            let (at, value) = (usize::from(input.u8()), input.u8());
            if let Some(byte) = answer.get_mut(at) {
                *byte = value;
            }
            answer
        }
        6 => return Occurred::Drained(connection),
        _ => return Occurred::Closed(connection),
    };
    *came += bytes.len() as u64;
    Occurred::Received(connection, bytes)
}
