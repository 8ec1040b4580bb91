//! Workloads: what the programs of an experiment do, as state machines without I/O, and what they
//! record. There is no other description of it: what runs on real hosts, on guests in virtual time
//! and in a model is the same code.
//!
//! # Theory of operation
//!
//! A workload is one side of a conversation (a client that asks, a server that works and answers, a
//! paced sender). It owns no socket and reads no clock. Its *driver* does both: the agent drives it
//! over real sockets, a model of hosts over modelled ones, and the workload cannot tell which.
//! The two take turns: the driver passes one [`WorkloadEvent`], the workload answers with one
//! [`Action`], the driver carries it out and passes the outcome.
//!
//! ```text
//!   driver                                   workload
//!     Start ------------------------------->
//!           <------------------------------- Send { connection 0, "x" }
//!     Sent { backlog: 0 } ----------------->
//!           <------------------------------- Wait { until: end }
//!     Received { connection 0, "y" } ------>   records a latency
//!           <------------------------------- Done
//! ```
//!
//! Everything random in a workload comes from [`Prng`] and the seed in its specification, so one
//! specification and one sequence of events always give the same actions and the same records.
//!
//! # Time
//!
//! Moments are counted from *go*: [`Instant::ZERO`] is when the experiment began. Measurements
//! count when they fall into the [`Window`], which starts at the end of the warm-up; the
//! [`Recorder`] enforces that, a workload records what it sees. A client stops at the end of the
//! window; a server never stops on its own account.
//!
//! # Example
//!
//! A driver whose peer answers after 75 us, and whose calls take no time:
//!
//! ```
//! use base::time::{Duration, Instant};
//! use workload::{
//!     Action, Counter, Framing, Now, Recorder, RrClientSpec, Timing, Window, WorkloadEvent,
//!     WorkloadSpec,
//! };
//!
//! let spec = WorkloadSpec::RrClient(RrClientSpec::default());
//! let mut client = spec.build(Framing::Stream, 7);
//! let window = Window { start: Instant::ZERO, end: Instant::from_micros(1_000) };
//! let mut recorder = Recorder::new(window, false);
//! let (mut now, mut answer_at, mut event) = (Now::default(), None, WorkloadEvent::Start);
//! loop {
//!     event = match client.next(now, event, &mut recorder) {
//!         Action::Send { connection, .. } => {
//!             answer_at = Some(now.at + Duration::from_micros(75));
//!             WorkloadEvent::Sent { connection, backlog: 0 }
//!         }
//!         Action::Wait { until } => {
//!             let end = until.expect("a client ends with its window");
//!             let answer = answer_at.take().filter(|at| *at < end);
//!             now.at = answer.unwrap_or(end);
//!             match answer {
//!                 Some(_) => WorkloadEvent::Received { connection: 0, bytes: b"y" },
//!                 None => WorkloadEvent::Woke,
//!             }
//!         }
//!         Action::Done => break,
//!         other => panic!("a client of one connection does not ask for {other:?}"),
//!     };
//! }
//! let record = recorder.into_record(&spec, 1_000_000, 0);
//! assert_eq!(record.counter(Counter::Transactions), 13);
//! assert_eq!(record.distribution(Timing::Latency).quantile_ns(990), 75_000);
//! ```
//!
//! # Modules
//!
//! - [`WorkloadSpec`] names a workload, and [`WorkloadSpec::build`] makes it; [`Transport`] is what
//!   may carry it.
//! - Each kind has a file, whose head says what it is for: [`RrClosed`], [`RrOpen`], [`RrServer`];
//!   [`MemcachedClient`], [`MemcachedServer`]; [`NtpClient`], [`NtpServer`]; [`BulkSender`],
//!   [`BulkReceiver`]; [`PpsSender`], [`PpsReceiver`]; [`FrameSender`].
//! - A [`Recorder`] keeps what falls into the [`Window`]: counts by [`Counter`], times by
//!   [`Timing`]. A [`Record`] is what came of it.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod build;
mod bulk;
mod frame;
mod memcached;
mod memcached_server;
mod ntp;
mod pacer;
mod pps;
mod record;
mod recorder;
mod rr_client;
mod rr_open;
mod rr_server;
#[cfg(test)]
mod script;
mod spec;
mod transport;

pub use bulk::{BulkReceiver, BulkSender};
pub use frame::FrameSender;
pub use memcached::MemcachedClient;
pub use memcached_server::MemcachedServer;
pub use ntp::{NtpClient, NtpServer};
pub use pps::{PpsReceiver, PpsSender};
pub use record::{Column, Counter, Record, SCHEMA, Series, Timing};
pub use recorder::{Recorder, Window};
pub use rr_client::RrClosed;
pub use rr_open::RrOpen;
pub use rr_server::RrServer;
pub use spec::{
    BulkReceiverSpec, BulkSenderSpec, FrameSenderSpec, MemcachedClientSpec, NtpClientSpec,
    NtpServerSpec, PpsReceiverSpec, PpsSenderSpec, RrClientSpec, RrServerSpec, WorkloadSpec,
};
pub use transport::Transport;

use base::prng::Prng;
use base::time::{Duration, Instant};

