//! The process that is a host: how it is started, what it does, how it ends.
//!
//! The holder is forked with `clone(2)` from a process that may have many threads, so between the
//! clone and its end it makes system calls only: no allocation, no lock, no panic. Everything it
//! needs is prepared in a [`Blueprint`] before. It reports over the life-line, five bytes at a
//! time: the number of one of the [`STEPS`], from 1, and an errno. 0 says that the host is ready.

use std::ffi::{CStr, CString};
use std::fmt::Write as _;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::io::{Errno, retry_on_intr};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::process::{WaitId, WaitIdOptions, setsid, umask, waitid};

use super::forked;
use crate::error::LabError;
use crate::station::Station;

/// A directory of the machine's `/run`, which the host has, too, but empty: servers expect theirs
/// there.
struct RunDirectory {
    path: CString,
    mode: Mode,
    owner: (Uid, Gid),
}

impl RunDirectory {
    /// Those right below `/run`; none where it cannot be read.
    fn all() -> Vec<Self> {
        let entries = std::fs::read_dir("/run").into_iter().flatten().flatten();
        let directory = |entry: std::fs::DirEntry| {
            // Links are not followed: they may lead out of /run.
            let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_dir)?;
            Some(Self {
                path: CString::new(entry.path().into_os_string().into_vec()).ok()?,
                mode: Mode::from_raw_mode(metadata.mode() & 0o7777),
                owner: (Uid::from_raw(metadata.uid()), Gid::from_raw(metadata.gid())),
            })
        };
        entries.filter_map(directory).collect()
    }

    /// Makes it. A host is a host without it, so nothing here is an error: in a user namespace,
    /// other users' directories cannot be given to them.
    fn make(&self) {
        let (user, group) = self.owner;
        let _ = rustix::fs::mkdir(self.path.as_c_str(), Mode::RWXU);
        let _ = rustix::fs::chown(self.path.as_c_str(), Some(user), Some(group));
        let _ = rustix::fs::chmod(self.path.as_c_str(), self.mode);
    }
}

pub(super) struct Blueprint {
    host: String,
    process_name: CString,
    hosts_file: String,
    run_directories: Vec<RunDirectory>,
}

impl Blueprint {
    pub(super) fn new(name: &str, stations: &[Station]) -> Self {
        let mut hosts_file = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        for Station { name, ipv4, ipv6, .. } in stations {
            writeln!(hosts_file, "{ipv4} {name}\n{ipv6} {name}").expect("strings take any text");
        }
        let process_name = CString::new(format!("earmark-{name}")).expect("host names have no NUL");
        let run_directories = RunDirectory::all();
        Self { host: name.to_owned(), process_name, hosts_file, run_directories }
    }
}

#[derive(Debug)]
pub(super) struct Holder {
    pid: u32,
    pidfd: OwnedFd,
    life_line: Option<UnixStream>,
    /// The programs started in the host that may not have been reaped yet.
    programs: Mutex<Vec<OwnedFd>>,
}

impl Holder {
    /// Starts a holder and waits until its host is ready.
    pub(super) fn start(blueprint: &Blueprint) -> Result<Self, LabError> {
        let host = &blueprint.host;
        let (ours, theirs) = UnixStream::pair().map_err(|cause| {
            let what = format!("create the life-line of host {host}");
            LabError::new(what, cause, "check the limit on open files: ulimit -n")
        })?;
        let (pid, pidfd) = clone_holder(blueprint, theirs.as_raw_fd()).map_err(|cause| {
            let remedy = clone_remedy(&cause);
            LabError::new(format!("create the namespaces of host {host}"), cause, remedy)
        })?;
        drop(theirs);
        let mut holder = Self { pid, pidfd, life_line: Some(ours), programs: Mutex::default() };
        holder.await_ready(host)?;
        Ok(holder)
    }

