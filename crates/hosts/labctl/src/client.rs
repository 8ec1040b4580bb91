//! The user's side of the control socket.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use sys::peer::{self, LocalServer, PeerError, User};

use crate::{PREFIX, PortState, Reply, Request};

/// How long a lab may take to answer, from the first byte of the request to the last of the answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest answer that is read, in bytes: a queue takes less than 2 KiB, and 26 ports of 64
/// queues some 3 MiB.
const MAX_REPLY: u64 = 16 << 20;

/// The labs that listen in this network, by name.
#[derive(Debug, Default)]
pub struct Labs {
    /// Those of this user.
    pub own: Vec<String>,
    /// Those that others have started, with their users.
    pub others: Vec<(String, User)>,
}

/// The labs that listen here. One that takes no connection now is left out.
pub fn labs() -> Result<Labs> {
    let mut labs = Labs::default();
    for name in peer::listening(PREFIX).context("list labs: read /proc/net/unix")? {
        match peer::owner(&format!("{PREFIX}{name}")) {
            Ok(user) if user == User::own() => labs.own.push(name),
            Ok(user) => labs.others.push((name, user)),
            Err(_) => {}
        }
    }
    Ok(labs)
}

/// The lab that is meant: the one named, or this user's only one.
pub fn choose(name: Option<&str>) -> Result<String> {
    if let Some(name) = name {
        return Ok(name.to_owned());
    }
    let Labs { mut own, others } = labs()?;
    match (own.len(), others.first()) {
        (0, None) => {
            bail!("no lab runs here; start one with `earmark lab shell` or `earmark bench`")
        }
        (0, Some((lab, user))) => bail!("no lab of yours runs here; {}", foreign(lab, *user)),
        (1, _) => Ok(own.remove(0)),
        _ => bail!("several labs run: {}; choose one with --lab", own.join(", ")),
    }
}

/// The number of a lab, which tells it from a later one of that name; none if no such lab of this
/// user's runs here. The lab itself says it: any user can make `/proc/net/unix` show what it likes.
pub fn instance(lab: &str) -> Result<Option<u64>> {
    let server = match LocalServer::connect(&format!("{PREFIX}{lab}"), TIMEOUT) {
        Ok(server) => server,
        Err(PeerError::Foreign(_)) => return Ok(None),
        Err(PeerError::Connect(error)) if error.kind() == ErrorKind::ConnectionRefused => {
            return Ok(None);
        }
        Err(PeerError::Connect(error)) => {
            return Err(error).with_context(|| format!("reach lab {lab}"));
        }
    };
    match exchange(lab, server, &Request::Identify)? {
        Reply::Instance(number) => Ok(Some(number)),
        Reply::Foreign => Ok(None),
        Reply::Ports(_) | Reply::Refused(_) => bail!(other_version(lab)),
    }
}

/// Asks a lab.
pub fn ask(lab: &str, request: &Request) -> Result<Vec<PortState>> {
    let server = match LocalServer::connect(&format!("{PREFIX}{lab}"), TIMEOUT) {
        Ok(server) => server,
        Err(PeerError::Foreign(user)) => bail!(foreign(lab, user)),
        Err(PeerError::Connect(error)) => {
            return Err(error).with_context(|| {
                format!("reach lab {lab}; does it still run? (`earmark nic labs`)")
            });
        }
    };
    let user = server.user();
    match exchange(lab, server, request)? {
        Reply::Ports(ports) => Ok(ports),
        Reply::Refused(why) => bail!("{why}"),
        Reply::Foreign => bail!(foreign(lab, user)),
        Reply::Instance(_) => bail!(other_version(lab)),
    }
}

/// The lab whose NIC has a port of that name, with the port. Other labs may have one of the same
/// name: then it is not known which is meant.
pub fn port_here(name: &str) -> Option<(String, PortState)> {
    let of_lab = |lab: String| {
        let ports = ask(&lab, &Request::Show).ok()?;
        Some((lab, ports.into_iter().find(|port| port.port == name)?))
    };
    let mut found = labs().ok()?.own.into_iter().filter_map(of_lab);
    found.next().filter(|_| found.next().is_none())
}

fn exchange(lab: &str, mut server: LocalServer, request: &Request) -> Result<Reply> {
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    match server.write_all(line.as_bytes()) {
        // A lab that refuses this user answers at once.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written.with_context(|| format!("ask lab {lab}"))?,
    }
    let mut reply = Vec::new();
    BufReader::new(server.take(MAX_REPLY))
        .read_until(b'\n', &mut reply)
        .with_context(|| format!("wait for the answer of lab {lab}"))?;
    ensure!(
        reply.ends_with(b"\n"),
        "the answer of lab {lab} has no end after {} bytes; does it still run?",
        reply.len()
    );
    serde_json::from_slice(&reply).with_context(|| format!("read the answer of lab {lab}"))
}

fn other_version(lab: &str) -> String {
    format!("lab {lab} is of another version; end it, and start it again")
}

/// What to do about a lab that another user has started.
fn foreign(lab: &str, user: User) -> String {
    format!(
        "lab {lab} belongs to user {user}; ask as that user: sudo -u {} earmark nic --lab {lab} \
         ..., or start one of your own: earmark lab shell",
        user.for_sudo()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    fn lab(name: &str) -> String {
        format!("{}-{name}", std::process::id())
    }

    fn bind(name: &str) -> UnixListener {
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap()
    }

    /// What `ask` finds at a lab that says `bytes`, again and again.
    fn answered<T>(lab: &str, bytes: &[u8], times: usize, ask: impl FnOnce() -> T) -> T {
        let listener = bind(&format!("{PREFIX}{lab}"));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = peer::accept(&listener).unwrap();
                BufReader::new(&client).read_line(&mut String::new()).unwrap();
                // It may go before all is said.
                let _ = (0..times).try_for_each(|_| client.write_all(bytes));
            });
            ask()
        })
    }

    /// Why the answer of a lab that says `bytes`, again and again, is none.
    fn refusal(name: &str, bytes: &[u8], times: usize) -> String {
        let lab = lab(name);
        let error = answered(&lab, bytes, times, || ask(&lab, &Request::Show).unwrap_err());
        format!("{error:#}")
    }

    #[test]
    fn a_lab_itself_says_which_it_is() {
        let lab = lab("instance");
        // A name with a line end looks like a row of `/proc/net/unix`, with any inode.
        let row = format!("0\n0: 2 0 00010000 0001 01 1 @{PREFIX}{lab}");
        let forger = bind(&row);
        assert!(peer::listening(PREFIX).unwrap().contains(&lab), "it is listed");
        assert_eq!(instance(&lab).unwrap(), None);
        let ask = || instance(&lab).unwrap();
        assert_eq!(answered(&lab, b"{\"instance\":7}\n", 1, ask), Some(7));
        drop(forger);
    }

    #[test]
    fn answers_without_end_are_refused() {
        let endless = refusal("endless", &[b'x'; 1 << 20], 20);
        assert!(endless.contains("has no end after 16777216 bytes"), "{endless}");
        let short = refusal("short", b"{}", 1);
        assert!(short.contains("has no end after 2 bytes"), "{short}");
        let deep = [b"{\"ports\":".as_slice(), &[b'['; 1 << 20], b"\n"].concat();
        let deep = refusal("deep", &deep, 1);
        assert!(deep.contains("read the answer of lab"), "{deep}");
    }
}