/// Which connection: dense numbers from 0. A client's are known in advance; a server's appear as
/// clients connect (or, on a datagram transport, as their first datagram arrives) and are never
/// used again.
pub type ConnectionId = usize;

/// What the driver's clocks say when it hands over an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Monotonic time since *go*. Never goes backwards between two calls on one workload.
    pub at: Instant,
    /// The host's idea of the time of day, in nanoseconds since the Unix epoch; 0 unless the
    /// workload asked for it with [`Workload::reads_wall_clock`]. It may jump.
    pub wall_ns: u64,
}

/// How a transport keeps message boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Bytes without boundaries (TCP): a `Received` may hold half a message, or three and a half.
    Stream,
    /// One `Received` is one datagram, and datagrams may be lost, reordered or duplicated.
    Datagram,
}

/// What the driver reports to a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadEvent<'a> {
    /// The first call, and only the first.
    Start,
    /// The driver took the bytes of the preceding `Send`.
    Sent {
        /// Where they went.
        connection: ConnectionId,
        /// How many bytes of this connection the transport has not accepted yet and the driver
        /// holds.
        backlog: usize,
    },
    /// Bytes came in, and `now` is when the driver had read them.
    Received {
        /// Where they came from.
        connection: ConnectionId,
        /// Whatever one read returned: see [`Framing`].
        bytes: &'a [u8],
    },
    /// The driver's backlog on this connection is empty again.
    Drained {
        /// The connection it is about.
        connection: ConnectionId,
    },
    /// The moment that `Wait` named has come, and nothing arrived before it.
    Woke,
    /// The work that `Compute` asked for is done.
    Computed,
    /// The peer closed the connection; nothing more will arrive on it.
    Closed {
        /// The connection it is about.
        connection: ConnectionId,
    },
}

/// What a workload wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Send these bytes: on a datagram transport, as one datagram. Answered by `Sent`.
    Send {
        /// The connection to send on.
        connection: ConnectionId,
        /// The bytes to send.
        bytes: &'a [u8],
    },
    /// Send `bytes` as datagrams of `datagram_bytes` each, all at once. Datagram transports only.
    /// Answered by one `Sent`.
    SendBatch {
        /// The connection to send on.
        connection: ConnectionId,
        /// The datagrams, one after the other; the length is a multiple of `datagram_bytes`.
        bytes: &'a [u8],
        /// The length of each, in bytes.
        datagram_bytes: usize,
    },
    /// Keep a CPU busy for this long. Time spent pre-empted does not count. Answered by `Computed`.
    Compute(Duration),
    /// Nothing to do until something arrives, drains or closes, or until this moment. Answered by
    /// whichever comes first; a moment in the past is answered by `Woke` unless something has
    /// already arrived.
    Wait {
        /// When to wake; `None` waits for arrivals alone.
        until: Option<Instant>,
    },
    /// The workload is over. It must not be called again.
    Done,
    /// The workload cannot go on; the text says why and what to do. It must not be called again.
    Fail(&'a str),
}

/// One side of a conversation, without I/O.
///
/// # Contract
///
/// * **Order.** The first event is `Start`. After that each call answers the action before it:
///   `Send` and `SendBatch` with `Sent`, `Compute` with `Computed`, `Wait` with `Received`,
///   `Drained`, `Closed` or `Woke`. So events that arrive while the workload sends or computes stay
///   with the driver (in the socket, that is in the host, where they would be in a real program)
///   until the next `Wait`. The driver hands them over in the order in which they came, as far as
///   the transport lets it know.
/// * **Time.** `now.at` never goes backwards. It is read after the read for `Received`, after the
///   write for `Sent` (before it, if the workload does not need that), and after waking for `Woke`,
///   which may be later than asked for.
/// * **Partial reads.** On a stream a `Received` holds whatever bytes came. The workload counts.
/// * **A `Send` that would block.** The driver takes all bytes always: what a stream does not
///   accept it keeps, reports as `backlog`, sends on as soon as it can, and announces `Drained`. An
///   open-loop client ignores this (its schedule must not depend on its peer); a bulk sender waits
///   for `Drained`. A datagram that does not fit keeps the driver waiting inside `Send`: a host's
///   transmit queue drains whatever the peer does.
/// * **Recording.** Each record names its moment; the recorder drops what lies outside the window.
/// * **Memory.** A workload allocates when it is made, not on the way, except to grow with what is
///   outstanding.
pub trait Workload {
    /// Takes what happened and says what to do about it.
    fn next(&mut self, now: Now, event: WorkloadEvent<'_>, recorder: &mut Recorder) -> Action<'_>;

    /// Does it need [`Now::wall_ns`]? Reading a second clock costs, so only timekeepers do.
    fn reads_wall_clock(&self) -> bool {
        false
    }

    /// Does it need the time after a `Send`? One that only waits then gets the time before it.
    fn needs_time_of_sent(&self) -> bool {
        true
    }
}

/// A duration drawn evenly from `[0, below)`; zero if `below` is.
fn random_duration(prng: &mut Prng, below: Duration) -> Duration {
    Duration::from_nanos(prng.below(below.as_nanos()))
}
