//! Requests of our own, to an echo on the far side, and what sets them apart from each other.
//!
//! Most are *spaced*: one at a time, with pauses of random length, as an idle client asks; some of
//! these are of *another length*, which NICs and the way may treat differently. Between them come
//! references, which have something left out: *handshakes*, which the far kernel answers without
//! its program; requests *back to back*, before which nothing had time to fall asleep; and *pairs*,
//! whose second request follows before the first answer can be there. Where the NIC stamps packets,
//! some requests are *stamped*. Interleaved, all of them see the same machine and the same wire.

mod socket;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base::prng::Prng;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use rustix::thread::set_current_timer_slack;
use sys::{clock, ctrl_c};

use super::answer::TIMEOUT;
use super::stamped::Stamper;
use probe::echo;
use socket::EchoSocket;

/// Requests at most that are not answered, before we give up.
const UNANSWERED: usize = 10;

const ROUNDS: u64 = 12;
/// The requests back to back, and the pairs, may take one part in so many of the time each, and
/// there is one of each in a round: where a round trip is long, there are others all the same.
const PART: u64 = 4;
const HANDSHAKES: usize = 4;
/// What takes longer, and four round trips, has lost a packet.
const LOST_AFTER: Duration = Duration::from_millis(250);
const BACK_TO_BACK: usize = 25;
const PAIRS: usize = 10;
const STAMPED: usize = 5;
/// Every so many spaced requests one is of another length.
const OTHER: u64 = 4;
/// The other length is that of a full segment, or this one, in bytes.
const SHORT: usize = 64;
const FULL: usize = 1_400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// After a pause.
    Spaced,
    /// After a pause, of another length.
    OtherLength,
    /// At once after the last answer.
    BackToBack,
    Pair,
}

/// One request as the program sees it, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestTimes {
    pub kind: RequestKind,
    /// Before it was sent.
    pub from: u64,
    /// After the answer was there.
    pub to: u64,
}

/// A pair: by how much the second request followed the first, and its answer that one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// Nanoseconds between the requests.
    pub sent: u64,
    /// Nanoseconds between the answers.
    pub came: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RequestRecord {
    pub asked: Vec<RequestTimes>,
    /// How long each handshake took, in nanoseconds; UDP has none.
    pub handshakes: Vec<u64>,
    pub pairs: Vec<Pair>,
    /// How long our NIC kept answers, in nanoseconds, where it stamps packets.
    pub kept: Vec<u64>,
    pub unanswered: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub to: SocketAddr,
    pub udp: bool,
    /// Bytes of a request.
    pub size: usize,
    /// Spaced requests a second, on average.
    pub rate: f64,
    /// For how many nanoseconds.
    pub nanos: u64,
}

impl Manner {
    /// The pause before a spaced request in nanoseconds, on average.
    pub(crate) fn pause(&self) -> u64 {
        (1e9 / self.rate) as u64
    }

    /// The other length, in bytes.
    pub(crate) fn other_size(&self) -> usize {
        if self.size >= FULL / 2 { SHORT } else { FULL }
    }
}

pub(crate) struct Requester {
    socket: EchoSocket,
    manner: Manner,
    bytes: Vec<u8>,
    other_bytes: Vec<u8>,
    /// Requests so far, by which answers differ.
    number: u64,
    /// When there is no time for further requests, in nanoseconds of `CLOCK_MONOTONIC`.
    end: u64,
    stamper: Option<Stamper>,
    record: RequestRecord,
}

impl Requester {
    /// Connects, and waits for ten answers, of which the last ones show how long one
    /// takes.
    pub(crate) fn connect(manner: Manner) -> Result<Self> {
        ensure!((1..=60_000).contains(&manner.size), "--size is 1 to 60000 bytes");
        let socket = EchoSocket::open(&manner)?;
        let (bytes, other_bytes) = (vec![0; manner.size], vec![0; manner.other_size()]);
        let (stamper, record) = (None, RequestRecord::default());
        let end = clock::now().as_nanos() + 10 * TIMEOUT.as_nanos() as u64;
        let mut requester =
            Self { socket, manner, bytes, other_bytes, number: 0, end, stamper, record };
        requester.repeat(10, |it| it.ask(RequestKind::BackToBack))?;
        if requester.record.asked.is_empty() {
            bail!("nothing echoes at {}; is what listens there an echo?", manner.to);
        }
        Ok(requester)
    }

    /// Asks over a connection of its own for stamps of the NIC, too.
    pub(crate) fn stamp(&mut self) -> Result<()> {
        let socket = match EchoSocket::open(&self.manner)? {
            EchoSocket::Tcp(stream) => stream.into(),
            EchoSocket::Udp(socket) => socket.into(),
        };
        self.stamper = Some(Stamper::new(socket).context("ask for the stamps of the NIC")?);
        Ok(())
    }

    /// Our address, by which the device is known.
    pub(crate) fn local(&self) -> Result<SocketAddr> {
        self.socket.local().context("ask for the address of our socket")
    }

    pub(crate) fn remote(&self) -> SocketAddr {
        self.manner.to
    }

