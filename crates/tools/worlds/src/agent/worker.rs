//! How an agent does the CPU work of its workload.

use std::os::fd::{AsFd, OwnedFd};

use hostside::work;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{read, write};
use rustix::net::netdevice::name_to_index;
use rustix::time::ClockId;

use super::clock::read_ns;
use base::time::Duration;
use bench::agent::AgentSpec;

#[derive(Debug)]
pub(super) enum Worker {
    /// It keeps the processor busy.
    Spins,
    /// It lets time pass, where computing takes none. Unlike real work that keeps the host from
    /// nothing, and interrupts do not lengthen it.
    Sleeps,
    /// It asks the model of its host's processor, through the interface behind which that is.
    Asks(OwnedFd),
}

impl Worker {
    pub(super) fn new(spec: &AgentSpec) -> Result<Self, String> {
        match &spec.processor {
            Some(interface) => ask(interface).map(Self::Asks),
            None if spec.virtual_time => Ok(Self::Sleeps),
            None => Ok(Self::Spins),
        }
    }

    pub(super) fn work(&self, length: Duration) -> Result<(), String> {
        match self {
            _ if length == Duration::ZERO => {}
            Self::Spins => spin(length),
            Self::Sleeps => std::thread::sleep(std::time::Duration::from_nanos(length.as_nanos())),
            Self::Asks(socket) => {
                wait_for(socket, length)
                    .map_err(|error| format!("work on the processor: {error}"))?;
            }
        }
        Ok(())
    }
}

fn ask(interface: &str) -> Result<OwnedFd, String> {
    let open = || -> std::io::Result<OwnedFd> {
        let socket = sys::packet::unbound()?;
        let index = name_to_index(&socket, interface)?;
        sys::packet::bind(socket.as_fd(), index, work::ETHERTYPE)?;
        Ok(socket)
    };
    open().map_err(|error| format!("reach the processor behind {interface}: {error}"))
}

fn wait_for(socket: &OwnedFd, length: Duration) -> rustix::io::Result<()> {
    let request = work::request(length, std::process::id());
    write(socket, &request)?;
    let mut answer = [0; work::REQUEST];
    // The answers to other agents of this host come by as well.
    while answer != request {
        poll(&mut [PollFd::new(socket, PollFlags::IN)], None)?;
        match read(socket, &mut answer) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Keeps the CPU busy until this thread has used `work` more CPU time. The thread's own clock
/// stands still while something else runs, so pre-emption makes the work take longer but never
/// makes it less.
fn spin(work: Duration) {
    let end_ns = read_ns(ClockId::ThreadCPUTime) + work.as_nanos();
    while read_ns(ClockId::ThreadCPUTime) < end_ns {
        std::hint::spin_loop();
    }
}
