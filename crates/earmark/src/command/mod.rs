//! What the commands do, one file each.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use anyhow::{Error, anyhow};
use labctl::client::port_here;

pub(crate) mod adaptive;
pub(crate) mod apply;
pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod explain;
pub(crate) mod exporter;
pub(crate) mod guest;
pub(crate) mod lab;
pub(crate) mod lane;
pub(crate) mod merge;
pub(crate) mod mpirun;
pub(crate) mod mx;
pub(crate) mod nic;
pub(crate) mod page;
pub(crate) mod persist;
pub(crate) mod predict;
pub(crate) mod probe;
pub(crate) mod read;
pub(crate) mod reproduce;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod tune;
pub(crate) mod watch;

/// An error about a device that is not here, and may be a port of a lab: only the port's host has
/// its device.
pub(crate) fn or_port(error: Error, name: &str) -> Error {
    match port_here(name) {
        Some((lab, _)) => anyhow!(
            "{error:#}; lab {lab} has a port {name}: `earmark nic --lab {lab} show {name}` shows \
             it, or type this on its host"
        ),
        None => error,
    }
}

/// The exit status as a shell has it: the program's own, or 128 and the signal.
pub(crate) fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
