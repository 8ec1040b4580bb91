//! Busy polling: a program that waits looks into the ring of its NIC's queue itself, instead of
//! sleeping until an interrupt (Linux: `Documentation/networking/napi.rst`).
//!
//! Neither `rustix` nor `nix` has these calls, hence the `unsafe` here.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::ioctl::opcode;

use crate::option;

/// How a wait polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// For how many microseconds it does before it sleeps; a wait that is to end at once polls
    /// once.
    pub usecs: u32,
    /// How many packets one poll takes; more than 64 need `CAP_NET_ADMIN`.
    pub budget: u16,
    /// Interrupts stay off between polls, for as long as the NAPI instance's `gro-flush-timeout`
    /// or, after a wait that found something, its `irq-suspend-timeout`.
    pub prefer: bool,
}

impl BusyPoll {
    /// Whether waits poll at all.
    pub fn is_on(&self) -> bool {
        self.usecs > 0 || self.prefer
    }
}

/// `struct epoll_params` of `include/uapi/linux/eventpoll.h`.
#[derive(Default)]
#[repr(C)]
struct EpollParams {
    busy_poll_usecs: u32,
    busy_poll_budget: u16,
    prefer_busy_poll: u8,
    pad: u8,
}

/// Has waits of an epoll object poll (`EPIOCSPARAMS`).
///
/// # Errors
/// `ENOTTY` before Linux 6.9.
pub fn set_epoll(epoll: impl AsFd, poll: BusyPoll) -> io::Result<()> {
    // The type of a request differs between C libraries, its 32 bits do not.
    const EPIOCSPARAMS: libc::Ioctl = opcode::write::<EpollParams>(0x8a, 0x01) as libc::Ioctl;
    let params = EpollParams {
        busy_poll_usecs: poll.usecs,
        busy_poll_budget: poll.budget,
        prefer_busy_poll: poll.prefer.into(),
        pad: 0,
    };
    let epoll = epoll.as_fd().as_raw_fd();
    // SAFETY: the kernel reads one `struct epoll_params`, which `EpollParams` is, and this number
    // means nothing else to an epoll object; other objects refuse it.
    let set = unsafe { libc::ioctl(epoll, EPIOCSPARAMS, &raw const params) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How waits of an epoll object poll (`EPIOCGPARAMS`).
///
/// # Errors
/// `ENOTTY` before Linux 6.9.
pub fn of_epoll(epoll: impl AsFd) -> io::Result<BusyPoll> {
    const EPIOCGPARAMS: libc::Ioctl = opcode::read::<EpollParams>(0x8a, 0x02) as libc::Ioctl;
    let mut params = EpollParams::default();
    let epoll = epoll.as_fd().as_raw_fd();
    // SAFETY: the kernel writes one `struct epoll_params`, which `EpollParams` is, and this number
    // means nothing else to an epoll object; other objects refuse it.
    let read = unsafe { libc::ioctl(epoll, EPIOCGPARAMS, &raw mut params) };
    if read != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(BusyPoll {
        usecs: params.busy_poll_usecs,
        budget: params.busy_poll_budget,
        prefer: params.prefer_busy_poll != 0,
    })
}

/// The NAPI instance that received the last packet of a socket (`SO_INCOMING_NAPI_ID`); `None` if
/// it came through none: over the loopback, or a device without NAPI.
///
/// # Errors
/// `ENOPROTOOPT` if the kernel was built without `CONFIG_NET_RX_BUSY_POLL`.
pub fn incoming_napi(socket: impl AsFd) -> io::Result<Option<u32>> {
    let [id] = option::words(&socket, libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID)?;
    Ok(Some(id).filter(|id| *id != 0))
}

/// Has reads of a socket poll (`SO_BUSY_POLL` and its kin of socket(7)). A read that may not block
/// polls once.
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN`, `ENOPROTOOPT` before Linux 5.11.
pub fn set_socket(socket: impl AsFd, poll: BusyPoll) -> io::Result<()> {
    let set = |option, value| option::set_int(&socket, libc::SOL_SOCKET, option, value);
    set(libc::SO_BUSY_POLL, poll.usecs.cast_signed())?;
    set(libc::SO_BUSY_POLL_BUDGET, poll.budget.into())?;
    set(libc::SO_PREFER_BUSY_POLL, poll.prefer.into())
}

/// Packets that programs in the network of a process have taken by busy polling, since that network
/// is there: `BusyPollRxPackets` of its `netstat`. `None` where the kernel has no such count.
pub fn packets(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/net/netstat")).ok()?;
    count(&text, "TcpExt:", "BusyPollRxPackets")
}

/// A count of a group: one line has the names, the next one the values.
fn count(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.find(|(it, _)| *it == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_by_name() {
        let text = "TcpExt: SyncookiesSent BusyPollRxPackets\nTcpExt: 3 77\n\
                    IpExt: InNoRoutes BusyPollRxPackets\nIpExt: 0 5\n";
        assert_eq!(count(text, "TcpExt:", "BusyPollRxPackets"), Some(77));
        assert_eq!(count(text, "TcpExt:", "Nothing"), None);
        assert_eq!(count("", "TcpExt:", "BusyPollRxPackets"), None);
    }
}
