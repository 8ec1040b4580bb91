//! The echoes that far sides have, behind one interface: ask, and hear.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use infer::{Abilities, Far, Length};
use rustix::net::sockopt::{self, set_socket_recv_buffer_size, set_socket_send_buffer_size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sys::clock::wall_clock_nanos;
use sys::stamps::Stamped;

use super::echo;
use super::run::Limits;
use sys::address::host_and_port;
use sys::ctrl_c;
use sys::icmp;
use sys::wait::wait_writable;

/// Seconds from 1900, where NTP begins, to 1970.
const NTP_EPOCH: u64 = 2_208_988_800;

const PING: usize = 16;

/// A full packet fills the MTU of the way, but not more than Ethernet's usual one, which passes
/// everywhere: behind a longer one here there may be shorter ones.
const MTU: u32 = 1_500;

/// Headers of an IP packet: of UDP and of ICMP, or of TCP with timestamps.
const DATAGRAM_HEADER: usize = 8;
const TCP_HEADER: usize = 32;

/// How long an echo may take to show that it is there.
const FIRST_REPLY_WITHIN: Duration = Duration::from_millis(300);

/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// The most datagrams that are received from an echo, beyond four for each request: of an address
/// that is pinged by others as well, a raw socket gets all answers, and on this host all requests.
const MAX_UNASKED: u32 = 1 << 16;

/// The most bytes of an answer of memcached to `version`.
const MAX_VERSION: usize = 128;

/// How long requests of a stream may wait in all until the far side has read those before.
const READ_WITHIN: Duration = Duration::from_secs(5);

const UNASKED: &str = "it sends more than it is asked for; it is no echo";

/// The echoes that are known.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum EchoKind {
    /// `earmark echo`, or any other UDP echo (HOST:PORT)
    Udp,
    /// An NTP server: four timestamps
    Ntp,
    /// The far kernel itself
    Icmp,
    /// A TCP echo (HOST:PORT)
    Tcp,
    /// `version` requests to memcached
    Memcached,
}

impl EchoKind {
    /// In the order in which they are tried: those that show more come first.
    pub const ALL: [Self; 5] = [Self::Udp, Self::Ntp, Self::Icmp, Self::Tcp, Self::Memcached];

    /// As options and JSON have it.
    pub const fn name(self) -> &'static str {
        self.facts().0
    }

    /// Whether requests, and their answers, can be as long as the way takes.
    pub const fn can_be_full(self) -> bool {
        self.facts().1
    }

    const fn port(self) -> u16 {
        self.facts().2
    }

    /// Name, whether packets can be full, and port.
    const fn facts(self) -> (&'static str, bool, u16) {
        match self {
            Self::Udp => ("udp", true, echo::PORT),
            Self::Ntp => ("ntp", false, 123),
            Self::Icmp => ("icmp", true, 0),
            Self::Tcp => ("tcp", true, echo::PORT),
            Self::Memcached => ("memcached", false, 11_211),
        }
    }
}

/// An answer: to which request, when the kernel received it, and the times of others.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// Of which request.
    pub number: u32,
    /// Nanoseconds since 1970.
    pub at: u64,
    /// On the clock of the NIC that received it.
    pub nic: Option<u64>,
    /// On the far clock.
    pub far: Option<Far>,
}

/// A socket to an echo that has answered.
pub struct Prober {
    kind: EchoKind,
    /// Of the echo.
    pub address: SocketAddr,
    stamped: Stamped,
    /// Of a raw socket, whose packets are for others, too.
    identifier: Option<u16>,
    stream: Option<TcpStream>,
    /// Requests of a stream that are not answered, and bytes of the answer that has begun.
    asked: VecDeque<(u32, usize)>,
    partial: usize,
    /// What is left of [`READ_WITHIN`].
    patience: Duration,
    received: u32,
    /// The first transmit stamp that belongs to requests of the plan.
    sent: u32,
    /// Bytes that a full packet carries.
    full: usize,
    nic_stamps: bool,
}

