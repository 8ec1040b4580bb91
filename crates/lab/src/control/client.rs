//! The user's side of the control socket.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{PREFIX, PortState, Reply, Request};

/// How long a lab may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The labs that can be reached from here, by name.
///
/// # Errors
/// If the kernel does not list its sockets.
pub fn labs() -> Result<Vec<String>> {
    let sockets =
        std::fs::read_to_string("/proc/net/unix").context("list labs: read /proc/net/unix")?;
    let marker = format!(" @{PREFIX}");
    let mut names: Vec<String> = sockets
        .lines()
        .filter_map(|line| line.split_once(&marker).map(|(_, name)| name.to_owned()))
        .collect();
    // A socket with connections is listed once for each.
    names.sort();
    names.dedup();
    Ok(names)
}

/// The lab that is meant: the one named, or the only one.
///
/// # Errors
/// If none runs, or several do and none was named.
pub fn choose(name: Option<&str>) -> Result<String> {
    if let Some(name) = name {
        return Ok(name.to_owned());
    }
    let mut labs = labs()?;
    match labs.len() {
        0 => bail!("no lab runs here; start one with `earmark lab shell` or `earmark bench`"),
        1 => Ok(labs.remove(0)),
        _ => bail!("several labs run: {}; choose one with --lab", labs.join(", ")),
    }
}

/// The number of the socket on which a lab listens here, which tells it from a later one of that
/// name.
///
/// # Errors
/// If no such lab runs.
pub fn socket(lab: &str) -> Result<u64> {
    let sockets =
        std::fs::read_to_string("/proc/net/unix").context("find a lab: read /proc/net/unix")?;
    let end = format!(" @{PREFIX}{lab}");
    // The socket that listens is there before those of its connections, and is the oldest.
    let numbers = sockets.lines().filter(|line| line.ends_with(&end)).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(3);
        let is_listening = fields.next() == Some("00010000");
        fields.nth(2).filter(|_| is_listening)?.parse().ok()
    });
    let number = numbers.min();
    number.with_context(|| format!("no lab {lab} runs here; look at: earmark nic labs"))
}

/// Asks a lab.
///
/// # Errors
/// If it does not run, refuses, or does not answer.
pub fn ask(lab: &str, request: &Request) -> Result<Vec<PortState>> {
    let address = SocketAddr::from_abstract_name(format!("{PREFIX}{lab}"))?;
    let mut stream = UnixStream::connect_addr(&address)
        .with_context(|| format!("reach lab {lab}; does it still run? (`earmark nic labs`)"))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    match stream.write_all(line.as_bytes()) {
        // A lab that lets nobody of this user in answers at once.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written.with_context(|| format!("ask lab {lab}"))?,
    }
    // Those of the process that listens; they cannot be had where it is out of sight.
    let owner = rustix::net::sockopt::socket_peercred(&stream).ok();
    let mut reply = String::new();
    BufReader::new(stream)
        .read_line(&mut reply)
        .with_context(|| format!("wait for the answer of lab {lab}"))?;
    match serde_json::from_str(&reply).with_context(|| format!("read the answer of lab {lab}"))? {
        Reply::Ports(ports) => Ok(ports),
        Reply::Refused(why) => bail!("{why}"),
        Reply::Foreign => bail!(foreign(lab, owner.map(|owner| owner.uid.as_raw()))),
    }
}

/// What to do about a lab that another user, `uid`, has started.
fn foreign(lab: &str, uid: Option<u32>) -> String {
    let own = "start one of your own: earmark lab shell";
    let Some(uid) = uid else { return format!("lab {lab} belongs to another user; {own}") };
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    let (user, option) = match name {
        Some(name) => (name.clone(), name),
        None => (uid.to_string(), format!("'#{uid}'")),
    };
    format!(
        "lab {lab} belongs to user {user}; ask as that user: sudo -u {option} earmark nic \
         --lab {lab} ..., or {own}"
    )
}
