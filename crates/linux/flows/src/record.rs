//! One request, from its first byte to its last, and for what it waited how long. Pure.
//!
//! A request that this host *asks* begins with the first write after a read, or with the connection
//! that was opened for it, and ends with the last read before the next write. One that it *answers*
//! begins when its first data is received and ends when the driver has taken the last byte of the
//! answer. What a device *receives* begins when a packet arrives and ends when a program has read
//! it.
//!
//! At each moment of it a request waits for one thing, which is its stage at that moment. So stages
//! do not overlap, and [`TracedRequest::settle`] checks that they add up: what no stage accounts
//! for is a stage of its own.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a request waits for, in the order of a request that is sent and answered. The numbers are
/// those of `bpf/flows.bpf.c`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum FlowStage {
    /// The program, between two writes of the same request, or between connection and write.
    BetweenWrites = 1,
    /// This host's stack, from the call that writes to the queue of the device.
    StackOut = 2,
    /// Acknowledgements, which make room in a full send buffer: the program is blocked in a write.
    SendBuffer = 3,
    /// An acknowledgement: Nagle's algorithm holds less than a segment back.
    Nagle = 4,
    /// TCP Small Queues, pacing, or a cork (`TCP_CORK`, `MSG_MORE`).
    Pacing = 5,
    /// The congestion window.
    CongestionWindow = 6,
    /// The window of the receiver.
    ReceiverWindow = 7,
    /// The queueing discipline of the device.
    Qdisc = 8,
    /// The driver, until it has taken the packet.
    Driver = 9,
    /// A segment that was lost, or was taken for lost, until it is sent again.
    Retransmission = 10,
    /// The wire and the far side, which has not acknowledged the request yet.
    FarUnacked = 11,
    /// The far side, which has acknowledged the request and not answered yet.
    FarAcked = 12,
    /// The rest of what the far side sends, while this host has not acknowledged the first part.
    RestUnacked = 13,
    /// The rest of what the far side sends, of which this host has acknowledged the first part.
    RestAcked = 14,
    /// A segment that is missing before others that have come.
    OutOfOrder = 15,
    /// This host's NIC, which holds what it has received. Known from outside of the kernel alone.
    Hold = 16,
    /// A timer of this host that defers polling (`gro_flush_timeout`), as far as it can be seen.
    Deferral = 17,
    /// The softirq that receives, after it was raised.
    Softirq = 18,
    /// This host's stack, from the packet's arrival in it to the socket.
    StackIn = 19,
    /// A processor: the data has woken the program.
    WakeUp = 20,
    /// The program, which runs elsewhere while the data is in the socket.
    Elsewhere = 21,
    /// The call that reads.
    Read = 22,
    /// A processor, which others have: the program could run.
    Preempted = 23,
    /// A lock (futex).
    Lock = 24,
    /// A disk, or what else the kernel counts as I/O.
    Disk = 25,
    /// A timer that the program has set: it sleeps.
    Sleep = 26,
    /// Something else that the program is blocked by; see [`TracedRequest::block`].
    Blocked = 27,
    /// The program, which computes.
    Computes = 28,
    /// A connection, from `connect(2)` until it is there.
    Connect = 29,
    /// The wire, and the NICs of both hosts. Known from both ends alone.
    Wire = 30,
    /// Nothing that is known.
    Unaccounted = 0,
}

impl FlowStage {
    /// How many there are.
    pub const COUNT: usize = 31;

