//! The players of MX: a pair of endpoints for round trips, and one for messages one way.

use anyhow::{Result, ensure};
use linux::station::Station;
use mx::address::{Address, NicId};

use super::{A, B, Experiment, MIXED_BULK_MBIT, MIXED_ROUND_TRIPS_PER_S, Player, Stage, player};
use crate::agent::{AgentSpec, MxSpec, Peer, Transport};
use crate::marks::MarkNames;
use crate::measurement::Part;
use crate::options::{ExperimentOptions, Text};
use crate::workload::{BulkReceiverSpec, BulkSenderSpec, RrClientSpec, RrServerSpec, WorkloadSpec};

/// The endpoints that round trips are between.
const PING_ENDPOINT: u8 = 1;
/// Those of the messages one way.
const STREAM_ENDPOINT: u8 = 2;

/// A message of the paper's Table II: 5 pull requests for 32 frames of 1468 bytes.
const LARGE_BYTES: u32 = 234_880;
/// That of its Table III.
const MEDIUM_BYTES: u32 = 32_768;
/// The shortest message of several frames, at any MTU.
const SEVERAL_BYTES: u32 = 129;
/// That of its Figure 4.
const STREAM_BYTES: u32 = 128;
/// What is usually on its way in a stream.
const STREAM_IN_FLIGHT: u32 = 64;
/// That of the bulk messages beside the urgent ones.
const MIXED_IN_FLIGHT: u32 = 4;
/// A short message.
const SMALL_BYTES: u32 = 8;

/// Refuses options that do not go together.
///
/// # Errors
/// The option, and what it may be.
pub(super) fn check(experiment: Experiment, options: &ExperimentOptions) -> Result<()> {
    let several = SEVERAL_BYTES..=MEDIUM_BYTES;
    let size = options.size.unwrap_or(MEDIUM_BYTES);
    ensure!(
        experiment != Experiment::MxMisorder || several.contains(&size),
        "--size {size}: mx-misorder moves the mark of a message in several frames that nobody asks \
         for; give it {SEVERAL_BYTES} to {MEDIUM_BYTES} bytes"
    );
    let large = MEDIUM_BYTES + 1;
    ensure!(
        experiment != Experiment::MxLargeAnatomy || options.size.is_none_or(|size| size >= large),
        "--size {}: mx-large-anatomy takes apart a message that its receiver asks for; give it \
         {large} bytes or more",
        options.size.unwrap_or_default()
    );
    Ok(())
}

impl Stage<'_> {
    /// Round trips of messages of one size.
    pub(super) fn mx_ping_pong(&self) -> Vec<Player> {
        let usual =
            if self.experiment == Experiment::MxMisorder { MEDIUM_BYTES } else { SMALL_BYTES };
        let bytes = self.options.size.unwrap_or(usual);
        let mixed = self.experiment == Experiment::MxMixed;
        let client = RrClientSpec {
            request_bytes: bytes as usize,
            response_bytes: bytes as usize,
            connections: self.clients as usize,
            think_us_max: self.options.think.unwrap_or(0).into(),
            rate_per_s: self
                .options
                .rate
                .or(mixed.then_some(MIXED_ROUND_TRIPS_PER_S))
                .map(u64::from),
            ..RrClientSpec::default()
        };
        let server = RrServerSpec {
            request_bytes: bytes as usize,
            response_bytes: bytes as usize,
            compute_us: self.options.compute.unwrap_or(0).into(),
        };
        let mx = MxSpec { endpoint: PING_ENDPOINT, message_bytes: bytes, ..MxSpec::default() };
        vec![
            player(B, Part::Answerer, true, self.mx(WorkloadSpec::RrServer(server), &mx, B)),
            player(A, Part::Asker, false, self.mx(WorkloadSpec::RrClient(client), &mx, A)),
        ]
    }

    /// Messages one way, with so many on their way.
    pub(super) fn mx_stream(&self) -> Vec<Player> {
        let mixed = self.experiment == Experiment::MxMixed;
        let (bytes, in_flight) = match self.experiment {
            Experiment::MxMixed => (LARGE_BYTES, MIXED_IN_FLIGHT),
            Experiment::MxLargeAnatomy => (self.options.size.unwrap_or(LARGE_BYTES), 1),
            _ => (self.options.size.unwrap_or(STREAM_BYTES), STREAM_IN_FLIGHT),
        };
        let usual_rate = mixed.then_some(MIXED_BULK_MBIT);
        let sender = BulkSenderSpec {
            rate_mbit: self.options.bulk_rate.or(usual_rate).map(u64::from),
            chunk_bytes: bytes as usize,
        };
        let mx = MxSpec {
            endpoint: STREAM_ENDPOINT,
            message_bytes: bytes,
            in_flight: self.options.in_flight.unwrap_or(in_flight),
            ..MxSpec::default()
        };
        let sink = WorkloadSpec::BulkReceiver(BulkReceiverSpec::default());
        let source = WorkloadSpec::BulkSender(sender);
        vec![
            player(B, Part::MessageSink, true, self.mx(sink, &mx, B)),
            player(A, Part::MessageSource, false, self.mx(source, &mx, A)),
        ]
    }

    /// An agent at an endpoint of `host`. A client's peer has the same number on the other host.
    fn mx(&self, workload: WorkloadSpec, endpoint: &MxSpec, host: usize) -> AgentSpec {
        let stations = Station::all(&linux::lab::names(2));
        let peer = Address { nic: NicId(stations[B].mac), endpoint: endpoint.endpoint };
        let peer = (!workload.is_server()).then_some(Peer(peer));
        let marks = self.options.mx_marks.as_ref();
        let misordered = self.experiment == Experiment::MxMisorder;
        let mx = MxSpec {
            peer,
            marks: marks.map_or(MarkNames::ALL, |Text(marks)| *marks),
            mark_early: self.options.mx_misorder.unwrap_or(u16::from(misordered)),
            ..endpoint.clone()
        };
        AgentSpec {
            address: None,
            interface: Some(stations[host].interface()),
            mx: Some(mx),
            ..self.agent(workload, Transport::Mx, 0)
        }
    }
}
