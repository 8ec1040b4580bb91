//! One end of a TCP connection: a socket of smoltcp, with an interface of its own.
//!
//! Segments are made when they may leave, one at a time: what is not sent yet waits in the buffer
//! of its connection, as with a fair queue and small queues (`net/ipv4/tcp_output.c`,
//! `tcp_small_queue_check`), and delays nothing of other connections.
//!
//! # Time
//!
//! smoltcp's clock counts microseconds, and its times are those of a microcontroller: a
//! retransmission after 1 s at least. Here it counts [ticks](TICK_NS) of 200 ns, five times as
//! many, so that this is the 200 ms of Linux (`TCP_RTO_MIN`), and times are as fine as that. A
//! moment is rounded down to ticks, so that a timer that was planned for a tick has run out then,
//! and a delayed acknowledgement is one tick longer, so that it is not sent early.
//!
//! # What differs from Linux
//!
//! | what | Linux | here |
//! |---|---|---|
//! | acknowledgements | at once while a connection is new or one-sided | always as below |
//! | delayed ones | after two segments or 40 ms | the same |
//! | initial window | 10 segments | 2,048 bytes |
//! | congestion control | CUBIC, which is Reno at such round trips | Reno |
//! | after idling | slow start | none |
//! | losses | SACK, RACK, probes of the tail | a segment for three duplicates, or 200 ms |
//! | segments in the stack | up to 64 KiB (TSO, GRO) | each frame by itself |
//! | buffers | grow up to 6 MB | 256 KiB each, less if there are over 512 connections |
//! | options | 12 bytes of timestamps | as many zeros behind each segment |

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use base::time::Instant;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, ChecksumCapabilities, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::{Duration as Ticks, Instant as Tick};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use super::ip::{ETHERNET, End, MTU, SHORTEST, address_of, ethernet};
use crate::frame::Frame;

/// Nanoseconds of what smoltcp takes for a microsecond.
const TICK_NS: u64 = 200;
/// Bytes of a timestamp among the options of a segment, which smoltcp does not reckon with in its
/// longest segments. Frames are longer by them instead.
pub(super) const OPTIONS: usize = 12;
/// The delay of an acknowledgement, `TCP_DELACK_MIN`, in ticks.
const ACK_DELAY: u64 = 40_000_000 / TICK_NS + 1;
/// Bytes of all buffers of a simulation, and the most and the least of one.
const MEMORY: usize = 512 << 20;
const LONGEST_BUFFER: usize = 256 << 10;
const SHORTEST_BUFFER: usize = 32 << 10;

/// Bytes of what was received and not read, and as many of what was sent and not acknowledged,
/// where there are so many connections.
pub(super) fn buffer(connections: usize) -> usize {
    (MEMORY / (4 * connections.max(1))).clamp(SHORTEST_BUFFER, LONGEST_BUFFER)
}

fn tick(now: Instant) -> Tick {
    Tick::from_micros((now.as_nanos() / TICK_NS) as i64)
}

/// Packets on their way in and out of a connection.
struct Packets<'a> {
    arriving: Option<&'a [u8]>,
    leaving: Leaving<'a>,
}

struct Arriving<'a>(&'a [u8]);

/// Where segments go.
struct Leaving<'a> {
    header: &'a [u8; ETHERNET],
    outgoing: &'a mut VecDeque<Frame>,
    /// For the bytes of a frame.
    place: &'a mut Vec<u8>,
}

impl phy::RxToken for Arriving<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0[ETHERNET..])
    }
}

impl phy::TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let length = ETHERNET + length;
        if self.place.len() < length {
            self.place.resize(length, 0);
        }
        let frame = &mut self.place[..length];
        let result = write(&mut frame[ETHERNET..]);
        frame[..ETHERNET].copy_from_slice(self.header);
        self.outgoing.push_back(Frame::padded(frame, (length + OPTIONS).max(SHORTEST)));
        result
    }
}

impl Device for Packets<'_> {
    type RxToken<'a>
        = Arriving<'a>
    where
        Self: 'a;
    type TxToken<'a>
        = Leaving<'a>
    where
        Self: 'a;

    fn receive(&mut self, now: Tick) -> Option<(Arriving<'_>, Leaving<'_>)> {
        let arriving = Arriving(self.arriving.take()?);
        Some((arriving, self.transmit(now)?))
    }

    fn transmit(&mut self, _: Tick) -> Option<Leaving<'_>> {
        let Leaving { header, outgoing, place } = &mut self.leaving;
        Some(Leaving { header, outgoing, place })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.max_transmission_unit = MTU - OPTIONS;
        capabilities.medium = Medium::Ip;
        capabilities.checksum = ChecksumCapabilities::ignored();
        capabilities
    }
}