    /// How long an answer takes, in nanoseconds: the median so far.
    pub(crate) fn round_trip(&self) -> u64 {
        let mut all: Vec<u64> = self.record.asked.iter().map(|one| one.to - one.from).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or(0)
    }

    /// Numbers the next request, as far as it has room for it. A datagram that is long enough is
    /// one that `earmark echo` answers, and so do others.
    fn number(&mut self) {
        self.number += 1;
        if self.manner.udp && self.bytes.len() >= echo::SHORTEST {
            let request = echo::request(self.number as u32, 0);
            let length = request.len().min(self.bytes.len());
            self.bytes[..length].copy_from_slice(&request[..length]);
            return;
        }
        for (to, from) in self.bytes.iter_mut().zip(self.number.to_be_bytes().into_iter().rev()) {
            *to = from;
        }
    }

    fn ask(&mut self, kind: RequestKind) -> Result<()> {
        self.number();
        let from = clock::now().as_nanos();
        let done =
            self.socket.send(&self.bytes).and_then(|()| self.socket.receive(&mut self.bytes));
        match done {
            Ok(()) => {
                let to = clock::now().as_nanos();
                self.record.asked.push(RequestTimes { kind, from, to });
                Ok(())
            }
            Err(error) => self.count_lost(error),
        }
    }

    /// A datagram may be lost, but not many of them, and a stream loses none.
    fn count_lost(&mut self, error: io::Error) -> Result<()> {
        let late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        self.record.unanswered += 1;
        let udp = matches!(self.socket, EchoSocket::Udp(_));
        if late && udp && self.record.unanswered < UNANSWERED {
            return Ok(());
        }
        let to = self.manner.to;
        Err(error).with_context(|| format!("wait for the echo of {to}; is it an echo?"))
    }

    /// Asks until the time is over, and returns what was measured.
    pub(crate) fn run(mut self) -> Result<RequestRecord> {
        let warm = self.round_trip();
        self.record.asked.clear();
        // A second request that is late by the usual 50 us may come after the hold of the first.
        set_current_timer_slack(NonZeroU64::new(1)).context("ask for exact timers")?;
        let started = clock::now().as_nanos();
        let mut random = Prng::new(started);
        let (length, mean) = (self.manner.nanos, self.manner.pause());
        self.end = started.saturating_add(length).saturating_add(TIMEOUT.as_nanos() as u64);
        let mut next_round = length / (2 * ROUNDS);
        loop {
            let elapsed = clock::now().as_nanos() - started;
            if elapsed >= length || ctrl_c::is() {
                break;
            }
            sleep(Duration::from_nanos(mean / 2 + random.below(mean)));
            if random.below(OTHER) == 0 && !self.other_bytes.is_empty() {
                self.ask_other(warm)?;
            } else {
                self.ask(RequestKind::Spaced)?;
            }
            if elapsed >= next_round {
                next_round += length / ROUNDS;
                self.references(warm)?;
            }
        }
        Ok(self.record)
    }

    /// Asks with the other length. Some echoes answer no datagram of it: then not again.
    fn ask_other(&mut self, warm: u64) -> Result<()> {
        let before = self.record.unanswered;
        self.wait_at_most(patience(warm))?;
        std::mem::swap(&mut self.bytes, &mut self.other_bytes);
        let asked = self.ask(RequestKind::OtherLength);
        std::mem::swap(&mut self.bytes, &mut self.other_bytes);
        self.wait_at_most(TIMEOUT)?;
        if self.record.unanswered > before && matches!(self.socket, EchoSocket::Udp(_)) {
            self.record.unanswered = before;
            self.other_bytes.clear();
            return Ok(());
        }
        asked
    }

    /// How long to wait for a datagram; a stream has one time-out.
    fn wait_at_most(&self, time: Duration) -> Result<()> {
        match &self.socket {
            EchoSocket::Udp(socket) => {
                socket.set_read_timeout(Some(time)).context("set a time-out")
            }
            EchoSocket::Tcp(_) => Ok(()),
        }
    }

    /// Whether the far side has taken up all the time that it may, or the user has enough.
    fn is_over(&self) -> bool {
        clock::now().as_nanos() >= self.end || ctrl_c::is()
    }

    fn references(&mut self, warm: u64) -> Result<()> {
        let fit = (self.manner.nanos / ROUNDS / PART / warm.max(1)) as usize;
        if !self.manner.udp {
            self.repeat(HANDSHAKES, |it| {
                it.record.handshakes.extend(handshake(it.manner.to, warm).ok());
                sleep(Duration::from_millis(2));
                Ok(())
            })?;
        }
        self.repeat(fit.clamp(1, BACK_TO_BACK), |it| it.ask(RequestKind::BackToBack))?;
        self.stamped();
        let gap = (warm / 3).clamp(50_000, 2_000_000);
        self.repeat(fit.clamp(1, PAIRS), |it| {
            sleep(Duration::from_millis(2));
            it.pair(gap)
        })
    }

    /// Does something so many times, unless the time is over.
    fn repeat(&mut self, times: usize, each: impl Fn(&mut Self) -> Result<()>) -> Result<()> {
        for _ in 0..times {
            if self.is_over() {
                break;
            }
            each(self)?;
        }
        Ok(())
    }

