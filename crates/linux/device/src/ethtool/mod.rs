//! What the kernel's `ethtool` family says of a device, as records: each takes the attributes of
//! an answer. An attribute that a driver does not support is absent, so it is `None`, never 0.

mod coalesce;
mod driver;
mod parameter;
mod queues;
mod reply;

pub use coalesce::{Coalesce, ProfileStep, encode_coalesce};
pub use driver::{Driver, parse_driver};
pub use parameter::{Parameter, UnknownParameter};
pub use queues::{QueueCoalesce, differing_queues, parse_legacy, word_of};
pub use reply::{
    COMBINED, Channels, Eee, Features, Link, LinkState, Rings, SET, SETS, Strings, Timestamps,
};