    fn await_ready(&mut self, host: &str) -> Result<(), LabError> {
        let mut report = [0; 5];
        let life_line = self.life_line.as_mut().expect("the life-line is held until drop");
        if life_line.read_exact(&mut report).is_err() {
            return Err(LabError::refused(format!(
                "set up host {host}: its holder was killed; look for the reason with: dmesg"
            )));
        }
        let [number, errno @ ..] = report;
        let Some((step, remedy)) = number.checked_sub(1).and_then(|at| STEPS.get(usize::from(at)))
        else {
            return Ok(());
        };
        let cause = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
        Err(LabError::new(format!("{step} in host {host}"), cause, remedy))
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// The holder never closes its end of the life-line, but the kernel does when it dies.
    pub(super) fn is_alive(&self) -> bool {
        let mut watched: Vec<_> =
            self.life_line.iter().map(|line| PollFd::new(line, PollFlags::empty())).collect();
        poll(&mut watched, Some(&Timespec::default())) == Ok(0)
    }

    /// Notes a program that this process started in the host.
    pub(super) fn remember(&self, program: OwnedFd) {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        programs.retain(|program| is_unreaped(program, WaitIdOptions::NOHANG));
        programs.push(program);
    }
}

impl Drop for Holder {
    /// Returns when every program is dead.
    ///
    /// The kernel lets process 1 of a PID namespace go last, after its last zombie. Programs are
    /// children of this process and a caller may still want the status of one, so the holder
    /// may have to wait for them on a thread of its own.
    fn drop(&mut self) {
        drop(self.life_line.take());
        let programs = self.programs.get_mut().unwrap_or_else(PoisonError::into_inner);
        programs.retain(|program| is_unreaped(program, WaitIdOptions::empty()));
        // An error means that someone else has reaped the holder, which is all that is wanted here.
        let reap = |pidfd: BorrowedFd<'_>| {
            let _ = retry_on_intr(|| waitid(WaitId::PidFd(pidfd), WaitIdOptions::EXITED));
        };
        if programs.is_empty() {
            reap(self.pidfd.as_fd());
        } else if let Ok(pidfd) = self.pidfd.try_clone() {
            let reaper = thread::Builder::new().name("reap-host".to_owned());
            // Without a thread the holder stays a zombie until this process ends.
            let _ = reaper.spawn(move || reap(pidfd.as_fd()));
        }
    }
}

fn clone_remedy(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::ENOSPC) => {
            "raise the limits: sudo sysctl -w user.max_net_namespaces=10000 \
             user.max_pid_namespaces=10000"
        }
        Some(libc::EAGAIN) => "raise the limit on processes: ulimit -u",
        _ => "run as root, or allow user namespaces: sudo sysctl -w user.max_user_namespaces=10000",
    }
}

/// Whether a child of this process still is one. Waits for its end unless `wait` is
/// `NOHANG`, but does not reap it.
fn is_unreaped(program: &OwnedFd, wait: WaitIdOptions) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | wait;
    retry_on_intr(|| waitid(WaitId::PidFd(program.as_fd()), options)).is_ok()
}

