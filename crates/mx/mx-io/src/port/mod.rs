//! Ports: how MX frames leave and arrive.
//!
//! | port | frames travel | when |
//! |---|---|---|
//! | [`packet`] | through an Ethernet interface | by default; takes `CAP_NET_RAW` |
//! | [`udp`] | in datagrams | where raw sockets are not allowed |
//! | [`tcp_bulk`] | with data over TCP, others by another port | for bandwidth |
//! | [`shm`] | through shared memory | between endpoints of one host |
//! | [`local`] | by another port, or `shm` | by default, see [`open`] |
//! | `virtio`, a feature | straight onto a NIC of ours | in a lab, for moderation |
//! | [`wire`] | within this process | in tests |
//! | [`faulty`] | by another port, which it makes faults with | in tests |
//!
//! A [`Port`] belongs to one endpoint: it drops frames for others, and is the only one of its
//! address and number, of which a [`Claim`] makes sure where several share an interface.
//!
//! One who spins calls [`Port::receive`] again and again. One who sleeps
//!
//! 1. [arms](Port::arm) the port; if that says that something is there, it receives again;
//! 2. sleeps until [`Port::readiness`] is readable, or has an error or a hang-up, or until one of
//!    [`Port::more_readiness`] is readable;
//! 3. [clears](Port::clear) the port, which also reports an interface that went away;
//! 4. receives until fewer frames come than it has asked for, and begins anew.
//!
//! A frame of a large message that more frames follow may wake no thread. One that a receiver has
//! no room for is lost, as on any wire, and [counted](PortCounters::overrun).

mod again;
mod claim;
mod counters;
mod error;
pub mod faulty;
mod inbox;
pub mod local;
mod message;
mod name;
mod outbox;
pub mod packet;
pub mod shm;
mod socket;
mod spec;
pub mod tcp_bulk;
pub mod udp;
#[cfg(feature = "virtio")]
pub mod virtio;
pub mod wire;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use ::mx::address::Address;
pub use ::mx::address::NicId;
pub use ::mx::config::{MAX_MTU, MIN_MTU};
pub use ::mx::outgoing::{BulkPath, BulkState, Outgoing, Reference};
use ::mx::wire::RUN_HEAD;
pub use claim::Claim;
pub use counters::PortCounters;
pub use error::PortError;
pub use spec::{PortSpec, open, open_free};

/// Where the frame says which endpoint it is for, in bytes from the end of the EtherType.
pub const ENDPOINT_AT: usize = 2;

/// The most descriptors that a port has beside the first: a way within the host, and one for all
/// TCP connections.
pub const MORE_READINESS: usize = 2;

/// What others know a port by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The address by which others reach it.
    pub nic: NicId,
    /// The number of the endpoint that it belongs to.
    pub endpoint: u8,
    /// Bytes of the largest frame, without the Ethernet header: [`MIN_MTU`] to [`MAX_MTU`].
    pub mtu: u16,
    /// How many bytes of an address name a host: all 6 of a MAC address, 4 of an IPv4 address and a
    /// port.
    pub host_bytes: u8,
}

/// Frames to send, one after the other.
pub trait Frames {
    /// Writes the next frame, if there is one.
    fn next(&mut self, room: &mut [u8]) -> Option<Outgoing>;

    /// The last bytes of that frame, as far as they were not written, which is so for bulk frames
    /// and announcements only ([`Endpoint::data`](::mx::endpoint::Endpoint::data)).
    fn data(&self) -> &[u8] {
        &[]
    }
}

/// Writes the next frame, if there is one.
pub type WriteFrame<'a> = dyn Frames + 'a;

impl<F: FnMut(&mut [u8]) -> Option<Outgoing>> Frames for F {
    fn next(&mut self, room: &mut [u8]) -> Option<Outgoing> {
        self(room)
    }
}

/// Frames of others, of which `next` leaves some to the port that asks for them.
struct Filtered<'a, 'b, F> {
    frames: &'a mut WriteFrame<'b>,
    next: F,
}

