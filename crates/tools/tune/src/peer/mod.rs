//! The far host: its part of a workload, played by agents that it starts for us.
//!
//! # Theory of operation
//!
//! On the far host runs `earmark serve`. Each connection to it is one agent: both sides show that
//! they have the pairing code (`code`, `channel`), the first text is the agent's specification in
//! JSON, and from then on the connection is the agent's standard input and output, as a local
//! parent would have them (`bench::agent`). LocalHost, `earmark at HOST:PORT agent JSON` is the
//! other end, a child that stands for the far agent as `ssh` would; what starts agents need not
//! know where they are.
//!
//! Nor does this side trust the far one: what that says is bounded ([`at`]), read as messages of an
//! agent alone (`bench::records::Message::parse`), and addresses in it are not used.
//!
//! `earmark explain --with` uses the same pairing: then the first text is an order to follow
//! requests (`explain::far`), which a far host takes that was started with `--explain`.
//!
//! A far host starts nothing but our own workloads over TCP, within bounds (`allowed`), only
//! against the host that asks, and none for longer than an hour. Its servers close connections of
//! all other addresses. docs/security.md has what follows from that.

mod admission;
mod allowed;
mod channel;
mod code;
mod serve;

use std::ffi::OsStr;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::process::{Child, Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::LabError;
use lab::machine::Machine;
use sys::address::host_and_port;

#[cfg(any(test, feature = "checks"))]
#[doc(hidden)]
pub use channel::checks;
use channel::{Receiver, Sender};
use code::VARIABLE;
pub use code::{Code, CodeArgs};
use explain::far::{self, FarHost, FollowOrder};
pub use serve::{ServeArgs, Server};

/// The port of `earmark serve`.
pub const PORT: u16 = 7_010;

/// The most bytes that a far agent may say. A record has two distributions of 30 000 buckets at
/// most, with some 20 bytes each.
const MAX_SAID: usize = 2 << 20;

/// How long a far agent may take to end when its parent has gone.
const END_WITHIN: Duration = Duration::from_secs(5);

/// How long a far host follows before this one begins, and after it has ended, in seconds: at most.
const AHEAD: f64 = 30.0;

/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// How long a far host may take to take a connection, and then to show that it has the code.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct LocalHost;

#[derive(Debug)]
pub(crate) struct RemoteHost {
    pub(crate) address: SocketAddr,
    name: String,
    code: Code,
}

impl RemoteHost {
    /// The host of that name, `HOST` or `HOST:PORT`, whose `earmark serve` has this code, and our
    /// own address as it sees it.
    pub(crate) fn find(host: &str, code: Code) -> Result<(Self, IpAddr)> {
        let found = addresses(host);
        ensure!(!found.is_empty(), "find host {host}; give its address");
        // It may listen at one of its addresses alone.
        let (mut address, mut stream) = (found[0], connect(found[0]));
        for other in &found[1..] {
            if stream.is_err() {
                (address, stream) = (*other, connect(*other));
            }
        }
        let stream = stream?;
        let own = stream.local_addr().context("read our own address")?.ip();
        pair(stream, address, &code)?;
        Ok((Self { address, name: host.to_owned(), code }, own))
    }
}

fn addresses(host: &str) -> Vec<SocketAddr> {
    let (host, port) = host_and_port(host);
    let found = (host, port.unwrap_or(PORT)).to_socket_addrs();
    found.map(|found| found.take(MAX_ADDRESSES).collect()).unwrap_or_default()
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    TcpStream::connect_timeout(&address, TIMEOUT).with_context(|| {
        format!(
            "reach {address}; does `earmark serve` run there with --listen, and does a firewall \
             let it?"
        )
    })
}

fn pair(stream: TcpStream, address: SocketAddr, code: &Code) -> Result<(Sender, Receiver)> {
    channel::greet(stream, code, Instant::now() + TIMEOUT)
        .with_context(|| format!("pair with {address}"))
}

fn start(command: &mut Command, name: &str) -> Result<Child, LabError> {
    command
        .spawn()
        .map_err(|cause| LabError::start(&command.get_program().to_string_lossy(), name, cause))
}

impl Machine for LocalHost {
    fn name(&self) -> &str {
        "here"
    }

    fn command(&self, program: &OsStr) -> Command {
        Command::new(program)
    }

    fn spawn(&self, command: &mut Command) -> Result<Child, LabError> {
        start(command, self.name())
    }

    fn end(&self) -> Option<String> {
        None
    }
}

impl Machine for RemoteHost {
    fn name(&self) -> &str {
        &self.name
    }

    /// The program is this one on the far host; what is started here stands for it.
    fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        // Other users may read arguments, but not the environment.
        command.args(["at", &self.address.to_string()]).env(VARIABLE, self.code.to_string());
        command
    }

    fn spawn(&self, command: &mut Command) -> Result<Child, LabError> {
        start(command, self.name())
    }

    fn end(&self) -> Option<String> {
        None
    }
}

