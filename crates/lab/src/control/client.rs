//! The user's side of the control socket.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use sys::peer::{self, Listening, PeerError, Server, User};

use super::{PREFIX, PortState, Reply, Request};

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
///
/// # Errors
/// If the kernel does not list its sockets.
pub fn labs() -> Result<Labs> {
    let mut labs = Labs::default();
    for Listening { name, .. } in
        peer::listening(PREFIX).context("list labs: read /proc/net/unix")?
    {
        match peer::owner(&format!("{PREFIX}{name}")) {
            Ok(user) if user == User::own() => labs.own.push(name),
            Ok(user) => labs.others.push((name, user)),
            Err(_) => {}
        }
    }
    Ok(labs)
}

/// The lab that is meant: the one named, or this user's only one.
///
/// # Errors
/// If none runs, or several do and none was named.
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

/// The number of the socket on which a lab listens here, which tells it from a later one of that
/// name.
///
/// # Errors
/// If no such lab runs.
pub fn socket(lab: &str) -> Result<u64> {
    let sockets = peer::listening(PREFIX).context("find a lab: read /proc/net/unix")?;
    let number = sockets.into_iter().find(|socket| socket.name == lab).map(|socket| socket.inode);
    number.with_context(|| format!("no lab {lab} runs here; look at: earmark nic labs"))
}

/// Asks a lab.
///
/// # Errors
/// If it does not run, is that of another user, refuses, or does not answer.
pub fn ask(lab: &str, request: &Request) -> Result<Vec<PortState>> {
    let mut server = match Server::connect(&format!("{PREFIX}{lab}"), TIMEOUT) {
        Ok(server) => server,
        Err(PeerError::Foreign(user)) => bail!(foreign(lab, user)),
        Err(PeerError::Connect(error)) => {
            return Err(error).with_context(|| {
                format!("reach lab {lab}; does it still run? (`earmark nic labs`)")
            });
        }
    };
    let user = server.user();
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    match server.write_all(line.as_bytes()) {
        // A lab that lets nobody of this user in answers at once.
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
    match serde_json::from_slice(&reply).with_context(|| format!("read the answer of lab {lab}"))? {
        Reply::Ports(ports) => Ok(ports),
        Reply::Refused(why) => bail!("{why}"),
        Reply::Foreign => bail!(foreign(lab, user)),
    }
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

    /// Why the answer of a lab that says `bytes`, again and again, is none.
    fn refusal(name: &str, bytes: &[u8], times: usize) -> String {
        let lab = format!("{}-{name}", std::process::id());
        let address = SocketAddr::from_abstract_name(format!("{PREFIX}{lab}")).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = peer::accept(&listener).unwrap();
                BufReader::new(&client).read_line(&mut String::new()).unwrap();
                // It may go before all is said.
                let _ = (0..times).try_for_each(|_| client.write_all(bytes));
            });
            format!("{:#}", ask(&lab, &Request::Show).unwrap_err())
        })
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
