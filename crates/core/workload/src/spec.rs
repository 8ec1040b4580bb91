//! The specification of a workload: plain data, in JSON for agents and in scenario files.
//!
//! Every field has its unit in its name, every default is stated here once, and unknown fields are
//! refused.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use serde::{Deserialize, Serialize};

/// One workload, chosen by `kind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WorkloadSpec {
    /// Asks and waits for answers.
    RrClient(RrClientSpec),
    /// Works and answers.
    RrServer(RrServerSpec),
    /// Gets a value from a memcached.
    MemcachedClient(MemcachedClientSpec),
    /// Asks for the time of day.
    NtpClient(NtpClientSpec),
    /// Tells the time of day.
    NtpServer(NtpServerSpec),
    /// Sends a stream.
    BulkSender(BulkSenderSpec),
    /// Receives a stream.
    BulkReceiver(BulkReceiverSpec),
    /// Sends small datagrams.
    PpsSender(PpsSenderSpec),
    /// Receives small datagrams.
    PpsReceiver(PpsReceiverSpec),
    /// Sends invalid frames.
    FrameSender(FrameSenderSpec),
}

/// Declares a specification: its fields, their documentation and their defaults in one place.
macro_rules! spec {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}

spec! {
    /// `rr-client`, over tcp, udp, icmp or mx.
    RrClientSpec {
        /// Bytes in a request.
        request_bytes: usize = 1,
        /// Bytes in an answer; over icmp always as many as in the request.
        response_bytes: usize = 1,
        /// Connections of this agent.
        connections: usize = 1,
        /// Closed loop: think for a random time below this before each request.
        think_us_max: u64 = 0,
        /// Open loop: requests a second, over all connections. Absent: closed loop.
        rate_per_s: Option<u64> = None,
        /// Datagrams: when an answer counts as lost.
        timeout_ms: u64 = 1000,
    }
}

spec! {
    /// `rr-server`, over tcp, udp or mx.
    RrServerSpec {
        /// Bytes in a request.
        request_bytes: usize = 1,
        /// Bytes in an answer.
        response_bytes: usize = 1,
        /// CPU work per request.
        compute_us: u64 = 0,
    }
}

spec! {
    /// `memcached-client`, over tcp, port 11211 by default.
    MemcachedClientSpec {
        /// Bytes in the value.
        value_bytes: usize = 4096,
        /// Think for a random time below this before each get.
        think_us_max: u64 = 0,
    }
}

spec! {
    /// `ntp-client`, over udp, port 123 by default.
    NtpClientSpec {
        /// One poll in each interval of this length.
        interval_us: u64 = 1_000_000,
        /// Poll at a random moment of each interval rather than at its start.
        random_phase: bool = true,
        /// When an answer counts as lost.
        timeout_ms: u64 = 1000,
    }
}

spec! {
    /// `ntp-server`, over udp, port 123 by default.
    NtpServerSpec {
        /// The stratum it claims.
        stratum: u8 = 10,
    }
}

spec! {
    /// `bulk-sender`, over tcp or mx.
    BulkSenderSpec {
        /// Million payload bits a second. Absent: as fast as it goes.
        rate_mbit: Option<u64> = None,
        /// Bytes in one write.
        chunk_bytes: usize = 65_536,
        /// Connections of this agent, which chunks take in turn.
        connections: usize = 1,
    }
}

spec! {
    /// `bulk-receiver`, over tcp or mx.
    BulkReceiverSpec {}
}

spec! {
    /// `pps-sender`, over udp.
    PpsSenderSpec {
        /// Payload bytes per datagram, at least 8; 18 make the shortest Ethernet frame.
        payload_bytes: usize = 18,
        /// Datagrams a second. Absent: as fast as it goes.
        rate_per_s: Option<u64> = None,
        /// Connections of this agent, which batches take in turn.
        connections: usize = 1,
    }
}

spec! {
    /// `pps-receiver`, over udp.
    PpsReceiverSpec {}
}

spec! {
    /// `frame-sender`, over packet.
    FrameSenderSpec {
        /// How many frames. Absent: until the end of the window.
        count: Option<u64> = None,
        /// Frames a second. Absent: as fast as it goes.
        rate_per_s: Option<u64> = None,
        /// Where to; the broadcast address by default.
        destination: [u8; 6] = [0xff; 6],
        /// Where from; a locally administered address by default.
        source: [u8; 6] = [2, 0, 0, 0, 0, 1],
    }
}

