//! The specification of an agent: a workload, where, and for how long.

use crate::marks::MarkNames;
use crate::polling::Polling;
use base::time::{Duration, Instant};
use mx::address::{Address, NicId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::net::{IpAddr, SocketAddr};
use workload::{Transport, Window, WorkloadSpec};

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
    /// The interface that frames leave through; packet and mx transports only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The endpoint; mx transport only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mx: Option<MxSpec>,
    /// The other host that it works for, with `earmark tune` or `earmark serve`: a server serves
    /// that address alone, and the agent's memory is limited. TCP only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_host: Option<IpAddr>,
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
    /// How it waits for what comes; tcp and udp only.
    #[serde(default, skip_serializing_if = "Polling::is_epoll")]
    pub poll: Polling,
    /// The host's time is virtual: computing takes none, so work is slept through, and a spin
    /// would last for ever.
    #[serde(default)]
    pub virtual_time: bool,
    /// The interface behind which there is a model of the host's processor, which then does the
    /// work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Keep every sample with its moment, not only distributions.
    #[serde(default)]
    pub series: bool,
}

fn default_duration_ms() -> u64 {
    1000
}

/// An MX endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MxSpec {
    /// Its number on the interface.
    pub endpoint: u8,
    /// The endpoint that a client talks to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<MxPeer>,
    /// Bytes of the longest message that comes.
    pub message_bytes: u32,
    /// Messages that may be on their way before a `bulk-sender` waits; 0 is no limit.
    pub in_flight: u32,
    /// Which frames it marks.
    pub marks: MarkNames,
    /// By how many frames the mark of a message of several comes too early.
    pub mark_early: u16,
}

impl Default for MxSpec {
    fn default() -> Self {
        let (marks, mark_early) = (MarkNames::ALL, 0);
        Self { endpoint: 1, peer: None, message_bytes: 0, in_flight: 0, marks, mark_early }
    }
}

/// Where an MX endpoint is, written as `02:00:00:00:00:0b/1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MxPeer(pub Address);

impl MxPeer {
    fn parse(text: &str) -> Option<Self> {
        let (mac, endpoint) = text.split_once('/')?;
        let mut nic = [0; 6];
        let mut bytes = mac.split(':');
        for byte in &mut nic {
            *byte = u8::from_str_radix(bytes.next()?, 16).ok()?;
        }
        let endpoint = endpoint.parse().ok()?;
        bytes.next().is_none().then_some(Self(Address { nic: NicId(nic), endpoint }))
    }
}

impl Serialize for MxPeer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for MxPeer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || format!("\"{text}\" is no MX endpoint; write it like 02:00:00:00:00:0b/1");
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(wrong()))
    }
}

impl AgentSpec {
    /// Reads and checks a specification.
    pub fn parse(json: &str) -> Result<Self, String> {
        let mut spec: Self =
            serde_json::from_str(json).map_err(|error| format!("agent specification: {error}"))?;
        let transport = spec.transport();
        if !spec.workload.transports().contains(&transport) {
            let (kind, name) = (spec.workload.kind(), transport.name());
            let usual = spec.workload.transports()[0].name();
            return Err(format!("{kind} does not run over {name}; try \"transport\":\"{usual}\""));
        }
        if let (WorkloadSpec::RrClient(client), Transport::Icmp) = (&mut spec.workload, transport) {
            client.response_bytes = client.request_bytes;
        }
        let kind = spec.workload.kind();
        if spec.for_host.is_some() && transport != Transport::Tcp {
            return Err(format!("{kind}: an agent works for another host over tcp alone"));
        }
        spec.workload.check(transport.least()).map_err(|why| format!("{kind}: {why}"))?;
        Ok(spec)
    }

    /// The transport, given or usual.
    pub fn transport(&self) -> Transport {
        self.transport.unwrap_or_else(|| self.workload.transports()[0])
    }

    /// The interface and the endpoint of MX.
    pub fn mx(&self) -> Result<(&str, &MxSpec), String> {
        let kind = self.workload.kind();
        let missing = |what: &str| format!("{kind} over mx needs {what}");
        let example = "an interface, for example \"interface\":\"eth0\"";
        let interface = self.interface.as_deref().ok_or_else(|| missing(example))?;
        let example = "an endpoint, for example \"mx\":{\"endpoint\":1}";
        let mx = self.mx.as_ref().ok_or_else(|| missing(example))?;
        if mx.peer.is_none() && !self.workload.is_server() {
            return Err(missing("a peer, for example \"mx\":{\"peer\":\"02:00:00:00:00:0b/1\"}"));
        }
        Ok((interface, mx))
    }

    /// The window in time since `go`.
    pub fn window(&self) -> Window {
        let millis = |ms: u64| Duration::from_micros(ms.saturating_mul(1000));
        let start = Instant::ZERO + millis(self.warmup_ms);
        Window { start, end: start + millis(self.duration_ms) }
    }

    /// The address with its port.
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
        let udp = r#"{"workload":{"kind":"rr-server"},"transport":"udp","for_host":"10.9.0.1"}"#;
        assert!(AgentSpec::parse(udp).unwrap_err().contains("over tcp alone"));
        let typo = r#"{"workload":{"kind":"rr-client"},"warmup":1}"#;
        assert!(AgentSpec::parse(typo).unwrap_err().contains("warmup"));
    }

    #[test]
    fn an_endpoint_of_mx_is_complete() {
        let with = |more: &str| {
            let json = format!(
                r#"{{"workload":{{"kind":"rr-client","request_bytes":0}},"transport":"mx"{more}}}"#
            );
            AgentSpec::parse(&json)
        };
        let refused = |more: &str| with(more).and_then(|spec| spec.mx().map(|_| ())).unwrap_err();
        assert!(refused("").contains("interface"));
        assert!(refused(r#","interface":"b0""#).contains(r#""mx":{"endpoint":1}"#));
        assert!(refused(r#","interface":"b0","mx":{}"#).contains(r#""peer":"#));
        for wrong in ["1", "02:00/1", "02:00:00:00:00:0b", "02:00:00:00:00:0b:0c/1", "x/1"] {
            let error = refused(&format!(r#","interface":"b0","mx":{{"peer":"{wrong}"}}"#));
            assert!(error.contains("write it like 02:00:00:00:00:0b/1"), "{error}");
        }
        let peer = r#","interface":"b0","mx":{"peer":"02:00:00:00:00:0b/7","marks":"all-pull"}"#;
        let spec = with(peer).unwrap();
        let (interface, mx) = spec.mx().unwrap();
        let peer = mx.peer.unwrap().0.to_string();
        assert_eq!((interface, peer.as_str()), ("b0", "02:00:00:00:00:0b/7"));
        let again = serde_json::to_string(&spec).unwrap();
        assert_eq!(AgentSpec::parse(&again), Ok(spec));
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
