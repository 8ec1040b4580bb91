//! The far host: its part of a workload, played by agents that it starts for us.
//!
//! # Theory of operation
//!
//! On the far host runs `earmark serve`. Each connection to it is one agent: the first line is the
//! agent's specification in JSON, from then on the connection is the agent's standard input and
//! output, as a local parent would have them (`crate::agent`). Here, `earmark at HOST:PORT agent
//! JSON` is the other end, a child that stands for the far agent as `ssh` would; so whoever starts
//! agents need not know where they are.
//!
//! A far host starts nothing but our own workloads, only against whoever asks, and none for longer
//! than an hour: it cannot be made to send traffic to somebody else.

mod serve;

use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result};
use linux::host::HostError;
use linux::machine::Machine;

pub use serve::{ServeArgs, run as serve};

/// The port of `earmark serve`.
pub const PORT: u16 = 7_010;

/// How long a far host may take to take a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// This host: agents are plain children.
#[derive(Debug)]
pub struct Here;

/// A host on which `earmark serve` runs.
#[derive(Debug)]
pub struct There {
    /// Where it listens.
    pub address: SocketAddr,
    name: String,
}

impl There {
    /// The host of that name, `HOST` or `HOST:PORT`, and our own address as it sees it.
    ///
    /// # Errors
    /// If nothing is known of it, or no `earmark serve` runs there.
    pub fn find(host: &str) -> Result<(Self, IpAddr)> {
        let with_port = |text: &str| text.to_socket_addrs().ok().and_then(|mut found| found.next());
        let found = with_port(host).or_else(|| (host, PORT).to_socket_addrs().ok()?.next());
        let address = found.with_context(|| format!("find host {host}; give its address"))?;
        let stream = connect(address)?;
        let own = stream.local_addr().context("read our own address")?.ip();
        Ok((Self { address, name: host.to_owned() }, own))
    }
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).with_context(|| {
        format!("reach {address}; does `earmark serve` run there, and does a firewall let it?")
    })?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn start(command: &mut Command, name: &str) -> Result<Child, HostError> {
    command.spawn().map_err(|cause| HostError::Start {
        host: name.to_owned(),
        program: command.get_program().to_string_lossy().into_owned(),
        cause,
    })
}

impl Machine for Here {
    fn name(&self) -> &str {
        "here"
    }

    fn command(&self, program: &OsStr) -> Command {
        Command::new(program)
    }

    fn spawn(&self, command: &mut Command) -> Result<Child, HostError> {
        start(command, self.name())
    }

    fn end(&self) -> Option<String> {
        None
    }
}

impl Machine for There {
    fn name(&self) -> &str {
        &self.name
    }

    /// The program is this one on the far host; what is started here stands for it.
    fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        command.args(["at", &self.address.to_string()]);
        command
    }

    fn spawn(&self, command: &mut Command) -> Result<Child, HostError> {
        start(command, self.name())
    }

    fn end(&self) -> Option<String> {
        None
    }
}

/// Stands for the agent `spec` on the host at `address`, until it has ended.
///
/// # Errors
/// If the far host cannot be reached.
pub fn at(address: SocketAddr, spec: &str) -> Result<ExitCode> {
    let stream = connect(address)?;
    let mut sender = stream.try_clone().context("share the connection")?;
    writeln!(sender, "{spec}").with_context(|| format!("ask {address} for an agent"))?;
    std::thread::spawn(move || {
        let _ = carry(&mut std::io::stdin().lock(), &mut sender);
        // The agent finds out that nobody speaks to it any more.
        let _ = sender.shutdown(Shutdown::Write);
    });
    let mut stream = stream;
    let carried = carry(&mut stream, &mut std::io::stdout().lock());
    carried.with_context(|| format!("listen to the agent at {address}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Carries what is said from one to the other until the end, each word at once. `io::copy` would
/// let the kernel do it, which keeps words until there are more of them.
fn carry(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<()> {
    let mut chunk = [0; 4_096];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) => to.write_all(&chunk[..read]).and_then(|()| to.flush())?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
