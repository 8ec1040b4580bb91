//! A port whose guest may do anything: its device and the NIC as a data plane treats them, and what
//! has to hold whatever the guest does.

use base::time::{Duration, Instant};
use hostside::{Fetched, HostPort, HostSide};
use nic::port::{MAX_FRAME, PortSettings};

/// The port, its device, and what has passed.
pub(crate) struct Bench<D: HostSide> {
    pub(crate) port: HostPort<D>,
    pool: Vec<Vec<u8>>,
    now: Instant,
    arrived: usize,
    delivered: usize,
    /// Frames of the guest that are taken in a round.
    most: usize,
}

impl<D: HostSide> Bench<D> {
    /// A device at a port, which takes at most `most` frames of the guest in a round.
    pub(crate) fn new(device: D, port: PortSettings, most: usize) -> Self {
        let port = HostPort::new(Box::new(device), port, Instant::ZERO);
        Self { port, pool: Vec::new(), now: Instant::ZERO, arrived: 0, delivered: 0, most }
    }

    /// Time passes, and the device has a [round](Self::round).
    pub(crate) fn pass(&mut self, micros: u64) -> usize {
        self.now += Duration::from_micros(micros);
        self.round()
    }

    /// A frame of `length` bytes comes: these, and then others.
    pub(crate) fn arrive(&mut self, first: &[u8], length: usize) {
        let mut frame = self.pool.pop().unwrap_or_default();
        frame.clear();
        frame.extend(first);
        frame.resize(length, 7);
        self.port.make_room();
        self.arrived += usize::from(self.port.receive(self.now, frame).is_ok());
    }

    /// What the data plane does at one moment; how many frames of the guest it has taken.
    pub(crate) fn round(&mut self) -> usize {
        let Self { port, pool, now, delivered, most, .. } = self;
        port.sync(*now, true);
        let (mut frame, mut taken) = (Vec::new(), 0);
        while taken < *most {
            match port.transmit(*now, 0, &mut frame).expect("a port that is there") {
                Fetched::Nothing | Fetched::Later(_) => break,
                Fetched::Frame => assert!(frame.len() <= MAX_FRAME),
                Fetched::Dropped => {}
            }
            taken += 1;
        }
        port.advance(*now);
        port.serve(*now, pool, &mut |_, _| *delivered += 1).expect("a port that is there");
        if let Some(host) = port.host.virtual_time() {
            host.answer_kick();
            if host.next_irq_at().is_some_and(|at| at <= *now) {
                host.raise_irqs(*now);
                host.send_irqs();
            }
            assert!(host.next_irq_at().is_none_or(|at| at > *now));
        }
        self.check();
        taken
    }

    fn check(&self) {
        let Self { delivered, arrived, .. } = self;
        assert!(delivered <= arrived, "{delivered} delivered of {arrived}");
        let due = self.port.deadline();
        assert!(
            due.is_none_or(|due| due > self.now),
            "{due:?} at {:?}: the data plane would not rest",
            self.now
        );
        let attachment = self.port.host.attachment().expect("guests connect to it");
        assert_eq!(attachment.connected, attachment.lost.is_none());
        assert!(attachment.lost.is_none_or(|why| !why.is_empty()));
        assert!(attachment.pairs_used <= attachment.pairs);
    }
}
