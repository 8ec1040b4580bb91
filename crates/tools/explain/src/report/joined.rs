//! What is said of a far host that has followed the same requests.

use schemars::JsonSchema;
use serde::Serialize;

use super::Explained;
use crate::both::WireTimes;
use crate::far::WithHost;

/// A table that has the stages of both hosts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct JoinedEnds {
    /// The far host.
    pub(crate) host: String,
    /// Requests that this host has followed, of which the table has those that both have.
    pub(crate) of: usize,
    /// What is left: the wire and the NICs, each way. `null`: the clocks do not agree.
    pub(crate) wire: Option<WireTimes>,
}

impl JoinedEnds {
    pub(super) fn text(&self, requests: usize) -> String {
        let Self { host, of, wire } = self;
        let both = format!("{requests} of {of} requests as {host} has followed them, too.");
        let Some(wire) = wire else {
            return format!("{both} Its clock and this one agree on nothing about the wire.\n");
        };
        format!(
            "{both} Wire and NICs take {:.0} to {:.0} us there and {:.0} to {:.0} us back (medians; \
             the clocks of the two hosts are known to {:.0} us).\n",
            wire.there_from_us,
            wire.there_to_us,
            wire.back_from_us,
            wire.back_to_us,
            wire.offset_to_us - wire.offset_from_us
        )
    }
}

impl WithHost {
    pub(super) fn text(&self, explained: &[Explained]) -> String {
        let Self { host, requests, lost, failed } = self;
        if let Some(why) = failed {
            return format!("{why}. So the tables have this host alone.\n");
        }
        let mut text = format!("{host} has followed {requests} requests of this host");
        if *lost > 0 {
            text += &format!(", of which {lost} did not get here");
        }
        if explained.iter().all(|one| one.joined.is_none()) {
            text += "; too few of them are requests that this host has followed";
        }
        text + ".\n"
    }
}