impl Prober {
    /// Finds an echo at `host`, which may be `HOST:PORT`: the given one, or the first that answers.
    /// What is asked at a port is no echo that has none.
    pub fn find(host: &str, kind: Option<EchoKind>, port: Option<u16>) -> Result<Self> {
        let (host, own) = host_and_port(host);
        // As the address of what has no ports is printed.
        let own = own.filter(|port| *port > 0);
        ensure!(
            own.is_none() || port.is_none_or(|port| own == Some(port)),
            "{host}:{} and --port {} are two ports; give one",
            own.unwrap_or_default(),
            port.unwrap_or_default()
        );
        let port = own.or(port);
        ensure!(
            port.is_none() || kind != Some(EchoKind::Icmp),
            "icmp has no ports; leave the port out, or name another echo with --kind"
        );
        let mut kinds = kind.map_or_else(|| EchoKind::ALL.to_vec(), |kind| vec![kind]);
        kinds.retain(|kind| port.is_none() || *kind != EchoKind::Icmp);
        let mut why = Vec::new();
        for kind in kinds {
            let addresses: Vec<SocketAddr> = (host, port.unwrap_or(kind.port()))
                .to_socket_addrs()
                .with_context(|| format!("look up {host}; is the name right?"))?
                // The kernel's echo is asked over IPv4.
                .filter(|address| kind != EchoKind::Icmp || address.is_ipv4())
                .take(MAX_ADDRESSES)
                .collect();
            if addresses.is_empty() {
                why.push(format!("{}: {host} has no IPv4 address", kind.name()));
            }
            // An echo may listen on one of them alone.
            for address in addresses {
                ctrl_c::check()?;
                match Self::open(address, kind).and_then(Self::await_first_reply) {
                    Ok(prober) => return Ok(prober),
                    Err(error) => why.push(format!("{} at {address}: {error:#}", kind.name())),
                }
            }
        }
        ctrl_c::check()?;
        match port {
            None => {
                bail!("nothing at {host} answers ({}); start `earmark echo` there", why.join("; "))
            }
            Some(port) => bail!(
                "nothing at port {port} of {host} answers ({}); start `earmark echo --port {port}` \
                 there, or leave the port out",
                why.join("; ")
            ),
        }
    }