    /// All of them, in the order of a request.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Connect,
        Self::BetweenWrites,
        Self::StackOut,
        Self::SendBuffer,
        Self::Nagle,
        Self::Pacing,
        Self::CongestionWindow,
        Self::ReceiverWindow,
        Self::Qdisc,
        Self::Driver,
        Self::Retransmission,
        Self::FarUnacked,
        Self::FarAcked,
        Self::RestUnacked,
        Self::RestAcked,
        Self::OutOfOrder,
        Self::Wire,
        Self::Hold,
        Self::Deferral,
        Self::Softirq,
        Self::StackIn,
        Self::WakeUp,
        Self::Elsewhere,
        Self::Read,
        Self::Preempted,
        Self::Lock,
        Self::Disk,
        Self::Sleep,
        Self::Blocked,
        Self::Computes,
        Self::Unaccounted,
    ];

    /// As tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connection set-up",
            Self::BetweenWrites => "program, between writes",
            Self::StackOut => "stack, sending",
            Self::SendBuffer => "send buffer full",
            Self::Nagle => "held by Nagle",
            Self::Pacing => "held by TSQ, pacing, cork",
            Self::CongestionWindow => "congestion window",
            Self::ReceiverWindow => "receiver's window",
            Self::Qdisc => "queueing discipline",
            Self::Driver => "driver",
            Self::Retransmission => "retransmission",
            Self::FarUnacked => "far, not acknowledged",
            Self::FarAcked => "far, acknowledged",
            Self::RestUnacked => "rest, we have not acknowledged",
            Self::RestAcked => "rest, we have acknowledged",
            Self::OutOfOrder => "out of order",
            Self::Hold => "NIC hold",
            Self::Deferral => "deferred polling",
            Self::Softirq => "softirq",
            Self::StackIn => "stack, receiving",
            Self::WakeUp => "wake-up",
            Self::Elsewhere => "data there, program elsewhere",
            Self::Read => "reading",
            Self::Preempted => "preempted",
            Self::Lock => "blocked: lock",
            Self::Disk => "blocked: disk",
            Self::Sleep => "blocked: sleep",
            Self::Blocked => "blocked: other",
            Self::Computes => "program computes",
            Self::Wire => "wire and NICs",
            Self::Unaccounted => "unaccounted",
        }
    }
}

/// Nanoseconds of each stage; 0 for those that a request does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages([u64; FlowStage::COUNT]);

impl Stages {
    /// Nanoseconds of a stage.
    pub fn of(&self, stage: FlowStage) -> u64 {
        self.0[stage as usize]
    }

    /// Nanoseconds of all stages.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, nanos| sum.saturating_add(*nanos))
    }

    /// Adds nanoseconds to a stage.
    pub fn add(&mut self, stage: FlowStage, nanos: u64) {
        let sum = &mut self.0[stage as usize];
        *sum = sum.saturating_add(nanos);
    }

    /// Replaces the nanoseconds of a stage.
    pub fn set(&mut self, stage: FlowStage, nanos: u64) {
        self.0[stage as usize] = nanos;
    }

    /// Moves up to that many nanoseconds from one stage to another; how many it was.
    pub fn shift(&mut self, from: FlowStage, to: FlowStage, nanos: u64) -> u64 {
        let nanos = nanos.min(self.of(from));
        self.0[from as usize] -= nanos;
        self.add(to, nanos);
        nanos
    }

    /// The stages that occur, with their nanoseconds.
    pub fn iter(&self) -> impl Iterator<Item = (FlowStage, u64)> {
        FlowStage::ALL.into_iter().map(|stage| (stage, self.of(stage))).filter(|(_, ns)| *ns > 0)
    }
}

/// As an object that has the stages that occur, in nanoseconds.
impl Serialize for Stages {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Stages {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all = std::collections::BTreeMap::<FlowStage, u64>::deserialize(deserializer)?;
        let mut stages = Self::default();
        all.into_iter().for_each(|(stage, nanos)| stages.add(stage, nanos));
        Ok(stages)
    }
}

impl JsonSchema for Stages {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Stages".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        std::collections::BTreeMap::<FlowStage, u64>::json_schema(generator)
    }
}

/// Which side of a request this host is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FlowRole {
    /// It sends the request and reads the answer.
    Asks,
    /// It reads the request and sends the answer.
    Answers,
    /// It reads what comes, whatever that is.
    Receives,
}

/// A protocol above IP.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP: bytes are matched by their sequence numbers.
    Tcp,
    /// UDP: each datagram is a request, or an answer, of its own.
    Udp,
}

