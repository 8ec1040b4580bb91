//! The echo of datagrams: one thread, which answers where it receives.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;
use sys::clock::wall_clock_nanos;
use sys::replies;
use sys::stamps::Stamped;

use super::args::EchoArgs;
use super::rate::Rate;
use super::wire::{
    ANSWER, LENGTH, LONGEST_WAIT, LONGEST_WAITING, MOST_WAITING, PORT, REQUEST, SHORTEST,
};
use crate::spin::pass_time;
use sys::refusals::{Refusals, is_allowed};

const BUFFER: usize = 65_536;

/// Ports below are for services of systems, some of which answer anything.
const FIRST_PORT: u16 = 1_024;

/// Answers until it is killed; every answer takes some CPU time first, if that is wanted.
pub(super) fn serve(udp: &UdpSocket, args: &EchoArgs, refusals: &Refusals) -> Result<()> {
    let work = Duration::from_micros(args.work_us);
    let own_port = udp.local_addr()?.port();
    set_current_timer_slack(NonZeroU64::new(1)).context("ask for exact timers")?;
    // Where the kernel gives no stamps the moment of reading has to do.
    let stamped = Stamped::new(udp.try_clone()?.into(), false)?;
    replies::report_addresses(udp).context("ask for the addresses of requests")?;
    let mut rate = Rate::new(args.rate, Instant::now());
    let (mut waiting, mut buffer) = (BinaryHeap::new(), vec![0; BUFFER]);
    loop {
        answer_due(udp, &mut waiting);
        if !comes_before(udp, &waiting)? {
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
        let bytes = &mut buffer[..received.length];
        let refusal = refusal(bytes, from, (own_port, &args.allow)).or_else(|| {
            (!rate.admits(from.ip(), Instant::now())).then_some("beyond the rate of one address")
        });
        if let Some(reason) = refusal {
            refusals.count(reason, from.ip());
            continue;
        }
        let at = received.stamps.software.unwrap_or_else(wall_clock_nanos);
        if !work.is_zero() {
            let due = Instant::now() + work;
            while Instant::now() < due {
                pass_time(due);
            }
        }
        let wait = prepare(bytes, at);
        if (LENGTH..=LONGEST_WAITING).contains(&bytes.len()) {
            let is_wanted = wait <= LONGEST_WAIT && waiting.len() < MOST_WAITING;
            let due = Instant::now() + if is_wanted { wait } else { Duration::ZERO };
            let bytes = bytes.to_vec();
            waiting.push(Reverse(DelayedAnswer { due, from, to: received.to, bytes }));
            gather(&mut waiting, args);
        } else {
            send(udp, bytes, from, received.to);
        }
    }
}

/// Why a datagram is not answered, if it is not.
pub fn refusal(
    bytes: &[u8],
    from: SocketAddr,
    (own_port, allow): (u16, &[IpAddr]),
) -> Option<&'static str> {
    if !is_allowed(allow, from.ip()) {
        return Some("from addresses that are not allowed");
    }
    if bytes.len() < SHORTEST || bytes[..4] != REQUEST {
        return Some("that are no requests");
    }
    let is_of_an_echo = from.port() < FIRST_PORT || [own_port, PORT].contains(&from.port());
    is_of_an_echo.then_some("from ports of other echoes")
}

/// Has all answers wait until there are as many as are to be gathered, or the first has waited for
/// long enough.
fn gather(waiting: &mut BinaryHeap<Reverse<DelayedAnswer>>, args: &EchoArgs) {
    let now = Instant::now();
    let Some(Reverse(first)) = waiting.peek().filter(|_| args.gather > 1) else { return };
    let due = match (waiting.len() >= args.gather, waiting.len()) {
        (true, _) => now,
        (false, 1) => now + Duration::from_micros(args.gather_us),
        (false, _) => first.due,
    };
    let gathered = std::mem::take(waiting).into_iter();
    *waiting = gathered.map(|Reverse(one)| Reverse(DelayedAnswer { due, ..one })).collect();
}

