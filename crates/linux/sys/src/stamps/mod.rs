//! When the kernel, or the NIC, sent and received: `SO_TIMESTAMPING`.
//!
//! A receive stamp in software is taken when the driver hands the packet to the stack: after the
//! NIC's hold, before any wake-up of a program. A hardware stamp, where the NIC has them, is taken
//! before the hold. Transmit stamps, the driver's, come back through the socket's error queue,
//! numbered as the datagrams were. Software stamps are on `CLOCK_REALTIME`, hardware ones on a
//! clock of the NIC.
//!
//! Linux `Documentation/networking/timestamping.rst`.

mod message;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use message::StampedMessage;
pub use message::{LinkAddress, Stamps};

use crate::option;

/// What is asked for of everything: when the kernel, and when the NIC, received it. A NIC stamps
/// what it receives only if somebody has configured it to (`hwstamp_ctl`, `ptp4l`).
const WANTED: libc::c_uint = libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_RX_HARDWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_RAW_HARDWARE;

/// What is asked for on top where datagrams are counted: when the driver took each, with its number
/// and without the packet. Behind that a packet waits for the wire at most, which is no hold.
const SENT: libc::c_uint = libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;

/// A socket whose packets are stamped.
#[derive(Debug)]
pub struct Stamped {
    socket: OwnedFd,
}

/// A packet, or bytes of a stream, as received.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Bytes in the buffer; 0 at the end of a stream.
    pub length: usize,
    /// Who sent it, where the socket is not connected.
    pub from: Option<SocketAddr>,
    /// Where it was sent to, with [`report_addresses`](crate::replies::report_addresses).
    pub to: Option<IpAddr>,
    /// When the kernel and the NIC received it.
    pub stamps: Stamps,
}

impl Stamped {
    /// Asks for stamps on `socket`: of what it receives, and with `sent` of datagrams that it
    /// sends.
    pub fn new(socket: OwnedFd, sent: bool) -> io::Result<Self> {
        let flags = WANTED | if sent { SENT } else { 0 };
        option::set_int(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags.cast_signed())?;
        Ok(Self { socket })
    }

    /// The socket that is stamped.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// The next packet; waits for it if the socket does.
    ///
    /// # Errors
    /// Those of `recvmsg`; that there is nothing is [`io::ErrorKind::WouldBlock`].
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let StampedMessage { length, from, to, stamps, .. } =
            message::receive(&self.socket, buffer, 0)?;
        Ok(Received { length, from, to, stamps })
    }

    /// The next packet of a packet socket: how long it is, of which the buffer has the beginning,
    /// where it came from, and its stamps.
    ///
    /// # Errors
    /// As for [`receive`](Self::receive); also if it is no packet socket.
    pub fn receive_packet(&self, buffer: &mut [u8]) -> io::Result<(usize, LinkAddress, Stamps)> {
        let StampedMessage { length, link, stamps, .. } =
            message::receive(&self.socket, buffer, libc::MSG_TRUNC)?;
        let link = link.ok_or_else(|| io::Error::other("not a packet socket"))?;
        Ok((length, link, stamps))
    }

    /// The number and the stamps of a datagram that was sent, if they have come meanwhile.
    /// Datagrams count from 0.
    pub fn sent(&self) -> io::Result<Option<(u32, Stamps)>> {
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        loop {
            match message::receive(&self.socket, &mut [], flags) {
                Ok(message) => {
                    // Without a number something else went wrong once, such as an unreachable port.
                    if let Some(number) = message.number {
                        return Ok(Some((number, message.stamps)));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn both_ends_of_a_datagram_are_stamped_by_the_kernel() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = receiver.local_addr().unwrap();
        let receiver = Stamped::new(receiver.into(), false).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let from = sender.local_addr().unwrap();
        let stamped = Stamped::new(sender.try_clone().unwrap().into(), true).unwrap();
        // The kernel switches receive stamps on in a work queue (`net_enable_timestamp` in
        // net/core/dev.c): the first datagrams may come without.
        let begin = std::time::Instant::now();
        for expected in 0.. {
            sender.send_to(b"probe", to).unwrap();
            let mut buffer = [0; 16];
            let received = receiver.receive(&mut buffer).unwrap();
            assert_eq!((&buffer[..received.length], received.from), (&b"probe"[..], Some(from)));
            let (number, stamps) = stamped.sent().unwrap().expect("loopback sends at once");
            assert_eq!(number, expected);
            assert_eq!(stamped.sent().unwrap(), None);
            let sent_at = stamps.software.expect("the kernel stamps what goes");
            if let Some(received_at) = received.stamps.software {
                assert!(sent_at <= received_at);
                return;
            }
            assert!(begin.elapsed().as_secs() < 60, "none of {expected} datagrams was stamped");
            std::thread::yield_now();
        }
    }
}