/// The flow that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// Which socket of this host, a number that no other socket of this run has.
    pub socket: u64,
    /// TCP or UDP.
    pub transport: Transport,
    /// This host's address, as the socket has it: that of an unconnected one may be unspecified.
    pub local: SocketAddr,
    /// The far address; unspecified where it is not known.
    pub remote: SocketAddr,
    /// The index of the device that the last packet came by, or else was sent by; 0: not known.
    pub device: u32,
}

/// Which program reads and writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowProgram {
    /// Process, as numbered in the first PID namespace.
    pub pid: u32,
    /// The thread that read or wrote last, as numbered there.
    pub tid: u32,
    /// The name of that thread.
    pub name: String,
    /// The number of its cgroup (the inode of its directory).
    pub cgroup: u64,
}

/// What was counted in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestCounts {
    /// Calls that wrote.
    pub writes: u32,
    /// Calls that read something.
    pub reads: u32,
    /// Bytes that calls have written.
    pub bytes_out: u64,
    /// Bytes that calls have read.
    pub bytes_in: u64,
    /// Segments, or datagrams, with data that were given to the device. One of them may be cut
    /// into several by the NIC (GSO).
    pub segments_out: u32,
    /// Segments, or datagrams, with data that were received. One may have been several (GRO).
    pub segments_in: u32,
    /// Segments that were sent again before a timer expired.
    pub fast_retransmissions: u32,
    /// Segments that were sent again because the retransmission timer had expired.
    pub timeouts: u32,
    /// Packets that came by a poll which a timer had asked for (`gro_flush_timeout`).
    pub timer_polls: u32,
}

/// What TCP knew at the end of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpState {
    /// The smoothed round-trip time, in microseconds.
    pub srtt_us: u32,
    /// The least one of the last minutes, in microseconds; `None`: none was measured yet.
    pub min_rtt_us: Option<u32>,
    /// The congestion window, in segments.
    pub cwnd: u32,
    /// The slow-start threshold, in segments.
    pub ssthresh: u32,
    /// The window of the receiver, in bytes.
    pub window: u32,
    /// The maximum segment size, in bytes.
    pub mss: u32,
    /// Whether `TCP_NODELAY` is set.
    pub nodelay: bool,
    /// Bytes of the request before the first segment that was sent again; `None`: none was.
    pub first_lost: Option<u32>,
}

/// When the first segments of a request and of its answer were here. The far host knows the request
/// by the same sequence number, so its times of the same segments join the clocks of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SegmentTimes {
    /// The sequence number of the first byte of the request.
    pub first: u32,
    /// When the first segment that this host sent for it was given to the driver, in nanoseconds of
    /// `CLOCK_MONOTONIC`; `None`: it was not seen.
    pub sent: Option<u64>,
    /// When the first one that it received for it came to the stack.
    pub came: Option<u64>,
}

/// The longest time that the program was blocked by something other than its socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LongestBlock {
    /// For how long, in nanoseconds.
    pub nanos: u64,
    /// In which system call, as this architecture numbers it; `None`: in none (a page fault).
    pub call: Option<u32>,
    /// The name of that call, where it has one.
    pub name: Option<String>,
    /// The number of the stack of user space, if stacks were asked for.
    pub stack: Option<u32>,
    /// The functions of that stack, the innermost first; none if stacks were not asked for.
    pub frames: Vec<String>,
}

/// What of a request was not seen, or cannot be separated from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Partial {
    /// Its beginning was before the flow was followed.
    pub began_before: bool,
    /// Another request was in flight at the same time on this socket.
    pub pipelined: bool,
    /// More than one thread read or wrote.
    pub threads: bool,
    /// The socket was closed before the next request.
    pub closed: bool,
    /// A thread was blocked or ran without its being known for what.
    pub thread_unknown: bool,
}

