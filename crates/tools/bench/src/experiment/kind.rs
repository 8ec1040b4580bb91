//! The experiments by name.

use clap::ValueEnum;
use serde::Deserialize;

/// The experiments by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// One byte there and back over TCP, again and again (netperf TCP_RR)
    TcpRr,
    /// The same over UDP
    UdpRr,
    /// The same with ICMP echo, which the kernel answers
    Ping,
    /// TCP round trips to a server that works 110 us on each request
    LoadedServer,
    /// Gets from the real memcached; latency is the time to the first 5 bytes
    Memcached,
    /// NTP with its four timestamps: which half of a round trip is late, and what that does to a
    /// clock
    Ntp,
    /// One TCP flow as fast as it goes, or at --bulk-rate
    Bulk,
    /// A paced TCP flow, and TCP round trips at a fixed rate, at once on one NIC
    Mixed,
    /// Small datagrams as fast as they go
    Pps,
    /// Frames that the host drops at once: what receiving one costs
    InvalidFrames,
    /// Messages of MX there and back: half a round trip, as Open-MX tells it
    MxPingpong,
    /// Messages of MX one way, with --in-flight of them on their way
    MxStream,
    /// Large messages of MX there and back: what each takes, in time and in interrupts
    MxLargeAnatomy,
    /// Round trips of MX messages whose mark comes --mx-misorder frames too early
    MxMisorder,
    /// Short round trips of MX beside bulk messages of MX and a TCP flow, at once on one NIC
    MxMixed,
}

impl Experiment {
    /// The name on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("no experiment is hidden");
        value.get_name().to_owned()
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }
}
