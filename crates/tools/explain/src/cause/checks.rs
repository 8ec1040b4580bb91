//! Requests made by hand, for tests.

use std::net::SocketAddr;

use flows::record::{
    Flow, FlowProgram, FlowRole, FlowStage, Partial, RequestCounts, Stages, TcpState,
    TracedRequest, Transport,
};

/// A request with so many microseconds in stages, one of many on its flow.
pub(crate) fn request(number: u64, stages: &[(FlowStage, u64)]) -> TracedRequest {
    let any = SocketAddr::from(([192, 0, 2, 1], 7));
    let mut all = Stages::default();
    stages.iter().for_each(|(stage, us)| all.add(*stage, us * 1_000));
    let begin = number * 10_000_000_000;
    TracedRequest {
        id: number,
        flow: Flow { socket: 1, transport: Transport::Tcp, local: any, remote: any, device: 2 },
        role: FlowRole::Asks,
        program: FlowProgram { pid: 1, tid: 1, name: "x".into(), cgroup: 1 },
        begin,
        end: begin + all.total(),
        stages: all,
        counts: RequestCounts::default(),
        tcp: Some(TcpState {
            min_rtt_us: Some(60),
            srtt_us: 70,
            cwnd: 10,
            ssthresh: 0x7fff_ffff,
            ..TcpState::default()
        }),
        block: None,
        segments: None,
        partial: Partial::default(),
    }
}

/// So many requests with the same stages.
pub(crate) fn alike(count: u64, stages: &[(FlowStage, u64)]) -> Vec<TracedRequest> {
    (0..count).map(|number| request(number, stages)).collect()
}
