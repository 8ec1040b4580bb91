//! How long our own NIC keeps what it has received, where it stamps packets both ways.
//!
//! From the moment the driver takes a request until the kernel receives the answer, less what the
//! NIC says that passes between its own sending and receiving. What is left is the NIC's hold, and
//! a microsecond or two of DMA and interrupt. Each of the two spans is read from one clock, so the
//! clocks need not agree.

use std::io;
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use netdev::ethtool::Ethtool;
use rustix::net::{SendFlags, send};
use sys::stamps::{Stamped, Stamps};

use super::answer::{TIMEOUT, read_answer};

/// How often the stamps of a request are looked for, and with which pauses: a NIC may give its own
/// later than the answer is there.
const LOOKS: usize = 20;
const PAUSE: Duration = Duration::from_micros(100);

/// Whether `device` can stamp what it sends and what it receives.
pub(crate) fn can(device: &str) -> bool {
    let stamps = Ethtool::open().and_then(|ethtool| ethtool.timestamps(device));
    stamps.is_ok_and(|stamps| stamps.has_hardware_receive() && stamps.has_hardware_transmit())
}

/// A connection to an echo, whose packets are stamped.
#[derive(Debug)]
pub(crate) struct Stamper(Stamped);

impl Stamper {
    /// Asks for stamps on `socket`, which is connected and waits for what it receives.
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        Stamped::new(socket, true).map(Self)
    }

    /// Sends `request`, waits until as much has come back, and returns how long the NIC kept the
    /// last of it, in nanoseconds; `None` if something has no stamp of the NIC, as where stamping
    /// is off (`hwstamp_ctl`).
    pub(crate) fn ask(&self, request: &[u8]) -> io::Result<Option<u64>> {
        send(self.0.socket(), request, SendFlags::NOSIGNAL)?;
        let mut answer = vec![0; request.len()];
        let mut received = Stamps::default();
        read_answer(Instant::now() + TIMEOUT, &mut answer, |rest| {
            let part = self.0.receive(rest)?;
            received = part.stamps;
            Ok(part.length)
        })?;
        let mut sent = Stamps::default();
        for _ in 0..LOOKS {
            while let Some((_, stamps)) = self.0.sent()? {
                // The two kinds come one by one.
                sent.software = sent.software.or(stamps.software);
                sent.hardware = sent.hardware.or(stamps.hardware);
            }
            if received.hardware.is_none() || sent.hardware.is_some() {
                break;
            }
            sleep(PAUSE);
        }
        Ok(kept(sent, received))
    }
}

/// What passes on the kernel's clock and not on the NIC's.
fn kept(sent: Stamps, received: Stamps) -> Option<u64> {
    let by_kernel = received.software?.checked_sub(sent.software?)?;
    let by_nic = received.hardware?.checked_sub(sent.hardware?)?;
    Some(by_kernel.saturating_sub(by_nic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::thread;

    fn at(software: u64, hardware: u64) -> Stamps {
        Stamps { software: Some(software), hardware: Some(hardware) }
    }

    #[test]
    fn what_the_nic_keeps_is_what_its_own_clock_does_not_see() {
        assert_eq!(kept(at(1_000, 77), at(201_000, 50_077)), Some(150_000));
        assert_eq!(kept(at(1_000, 77), at(51_000, 50_090)), Some(0), "clocks are read in steps");
        assert_eq!(kept(at(1_000, 77), Stamps { hardware: None, ..at(9_000, 0) }), None);
        assert_eq!(kept(at(1_000, 77), at(900, 88)), None, "the clock was set meanwhile");
    }

    #[test]
    fn datagrams_without_stamps_of_a_nic_say_nothing() {
        let echo = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(echo.local_addr().unwrap()).unwrap();
        let stamper = Stamper::new(socket.into()).unwrap();
        let answers = thread::spawn(move || {
            let mut bytes = [0; 64];
            let (length, from) = echo.recv_from(&mut bytes).unwrap();
            echo.send_to(&bytes[..length], from).unwrap();
        });
        assert_eq!(stamper.ask(b"request").unwrap(), None, "loopback is no hardware");
        answers.join().unwrap();
        assert!(!can("lo"));
    }
}
