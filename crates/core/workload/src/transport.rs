//! What a workload may run over.

use serde::{Deserialize, Serialize};

use crate::{Framing, WorkloadSpec};

/// What carries a workload's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP, without Nagle's delay.
    Tcp,
    /// Datagrams of UDP.
    Udp,
    /// ICMP echo: the peer's kernel answers, no agent needed there.
    Icmp,
    /// Raw Ethernet frames through an `AF_PACKET` socket.
    Packet,
    /// Messages of MX, through an `AF_PACKET` socket.
    Mx,
}

impl Transport {
    /// Does it keep message boundaries?
    pub fn framing(self) -> Framing {
        match self {
            Self::Tcp => Framing::Stream,
            Self::Udp | Self::Icmp | Self::Packet | Self::Mx => Framing::Datagram,
        }
    }

    /// The name as it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
            Self::Packet => "packet",
            Self::Mx => "mx",
        }
    }

    /// Bytes of the shortest message.
    pub fn least(self) -> usize {
        usize::from(self != Self::Mx)
    }
}

impl WorkloadSpec {
    /// What a workload can run over, the usual one first.
    pub fn transports(&self) -> &'static [Transport] {
        match self {
            Self::RrClient(_) => &[Transport::Tcp, Transport::Udp, Transport::Icmp, Transport::Mx],
            Self::RrServer(_) => &[Transport::Tcp, Transport::Udp, Transport::Mx],
            Self::MemcachedClient(_) => &[Transport::Tcp],
            Self::BulkSender(_) | Self::BulkReceiver(_) => &[Transport::Tcp, Transport::Mx],
            Self::NtpClient(_) | Self::NtpServer(_) | Self::PpsSender(_) | Self::PpsReceiver(_) => {
                &[Transport::Udp]
            }
            Self::FrameSender(_) => &[Transport::Packet],
        }
    }
}