/// A request of a flow, with the time that it spent in each stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TracedRequest {
    /// Its number in this run, in the order of their ends.
    pub id: u64,
    /// The flow that it belongs to.
    pub flow: Flow,
    /// This host's side of it.
    pub role: FlowRole,
    /// This host's program.
    pub program: FlowProgram,
    /// When it began, in nanoseconds of `CLOCK_MONOTONIC`.
    pub begin: u64,
    /// When it ended, in nanoseconds of `CLOCK_MONOTONIC`.
    pub end: u64,
    /// For what it waited how long, in nanoseconds.
    pub stages: Stages,
    /// What was counted.
    pub counts: RequestCounts,
    /// What TCP knew at its end; `None` for UDP.
    pub tcp: Option<TcpState>,
    /// The longest block of the program, if there was one.
    pub block: Option<LongestBlock>,
    /// When segments were here; `None` for UDP.
    pub segments: Option<SegmentTimes>,
    /// What of it was not seen.
    pub partial: Partial,
}

impl TracedRequest {
    /// From begin to end, in nanoseconds.
    pub fn length(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// Gives what no stage has to [`FlowStage::Unaccounted`]; by how much stages were too long
    /// together, in nanoseconds, which is 0 unless the engine has an error.
    pub fn settle(&mut self) -> u64 {
        let (length, total) = (self.length(), self.stages.total());
        self.stages.add(FlowStage::Unaccounted, length.saturating_sub(total));
        total.saturating_sub(length)
    }

    /// The share of it that stages account for, from 0 to 1.
    pub fn accounted(&self) -> f64 {
        let unaccounted = self.stages.of(FlowStage::Unaccounted) as f64;
        1.0 - unaccounted / (self.length().max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(begin: u64, end: u64) -> TracedRequest {
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        TracedRequest {
            id: 1,
            flow: Flow { socket: 1, transport: Transport::Tcp, local: any, remote: any, device: 0 },
            role: FlowRole::Asks,
            program: FlowProgram { pid: 1, tid: 1, name: "x".into(), cgroup: 1 },
            begin,
            end,
            stages: Stages::default(),
            counts: RequestCounts::default(),
            tcp: None,
            block: None,
            segments: None,
            partial: Partial::default(),
        }
    }

    #[test]
    fn stages_have_the_numbers_of_their_places_and_names_of_their_own() {
        let mut numbers: Vec<u8> = FlowStage::ALL.iter().map(|stage| *stage as u8).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..FlowStage::COUNT as u8));
        let mut names: Vec<&str> = FlowStage::ALL.iter().map(|stage| stage.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FlowStage::COUNT);
    }

    #[test]
    fn what_no_stage_has_is_unaccounted_and_what_is_too_much_is_returned() {
        let mut request = request(1_000, 11_000);
        request.stages.add(FlowStage::FarUnacked, 7_000);
        request.stages.add(FlowStage::WakeUp, 500);
        assert_eq!(request.settle(), 0);
        assert_eq!(request.stages.of(FlowStage::Unaccounted), 2_500);
        assert_eq!((request.stages.total(), request.accounted()), (request.length(), 0.75));
        request.stages.add(FlowStage::Read, 40);
        assert_eq!(request.settle(), 40);
    }

    #[test]
    fn what_is_shifted_stays_in_the_sum() {
        let mut stages = Stages::default();
        stages.add(FlowStage::FarUnacked, 100);
        assert_eq!(stages.shift(FlowStage::FarUnacked, FlowStage::Hold, 60), 60);
        assert_eq!(stages.shift(FlowStage::FarUnacked, FlowStage::Hold, 60), 40);
        assert_eq!((stages.of(FlowStage::Hold), stages.total()), (100, 100));
        let occur: Vec<(FlowStage, u64)> = stages.iter().collect();
        assert_eq!(occur, [(FlowStage::Hold, 100)]);
        let json = serde_json::to_string(&stages).unwrap();
        assert_eq!(serde_json::from_str::<Stages>(&json).unwrap(), stages);
    }
}
