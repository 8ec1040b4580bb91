//! How a program in virtual time keeps its host's processor busy.
//!
//! Computing takes no time there, and a program that sleeps instead keeps nothing from happening.
//! So it asks the owner of the processor, which is its device: it sends a frame of an EtherType
//! that is kept for local experiments (IEEE 802, 0x88B5), and gets it back when the work is done.
//! Such a frame neither reaches the NIC nor costs anything.

use base::time::Duration;

/// EtherType of requests for work.
pub const ETHERTYPE: u16 = 0x88B5;

/// Bytes of a request: an Ethernet header, nanoseconds, and who asks, in network byte order.
pub const REQUEST: usize = 14 + 8 + 4;

/// A frame by which process `of` asks for work of this length. Its addresses are zero: packet
/// sockets see it all the same.
pub fn request(length: Duration, of: u32) -> [u8; REQUEST] {
    let mut frame = [0; REQUEST];
    frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
    frame[14..22].copy_from_slice(&length.as_nanos().to_be_bytes());
    frame[22..].copy_from_slice(&of.to_be_bytes());
    frame
}

/// The length of the work that `frame` asks for, if it does; NICs may have padded it.
pub fn requested(frame: &[u8]) -> Option<Duration> {
    let frame: &[u8; REQUEST] = frame.first_chunk()?;
    let nanos = frame[14..].first_chunk().copied().map(u64::from_be_bytes)?;
    (frame[12..14] == ETHERTYPE.to_be_bytes()).then(|| Duration::from_nanos(nanos))
}
