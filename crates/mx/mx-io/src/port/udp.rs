//! Frames in UDP datagrams, for hosts where raw sockets are not allowed, such as most containers.
//!
//! What follows the EtherType of an Ethernet frame is the content of a datagram here. The address
//! of a port, a [`NicId`], is its IPv4 address and its UDP port: 10.9.0.1 port 9000 is
//! `0a:09:00:01:23:28`. So every endpoint has an address of its own, and its number distinguishes
//! nothing but is compared all the same.
//!
//! A call sends up to 64 frames. Those of a large message go through the kernel together, as
//! `UDP_SEGMENT` has it: with 1500 bytes each, that takes a third of the time. Those that the
//! kernel or the NIC has put together again on their way (`UDP_GRO`) come in one piece, and up to
//! 32 of these in a call. One who spins makes a system call each time; there is no ring to look at.
//!
//! The MTU counts what is in a datagram: 1472 bytes on an Ethernet. Larger datagrams arrive, in
//! fragments that IP puts together, but one fragment lost is all of them lost.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::inbox::{Inbox, MESSAGES};
use super::outbox::Outbox;
use super::{
    Identity, NicId, Port, PortCounters, PortError, Room, TakeFrame, Transmitted, WriteFrame,
    endpoint_of, is_question, socket,
};

/// The largest frame, in bytes: what a datagram on Ethernet has.
const MTU: u16 = 1472;
/// Memory for frames that come and were not looked at, in bytes, as far as the system gives it.
const ROOM: usize = 4 << 20;

/// A port that sends datagrams.
pub struct UdpPort {
    name: String,
    nic: NicId,
    endpoint: u8,
    socket: UdpSocket,
    outbox: Outbox,
    inbox: Inbox,
    counters: PortCounters,
}

impl UdpPort {
    /// Opens a socket in the network of this thread. Frames leave from the address `local` of this
    /// host and its UDP port; 0 is any that is free.
    ///
    /// # Errors
    /// If the address is not of this host, or taken.
    pub fn open(endpoint: u8, local: SocketAddrV4) -> Result<Self, PortError> {
        let name = local.to_string();
        if local.ip().is_unspecified() {
            // Peers would not know where to answer.
            let what = format!("address {}", local.ip());
            let range = "one of this host's: ip -4 -brief address";
            return Err(PortError::Setting { port: name, what, range });
        }
        let remedy = "use an address of this host (ip -4 -brief address) and a port that is free";
        let fail = PortError::system("bind a UDP socket", &name, remedy);
        let socket = UdpSocket::bind(local).map_err(&fail)?;
        socket.set_nonblocking(true).map_err(&fail)?;
        let SocketAddr::V4(local) = socket.local_addr().map_err(&fail)? else {
            return Err(fail(std::io::ErrorKind::AddrNotAvailable.into()));
        };
        socket::set_room(&socket, Some(ROOM), ROOM);
        let inbox = Inbox::new(&socket);
        Ok(Self {
            name: local.to_string(),
            nic: nic_id(local),
            endpoint,
            socket,
            outbox: Outbox::new(0, MTU.into(), true),
            inbox,
            counters: PortCounters::default(),
        })
    }

    /// What it means that the kernel refused a frame; `None`: that it has to be left out.
    fn refused(&mut self, errno: Errno) -> Option<Result<Transmitted, PortError>> {
        match errno {
            Errno::AGAIN => {
                self.counters.full += 1;
                Some(Ok(Transmitted::Full(Room::Writable)))
            }
            Errno::NOBUFS => {
                self.counters.full += 1;
                Some(Ok(Transmitted::Full(Room::Later(super::LATER))))
            }
            // Of this address alone; others are none the worse for it.
            Errno::NETUNREACH
            | Errno::HOSTUNREACH
            | Errno::INVAL
            | Errno::PERM
            | Errno::ACCESS
            | Errno::CONNREFUSED
            | Errno::MSGSIZE => {
                self.outbox.skip();
                self.counters.refused += 1;
                None
            }
            errno => Some(Err(self.broken("send", errno))),
        }
    }

    fn broken(&self, operation: &'static str, errno: Errno) -> PortError {
        let remedy = "look at the interfaces: ip address";
        PortError::System { operation, port: self.name.clone(), cause: errno.into(), remedy }
    }