/// Forks the holder into its namespaces; returns its process id and pidfd.
fn clone_holder(blueprint: &Blueprint, life_line: RawFd) -> io::Result<(u32, OwnedFd)> {
    let flags = libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_PIDFD
        | libc::SIGCHLD;
    let mut pidfd: RawFd = -1;
    // The holder inherits the mask and never unblocks: it would run this process's handlers.
    let held_back = sys::signals::hold_back();
    // SAFETY: without CLONE_VM this is a fork: the child has a copy of all memory, on the same
    // stack addresses. It only runs `hold`, which is async-signal-safe and never returns. The
    // pointer is valid. Namespaces have to be made by the fork itself, or the child would not be
    // their process 1; neither std nor rustix can fork so. The first three arguments are alike on
    // all Linux architectures but s390.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::c_long::from(flags),
            ptr::null_mut::<libc::c_void>(),
            &raw mut pidfd,
            ptr::null_mut::<libc::c_void>(),
            ptr::null_mut::<libc::c_void>(),
        )
    };
    let outcome = match pid {
        0 => hold(blueprint, life_line),
        -1 => Err(io::Error::last_os_error()),
        _ => u32::try_from(pid).map_err(io::Error::other),
    };
    drop(held_back);
    // SAFETY: the clone has succeeded, so the kernel put a new descriptor there that has no
    // other owner. There is no safe way to own a number.
    outcome.map(|pid| (pid, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// What a holder does, from the fork to its end.
fn hold(blueprint: &Blueprint, life_line: RawFd) -> ! {
    // SAFETY: the descriptor was inherited and is not closed below. The parent's owner of it was
    // forked too, but is never dropped here.
    let life_line = unsafe { BorrowedFd::borrow_raw(life_line) };
    let report = match setup(blueprint, life_line) {
        Ok(()) => [0; 5],
        Err((step, errno)) => {
            let [a, b, c, d] = errno.raw_os_error().to_ne_bytes();
            [step, a, b, c, d]
        }
    };
    let reported = rustix::io::write(life_line, &report).is_ok();
    if reported && report[0] == 0 {
        // Until the end of file, which comes when the process that started this one is gone.
        while matches!(rustix::io::read(life_line, &mut [0; 1]), Ok(1..) | Err(Errno::INTR)) {}
    }
    forked::exit(0)
}

const ROOT: &str = "run as root; in a container, give it --cap-add SYS_ADMIN \
                    --security-opt apparmor=unconfined";

/// What [`setup`] does that can fail, in its order, and what to do then.
const STEPS: [(&str, &str); 6] = [
    ("start a session", ROOT),
    (
        "make the mounts of / private",
        "run as root, and in no chroot, where hosts would find the files outside; in a container, \
         give it --cap-add SYS_ADMIN --security-opt apparmor=unconfined",
    ),
    ("mount a tmpfs on /run", "create the directory if it is missing: sudo mkdir /run"),
    ("write /run/hosts", ROOT),
    ("bind /run/hosts over /etc/hosts", "create the file if it is missing: sudo touch /etc/hosts"),
    ("set the host name", ROOT),
];

fn setup(blueprint: &Blueprint, life_line: BorrowedFd<'_>) -> Result<(), (u8, Errno)> {
    let at = |step: u8| move |errno| (step, errno);
    // A name is a comfort in `ps`, nothing more.
    let _ = rustix::thread::set_name(&blueprint.process_name);
    forked::ignore_children();
    close_all_but(life_line);
    umask(Mode::from_raw_mode(0o022));
    setsid().map_err(at(1))?;
    // Mounts made here stay here; what the machine unmounts does not stay busy here.
    mount_change(c"/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
        .map_err(at(2))?;
    let plain = MountFlags::NOSUID | MountFlags::NODEV;
    mount(c"tmpfs", c"/run", c"tmpfs", plain, c"mode=0755").map_err(at(3))?;
    blueprint.run_directories.iter().for_each(RunDirectory::make);
    // Containers that hide parts of /proc may not have a fresh one; programs then see the process
    // ids of the machine, which few mind.
    let _ = mount(c"proc", c"/proc", c"proc", plain | MountFlags::NOEXEC, None);
    write_file(c"/run/hosts", blueprint.hosts_file.as_bytes()).map_err(at(4))?;
    mount_bind(c"/run/hosts", c"/etc/hosts").map_err(at(5))?;
    rustix::system::sethostname(blueprint.host.as_bytes()).map_err(at(6))
}

/// Closes what was inherited: pipes of this process would otherwise stay open as long as the host.
fn close_all_but(kept: BorrowedFd<'_>) {
    let kept = kept.as_raw_fd().unsigned_abs();
    if kept > 0 {
        // SAFETY: the holder uses no descriptor but the one that is kept.
        unsafe { forked::close_range(0, kept - 1) };
    }
    // SAFETY: as above.
    unsafe { forked::close_range(kept + 1, libc::c_uint::MAX) };
}

fn write_file(path: &CStr, mut bytes: &[u8]) -> rustix::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o644))?;
    while !bytes.is_empty() {
        let written = rustix::io::write(&file, bytes)?;
        bytes = bytes.split_at_checked(written).map_or(&[], |(_, rest)| rest);
    }
    Ok(())
}
