//! A record of the kernel side as a request: `struct request` of `bpf/flows.bpf.c`. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::calls;
use crate::record::{
    Flow, FlowProgram, FlowRole, FlowStage, LongestBlock, Partial, RequestCounts, SegmentTimes,
    Stages, TcpState, TracedRequest, Transport,
};

/// Bytes of a record.
const LENGTH: usize = 472;
/// Stages of a record, of which the last ones are not used.
const STAGES: usize = 32;
const IPV6: u8 = 10;
const TCP: u8 = 6;

/// Reads fields one after another. Beyond the end they are 0.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (bytes, rest) = self.0.split_at(N.min(self.0.len()));
        self.0 = rest;
        bytes.try_into().unwrap_or([0; N])
    }

    fn u8(&mut self) -> u8 {
        self.bytes::<1>()[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.bytes())
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.bytes())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.bytes())
    }
}

/// The request of a record; `None` if it has another length. Its `id` is 0.
pub(crate) fn request(record: &[u8]) -> Option<TracedRequest> {
    if record.len() != LENGTH {
        return None;
    }
    let mut fields = Fields(record);
    let (socket, begin, end, cgroup) = (fields.u64(), fields.u64(), fields.u64(), fields.u64());
    let mut stages = Stages::default();
    let lengths: [u64; STAGES] = std::array::from_fn(|_| fields.u64());
    for stage in FlowStage::ALL {
        stages.add(stage, lengths[stage as usize]);
    }
    let (bytes_out, bytes_in, block) = (fields.u64(), fields.u64(), fields.u64());
    let (pid, tid) = (fields.u32(), fields.u32());
    let name: [u8; 16] = fields.bytes();
    let (local, remote): ([u8; 16], [u8; 16]) = (fields.bytes(), fields.bytes());
    let (local_port, remote_port) = (fields.u16(), fields.u16());
    let (family, protocol, role, partial) = (fields.u8(), fields.u8(), fields.u8(), fields.u8());
    let device = fields.u32();
    let counts = RequestCounts {
        writes: fields.u32(),
        reads: fields.u32(),
        bytes_out,
        bytes_in,
        segments_out: fields.u32(),
        segments_in: fields.u32(),
        fast_retransmissions: fields.u32(),
        timeouts: fields.u32(),
        timer_polls: fields.u32(),
    };
    let (tcp, call) = tcp(&mut fields);
    let is_tcp = protocol == TCP;
    let first = fields.u32();
    let [sent, came] = [(); 2].map(|()| Some(fields.u64()).filter(|at| *at > 0));
    let stack = u32::try_from(fields.u32() as i32).ok();
    Some(TracedRequest {
        id: 0,
        flow: Flow {
            socket,
            transport: if is_tcp { Transport::Tcp } else { Transport::Udp },
            local: address(family, local, local_port),
            remote: address(family, remote, remote_port),
            device,
        },
        role: match role {
            0 => FlowRole::Asks,
            1 => FlowRole::Answers,
            _ => FlowRole::Receives,
        },
        program: FlowProgram { pid, tid, name: text(&name), cgroup },
        begin,
        end,
        stages,
        counts,
        tcp: is_tcp.then_some(tcp),
        block: (block > 0).then_some(LongestBlock {
            nanos: block,
            call: (call != u32::MAX).then_some(call),
            name: calls::name(call).map(str::to_owned),
            stack,
            frames: Vec::new(),
        }),
        segments: is_tcp.then_some(SegmentTimes { first, sent, came }),
        partial: Partial {
            began_before: partial & 1 != 0,
            pipelined: partial & 2 != 0,
            threads: partial & 4 != 0,
            closed: partial & 8 != 0,
            thread_unknown: partial & 16 != 0,
        },
    })
}

/// What TCP knew, and the call of the longest block.
fn tcp(fields: &mut Fields<'_>) -> (TcpState, u32) {
    let srtt_us = fields.u32();
    // Nothing was measured yet: ~0.
    let min_rtt_us = Some(fields.u32()).filter(|min| *min != u32::MAX);
    let (cwnd, ssthresh, window, mss) = (fields.u32(), fields.u32(), fields.u32(), fields.u32());
    let (first_lost, call) = (fields.u32(), fields.u32());
    let (has_lost, nodelay) = (fields.u8() != 0, fields.u8() != 0);
    let _padding = fields.u16();
    let first_lost = has_lost.then_some(first_lost);
    (TcpState { srtt_us, min_rtt_us, cwnd, ssthresh, window, mss, nodelay, first_lost }, call)
}

/// A name that ends with a zero, or with its field.
pub(crate) fn text(name: &[u8]) -> String {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

fn address(family: u8, bytes: [u8; 16], port: u16) -> SocketAddr {
    let ip = if family == IPV6 {
        IpAddr::from(Ipv6Addr::from(bytes)).to_canonical()
    } else {
        IpAddr::from(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))
    };
    SocketAddr::new(ip, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_other_lengths_are_none() {
        for length in [0, LENGTH - 1, LENGTH + 1] {
            assert_eq!(request(&vec![0xff; length]), None);
        }
        let all = request(&[0xff; LENGTH]).unwrap();
        assert_eq!((all.role, all.flow.transport), (FlowRole::Receives, Transport::Udp));
    }

    #[test]
    fn stages_and_the_last_fields_are_where_the_kernel_side_puts_them() {
        let mut record = vec![0; LENGTH];
        record[32 + 11 * 8..][..8].copy_from_slice(&7_000_u64.to_ne_bytes());
        record[336..340].copy_from_slice(&[10, 9, 0, 1]);
        record[368..370].copy_from_slice(&7_u16.to_ne_bytes());
        record[372..374].copy_from_slice(&[2, TCP]);
        record[432..434].copy_from_slice(&[5, 0]);
        record[440..442].copy_from_slice(&[1, 1]);
        record[444..448].copy_from_slice(&9_u32.to_ne_bytes());
        record[456..464].copy_from_slice(&8_000_u64.to_ne_bytes());
        let all = request(&record).unwrap();
        assert_eq!(all.stages.of(FlowStage::FarUnacked), 7_000);
        assert_eq!(all.flow.local, "10.9.0.1:7".parse().unwrap());
        let tcp = all.tcp.unwrap();
        assert_eq!((tcp.first_lost, tcp.nodelay), (Some(5), true));
        let segments = SegmentTimes { first: 9, sent: None, came: Some(8_000) };
        assert_eq!(all.segments, Some(segments));
    }

    #[test]
    fn addresses_of_ipv4_in_ipv6_are_those_of_ipv4() {
        let mapped = Ipv4Addr::new(10, 9, 0, 1).to_ipv6_mapped().octets();
        assert_eq!(address(IPV6, mapped, 7), "10.9.0.1:7".parse().unwrap());
        assert_eq!(address(IPV6, Ipv6Addr::LOCALHOST.octets(), 7), "[::1]:7".parse().unwrap());
    }
}