    /// Sorts out a message of the last batch: how many frames it has.
    fn sort(&mut self, number: usize, take: &mut TakeFrame<'_>) -> usize {
        let (message, counters) = (self.inbox.message(number), &mut self.counters);
        let mut frames = 0;
        if message.is_empty() {
            counters.strange += 1;
        }
        for frame in message.datagrams() {
            frames += 1;
            if frame.len() > MTU.into() {
                counters.too_long += 1;
            } else if endpoint_of(frame) == Some(self.endpoint) && !is_question(frame) {
                counters.came(frame.len());
                take.take(nic_id(message.from), frame);
            } else {
                counters.strange += 1;
            }
        }
        frames
    }
}

impl Port for UdpPort {
    fn identity(&self) -> Identity {
        Identity { nic: self.nic, endpoint: self.endpoint, mtu: MTU, host_bytes: 4 }
    }

    fn transmit(&mut self, write: &mut WriteFrame<'_>) -> Result<Transmitted, PortError> {
        loop {
            let mut last = false;
            if self.outbox.is_empty() {
                while let Some(frame) = self.outbox.vacant() {
                    let Some(outgoing) = write.next(frame) else {
                        last = true;
                        break;
                    };
                    self.outbox.push_to(outgoing.length, socket_address(outgoing.to));
                }
            }
            while let Err(errno) = self.outbox.send(self.socket.as_fd(), &mut self.counters) {
                if let Some(outcome) = self.refused(errno) {
                    return outcome;
                }
            }
            if last {
                return Ok(Transmitted::Drained);
            }
        }
    }

    fn receive(&mut self, budget: usize, take: &mut TakeFrame<'_>) -> Result<usize, PortError> {
        let mut seen = 0;
        while seen < budget {
            let wanted = (budget - seen).min(MESSAGES);
            self.counters.calls_in += 1;
            let came = match self.inbox.receive(self.socket.as_fd(), wanted) {
                Ok(came) => came.min(wanted),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(self.broken("receive", errno)),
            };
            seen += (0..came).map(|number| self.sort(number, take)).sum::<usize>();
            if came < wanted {
                break;
            }
        }
        // A message may have more frames than were asked for.
        Ok(seen.min(budget))
    }

    fn arm(&mut self) -> Result<bool, PortError> {
        // The socket is readable for as long as there is a datagram.
        Ok(false)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn clear(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.overrun = socket::dropped(self.socket.as_fd());
        self.counters
    }
}

/// The address of a port, as it is called.
#[must_use]
pub fn nic_id(address: SocketAddrV4) -> NicId {
    let [a, b, c, d] = address.ip().octets();
    let [high, low] = address.port().to_be_bytes();
    NicId([a, b, c, d, high, low])
}

/// The address that is called so.
#[must_use]
pub fn socket_address(nic: NicId) -> SocketAddrV4 {
    let [a, b, c, d, high, low] = nic.0;
    SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{Outgoing, QUERY};

    const LOCALHOST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

    #[test]
    fn questions_of_discovery_are_dropped() {
        let mut port = UdpPort::open(1, LOCALHOST).unwrap();
        let asker = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let frame = |kind| [kind, 0, 1, 2].repeat(26);
        for kind in [QUERY, 35] {
            asker.send_to(&frame(kind), socket_address(port.nic_id())).unwrap();
        }
        let mut came = Vec::new();
        while came.is_empty() {
            port.receive(8, &mut |_, frame: &[u8]| came.push(frame.to_vec())).unwrap();
        }
        assert_eq!((came, port.counters().strange), (vec![frame(35)], 1));
    }

    #[test]
    fn unreachable_address_delays_no_other() {
        let mut a = UdpPort::open(1, LOCALHOST).unwrap();
        let mut b = UdpPort::open(2, LOCALHOST).unwrap();
        // From the loopback address no packet leaves the host, and no port is 0.
        let nowhere = nic_id(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 9));
        let mut to = vec![b.nic_id(), nowhere, NicId([127, 0, 0, 1, 0, 0]), b.nic_id()];
        let outcome = a.transmit(&mut |frame: &mut [u8]| {
            frame[..30].fill(2);
            let to = to.pop()?;
            Some(Outgoing::new(to, 2, 30))
        });
        assert_eq!(outcome.unwrap(), Transmitted::Drained);
        let mut came = Vec::new();
        while came.len() < 2 {
            b.receive(8, &mut |from, frame: &[u8]| came.push((from, frame.to_vec()))).unwrap();
        }
        assert_eq!(came, vec![(a.nic_id(), vec![2; 30]); 2]);
        assert_eq!((a.counters().refused, a.counters().frames_out), (2, 2));
    }
}