/// Has the host of that name follow requests for this one, for so many seconds at most.
pub fn following(host: &str, code: Code, seconds: f64) -> Result<FarHost> {
    let remote = RemoteHost::find(host, code)?.0;
    // It begins before this host does.
    let follow_s = (seconds + AHEAD).min(far::LONGEST);
    let order = FollowOrder { follow_s, host: None, own: None };
    let mut command = remote.command(OsStr::new("/proc/self/exe"));
    FarHost::start(host, command.args(["follow", &serde_json::to_string(&order)?]))
}

/// Stands for the agent, or the look at requests, `spec` on the host at `address`, until it has
/// ended.
pub fn at(address: SocketAddr, spec: &str) -> Result<ExitCode> {
    let code = Code::from_environment()?.with_context(|| format!("{VARIABLE} is not set"))?;
    let (mut sender, mut receiver) = pair(connect(address)?, address, &code)?;
    sender.send(spec.as_bytes()).with_context(|| format!("ask {address} for an agent"))?;
    std::thread::spawn(move || {
        let _ = sender.carry(&mut std::io::stdin().lock());
        // The agent finds out that its parent has gone.
        sender.finish();
        sleep(END_WITHIN);
        sender.close();
    });
    let most = if FollowOrder::parse(spec).is_some() { far::MAX_SAID } else { MAX_SAID };
    relay(&mut receiver, &mut std::io::stdout().lock(), most)
        .with_context(|| format!("listen to the agent at {address}"))?;
    Ok(ExitCode::SUCCESS)
}

fn relay(receiver: &mut Receiver, out: &mut impl Write, most: usize) -> Result<()> {
    let mut left = most;
    while let Some(text) = receiver.receive(None)? {
        // A message without text takes time, too.
        left = left.checked_sub(text.len().max(1)).with_context(|| {
            format!("it says more than {most} bytes; is that host one to be trusted?")
        })?;
        out.write_all(&text)?;
        out.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn an_agent_that_says_too_much_is_not_listened_to() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (code, until) = (Code::random().unwrap(), Instant::now() + Duration::from_secs(60));
        let (near, same) =
            (TcpStream::connect(listener.local_addr().unwrap()).unwrap(), code.clone());
        let far = thread::spawn(move || {
            let stream = listener.accept().unwrap().0;
            let (mut sender, _receiver) = channel::answer(stream, &same, until).unwrap().unwrap();
            while sender.send(&[b'x'; 4_096]).is_ok() {}
        });
        let (sender, mut receiver) = channel::greet(near, &code, until).unwrap();
        let mut said = Vec::new();
        let refusal = relay(&mut receiver, &mut said, MAX_SAID).unwrap_err().to_string();
        assert!(refusal.contains("more than 2097152 bytes"), "{refusal}");
        assert_eq!(said.len(), MAX_SAID);
        sender.close();
        far.join().unwrap();
    }
}
