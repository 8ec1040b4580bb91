//! Discovery: hosts of a segment by name.
//!
//! One who looks for hosts asks all, by a broadcast; each live endpoint that is meant answers
//! the asker alone. Frames are lost at times, so a question is repeated, five times a second.
//!
//! ```text
//!  0      1       2      3      4        12     18         19       20        22     24
//! ┌──────┬───────┬──────┬──────┬────────┬──────┬──────────┬────────┬─────────┬──────┬──────┐
//! │ type │ flags │ to   │ from │ nonce  │ NIC  │ endpoint │ length │ version │ 0    │ name │
//! └──────┴───────┴──────┴──────┴────────┴──────┴──────────┴────────┴─────────┴──────┴──────┘
//! ```
//!
//! - **type**: 3 is a question (`HOST_QUERY`), 4 an answer (`HOST_REPLY`), as in Open-MX, whose
//!   layouts differ. The engine has no such types: they are taken out before it sees them.
//! - **flags**: 0.
//! - **to**: an endpoint; 255 in a question is all of them.
//! - **nonce**: chosen at random by the asker. An answer repeats it.
//! - **NIC**, **endpoint** of the sender, which has to agree with the frame's other words on that.
//! - **length** of the name, 0 to 80 bytes; what follows the name is padding. A question has
//!   enough of it for any answer, since no answer is longer than its question.
//! - **version** of the protocol that the sender speaks.
//! - **name** of the host: in an answer that of the sender, in a question the one that is looked
//!   for, or none for all.
//!
//! # Limits
//!
//! An endpoint gives 32 answers at once and 100 in a second; others wait for the question to be
//! repeated. Any host on the segment can claim any name, as with ARP; where that matters, there
//! is a file ([`Peers`]), which is asked first. Over UDP there are no broadcasts, and only the
//! file; questions that come there are dropped.

mod asker;
mod frame;
mod peers;

use std::time::Duration;

use mx::address::Address;

use super::port::{Port, PortError, Transmitted};
use sys::clock;

#[doc(hidden)]
pub use asker::Asker;
pub use peers::{Peers, PeersError, Target};

/// Frames that are looked at together.
const BUDGET: usize = 64;
/// How long one who asks sleeps when there is nothing.
pub(crate) const NAP: Duration = Duration::from_millis(1);

/// An endpoint that has answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveredEndpoint {
    /// The name of its host.
    pub host: String,
    /// Where it is.
    pub address: Address,
    /// The version of the protocol that it speaks; ours is [`mx::wire::VERSION`].
    pub version: u16,
}

/// The endpoints of a host, or of all, that answer within `timeout`, in the order of addresses.
/// Frames for the engine that come meanwhile are dropped, so this is for a port that has none.
pub fn discover(
    port: &mut dyn Port,
    host: Option<&str>,
    timeout: Duration,
) -> Result<Vec<DiscoveredEndpoint>, PortError> {
    let own = Address { nic: port.nic_id(), endpoint: port.endpoint() };
    let (mut asker, nonce) = (Asker::new(own, None), sys::seed::seed());
    let start = std::time::Instant::now();
    asker.begin(clock::now(), nonce, host);
    while start.elapsed() < timeout {
        let now = clock::now();
        let sent = port.transmit(&mut |out: &mut [u8]| asker.transmit(now, out))?;
        let take = &mut |from, bytes: &[u8]| {
            asker.handle_frame(now, from, bytes);
        };
        if port.receive(BUDGET, take)? == 0 || sent != Transmitted::Drained {
            std::thread::sleep(NAP);
        }
    }
    Ok(asker.end(nonce))
}

pub(crate) fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let fits =
        |letter: char| if frame::is_name(letter.encode_utf8(&mut [0; 4])) { letter } else { '-' };
    let name: String = name.chars().map(fits).take(frame::MAX_NAME).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}