    fn open(address: SocketAddr, kind: EchoKind) -> Result<Self> {
        let (mut stream, mut identifier) = (None, None);
        let socket: OwnedFd = match kind {
            EchoKind::Udp | EchoKind::Ntp => {
                let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any)?;
                socket.connect(address)?;
                socket.set_nonblocking(true)?;
                socket.into()
            }
            EchoKind::Icmp => {
                let (socket, is_raw) = icmp::open(address, icmp::RAW_FIRST)?;
                identifier = is_raw.then(icmp::identifier);
                socket
            }
            EchoKind::Tcp | EchoKind::Memcached => {
                let tcp = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
                tcp.set_nodelay(true)?;
                tcp.set_nonblocking(true)?;
                let socket = tcp.try_clone()?.into();
                stream = Some(tcp);
                socket
            }
        };
        // Answers to a long train wait while the next probe is due, and requests of a stream until
        // the far side has read those before; the system may grant less.
        let _ = set_socket_recv_buffer_size(&socket, 4 << 20);
        let _ = set_socket_send_buffer_size(&socket, 4 << 20);
        let mtu = match address {
            SocketAddr::V4(_) => sockopt::ip_mtu(&socket),
            SocketAddr::V6(_) => sockopt::ipv6_mtu(&socket),
        };
        let ip = if address.is_ipv4() { 20 } else { 40 };
        let header = ip + if stream.is_some() { TCP_HEADER } else { DATAGRAM_HEADER };
        let full = mtu.unwrap_or(MTU).min(MTU) as usize - header;
        let stamped = Stamped::new(socket, stream.is_none()).context("ask for timestamps")?;
        Ok(Self {
            kind,
            address,
            stamped,
            identifier,
            stream,
            asked: VecDeque::new(),
            partial: 0,
            patience: READ_WITHIN,
            received: 0,
            sent: 0,
            nic_stamps: false,
            full,
        })
    }

    /// Asks until there is an answer; also resolves addresses and warms caches.
    fn await_first_reply(mut self) -> Result<Self> {
        for _ in 0..4 {
            match self.request(u32::MAX, 0, Length::Short) {
                // That is the answer to the await_first_reply before.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                asked => asked.context("send a probe")?,
            }
            let end = Instant::now() + FIRST_REPLY_WITHIN;
            while Instant::now() < end {
                ctrl_c::check()?;
                match self.receive() {
                    Ok(Some(answer)) => {
                        self.nic_stamps = answer.nic.is_some();
                        sleep(Duration::from_millis(20));
                        while self.receive()?.is_some() {}
                        while self.stamped.sent()?.is_some() {}
                        return Ok(self);
                    }
                    Ok(None) => sleep(Duration::from_millis(1)),
                    // It may be about to start.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                        sleep(FIRST_REPLY_WITHIN / 2);
                    }
                    Err(error) => return Err(error).context("hear its answer"),
                }
            }
        }
        bail!("no answer")
    }

    /// The address of this host on the way there.
    pub fn local(&self) -> Option<IpAddr> {
        let address = rustix::net::getsockname(self.stamped.socket()).ok()?;
        SocketAddr::try_from(address).ok().map(|address| address.ip())
    }

    /// Which echo it is.
    pub fn kind(&self) -> EchoKind {
        self.kind
    }

    /// What can be asked of this echo, within `limits`.
    pub fn abilities(&self, limits: Limits) -> Abilities {
        Abilities {
            // They are likely to separate the two directions: the far host's, or my NIC's.
            stamps: self.nic_stamps || matches!(self.kind, EchoKind::Udp | EchoKind::Ntp),
            silent: self.identifier.is_some(),
            waits: self.kind == EchoKind::Udp,
            full: self.kind.can_be_full(),
            most: limits.count,
            least_gap: base::time::Duration::from_nanos(
                1_000_000_000_u64.checked_div(limits.rate.into()).unwrap_or(0),
            ),
        }
    }

    /// Sends a packet that gets as far as the far kernel, and no answer.
    pub fn send_silent(&mut self) -> io::Result<()> {
        let Some(identifier) = self.identifier else { return Err(ErrorKind::Unsupported.into()) };
        let mut packet = Vec::new();
        icmp::encode_unasked(&mut packet, identifier, &[0; PING]);
        let flags = rustix::net::SendFlags::NOSIGNAL;
        rustix::net::send(self.stamped.socket(), &packet, flags)?;
        self.sent = self.sent.wrapping_add(1);
        Ok(())
    }

    /// Bytes that a packet of this length carries.
    pub fn bytes(&self, length: Length) -> usize {
        match (length, self.kind) {
            (Length::Full, _) => self.full,
            (Length::Short, EchoKind::Icmp) => PING,
            (Length::Short, _) => echo::LENGTH,
        }
    }

    /// Sends request `number` of this length, which is to be answered `wait` nanoseconds later if
    /// that can be.
    pub fn request(&mut self, number: u32, wait: u64, length: Length) -> io::Result<()> {
        let mut request = echo::request(number, wait).to_vec();
        request.resize(self.bytes(length).max(echo::LENGTH), 0);
        let socket = self.stamped.socket();
        let flags = rustix::net::SendFlags::NOSIGNAL;
        match self.kind {
            EchoKind::Udp => {
                rustix::net::send(socket, &request, flags).map(|_| ())?;
            }
            EchoKind::Ntp => rustix::net::send(socket, &ntp_request(number), flags).map(|_| ())?,
            EchoKind::Icmp => {
                let (mut packet, mut payload) = (Vec::new(), vec![0; self.bytes(length)]);
                payload[..4].copy_from_slice(&number.to_be_bytes());
                // A ping socket fills in an identifier and a checksum of its own.
                let identifier = self.identifier.unwrap_or(0);
                icmp::encode(&mut packet, identifier, number as u16, &payload);
                rustix::net::send(socket, &packet, flags).map(|_| ())?;
            }
            EchoKind::Tcp | EchoKind::Memcached => {
                let bytes: &[u8] =
                    if self.kind == EchoKind::Tcp { &request } else { b"version\r\n" };
                let Some(stream) = &mut self.stream else {
                    return Err(ErrorKind::NotConnected.into());
                };
                write_whole(stream, bytes, &mut self.patience)?;
                self.asked.push_back((number, bytes.len()));
            }
        }
        self.sent = self.sent.wrapping_add(1);
        Ok(())
    }

    /// How many requests have been sent: the number of the next one's transmit stamp.
    pub fn count(&self) -> u32 {
        self.sent
    }

    /// A request's number among transmit stamps, and its time.
    pub fn transmitted(&mut self) -> io::Result<Option<(u32, u64)>> {
        if self.stream.is_some() {
            return Ok(None);
        }
        while let Some((number, stamps)) = self.stamped.sent()? {
            if let Some(at) = stamps.software {
                return Ok(Some((number, at)));
            }
        }
        Ok(None)
    }

    /// The next answer, if one has come. What is no answer is passed over, but not without end:
    /// what sends more than it was asked for is no echo.
    pub fn receive(&mut self) -> io::Result<Option<Reply>> {
        let mut buffer = [0; MTU as usize];
        loop {
            // Answers of a stream are taken one by one, as far as they can be separated.
            let room = if self.kind == EchoKind::Tcp {
                self.first_length() - self.partial
            } else {
                buffer.len()
            };
            let room = if self.kind == EchoKind::Memcached { 1 } else { room };
            let received = match self.stamped.receive(&mut buffer[..room]) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let at = received.stamps.software.unwrap_or_else(wall_clock_nanos);
            let bytes = &buffer[..received.length];
            let nic = received.stamps.hardware;
            let heard = |(number, far)| Reply { number, at, nic, far };
            if self.stream.is_none() {
                self.received = self.received.saturating_add(1);
                if self.received > MAX_UNASKED.saturating_add(self.sent.saturating_mul(4)) {
                    return Err(io::Error::new(ErrorKind::InvalidData, UNASKED));
                }
            }
            let answer = match self.kind {
                EchoKind::Udp => echo::answer(bytes).map(|answer| {
                    let far = answer.times.map(|(received, sent)| Far { received, sent });
                    (answer.number, far)
                }),
                EchoKind::Ntp => ntp_answer(bytes),
                EchoKind::Icmp => ping_answer(bytes, self.identifier),
                EchoKind::Tcp | EchoKind::Memcached => {
                    if bytes.is_empty() {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                    self.streamed(bytes)?.map(|number| (number, None))
                }
            };
            if let Some(answer) = answer {
                return Ok(Some(heard(answer)));
            }
        }
    }

    /// The request that these bytes complete the answer to.
    fn streamed(&mut self, bytes: &[u8]) -> io::Result<Option<u32>> {
        self.partial += bytes.len();
        let is_long = self.kind == EchoKind::Memcached && self.partial > MAX_VERSION;
        if self.asked.is_empty() || is_long {
            return Err(io::Error::new(ErrorKind::InvalidData, UNASKED));
        }
        let ends = match self.kind {
            EchoKind::Tcp => self.partial == self.first_length(),
            _ => bytes == b"\n",
        };
        if !ends {
            return Ok(None);
        }
        self.partial = 0;
        Ok(self.asked.pop_front().map(|(number, _)| number))
    }

    /// Bytes of the next answer of a TCP echo; of unrequested ones any length will do.
    fn first_length(&self) -> usize {
        self.asked.front().map_or(self.full, |(_, length)| *length)
    }

    /// Whether it is on this very host, where no NIC is in between.
    pub fn is_local(&self) -> bool {
        self.address.ip().is_loopback()
    }
}

