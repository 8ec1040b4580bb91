//! The descriptors of another process: which there are, what the kernel says of them, and a copy of
//! one, to ask it what only its holder may.
//!
//! Sources: `proc_pid_fd(5)`, `proc_pid_fdinfo(5)`, `pidfd_getfd(2)`. A copy takes the right to
//! trace the process: the same user, or `CAP_SYS_PTRACE`.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// A descriptor of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// Its number there.
    pub number: u32,
    /// What it is open for, as `socket:[1234]` or `anon_inode:[eventpoll]`.
    pub target: String,
}

/// A process whose descriptors are looked at.
#[derive(Debug)]
pub struct Holder {
    process: u32,
    pidfd: OwnedFd,
}

impl Holder {
    /// Takes hold of a process: its number stays its own.
    ///
    /// # Errors
    /// If there is none, or the kernel is older than 5.3.
    pub fn open(process: u32) -> io::Result<Self> {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { process, pidfd: pidfd_open(pid, PidfdFlags::empty())? })
    }

    /// Its descriptors, by number. One that is closed meanwhile is left out.
    ///
    /// # Errors
    /// If this user may not look.
    pub fn descriptors(&self) -> io::Result<Vec<OpenFile>> {
        let entries = fs::read_dir(format!("/proc/{}/fd", self.process))?;
        let mut all: Vec<OpenFile> = entries
            .flatten()
            .filter_map(|entry| {
                let number = entry.file_name().to_str()?.parse().ok()?;
                let target = fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
                Some(OpenFile { number, target })
            })
            .collect();
        all.sort_unstable_by_key(|it| it.number);
        Ok(all)
    }

    /// What the kernel says of a descriptor.
    ///
    /// # Errors
    /// If it has been closed.
    pub fn info(&self, descriptor: u32) -> io::Result<String> {
        fs::read_to_string(format!("/proc/{}/fdinfo/{descriptor}", self.process))
    }

    /// A descriptor of this process for the same open file.
    ///
    /// # Errors
    /// If it has been closed, this user may not trace the process, or the kernel is older than 5.6.
    pub fn copy(&self, descriptor: u32) -> io::Result<OwnedFd> {
        let number = i32::try_from(descriptor).map_err(|_| io::ErrorKind::NotFound)?;
        Ok(pidfd_getfd(&self.pidfd, number, PidfdGetfdFlags::empty())?)
    }
}

/// A process, those that it has started, and those that they have; who ends meanwhile is left out.
pub fn with_children(process: u32) -> Vec<u32> {
    let mut all = vec![process];
    let mut next = 0;
    while let Some(parent) = all.get(next) {
        next += 1;
        let Ok(tasks) = fs::read_dir(format!("/proc/{parent}/task")) else { continue };
        let children = tasks
            .flatten()
            .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let children: String = children.collect();
        let numbers = children.split_whitespace().filter_map(|word| word.parse().ok());
        let new: Vec<u32> = numbers.filter(|number| !all.contains(number)).collect();
        all.extend(new);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, UdpSocket};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_copy_is_the_same_socket() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let number = socket.as_raw_fd() as u32;
        let holder = Holder::open(std::process::id()).unwrap();
        let all = holder.descriptors().unwrap();
        let found = all.iter().find(|it| it.number == number).unwrap();
        assert!(found.target.starts_with("socket:["), "{found:?}");
        assert!(holder.info(number).unwrap().contains("flags:"));
        let copy = UdpSocket::from(holder.copy(number).unwrap());
        assert_eq!(copy.local_addr().unwrap(), socket.local_addr().unwrap());
    }

    #[test]
    fn there_is_no_process_0() {
        assert_eq!(Holder::open(0).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
