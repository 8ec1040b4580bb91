//! Writing to eventfds that others share, without ever waiting.
//!
//! A `write` to an eventfd waits while its counter is full and the file is in blocking mode. Both
//! belong to the process that made it, at any moment: a mode that is set before the write can be
//! taken back before it. The kernel's own signal has no such case (`eventfd_signal`,
//! fs/eventfd.c). Asynchronous I/O sends it when an operation completes (`IOCB_FLAG_RESFD`,
//! io_submit(2)); an empty read of /dev/null completes within the system call.

use std::fs::File;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::Mutex;

use rustix::io::Errno;

/// Operations whose results are left unread before they are thrown away.
const UNREAD: u32 = 64;

const IOCB_CMD_PREAD: u16 = 0;
const IOCB_FLAG_RESFD: u32 = 1;

/// `struct iocb` of linux/aio_abi.h, on a little-endian machine; libc's has no room for a signal.
#[repr(C)]
#[derive(Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// `struct io_event` of linux/aio_abi.h.
type IoEvent = [u64; 4];

/// A queue of asynchronous operations, for their signals alone.
#[derive(Debug)]
pub struct Signals {
    context: usize,
    null: File,
    unread: Mutex<u32>,
}

impl Signals {
    /// A queue that has no operation yet.
    pub fn new() -> io::Result<Self> {
        let null = File::open("/dev/null")?;
        let mut context = 0_usize;
        // SAFETY: the kernel writes one word, to `context`, which is zero as it has to be.
        // JUSTIFICATION: neither rustix nor libc has a safe call for asynchronous I/O.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, 2 * UNREAD, &raw mut context) };
        if made == 0 {
            return Ok(Self { context, null, unread: Mutex::new(0) });
        }
        let cause = io::Error::last_os_error();
        Err(io::Error::new(
            cause.kind(),
            format!(
                "set up asynchronous I/O, by which guests are interrupted: {cause}; look at \
                 /proc/sys/fs/aio-nr and aio-max-nr, and at what a sandbox forbids (io_setup)"
            ),
        ))
    }

    /// Adds one to an eventfd's counter; one that is full stays so.
    pub fn send(&self, event_fd: BorrowedFd<'_>) -> io::Result<()> {
        let mut unread = self.unread.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *unread >= UNREAD {
            self.throw_away();
            *unread = 0;
        }
        *unread += 1;
        let read = Iocb {
            opcode: IOCB_CMD_PREAD,
            file: self.null.as_raw_fd() as u32,
            flags: IOCB_FLAG_RESFD,
            event_fd: event_fd.as_raw_fd() as u32,
            ..Iocb::default()
        };
        let list = [&raw const read];
        // SAFETY: `list` and the operation in it outlive the call, which is all the kernel reads;
        // the operation has a buffer of no bytes, so nothing is written after it.
        // JUSTIFICATION: as above.
        let sent = unsafe { libc::syscall(libc::SYS_io_submit, self.context, 1, list.as_ptr()) };
        if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn throw_away(&self) {
        let mut events = [const { MaybeUninit::<IoEvent>::uninit() }; UNREAD as usize];
        // SAFETY: the kernel writes at most as many events as there is room for.
        // JUSTIFICATION: as above.
        let _ = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                0,
                UNREAD,
                events.as_mut_ptr(),
                ptr::null_mut::<libc::timespec>(),
            )
        };
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: the context is of this value alone, which ends.
        // JUSTIFICATION: as above.
        let _ = unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

const _: () = assert!(size_of::<Iocb>() == 64 && cfg!(target_endian = "little"));

/// Whether `fd` is an eventfd; nothing is asked of the file itself, which might not answer.
pub(super) fn is_event_fd(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let target = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
    Ok(target.as_os_str() == "anon_inode:[eventfd]")
}

/// Whether `fd` is a socket within this machine; nothing is asked of any other file.
pub(super) fn is_unix_socket(fd: BorrowedFd<'_>) -> io::Result<bool> {
    match rustix::net::sockopt::socket_domain(fd) {
        Ok(domain) => Ok(domain == rustix::net::AddressFamily::UNIX),
        Err(Errno::NOTSOCK) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether `fd` is a file of memory: of memfd, tmpfs or hugetlbfs, which alone have seals.
pub(super) fn is_memory(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fcntl_get_seals(fd).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use std::os::fd::AsFd;

    fn count(event: BorrowedFd<'_>) -> u64 {
        let mut bytes = [0; 8];
        rustix::io::read(event, &mut bytes).unwrap();
        u64::from_ne_bytes(bytes)
    }

    #[test]
    fn each_signal_counts() {
        let signals = Signals::new().unwrap();
        let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        for _ in 0..1000 {
            signals.send(event.as_fd()).unwrap();
        }
        assert_eq!(count(event.as_fd()), 1000);
        assert!(signals.send(signals.null.as_fd()).is_err());
    }

    #[test]
    fn a_full_counter_in_blocking_mode_blocks_no_writer() {
        let signals = Signals::new().unwrap();
        let event = eventfd(0, EventfdFlags::empty()).unwrap();
        rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        for _ in 0..3 {
            signals.send(event.as_fd()).unwrap();
        }
        assert!(count(event.as_fd()) >= u64::MAX - 1);
    }

    #[test]
    fn kinds_of_files_differ() {
        let event = eventfd(0, EventfdFlags::empty()).unwrap();
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let memory = rustix::fs::memfd_create("m", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let null = File::open("/dev/null").unwrap();
        let fds = [event.as_fd(), one.as_fd(), tcp.as_fd(), memory.as_fd(), null.as_fd()];
        let kinds = |is: fn(BorrowedFd<'_>) -> bool| fds.map(is);
        assert_eq!(kinds(|fd| is_event_fd(fd).unwrap()), [true, false, false, false, false]);
        assert_eq!(kinds(|fd| is_unix_socket(fd).unwrap()), [false, true, false, false, false]);
        assert_eq!(kinds(is_memory), [false, false, false, true, false]);
    }
}