/// An answer that is not sent yet; the first that is due comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DelayedAnswer {
    due: Instant,
    from: SocketAddr,
    to: Option<IpAddr>,
    bytes: Vec<u8>,
}

/// Makes an answer of a request that the kernel received `at`, but for the moment of sending: how
/// long it is to wait.
pub fn prepare(bytes: &mut [u8], at: u64) -> Duration {
    bytes[..4].copy_from_slice(&ANSWER);
    let Some(times) = bytes.get_mut(SHORTEST..LENGTH) else { return Duration::ZERO };
    let wait = u64::from_be_bytes(std::array::from_fn(|byte| times[byte]));
    times[..8].copy_from_slice(&at.to_be_bytes());
    Duration::from_nanos(wait)
}

/// Sends an answer, with the time, from the address that was asked.
fn send(udp: &UdpSocket, bytes: &mut [u8], to: SocketAddr, from: Option<IpAddr>) {
    if let Some(sent) = bytes.get_mut(LENGTH - 8..LENGTH) {
        sent.copy_from_slice(&wall_clock_nanos().to_be_bytes());
    }
    // An answer that cannot be sent is lost, as others are on their way.
    let _ = replies::send(udp, bytes, to, from);
}

fn answer_due(udp: &UdpSocket, waiting: &mut BinaryHeap<Reverse<DelayedAnswer>>) {
    while waiting.peek().is_some_and(|Reverse(first)| first.due <= Instant::now()) {
        let Some(Reverse(DelayedAnswer { from, to, mut bytes, .. })) = waiting.pop() else {
            return;
        };
        send(udp, &mut bytes, from, to);
    }
}

/// Waits for a packet, but not beyond the next answer that is due: whether one has come.
fn comes_before(udp: &UdpSocket, waiting: &BinaryHeap<Reverse<DelayedAnswer>>) -> Result<bool> {
    let Some(Reverse(first)) = waiting.peek() else { return Ok(true) };
    let left = first.due.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left)?;
    match poll(&mut [PollFd::new(udp, PollFlags::IN)], Some(&left)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error).context("wait for a probe"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Answer, answer, request};
    use super::*;

    #[test]
    fn a_request_says_how_long_its_answer_is_to_wait() {
        let mut bytes = request(7, 900);
        assert_eq!(prepare(&mut bytes, 5), Duration::from_nanos(900));
        assert_eq!(answer(&bytes), Some(Answer { number: 7, times: Some((5, 0)) }));
        let mut short = [request(7, 900), [0xff; LENGTH]].concat();
        short.truncate(SHORTEST);
        assert_eq!(prepare(&mut short, 5), Duration::ZERO, "it has no room for that");
        assert_eq!(short, *b"EMK2\0\0\0\x07");
    }

    #[test]
    fn requests_are_answered_and_nothing_else_is() {
        let from = |port: u16| SocketAddr::from(([10, 0, 0, 1], port));
        let refused = |bytes: &[u8], port: u16| refusal(bytes, from(port), (9_000, &[]));
        let asked = request(7, 0);
        assert_eq!(refused(&asked, 40_000), None);
        assert_eq!(refused(&asked[..SHORTEST], 40_000), None);
        let mut answered = asked;
        prepare(&mut answered, 1);
        for bytes in [&answered[..], &asked[..7], b"", b"something else"] {
            assert_eq!(refused(bytes, 40_000), Some("that are no requests"));
        }
        for port in [0, 7, 19, 53, 1_023, PORT, 9_000] {
            assert_eq!(refused(&asked, port), Some("from ports of other echoes"));
        }
        let other = ["10.0.0.2".parse().unwrap()];
        let refused = refusal(&asked, from(40_000), (9_000, &other));
        assert_eq!(refused, Some("from addresses that are not allowed"));
    }
}
