//! Requests of TCP and UDP flows, followed in the kernel by BPF.
//!
//! [`record`] is what is known of one request: client and server, when, and for what it waited
//! how long. `bpf/flows.bpf.c` finds that out in the kernel, and has its theory on top;
//! [`follower::FlowFollower`] loads it and reads its records. [`polls`] counts who polls NAPI
//! instances, by `bpf/polls.bpf.c`. `bpf/build.sh` makes the objects that are kept beside the
//! sources, since compiling takes clang.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;

mod calls;
pub mod follower;
pub mod histograms;
mod kernel;
pub mod polls;
mod raw;
pub mod record;

/// Why requests cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// The kernel does not describe its types.
    #[error(
        "this kernel gives no BTF (/sys/kernel/btf/vmlinux is missing; CONFIG_DEBUG_INFO_BTF), \
         without which nothing in it can be followed; guests of a lab have none (User-Mode Linux): \
         type it on this machine, or on hosts of a lab without --hosts uml"
    )]
    NoTypes,
    /// The description of the kernel's types cannot be read.
    #[error("read the types of this kernel in /sys/kernel/btf/vmlinux: {0}")]
    Types(String),
    /// This process may not.
    #[error(
        "following the kernel takes root, or CAP_BPF and CAP_PERFMON, in the first user namespace"
    )]
    NotAllowed,
    /// The kernel does not have a tracepoint.
    #[error("this kernel has no tracepoint {0}; it takes Linux 5.15 or newer")]
    NoTracepoint(&'static str),
    /// The kernel refuses a program.
    #[error("this kernel refuses the program at {0}: {1}")]
    Verify(&'static str, String),
    /// The kernel refuses the maps.
    #[error("load the programs that follow the kernel: {0}")]
    Load(String),
    /// A program cannot be attached.
    #[error("attach a program to the tracepoint {0}: {1}")]
    Attach(&'static str, String),
    /// A map is not there.
    #[error("the object of the programs has no map {0}; build Earmark anew")]
    NoMap(&'static str),
    /// A map cannot be used.
    #[error("a map of the programs: {0}")]
    Map(String),
    /// A file cannot be read.
    #[error("read {}", .0.display())]
    Read(PathBuf, #[source] std::io::Error),
}