impl WorkloadSpec {
    /// The kind, as it is written.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RrClient(_) => "rr-client",
            Self::RrServer(_) => "rr-server",
            Self::MemcachedClient(_) => "memcached-client",
            Self::NtpClient(_) => "ntp-client",
            Self::NtpServer(_) => "ntp-server",
            Self::BulkSender(_) => "bulk-sender",
            Self::BulkReceiver(_) => "bulk-receiver",
            Self::PpsSender(_) => "pps-sender",
            Self::PpsReceiver(_) => "pps-receiver",
            Self::FrameSender(_) => "frame-sender",
        }
    }

    /// Does it wait for peers and run until *stop*?
    pub fn is_server(&self) -> bool {
        matches!(
            self,
            Self::RrServer(_) | Self::NtpServer(_) | Self::BulkReceiver(_) | Self::PpsReceiver(_)
        )
    }

    /// Does it ask when a request is due, whatever the answers do?
    pub fn keeps_schedule(&self) -> bool {
        matches!(self, Self::RrClient(spec) if spec.rate_per_s.is_some())
    }

    /// How many connections a client opens; 0 for a server.
    pub fn connections(&self) -> usize {
        match self {
            Self::RrClient(spec) => spec.connections,
            Self::BulkSender(spec) => spec.connections,
            Self::PpsSender(spec) => spec.connections,
            _ => usize::from(!self.is_server()),
        }
    }

    /// Gives a client so many times as many connections, if it can have several.
    pub fn multiply_connections(&mut self, times: usize) {
        match self {
            Self::RrClient(spec) => spec.connections *= times,
            Self::BulkSender(spec) => spec.connections *= times,
            Self::PpsSender(spec) => spec.connections *= times,
            _ => {}
        }
    }

    /// Says what is wrong with the numbers, if anything is, on a transport whose shortest message
    /// has `least` bytes.
    pub fn check(&self, least: usize) -> Result<(), String> {
        let at_least = |name: &str, value: u64, min: u64| {
            if value < min { Err(format!("{name} must be at least {min}")) } else { Ok(()) }
        };
        let one = |name: &str, value: usize| at_least(name, value as u64, 1);
        let bytes = |name: &str, value: usize| at_least(name, value as u64, least as u64);
        match self {
            Self::RrClient(spec) => {
                bytes("request_bytes", spec.request_bytes)?;
                bytes("response_bytes", spec.response_bytes)?;
                one("connections", spec.connections)?;
                if spec.think_us_max > 0 && spec.rate_per_s.is_some() {
                    return Err("think_us_max (closed loop) and rate_per_s (open loop) exclude \
                                each other: drop one"
                        .to_owned());
                }
                at_least("rate_per_s", spec.rate_per_s.unwrap_or(1), 1)
            }
            Self::RrServer(spec) => {
                bytes("request_bytes", spec.request_bytes)?;
                bytes("response_bytes", spec.response_bytes)
            }
            Self::NtpClient(spec) => at_least("interval_us", spec.interval_us, 1),
            Self::BulkSender(spec) => {
                bytes("chunk_bytes", spec.chunk_bytes)?;
                one("connections", spec.connections)?;
                at_least("rate_mbit", spec.rate_mbit.unwrap_or(1), 1)
            }
            Self::PpsSender(spec) => {
                at_least("payload_bytes", spec.payload_bytes as u64, 8)?;
                one("connections", spec.connections)?;
                at_least("rate_per_s", spec.rate_per_s.unwrap_or(1), 1)
            }
            Self::FrameSender(spec) => at_least("rate_per_s", spec.rate_per_s.unwrap_or(1), 1),
            Self::MemcachedClient(spec) => one("value_bytes", spec.value_bytes),
            Self::NtpServer(_) | Self::BulkReceiver(_) | Self::PpsReceiver(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_written_as_they_are_named() {
        for kind in ["rr-client", "rr-server", "memcached-client", "ntp-client", "ntp-server"]
            .into_iter()
            .chain(["bulk-sender", "bulk-receiver", "pps-sender", "pps-receiver", "frame-sender"])
        {
            let json = format!(r#"{{"kind":"{kind}"}}"#);
            let spec: WorkloadSpec = serde_json::from_str(&json).unwrap();
            assert_eq!(spec.kind(), kind);
            assert_eq!(spec.check(1), Ok(()));
            let again = serde_json::to_string(&spec).unwrap();
            assert_eq!(serde_json::from_str::<WorkloadSpec>(&again).unwrap(), spec);
        }
    }

    #[test]
    fn unknown_fields_and_useless_numbers_are_refused() {
        let unknown = r#"{"kind":"rr-client","think_ms":1}"#;
        assert!(serde_json::from_str::<WorkloadSpec>(unknown).is_err());
        let both = RrClientSpec { think_us_max: 1, rate_per_s: Some(1), ..Default::default() };
        assert!(WorkloadSpec::RrClient(both).check(1).unwrap_err().contains("drop one"));
        let short = PpsSenderSpec { payload_bytes: 7, ..Default::default() };
        assert!(WorkloadSpec::PpsSender(short).check(1).unwrap_err().contains("at least 8"));
    }
}
