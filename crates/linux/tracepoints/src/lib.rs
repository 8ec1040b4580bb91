//! What the kernel does with a packet and for which process, as it happens: tracepoints, through
//! `perf_event_open(2)`.
//!
//! No compiler, no BPF, no kernel module. A tracepoint has a number and a layout, which tracefs
//! tells ([`tracefs`], [`mod@format`]). An event of that number, opened for a processor or for a
//! process on a processor, writes a record into a ring that it shares with us each time the
//! tracepoint is passed and its filter agrees. All events of a processor share one ring, so their
//! records are in order; a record that found no room is counted. Records are taken apart by
//! [`record`], which is pure, as is [`mod@format`].
//!
//! A [`Session`] is a set of such events. It starts switched off; what it costs, it costs between
//! [`Session::enable`] and [`Session::disable`]. Nothing of it outlives this process: a tracefs
//! that is not mounted is mounted nowhere, but held by a descriptor.
//!
//! ```no_run
//! // Not run with the tests of documentation: it needs the right to trace.
//! use tracepoints::tracefs::Tracefs;
//! use tracepoints::{EventRequest, Session, Unit};
//!
//! let event = "net:netif_receive_skb";
//! let request = EventRequest { event, filter: None, unit: Unit::All };
//! let (mut session, missing) = Session::open(&Tracefs::open()?, &[request], None)?;
//! assert!(missing.is_empty());
//! session.enable()?;
//! std::thread::sleep(std::time::Duration::from_secs(1));
//! session.disable()?;
//! session.drain(|record| println!("{:?}", record.at()));
//! # Ok::<(), tracepoints::PerfError>(())
//! ```
//!
//! The kernel wants `CAP_PERFMON` (or root) for events of whole processors, and `CAP_SYS_ADMIN` to
//! hold a tracefs that is not mounted.

mod attributes;
pub mod calls;
mod event;
pub mod format;
pub mod record;
mod ring;
mod session;
pub mod tracefs;

use std::io;

pub use session::{EventRequest, Missing, Session, Unit};

/// Why tracing cannot be.
#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    /// There is no tracefs.
    #[error("open tracefs: {0}; {remedy}", remedy = tracefs_remedy(.0))]
    Tracefs(#[source] io::Error),
    /// This file of tracefs cannot be read.
    #[error("read {0} of tracefs: {1}; run as root")]
    Read(String, #[source] io::Error),
    /// This file of tracefs says something else than expected.
    #[error("read {0} of tracefs: {1}; please report the file")]
    Format(String, #[source] format::FormatError),
    /// An event cannot be opened on a processor.
    #[error("trace {0} on processor {1}: {2}; {remedy}", remedy = remedy(.2))]
    Open(String, u32, #[source] io::Error),
    /// There is no ring for a processor.
    #[error("map the ring of processor {0}: {1}; {remedy}", remedy = remedy(.1))]
    Ring(u32, #[source] io::Error),
    /// The events of a tracepoint cannot be switched on or off.
    #[error("switch {0} {1}: {2}; the traced process may have ended")]
    Switch(String, &'static str, #[source] io::Error),
    /// Which processors there are is not known.
    #[error("read /sys/devices/system/cpu/online: {0}; is /sys mounted?")]
    Processors(#[source] io::Error),
}

fn tracefs_remedy(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::ENODEV) => {
            "this kernel has none, nor tracepoints: it takes one with CONFIG_TRACING"
        }
        _ => {
            "run as root, or mount it: \
             sudo mount -t tracefs -o mode=755 tracefs /sys/kernel/tracing"
        }
    }
}

fn remedy(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "run as root, or give the program CAP_PERFMON: sudo setcap cap_perfmon,cap_sys_admin+ep"
        }
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit on open files: ulimit -n",
        Some(libc::ENOMEM) => "raise the limit on locked memory: ulimit -l",
        Some(libc::ESRCH) => "the process has ended",
        Some(libc::ENOSYS) => "this kernel was built without CONFIG_PERF_EVENTS",
        _ => "look for the reason with: dmesg",
    }
}