/// See the [module](self).
pub(super) struct TcpEnd {
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    /// The Ethernet header of its frames.
    header: [u8; ETHERNET],
    outgoing: VecDeque<Frame>,
}

/// The two ends, with [buffers](buffer) of so many bytes, of a connection that was made from the
/// first to the second one, in no time.
pub(super) fn connection(ends: [End; 2], bytes: usize, seed: u64) -> [TcpEnd; 2] {
    let [client, server] = ends;
    let mut ends = [
        TcpEnd::new((client.0, server.0), bytes, seed),
        TcpEnd::new((server.0, client.0), bytes, seed.wrapping_add(1)),
    ];
    let at = |(host, port): End| (IpAddress::Ipv4(address_of(host)), port);
    let [from, to] = &mut ends;
    // Neither fails: both are new, and have addresses and ports.
    let _ = to.socket().listen(server.1);
    let socket = from.sockets.get_mut::<Socket<'_>>(from.socket);
    let _ = socket.connect(from.interface.context(), at(server), client.1);
    let [mut one, mut other] = [Vec::new(), Vec::new()];
    let mut was_quiet = false;
    while !was_quiet {
        was_quiet = true;
        for sender in 0..2 {
            while let Some(frame) = ends[sender].segment(Instant::ZERO, &mut one) {
                was_quiet = false;
                ends[1 - sender].receive(Instant::ZERO, frame.whole(&mut other), &mut one);
            }
        }
    }
    ends
}

impl TcpEnd {
    fn new((host, peer): (usize, usize), bytes: usize, seed: u64) -> Self {
        let (header, mut outgoing) = (ethernet(host, peer), VecDeque::new());
        let leaving = Leaving { header: &header, outgoing: &mut outgoing, place: &mut Vec::new() };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface =
            Interface::new(config, &mut Packets { arriving: None, leaving }, Tick::ZERO);
        let own = IpCidr::new(IpAddress::Ipv4(address_of(host)), 16);
        interface.update_ip_addrs(|addresses| {
            // There is room for one.
            let _ = addresses.push(own);
        });
        let buffer = || SocketBuffer::new(vec![0; bytes]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_nagle_enabled(false);
        socket.set_ack_delay(Some(Ticks::from_micros(ACK_DELAY)));
        socket.set_congestion_control(CongestionControl::Reno);
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Self { interface, sockets, socket, header, outgoing }
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    /// Takes a segment that has come, from the Ethernet header on; `place` is for the bytes of an
    /// answer.
    pub(super) fn receive(&mut self, now: Instant, frame: &[u8], place: &mut Vec<u8>) {
        let Self { interface, sockets, header, outgoing, .. } = self;
        let leaving = Leaving { header, outgoing, place };
        let mut packets = Packets { arriving: Some(frame), leaving };
        interface.poll_ingress_single(tick(now), &mut packets, sockets);
    }

    /// The next segment that may leave; `place` is for its bytes.
    pub(super) fn segment(&mut self, now: Instant, place: &mut Vec<u8>) -> Option<Frame> {
        let Self { interface, sockets, header, outgoing, .. } = self;
        if outgoing.is_empty() {
            let leaving = Leaving { header, outgoing, place };
            let mut packets = Packets { arriving: None, leaving };
            interface.poll_egress(tick(now), &mut packets, sockets);
        }
        self.outgoing.pop_front()
    }

    /// When it wants to be asked for a segment, if nothing happens before; a moment that has passed
    /// if it has one.
    pub(super) fn deadline(&mut self, now: Instant) -> Option<Instant> {
        let at = self.interface.poll_at(tick(now), &self.sockets)?;
        Some(Instant::from_nanos((at.total_micros() as u64).saturating_mul(TICK_NS)))
    }

    /// Bytes that can be read.
    pub(super) fn readable(&self) -> usize {
        self.sockets.get::<Socket<'_>>(self.socket).recv_queue()
    }

    /// Bytes that can be written.
    pub(super) fn writable(&self) -> usize {
        let socket = self.sockets.get::<Socket<'_>>(self.socket);
        socket.send_capacity() - socket.send_queue()
    }

    /// Bytes that can be written when nothing waits.
    pub(super) fn capacity(&self) -> usize {
        self.sockets.get::<Socket<'_>>(self.socket).send_capacity()
    }

    /// Reads what there is room for; how many bytes those were.
    pub(super) fn read(&mut self, place: &mut [u8]) -> usize {
        self.socket().recv_slice(place).unwrap_or_default()
    }

    /// Writes what there is room for; how many bytes those were.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        self.socket().send_slice(bytes).unwrap_or_default()
    }
}