    /// As spaced requests, and records how long the NIC kept the answer; no more of them if one
    /// fails.
    fn stamped(&mut self) {
        let Some(stamper) = self.stamper.take() else { return };
        for _ in 0..STAMPED {
            sleep(Duration::from_millis(2));
            self.number();
            match stamper.ask(&self.bytes) {
                Ok(Some(kept)) => self.record.kept.push(kept),
                Ok(None) | Err(_) => return,
            }
        }
        self.stamper = Some(stamper);
    }

    /// Two requests, the second one at least `gap` nanoseconds after the first.
    fn pair(&mut self, gap: u64) -> Result<()> {
        self.number();
        let mut ask = || -> io::Result<[u64; 4]> {
            let first = clock::now().as_nanos();
            self.socket.send(&self.bytes)?;
            // A wait without sleep may keep others from sending the first one.
            sleep(Duration::from_nanos(gap));
            let second = clock::now().as_nanos();
            self.socket.send(&self.bytes)?;
            self.socket.receive(&mut self.bytes)?;
            let answer = clock::now().as_nanos();
            self.socket.receive(&mut self.bytes)?;
            Ok([first, second, answer, clock::now().as_nanos()])
        };
        match ask() {
            Ok([first, second, answer, last]) => {
                self.record.pairs.push(Pair { sent: second - first, came: last - answer });
                self.record.asked.push(RequestTimes {
                    kind: RequestKind::Pair,
                    from: first,
                    to: last,
                });
                Ok(())
            }
            Err(error) => self.count_lost(error),
        }
    }
}

/// How long to wait for what may be lost.
fn patience(round_trip: u64) -> Duration {
    Duration::from_nanos(round_trip.saturating_mul(4)).max(LOST_AFTER).min(TIMEOUT)
}

/// How long it takes from the first packet of a connection until it stands, in nanoseconds: the far
/// kernel answers it, whatever its program does.
fn handshake(to: SocketAddr, round_trip: u64) -> io::Result<u64> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // One whose first packet is lost takes a second, and shows nothing.
    set_socket_timeout(&socket, Timeout::Send, Some(patience(round_trip)))?;
    let from = clock::now().as_nanos();
    connect(&socket, &to)?;
    Ok(clock::now().as_nanos() - from)
}

#[cfg(test)]
mod tests {
    use super::socket::NOT_AN_ECHO;
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::thread;

    /// A requester of a server that does as `serve` says with each connection.
    fn at(serve: fn(TcpStream) -> io::Result<()>, size: usize, nanos: u64) -> Result<Requester> {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = server.local_addr().unwrap();
        thread::spawn(move || {
            for stream in server.incoming() {
                thread::spawn(move || serve(stream.unwrap()));
            }
        });
        Requester::connect(Manner { to, udp: false, size, rate: 1_000.0, nanos })
    }

    #[test]
    fn a_server_that_never_stops_is_no_echo() {
        let endless = |mut stream: TcpStream| loop {
            stream.write_all(&[b'x'; 4_096])?;
        };
        let Err(refusal) = at(endless, 64, 1) else { panic!("it is taken for an echo") };
        assert!(format!("{refusal:#}").contains(NOT_AN_ECHO), "{refusal:#}");
    }

    #[test]
    fn references_end_with_the_time_of_the_run() {
        let echo = |mut stream: TcpStream| loop {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            stream.write_all(&byte)?;
        };
        let mut requester = at(echo, 1, 1_000_000_000).unwrap();
        requester.record = RequestRecord::default();
        requester.end = 0;
        requester.references(1).unwrap();
        assert_eq!((requester.record.asked.len(), requester.record.handshakes.len()), (0, 0));
    }

    #[test]
    fn length_that_an_echo_does_not_answer_is_asked_once() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = far.local_addr().unwrap();
        thread::spawn(move || {
            let mut bytes = [0; 2_000];
            while let Ok((length, from)) = far.recv_from(&mut bytes) {
                if length <= 64 {
                    far.send_to(&bytes[..length], from).unwrap();
                }
            }
        });
        let manner = Manner { to, udp: true, size: 64, rate: 1_000.0, nanos: 1 };
        let mut requester = Requester::connect(manner).unwrap();
        requester.ask_other(1).unwrap();
        assert!(requester.other_bytes.is_empty());
        requester.ask(RequestKind::Spaced).unwrap();
        assert_eq!((requester.record.asked.len(), requester.record.unanswered), (11, 0));
    }

    #[test]
    fn earmark_echo_answers_datagrams_of_any_size_that_has_a_number() {
        let to = echo::checks::start();
        for size in [echo::SHORTEST, 20, echo::LENGTH, 64, 60_000] {
            let manner = Manner { to, udp: true, size, rate: 1_000.0, nanos: 1 };
            let mut requester = Requester::connect(manner).unwrap();
            requester.pair(1_000).unwrap();
            requester.ask(RequestKind::Spaced).unwrap();
            assert_eq!(
                (requester.record.asked.len(), requester.record.unanswered),
                (12, 0),
                "{size}"
            );
        }
    }
}
