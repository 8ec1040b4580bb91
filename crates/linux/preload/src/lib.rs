//! Busy polling, and with it IRQ suspension, for servers that know nothing of it.
//!
//! A server of libevent, nginx, redis and the like waits in `epoll_wait`. Whether that polls the
//! NIC is a property of the epoll object, `EPIOCSPARAMS` of Linux 6.9, which the program that has
//! the object sets. Few do. This library does it for them, right where the object is made:
//!
//! ```sh
//! LD_PRELOAD=/usr/lib/earmark/libearmark-poll.so memcached
//! ```
//!
//! | variable | field of `struct epoll_params` | without it |
//! |---|---|---|
//! | `EARMARK_BUSY_POLL_USECS` | for how long a wait polls before it sleeps | 0: it looks once |
//! | `EARMARK_BUSY_POLL_BUDGET` | packets of one poll; more than 64 take `CAP_NET_ADMIN` | 64 |
//! | `EARMARK_PREFER_BUSY_POLL` | 1: interrupts stay off meanwhile, which suspension takes | 1 |
//!
//! Children inherit it, so workers of nginx have it after each reload. Programs that are linked
//! statically, and those that make system calls by themselves (Go), do not see it; the dynamic
//! linker ignores it for programs that run as another user than who starts them. A kernel that
//! refuses, or a variable that is no number, is reported once on standard error, and the program
//! runs as it would without.
//!
//! It takes the places of `epoll_create(2)` and `epoll_create1(2)`, and of nothing else.

use std::ffi::c_int;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::{Once, OnceLock};

use rustix::event::epoll::{CreateFlags, create};
use rustix::io::Errno;
use sys::busy_poll::{BusyPoll, set_epoll};

/// How waits poll where no variable says otherwise: as IRQ suspension takes it.
const USUAL: BusyPoll = BusyPoll { usecs: 0, budget: 64, prefer: true };

/// What the variables say; an error if one is no number.
fn asked(variable: impl Fn(&str) -> Option<String>) -> Result<BusyPoll, String> {
    let number = |name: &str, usual: u32, most: u32| {
        let Some(text) = variable(name) else { return Ok(usual) };
        let number = text.parse().ok().filter(|number| *number <= most);
        number.ok_or_else(|| format!("{name}={text}: give a number from 0 to {most}"))
    };
    let usecs = number("EARMARK_BUSY_POLL_USECS", USUAL.usecs, i32::MAX.cast_unsigned())?;
    let budget = number("EARMARK_BUSY_POLL_BUDGET", USUAL.budget.into(), u16::MAX.into())?;
    let prefer = number("EARMARK_PREFER_BUSY_POLL", USUAL.prefer.into(), 1)?;
    Ok(BusyPoll { usecs, budget: budget as u16, prefer: prefer == 1 })
}

/// Has a new epoll object poll; the program gets it whatever comes of that.
fn arm(epoll: &OwnedFd) {
    static ASKED: OnceLock<Result<BusyPoll, String>> = OnceLock::new();
    static REPORTED: Once = Once::new();
    let asked = ASKED.get_or_init(|| asked(|name| std::env::var(name).ok()));
    let armed = asked.clone().and_then(|poll| {
        set_epoll(epoll, poll).map_err(|error| {
            format!("EPIOCSPARAMS: {error}; it takes Linux 6.9, and a budget of 64 at most")
        })
    });
    if let Err(why) = armed {
        REPORTED.call_once(|| eprintln!("libearmark-poll: epoll objects do not poll: {why}"));
    }
}

/// Makes an epoll object that polls, or sets `errno` and returns -1.
fn created(flags: CreateFlags) -> c_int {
    match create(flags) {
        Ok(epoll) => {
            arm(&epoll);
            epoll.into_raw_fd()
        }
        Err(error) => failed(error),
    }
}

fn failed(error: Errno) -> c_int {
    // SAFETY: the C library has an `errno` for this thread, wherever it is.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: it stays valid for as long as this thread runs, and no other thread uses it.
    unsafe { *errno = error.raw_os_error() };
    -1
}

/// `epoll_create1(2)`: an epoll object that polls as the variables say.
// SAFETY: it has the C library's name and signature, and does what that does.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create1(flags: c_int) -> c_int {
    created(CreateFlags::from_bits_retain(flags.cast_unsigned()))
}

/// `epoll_create(2)`, whose size means nothing but that it is positive.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create(size: c_int) -> c_int {
    if size <= 0 { failed(Errno::INVAL) } else { created(CreateFlags::empty()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_the_names_of_the_fields() {
        assert_eq!(asked(|_| None), Ok(USUAL));
        let all = |name: &str| {
            let numbers = [("USECS", "200"), ("BUDGET", "8"), ("PREFER", "0")];
            numbers.iter().find(|(part, _)| name.contains(part)).map(|(_, it)| (*it).to_owned())
        };
        assert_eq!(asked(all), Ok(BusyPoll { usecs: 200, budget: 8, prefer: false }));
        for wrong in ["-1", "x", "", "4294967295"] {
            let error = asked(|_| Some(wrong.into())).unwrap_err();
            assert!(error.contains("EARMARK_BUSY_POLL_USECS="), "{error}");
        }
    }
}