impl<F> Frames for Filtered<'_, '_, F>
where
    F: FnMut(&mut WriteFrame<'_>, &mut [u8]) -> Option<Outgoing>,
{
    fn next(&mut self, room: &mut [u8]) -> Option<Outgoing> {
        (self.next)(self.frames, room)
    }

    fn data(&self) -> &[u8] {
        self.frames.data()
    }
}

/// Takes what has come.
pub trait Arrivals {
    /// A frame has come: its sender, and what follows the EtherType.
    fn take(&mut self, from: NicId, frame: &[u8]);

    /// An announcement has come of a message that can be [read](Port::read).
    fn take_reference(&mut self, from: NicId, frame: &[u8], reference: Reference) {
        let _ = reference;
        self.take(from, frame);
    }

    /// The place of data that are about to come, if they have one
    /// ([`Endpoint::place`](::mx::endpoint::Endpoint::place)).
    fn place(
        &mut self,
        from: NicId,
        head: &[u8; RUN_HEAD],
        skip: usize,
        most: usize,
    ) -> Option<&mut [u8]> {
        let _ = (from, head, skip, most);
        None
    }

    /// The data of whole bulk frames have come there: of the one with this head, and of those after
    /// it, `length` bytes in all.
    fn placed(&mut self, from: NicId, head: &[u8; RUN_HEAD], length: usize) {
        let _ = (from, head, length);
    }
}

/// Takes what has come.
pub type TakeFrame<'a> = dyn Arrivals + 'a;

impl<F: FnMut(NicId, &[u8])> Arrivals for F {
    fn take(&mut self, from: NicId, frame: &[u8]) {
        self(from, frame);
    }
}

/// A way for MX frames to leave and come.
pub trait Port: Send {
    /// What others know this port by.
    fn identity(&self) -> Identity;

    /// The address by which others reach this port.
    fn nic_id(&self) -> NicId {
        self.identity().nic
    }

    /// The number of the endpoint that this port belongs to.
    fn endpoint(&self) -> u8 {
        self.identity().endpoint
    }

    /// Bytes of the largest frame, without the Ethernet header: [`MIN_MTU`] to [`MAX_MTU`].
    fn mtu(&self) -> u16 {
        self.identity().mtu
    }

    /// Sends what `write` writes, until it returns `None` or there is no more room.
    ///
    /// `write` gets [`mtu`](Self::mtu) bytes, or [`BULK_FRAME`](::mx::wire::BULK_FRAME) if there
    /// is a path for bulk frames, whose content is not defined, and fills in what follows the
    /// EtherType. It is not called while the port has frames that it could not
    /// hand over the last time.
    ///
    /// # Errors
    /// If the port cannot send, now or ever. Frames that were written stay in it.
    fn transmit(&mut self, write: &mut WriteFrame<'_>) -> Result<Transmitted, PortError>;

    /// What has become of paths for bulk frames since this was last asked. A port that has
    /// something to tell may not have asked for all frames: tell the engine, and transmit again.
    fn bulk_changes(&mut self) -> Vec<(Address, BulkState)> {
        Vec::new()
    }

    /// Closes the path for bulk frames to this peer: nothing of what has not left leaves any more.
    fn close_bulk_path(&mut self, peer: Address) {
        let _ = peer;
    }

    /// Reads a part of a message that this peer has announced, from where it lies; `false` if it is
    /// not there, or no longer. Then it is to be asked for.
    fn read(&mut self, peer: Address, reference: Reference, place: &mut [u8]) -> bool {
        let _ = (peer, reference, place);
        false
    }

    /// Hands up to `budget` frames to `take`, each as its sender and what follows the EtherType,
    /// which may be longer than it was: Ethernet pads. Returns how many frames it looked at, those
    /// for others and broken ones included; less than `budget` means that there are no more.
    ///
    /// # Errors
    /// If the port will receive nothing any more.
    fn receive(&mut self, budget: usize, take: &mut TakeFrame<'_>) -> Result<usize, PortError>;

    /// Asks for [`readiness`](Self::readiness) when a frame comes. `true`: one is there already, so
    /// there may be none, and it is for the caller to receive it.
    ///
    /// # Errors
    /// If the port will receive nothing any more.
    fn arm(&mut self) -> Result<bool, PortError>;

    /// Readable once a frame has come after [`arm`](Self::arm). Poll it for input; errors and
    /// hang-ups, which are always polled for, mean the same.
    fn readiness(&self) -> BorrowedFd<'_>;

    /// Other descriptors to poll for input, at most [`MORE_READINESS`]: frames may come another
    /// way, or the other side may go without [`readiness`](Self::readiness).
    /// [`clear`](Self::clear) is for all of them.
    fn more_readiness(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Forgets that there was a reason to wake up.
    ///
    /// # Errors
    /// If the reason was that the interface went down, or the NIC away.
    fn clear(&mut self) -> Result<(), PortError>;

    /// What happened so far.
    fn counters(&mut self) -> PortCounters;
}

/// What became of the frames that were offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmitted {
    /// All are on their way, and there are no more.
    Drained,
    /// The port could not hand all of them over. Transmit again when there is [`Room`].
    Full(Room),
}

/// When a full port has room again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// When [`Port::readiness`], polled for output, is writable.
    Writable,
    /// When [`Port::readiness`] is readable; as for frames that come, clear it then.
    Signalled,
    /// No descriptor says when. Try again after this time.
    Later(Duration),
}

/// How long a port waits that gets an error for a full queue, but no signal for room in it: the
/// time in which a 10 Gbit/s link sends some 80 frames of 1500 bytes.
const LATER: Duration = Duration::from_micros(100);

/// The address of all interfaces of a segment.
pub(crate) const BROADCAST: NicId = NicId([0xff; 6]);

/// The type of frames that ask who is there.
pub(super) const QUERY: u8 = 3;

/// In a question: all endpoints.
pub(super) const ALL_ENDPOINTS: u8 = 255;

/// The last number that an endpoint may have.
pub const LAST_ENDPOINT: u8 = ALL_ENDPOINTS - 1;

/// Whether a frame is for an endpoint: by its number, or as a question to all endpoints.
fn is_for(frame: &[u8], endpoint: u8) -> bool {
    endpoint_of(frame).is_some_and(|to| to == endpoint || to == ALL_ENDPOINTS && is_question(frame))
}

/// Whether a frame asks who is there.
fn is_question(frame: &[u8]) -> bool {
    frame.first() == Some(&QUERY)
}

/// The endpoint that a frame is for; `None` if the frame is too short to say so.
fn endpoint_of(frame: &[u8]) -> Option<u8> {
    frame.get(ENDPOINT_AT).copied()
}

/// Receives from two sources, `first` of which comes first this time: half of the budget for each,
/// in turns, so that neither keeps the other from being heard; and what the second leaves is for
/// the first. `look` gets which of them, and how many frames at most.
fn in_turns(
    first: &mut bool,
    budget: usize,
    mut look: impl FnMut(bool, usize) -> Result<usize, PortError>,
) -> Result<usize, PortError> {
    let half = budget.div_ceil(2);
    let source = *first;
    *first = !source;
    let came = look(source, half)?;
    let mut total = came + look(!source, budget - came)?;
    if came == half && total < budget {
        total += look(source, budget - total)?;
    }
    Ok(total)
}

/// Whether an MTU is one that ports have.
fn check_mtu(port: &str, mtu: u32) -> Result<u16, PortError> {
    u16::try_from(mtu).ok().filter(|mtu| (MIN_MTU..=MAX_MTU).contains(mtu)).ok_or_else(|| {
        let what = format!("an MTU of {mtu}");
        PortError::Setting { port: port.to_owned(), what, range: "576 to 9216" }
    })
}
