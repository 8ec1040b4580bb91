//! `earmark echo`: answers probes, over UDP with the kernel's receive stamp and its own send time.
//!
//! A request is 24 bytes: `EMK1`, a number, for how many nanoseconds the answer is to wait, and
//! eight bytes of room. An answer is the same with `EMK2`, and in the last sixteen bytes the two
//! times, in nanoseconds since 1970. All in network order. Whatever is no request is sent back as
//! it is, over TCP everything is.
//!
//! An answer never waits for longer than [`LONGEST_WAIT`], nor do more than [`MOST_WAITING`]: who
//! asks for more is answered at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use linux::clock::wall_clock_nanos;
use linux::stamps::Stamped;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;

use super::spin::pass_time;
use crate::say::note;

/// The port that `earmark probe` tries first.
pub const PORT: u16 = 7_007;

/// The first four bytes of a request.
const REQUEST: [u8; 4] = *b"EMK1";

/// The first four bytes of an answer.
const ANSWER: [u8; 4] = *b"EMK2";

/// Bytes of a request and of an answer.
pub const LENGTH: usize = 24;

/// The longest that an answer waits for: beyond, its prober is no prober of ours.
pub const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// The most answers that wait at once.
pub const MOST_WAITING: usize = 4_096;

/// An answer with times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// That of the request.
    pub number: u32,
    /// When the far kernel received the request, and when the far program answered; nothing from
    /// an echo that is not ours.
    pub times: Option<(u64, u64)>,
}

/// A request whose answer is to wait so many nanoseconds.
#[must_use]
pub fn request(number: u32, wait: u64) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..4].copy_from_slice(&REQUEST);
    bytes[4..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..16].copy_from_slice(&wait.to_be_bytes());
    bytes
}

/// Reads what came back; nothing if it is no answer.
#[must_use]
pub fn answer(bytes: &[u8]) -> Option<Answer> {
    let word = |at: usize| {
        bytes.get(at..at + 8).and_then(|word| Some(u64::from_be_bytes(word.try_into().ok()?)))
    };
    let number = u32::from_be_bytes(bytes.get(4..8)?.try_into().ok()?);
    let times = (word(8)?, word(16)?);
    match bytes.get(..4)? {
        start if start == ANSWER => Some(Answer { number, times: Some(times) }),
        start if start == REQUEST => Some(Answer { number, times: None }),
        _ => None,
    }
}

/// Answers on `port` until it is killed; every answer takes `work` of CPU time first.
///
/// # Errors
/// If the port cannot be had.
pub fn serve(port: u16, work: Duration) -> Result<()> {
    let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let udp = UdpSocket::bind(address).or_else(|_| UdpSocket::bind(("0.0.0.0", port)));
    let udp = udp.with_context(|| format!("bind UDP port {port}; choose another with --port"))?;
    let tcp = TcpListener::bind(address).or_else(|_| TcpListener::bind(("0.0.0.0", port)));
    let tcp = tcp.with_context(|| format!("bind TCP port {port}; choose another with --port"))?;
    note!("echo on port {port}, UDP and TCP; Ctrl-C ends it");
    thread::spawn(move || {
        for stream in tcp.incoming().flatten() {
            thread::spawn(move || stream_back(stream));
        }
    });
    set_current_timer_slack(NonZeroU64::new(1)).context("ask for exact timers")?;
    // Where the kernel gives no stamps the moment of reading has to do.
    let stamped = Stamped::new(udp.try_clone()?.into(), false)?;
    let (mut waiting, mut buffer) = (BinaryHeap::new(), [0; 2_048]);
    loop {
        answer_due(&udp, &mut waiting);
        if !comes_before(&udp, &waiting)? {
            continue;
        }
        let received = match stamped.receive(&mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // A host that is gone says so through the socket; others may still ask.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
            Err(error) => return Err(error).context("receive a probe"),
        };
        let Some(from) = received.from else { continue };
        let at = received.stamps.software.unwrap_or_else(wall_clock_nanos);
        if !work.is_zero() {
            let due = Instant::now() + work;
            while Instant::now() < due {
                pass_time(due);
            }
        }
        let bytes = &mut buffer[..received.length];
        let Some(wait) = prepare(bytes, at) else {
            // Nobody waits for what cannot be sent back.
            let _ = udp.send_to(bytes, from);
            continue;
        };
        let is_wanted = wait <= LONGEST_WAIT && waiting.len() < MOST_WAITING;
        let due = Instant::now() + if is_wanted { wait } else { Duration::ZERO };
        let bytes = std::array::from_fn(|at| bytes[at]);
        waiting.push(Reverse(Waiting { due, from, bytes }));
    }
}

/// An answer that is not sent yet; the first that is due comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    due: Instant,
    from: SocketAddr,
    bytes: [u8; LENGTH],
}

/// Makes an answer of a request that the kernel received `at`, but for the moment of sending: how
/// long it is to wait; nothing if it is no request.
fn prepare(bytes: &mut [u8], at: u64) -> Option<Duration> {
    if bytes.len() != LENGTH || bytes[..4] != REQUEST {
        return None;
    }
    let wait = u64::from_be_bytes(std::array::from_fn(|byte| bytes[8 + byte]));
    bytes[..4].copy_from_slice(&ANSWER);
    bytes[8..16].copy_from_slice(&at.to_be_bytes());
    Some(Duration::from_nanos(wait))
}

/// Sends what is due.
fn answer_due(udp: &UdpSocket, waiting: &mut BinaryHeap<Reverse<Waiting>>) {
    while waiting.peek().is_some_and(|Reverse(first)| first.due <= Instant::now()) {
        let Some(Reverse(Waiting { from, mut bytes, .. })) = waiting.pop() else { return };
        bytes[16..24].copy_from_slice(&wall_clock_nanos().to_be_bytes());
        // Nobody waits for an answer that cannot be sent.
        let _ = udp.send_to(&bytes, from);
    }
}

/// Waits for a packet, but not beyond the next answer that is due: whether one has come.
fn comes_before(udp: &UdpSocket, waiting: &BinaryHeap<Reverse<Waiting>>) -> Result<bool> {
    let Some(Reverse(first)) = waiting.peek() else { return Ok(true) };
    let left = first.due.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    match poll(&mut [PollFd::new(udp, PollFlags::IN)], Some(&left)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error).context("wait for a probe"),
    }
}

fn stream_back(mut stream: TcpStream) {
    let mut buffer = [0; 4_096];
    // Without it answers would wait for one another.
    let _ = stream.set_nodelay(true);
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_how_long_its_answer_is_to_wait() {
        let mut bytes = request(7, 900);
        assert_eq!(prepare(&mut bytes, 5), Some(Duration::from_nanos(900)));
        assert_eq!(answer(&bytes), Some(Answer { number: 7, times: Some((5, 0)) }));
        assert_eq!(prepare(&mut bytes, 5), None, "an answer is no request");
        assert_eq!(prepare(&mut request(7, 0)[..23], 5), None);
    }

    #[test]
    fn answers_are_read_and_anything_else_is_not() {
        let mut bytes = request(7, 0);
        assert_eq!(answer(&bytes), Some(Answer { number: 7, times: None }));
        bytes[..4].copy_from_slice(&ANSWER);
        bytes[15] = 1;
        bytes[23] = 2;
        assert_eq!(answer(&bytes), Some(Answer { number: 7, times: Some((1, 2)) }));
        assert_eq!(answer(&bytes[..20]), None);
        assert_eq!(answer(b"something else that came here"), None);
    }
}