/// Writes all of `bytes`, even if the other side has to make room first, as long as `patience`
/// lasts.
fn write_whole(
    stream: &mut TcpStream,
    mut bytes: &[u8],
    patience: &mut Duration,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if patience.is_zero() {
                    let why = "it does not read what it is sent; it is no echo";
                    return Err(io::Error::new(ErrorKind::TimedOut, why));
                }
                let begin = Instant::now();
                wait_writable(&*stream, Some(*patience))?;
                *patience = patience.saturating_sub(begin.elapsed());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A client's packet, version 4 (RFC 5905, section 7.3); its number is the transmit timestamp,
/// which the answer repeats.
fn ntp_request(number: u32) -> [u8; 48] {
    let mut packet = [0; 48];
    packet[0] = 0x23;
    packet[40..44].copy_from_slice(b"EMK1");
    packet[44..48].copy_from_slice(&number.to_be_bytes());
    packet
}

/// Reads an NTP server's answer: which request, and the far times; nothing if it is none.
pub fn ntp_answer(bytes: &[u8]) -> Option<(u32, Option<Far>)> {
    let nanos = |at: usize| {
        let stamp = u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?);
        let seconds = (stamp >> 32).checked_sub(NTP_EPOCH)?;
        Some(seconds * 1_000_000_000 + (((stamp & 0xffff_ffff) * 1_000_000_000) >> 32))
    };
    // Mode 4 is a server's.
    if bytes.first()? & 7 != 4 || bytes.get(24..28)? != b"EMK1" {
        return None;
    }
    let number = u32::from_be_bytes(bytes.get(28..32)?.try_into().ok()?);
    Some((number, Some(Far { received: nanos(32)?, sent: nanos(40)? })))
}

/// Reads an echo reply of ICMP; a raw socket's has an IP header, and is ours by its identifier.
pub fn ping_answer(bytes: &[u8], raw_identifier: Option<u16>) -> Option<(u32, Option<Far>)> {
    let payload = bytes.get(icmp::payload_start(bytes, raw_identifier)?..)?;
    Some((u32::from_be_bytes(payload.get(..4)?.try_into().ok()?), None))
}

#[cfg(test)]
mod tests;
