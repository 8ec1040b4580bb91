//! What system calls wait for, and which of them write: by their numbers on this architecture.

/// As many numbers of system calls as the kernel side knows; none has a higher one yet.
pub(crate) const COUNT: usize = 512;

/// As `enum call` of `bpf/flows.bpf.c`.
const READING: u8 = 1;
const POLLING: u8 = 2;
const LOCK: u8 = 3;
const TIMER: u8 = 4;
const DISK: u8 = 5;
const WRITES_FIRST: u8 = 8;
const WRITES_THIRD: u8 = 16;

/// `futex_wait(2)` of Linux 6.7, which `libc` does not name.
const FUTEX_WAIT: i64 = 455;

/// What both architectures have.
const COMMON: [(i64, u8); 30] = [
    (libc::SYS_read, READING),
    (libc::SYS_readv, READING),
    (libc::SYS_recvfrom, READING),
    (libc::SYS_recvmsg, READING),
    (libc::SYS_recvmmsg, READING),
    (libc::SYS_splice, READING | WRITES_THIRD),
    (libc::SYS_ppoll, POLLING),
    (libc::SYS_pselect6, POLLING),
    (libc::SYS_epoll_pwait, POLLING),
    (libc::SYS_epoll_pwait2, POLLING),
    (libc::SYS_io_uring_enter, POLLING),
    (libc::SYS_accept, POLLING),
    (libc::SYS_accept4, POLLING),
    (libc::SYS_futex, LOCK),
    (libc::SYS_futex_waitv, LOCK),
    (FUTEX_WAIT, LOCK),
    (libc::SYS_flock, LOCK),
    (libc::SYS_nanosleep, TIMER),
    (libc::SYS_clock_nanosleep, TIMER),
    (libc::SYS_fsync, DISK),
    (libc::SYS_fdatasync, DISK),
    (libc::SYS_pread64, DISK),
    (libc::SYS_preadv, DISK),
    (libc::SYS_pwrite64, DISK),
    (libc::SYS_pwritev, DISK),
    (libc::SYS_write, WRITES_FIRST),
    (libc::SYS_writev, WRITES_FIRST),
    (libc::SYS_sendto, WRITES_FIRST),
    (libc::SYS_sendmsg, WRITES_FIRST),
    (libc::SYS_sendmmsg, WRITES_FIRST),
];

/// What only the older of them has.
#[cfg(target_arch = "x86_64")]
const OWN: [(i64, u8); 3] =
    [(libc::SYS_poll, POLLING), (libc::SYS_select, POLLING), (libc::SYS_epoll_wait, POLLING)];
#[cfg(not(target_arch = "x86_64"))]
const OWN: [(i64, u8); 0] = [];

/// The table of the kernel side.
pub(crate) fn table() -> [u8; COUNT] {
    let mut table = [0; COUNT];
    let sendfile = (libc::SYS_sendfile, DISK | WRITES_FIRST);
    for (number, class) in COMMON.into_iter().chain(OWN).chain([sendfile]) {
        if let Some(entry) = usize::try_from(number).ok().and_then(|number| table.get_mut(number)) {
            *entry = class;
        }
    }
    table
}

/// The name of a call; `None`: this architecture has no such number.
pub(crate) fn name(call: u32) -> Option<&'static str> {
    Some(syscalls::Sysno::new(call as usize)?.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_has_a_number_beyond_the_table_or_two_entries() {
        let all = COMMON.len() + OWN.len() + 1;
        assert_eq!(table().into_iter().filter(|class| *class != 0).count(), all);
        assert_eq!(table()[libc::SYS_futex as usize], LOCK);
        assert_eq!((name(libc::SYS_futex as u32), name(u32::MAX)), (Some("futex"), None));
    }
}
