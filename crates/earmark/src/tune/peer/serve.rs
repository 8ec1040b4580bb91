//! `earmark serve`: starts agents for `earmark tune` on another host.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::{PORT, carry};
use crate::agent::{AgentSpec, Transport};
use crate::records::Message;
use crate::say::{note, say};
use crate::workload::WorkloadSpec;

/// The longest specification that is read, in bytes.
const MAX_SPEC: u64 = 65_536;

/// How long somebody may take to send it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Agents at once; more are refused.
const MAX_AGENTS: usize = 64;

/// The longest run that is played for others, in milliseconds.
const MAX_RUN_MS: u64 = 3_600_000;

/// What `earmark serve` takes.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value_t = SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)))]
    pub listen: SocketAddr,
    /// Only for hosts with this address; may be given more than once. Without it, for all
    #[arg(long, value_name = "IP")]
    pub allow: Vec<IpAddr>,
}

/// Serves until it is ended from outside.
///
/// # Errors
/// If it cannot listen.
pub fn run(args: &ServeArgs) -> Result<ExitCode> {
    let listen = listen(args.listen)
        .with_context(|| format!("listen at {}; choose another with --listen", args.listen))?;
    say!(
        "serves at {}; on the other host: earmark tune DEV --peer THIS-HOST",
        listen.local_addr()?
    );
    let agents = Arc::new(AtomicUsize::new(0));
    for stream in listen.incoming() {
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                note!("a connection failed: {error}");
                continue;
            }
        };
        let (agents, allow) = (Arc::clone(&agents), args.allow.clone());
        let serve = move || {
            let busy = agents.fetch_add(1, Ordering::Relaxed);
            // Whoever asks for nonsense is told, and no concern of others.
            if let Err(error) = play(&stream, &allow, busy) {
                let message = format!("{error:#}");
                let line = serde_json::to_string(&Message::Error { message }).unwrap_or_default();
                let _ = writeln!(&stream, "{line}");
            }
            let _ = stream.shutdown(Shutdown::Both);
            agents.fetch_sub(1, Ordering::Relaxed);
        };
        if let Err(error) = std::thread::Builder::new().spawn(serve) {
            note!("cannot serve: {error}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A kernel without IPv6 has the other kind of "everywhere".
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).or_else(|error| match address.ip() {
        IpAddr::V6(ip) if ip.is_unspecified() => TcpListener::bind(("0.0.0.0", address.port())),
        _ => Err(error),
    })
}

/// One agent, from its specification to its end.
fn play(stream: &TcpStream, allow: &[IpAddr], busy: usize) -> Result<()> {
    let asker = stream.peer_addr()?.ip().to_canonical();
    ensure!(allow.is_empty() || allow.contains(&asker), "{asker} is not among those allowed");
    ensure!(busy < MAX_AGENTS, "{MAX_AGENTS} agents are at work; wait until some have ended");
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.take(MAX_SPEC));
    let mut line = String::new();
    lines.read_line(&mut line).context("read the specification")?;
    if line.trim().is_empty() {
        // Somebody only looked whether we are here.
        return Ok(());
    }
    let own = stream.local_addr()?.ip().to_canonical();
    let spec = allowed(&line, asker, own)?;
    stream.set_read_timeout(None)?;
    let mut child = Command::new("/proc/self/exe")
        .args(["agent", &spec])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("start an agent")?;
    let rest = lines.buffer().to_vec();
    let relayed = relay(stream, &rest, &mut child);
    // It has ended, or whoever asked for it has gone.
    let _ = child.kill();
    let _ = child.wait();
    relayed
}

/// The specification as it may be played: our own workloads, against `asker` alone, served at `own`
/// alone.
fn allowed(line: &str, asker: IpAddr, own: IpAddr) -> Result<String> {
    let mut spec = AgentSpec::parse(line.trim()).map_err(|why| anyhow::anyhow!("{why}"))?;
    let (kind, transport) = (spec.workload.kind(), spec.transport());
    ensure!(
        matches!(
            spec.workload,
            WorkloadSpec::RrClient(_)
                | WorkloadSpec::RrServer(_)
                | WorkloadSpec::BulkSender(_)
                | WorkloadSpec::BulkReceiver(_)
                | WorkloadSpec::MemcachedClient(_)
        ) && matches!(transport, Transport::Tcp | Transport::Udp),
        "{kind} over {} is not played for other hosts",
        transport.name()
    );
    let run_ms = spec.warmup_ms.saturating_add(spec.duration_ms);
    ensure!(run_ms <= MAX_RUN_MS, "a run of {run_ms} ms is too long: at most {MAX_RUN_MS}");
    let address = spec.socket_address().map_err(|why| anyhow::anyhow!("{why}"))?;
    let host = if spec.workload.is_server() { own } else { asker };
    spec.address = Some(SocketAddr::new(host, address.port()).to_string());
    Ok(serde_json::to_string(&spec)?)
}

/// Carries words between `stream` and `child` until either has ended.
fn relay(stream: &TcpStream, first: &[u8], child: &mut Child) -> Result<()> {
    let mut orders = child.stdin.take().context("the agent has no standard input")?;
    let mut words = child.stdout.take().context("the agent has no standard output")?;
    orders.write_all(first)?;
    let mut asker = stream.try_clone()?;
    // At its end the agent finds out that nobody speaks to it any more.
    let hear = std::thread::spawn(move || carry(&mut asker, &mut orders));
    let mut to = stream;
    let told = carry(&mut words, &mut to);
    // Wakes up whoever still listens.
    let _ = stream.shutdown(Shutdown::Both);
    let _ = hear.join();
    told.context("tell what the agent says")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(spec: &str) -> Result<String> {
        allowed(spec, "10.0.0.7".parse().unwrap(), "10.0.0.9".parse().unwrap())
    }

    #[test]
    fn agents_are_for_whoever_asks_and_nobody_else() {
        let client =
            ask(r#"{"workload":{"kind":"rr-client"},"address":"192.0.2.1:7000"}"#).unwrap();
        assert!(client.contains(r#""address":"10.0.0.7:7000""#), "{client}");
        let server = ask(r#"{"workload":{"kind":"rr-server"},"address":"0.0.0.0:7001"}"#).unwrap();
        assert!(server.contains(r#""address":"10.0.0.9:7001""#), "{server}");
    }

    #[test]
    fn what_is_not_played_for_others_is_refused() {
        for (spec, words) in [
            ("nonsense", "agent specification"),
            (r#"{"workload":{"kind":"frame-sender"},"interface":"eth0"}"#, "is not played"),
            (r#"{"workload":{"kind":"pps-sender"},"address":"1.2.3.4:5"}"#, "is not played"),
            (
                r#"{"workload":{"kind":"rr-client"},"address":"1.2.3.4:5","transport":"icmp"}"#,
                "is not played",
            ),
            (
                r#"{"workload":{"kind":"rr-client"},"address":"1.2.3.4:5","duration_ms":9999999}"#,
                "too long",
            ),
            (r#"{"workload":{"kind":"rr-client"}}"#, "needs an address"),
        ] {
            let refusal = ask(spec).unwrap_err().to_string();
            assert!(refusal.contains(words), "{spec}: {refusal}");
        }
    }
}
