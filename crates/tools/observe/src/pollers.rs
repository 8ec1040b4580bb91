//! The epoll objects and io_urings of a server, how they poll, and whose packets their sockets get.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use anyhow::{Context, Result};
use show::suspension::{BusyPoll, Poller, PollerKind};
use sys::busy_poll;
use sys::descriptors::{Holder, OpenFile, with_children};

/// The pollers of a process, and of those that it has started, which wait for sockets.
///
/// # Errors
/// If there is no such process, or this user may not look into it.
pub fn pollers(process: u32) -> Result<Vec<Poller>> {
    let mut all = of_process(process)?;
    // A child may end, or be of another user, at any moment.
    all.extend(
        with_children(process).into_iter().skip(1).filter_map(|it| of_process(it).ok()).flatten(),
    );
    Ok(all)
}

/// The pollers of all processes in the network of this one that it may look into, by process.
pub fn pollers_here() -> Vec<Poller> {
    let network = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let Some(own) = network("self") else { return Vec::new() };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut processes: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| network(name).as_ref() == Some(&own))
        .filter_map(|name| name.parse().ok())
        .collect();
    processes.sort_unstable();
    // One may end, or be of another user.
    processes.into_iter().filter_map(|it| of_process(it).ok()).flatten().collect()
}

fn of_process(process: u32) -> Result<Vec<Poller>> {
    let refused = || {
        format!(
            "look at the descriptors of process {process}: it has to be there, and be yours; \
             otherwise ask as root"
        )
    };
    let holder = Holder::open(process).with_context(refused)?;
    let descriptors = holder.descriptors().with_context(refused)?;
    let program = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let mut pollers = Vec::new();
    for descriptor in &descriptors {
        let poller = match descriptor.target.as_str() {
            "anon_inode:[eventpoll]" => epoll(&holder, descriptor, &descriptors),
            "anon_inode:[io_uring]" => io_uring(&holder, descriptor),
            _ => continue,
        };
        // It may have been closed meanwhile, but a right that is missing is missing for all.
        let poller = match poller {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(error).with_context(refused);
            }
            Err(_) => continue,
            Ok(poller) => poller,
        };
        if poller.sockets != Some(0) {
            pollers.push(Poller { pid: process, program: program.trim().into(), ..poller });
        }
    }
    Ok(pollers)
}

fn epoll(holder: &Holder, epoll: &OpenFile, all: &[OpenFile]) -> io::Result<Poller> {
    let info = holder.info(epoll.number)?;
    let polls = busy_poll::of_epoll(holder.copy(epoll.number)?).ok();
    let mut napis = BTreeMap::new();
    let mut sockets = 0;
    for number in targets(&info) {
        let is_socket = |it: &OpenFile| it.number == number && it.target.starts_with("socket:");
        if !all.iter().any(is_socket) {
            continue;
        }
        sockets += 1;
        let napi = holder.copy(number).and_then(busy_poll::incoming_napi);
        if let Ok(Some(napi)) = napi {
            *napis.entry(napi).or_default() += 1;
        }
    }
    let polls =
        polls.map(|it| BusyPoll { usecs: it.usecs, budget: Some(it.budget), prefer: it.prefer });
    Ok(Poller {
        descriptor: epoll.number,
        kind: PollerKind::Epoll,
        busy_poll: polls,
        sockets: Some(sockets),
        napis,
        ..Poller::default()
    })
}

/// The descriptors that an epoll object waits for (`ep_show_fdinfo` of Linux, `fs/eventpoll.c`).
fn targets(info: &str) -> impl Iterator<Item = u32> {
    info.lines()
        .filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok())
}

fn io_uring(holder: &Holder, ring: &OpenFile) -> io::Result<Poller> {
    let info = holder.info(ring.number)?;
    Ok(Poller {
        descriptor: ring.number,
        kind: PollerKind::IoUring,
        busy_poll: of_io_uring(&info),
        ..Poller::default()
    })
}

/// How an io_uring polls (`napi_show_fdinfo` of Linux, `io_uring/fdinfo.c`, 6.9 and newer).
fn of_io_uring(info: &str) -> Option<BusyPoll> {
    let field = |name: &str| {
        info.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
    };
    match field("NAPI")? {
        "disabled" => Some(BusyPoll::default()),
        _ => Some(BusyPoll {
            usecs: field("napi_busy_poll_to")?.parse().ok()?,
            budget: None,
            prefer: field("napi_prefer_busy_poll") == Some("true"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_an_epoll_object_are_read() {
        let info = "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1057\n\
                    tfd:        5 events:       19 data:                5  pos:0 ino:2d1 sdev:9\n\
                    tfd:       12 events:     2019 data:                c  pos:0 ino:2d2 sdev:9\n";
        assert_eq!(targets(info).collect::<Vec<_>>(), [5, 12]);
    }

    #[test]
    fn an_io_uring_says_how_it_polls() {
        let on = "SqMask:\t0x7\nNAPI:\tenabled\nnapi tracking:\tdynamic\nnapi_busy_poll_to:\t50\n\
                  napi_prefer_busy_poll:\ttrue\n";
        assert_eq!(of_io_uring(on), Some(BusyPoll { usecs: 50, budget: None, prefer: true }));
        assert_eq!(of_io_uring("NAPI:\tdisabled\n"), Some(BusyPoll::default()));
        assert_eq!(of_io_uring("SqMask:\t0x7\n"), None);
    }
}
