//! Busy polling: a program that waits looks into the ring of its NIC's queue itself, instead of
//! sleeping until an interrupt (Linux: `Documentation/networking/napi.rst`).
//!
//! Neither `rustix` nor `nix` has these calls, hence the `unsafe` here.

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

/// `struct epoll_params` of `include/uapi/linux/eventpoll.h`.
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
