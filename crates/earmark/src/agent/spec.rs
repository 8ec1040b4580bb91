//! What an agent is told to do: a workload, where, and for how long.

use crate::workload::{Duration, Framing, Instant, Window, WorkloadSpec};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// The specification that an agent gets as its argument, in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// What to do.
    pub workload: WorkloadSpec,
    /// Over what; absent: what the workload usually runs over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
    /// A server listens here (port 0: any free port), a client connects to it: `10.9.0.2:7000`.
    /// The port may be left out where the workload has a well-known one, and over icmp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The interface that frames leave through; packet transport only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// From `go` to the start of the measurement window.
    #[serde(default)]
    pub warmup_ms: u64,
    /// The length of the measurement window.
    #[serde(default = "default_duration_ms")]
    pub duration_ms: u64,
    /// Everything random follows from this.
    #[serde(default)]
    pub seed: u64,
    /// Spin instead of sleeping: no wake-up in the latency, one CPU gone.
    #[serde(default)]
    pub spin: bool,
    /// The host's time is virtual: computing takes none, so work is slept through, and a spin
    /// would last for ever.
    #[serde(default)]
    pub virtual_time: bool,
    /// Keep every sample with its moment, not only distributions.
    #[serde(default)]
    pub series: bool,
}

fn default_duration_ms() -> u64 {
    1000
}

/// What carries a workload's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP, without Nagle's delay.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP echo: the peer's kernel answers, no agent needed there.
    Icmp,
    /// Raw Ethernet frames through an `AF_PACKET` socket.
    Packet,
}

impl Transport {
    /// Does it keep message boundaries?
    #[must_use]
    pub fn framing(self) -> Framing {
        match self {
            Self::Tcp => Framing::Stream,
            Self::Udp | Self::Icmp | Self::Packet => Framing::Datagram,
        }
    }

    /// The name as it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
            Self::Packet => "packet",
        }
    }
}

impl AgentSpec {
    /// Reads and checks a specification.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in words for its author.
    pub fn parse(json: &str) -> Result<Self, String> {
        let mut spec: Self =
            serde_json::from_str(json).map_err(|error| format!("agent specification: {error}"))?;
        let transport = spec.transport();
        if !transports(&spec.workload).contains(&transport) {
            let (kind, name) = (spec.workload.kind(), transport.name());
            let usual = transports(&spec.workload)[0].name();
            return Err(format!("{kind} does not run over {name}; try \"transport\":\"{usual}\""));
        }
        if let (WorkloadSpec::RrClient(client), Transport::Icmp) = (&mut spec.workload, transport) {
            client.response_bytes = client.request_bytes;
        }
        let kind = spec.workload.kind();
        spec.workload.check().map_err(|why| format!("{kind}: {why}"))?;
        Ok(spec)
    }

    /// The transport, given or usual.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.transport.unwrap_or_else(|| transports(&self.workload)[0])
    }

    /// The window in time since `go`.
    #[must_use]
    pub fn window(&self) -> Window {
        let millis = |ms: u64| Duration::from_micros(ms.saturating_mul(1000));
        let start = Instant::ZERO + millis(self.warmup_ms);
        Window { start, end: start + millis(self.duration_ms) }
    }

    /// The address with its port.
    ///
    /// # Errors
    ///
    /// It is missing, or is not one.
    pub fn socket_address(&self) -> Result<SocketAddr, String> {
        let kind = self.workload.kind();
        let text = self.address.as_deref().ok_or_else(|| {
            format!("{kind} needs an address, for example \"address\":\"10.9.0.2:7000\"")
        })?;
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        let host: IpAddr = text
            .parse()
            .map_err(|_| format!("\"{text}\" is no address; write it like 10.9.0.2:7000"))?;
        let port = match (&self.workload, self.transport()) {
            (_, Transport::Icmp) => 0,
            (WorkloadSpec::NtpClient(_) | WorkloadSpec::NtpServer(_), _) => 123,
            (WorkloadSpec::MemcachedClient(_), _) => 11_211,
            _ => return Err(format!("{kind} needs a port: \"address\":\"{text}:7000\"")),
        };
        Ok(SocketAddr::new(host, port))
    }
}

/// What a workload can run over, the usual one first.
fn transports(workload: &WorkloadSpec) -> &'static [Transport] {
    match workload {
        WorkloadSpec::RrClient(_) => &[Transport::Tcp, Transport::Udp, Transport::Icmp],
        WorkloadSpec::RrServer(_) => &[Transport::Tcp, Transport::Udp],
        WorkloadSpec::MemcachedClient(_)
        | WorkloadSpec::BulkSender(_)
        | WorkloadSpec::BulkReceiver(_) => &[Transport::Tcp],
        WorkloadSpec::NtpClient(_)
        | WorkloadSpec::NtpServer(_)
        | WorkloadSpec::PpsSender(_)
        | WorkloadSpec::PpsReceiver(_) => &[Transport::Udp],
        WorkloadSpec::FrameSender(_) => &[Transport::Packet],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_and_ports_have_defaults() {
        let spec = AgentSpec::parse(r#"{"workload":{"kind":"ntp-client"},"address":"10.9.0.2"}"#);
        let spec = spec.unwrap();
        assert_eq!(spec.transport(), Transport::Udp);
        assert_eq!(spec.socket_address().unwrap().to_string(), "10.9.0.2:123");
        let spec = AgentSpec::parse(r#"{"workload":{"kind":"rr-client"},"address":"10.9.0.2"}"#);
        assert!(spec.unwrap().socket_address().unwrap_err().contains("needs a port"));
    }

    #[test]
    fn refusals_say_what_to_write() {
        let over = r#"{"workload":{"kind":"bulk-sender"},"transport":"udp"}"#;
        assert!(AgentSpec::parse(over).unwrap_err().contains(r#"try "transport":"tcp""#));
        let typo = r#"{"workload":{"kind":"rr-client"},"warmup":1}"#;
        assert!(AgentSpec::parse(typo).unwrap_err().contains("warmup"));
    }

    #[test]
    fn icmp_answers_are_as_long_as_requests() {
        let json = r#"{"workload":{"kind":"rr-client","request_bytes":56},"transport":"icmp"}"#;
        let WorkloadSpec::RrClient(client) = AgentSpec::parse(json).unwrap().workload else {
            panic!()
        };
        assert_eq!(client.response_bytes, 56);
    }
}
