//! The players of MX: a pair of endpoints for round trips, and one for messages one way.

use anyhow::{Result, ensure};
use mx::address::{Address, NicId};
use network::station::{Station, names};
use schemars::JsonSchema;
use serde::Serialize;
use workload::{
    BulkReceiverSpec, BulkSenderSpec, RrClientSpec, RrServerSpec, Transport, WorkloadSpec,
};

use super::kind::Experiment;
use super::players::{
    A, B, BULK_CHUNK_BYTES, MIXED_BULK_MBIT, MIXED_ROUND_TRIPS_PER_S, PlanBuilder, Player, player,
};
use crate::agent::{AgentSpec, MxPeer, MxSpec};
use crate::marks::MarkNames;
use crate::options::{ExperimentOptions, Text};
use crate::slice::Part;

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
const SMALL_BYTES: u32 = 8;

/// What messages of MX are like in an experiment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MxTerms {
    /// Bytes of a message; in `mx-mixed`, of the short ones.
    pub size: u32,
    /// Messages one way that are on their way at once, where there are any.
    pub in_flight: Option<u32>,
    /// Which frames are marked.
    #[schemars(with = "String")]
    pub marks: MarkNames,
    /// By how many frames the mark of a message of several comes too early.
    pub misorder: u16,
}

/// Those of `experiment`, given or usual.
pub(super) fn terms(experiment: Experiment, options: &ExperimentOptions) -> Option<MxTerms> {
    let (size, in_flight, misorder) = match experiment {
        Experiment::MxPingpong => (SMALL_BYTES, None, 0),
        Experiment::MxStream => (STREAM_BYTES, Some(STREAM_IN_FLIGHT), 0),
        Experiment::MxLargeAnatomy => (LARGE_BYTES, None, 0),
        Experiment::MxMisorder => (MEDIUM_BYTES, None, 1),
        Experiment::MxMixed => (SMALL_BYTES, Some(MIXED_IN_FLIGHT), 0),
        _ => return None,
    };
    Some(MxTerms {
        size: options.size.unwrap_or(size),
        in_flight: in_flight.map(|usual| options.in_flight.unwrap_or(usual)),
        marks: options.mx_marks.as_ref().map_or(MarkNames::ALL, |Text(marks)| *marks),
        misorder: options.mx_misorder.unwrap_or(misorder),
    })
}

pub(super) fn check(experiment: Experiment, options: &ExperimentOptions) -> Result<()> {
    let several = SEVERAL_BYTES..=MEDIUM_BYTES;
    let size = options.size.unwrap_or(MEDIUM_BYTES);
    ensure!(
        experiment != Experiment::MxMisorder || several.contains(&size),
        "--size {size}: mx-misorder moves the mark of a message in several frames that the program \
         does not wait for; give it {SEVERAL_BYTES} to {MEDIUM_BYTES} bytes"
    );
    // The bulk messages of mx-mixed are in several frames, whatever the size of the short ones.
    let has_one_frame = experiment != Experiment::MxMixed
        && terms(experiment, options).is_some_and(|terms| terms.size < SEVERAL_BYTES);
    ensure!(
        !has_one_frame || options.mx_misorder.unwrap_or(0) == 0,
        "--mx-misorder: the mark of a message in one frame cannot come earlier; give it --size \
         {SEVERAL_BYTES} or more"
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

impl PlanBuilder<'_> {
    pub(super) fn mx_ping_pong(&self) -> Vec<Player> {
        let Some(terms) = terms(self.experiment, self.options) else { return Vec::new() };
        let mixed = self.experiment == Experiment::MxMixed;
        let usual_rate = mixed.then_some(MIXED_ROUND_TRIPS_PER_S);
        let bytes = terms.size as usize;
        let client = RrClientSpec {
            request_bytes: bytes,
            response_bytes: bytes,
            connections: self.clients as usize,
            think_us_max: self.options.think.unwrap_or(0).into(),
            rate_per_s: self.options.rate.or(usual_rate).map(u64::from),
            ..RrClientSpec::default()
        };
        let server = RrServerSpec {
            request_bytes: bytes,
            response_bytes: bytes,
            compute_us: self.options.compute.unwrap_or(0).into(),
        };
        let mx = endpoint(PING_ENDPOINT, &terms);
        vec![
            player(B, Part::Answerer, true, self.mx(WorkloadSpec::RrServer(server), &mx)),
            player(A, Part::Asker, false, self.mx(WorkloadSpec::RrClient(client), &mx)),
        ]
    }

    pub(super) fn mx_stream(&self) -> Vec<Player> {
        let Some(terms) = terms(self.experiment, self.options) else { return Vec::new() };
        let mixed = self.experiment == Experiment::MxMixed;
        let bulk_bytes = self.options.bulk_chunk.unwrap_or(BULK_CHUNK_BYTES);
        let bytes = if mixed { bulk_bytes } else { terms.size };
        let usual_rate = mixed.then_some(MIXED_BULK_MBIT);
        let sender = BulkSenderSpec {
            rate_mbit: self.options.bulk_rate.or(usual_rate).map(u64::from),
            chunk_bytes: bytes as usize,
            ..BulkSenderSpec::default()
        };
        let in_flight = terms.in_flight.unwrap_or_default();
        let mx = MxSpec { message_bytes: bytes, in_flight, ..endpoint(STREAM_ENDPOINT, &terms) };
        let sink = WorkloadSpec::BulkReceiver(BulkReceiverSpec::default());
        let source = WorkloadSpec::BulkSender(sender);
        vec![
            player(B, Part::MessageSink, true, self.mx(sink, &mx)),
            player(A, Part::MessageSource, false, self.mx(source, &mx)),
        ]
    }

    /// An agent at an endpoint. A client's peer has the same number on the other host.
    fn mx(&self, workload: WorkloadSpec, endpoint: &MxSpec) -> AgentSpec {
        let stations = Station::all(&names(2));
        let is_server = workload.is_server();
        let peer = Address { nic: NicId(stations[B].mac), endpoint: endpoint.endpoint };
        let peer = (!is_server).then_some(MxPeer(peer));
        AgentSpec {
            address: None,
            interface: Some(stations[if is_server { B } else { A }].interface()),
            mx: Some(MxSpec { peer, ..endpoint.clone() }),
            ..self.agent(workload, Transport::Mx, self.rr_address())
        }
    }
}

fn endpoint(endpoint: u8, terms: &MxTerms) -> MxSpec {
    let MxTerms { size: message_bytes, marks, misorder: mark_early, .. } = *terms;
    MxSpec { endpoint, message_bytes, marks, mark_early, ..MxSpec::default() }
}
