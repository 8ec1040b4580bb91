//! `earmark serve`: starts agents for `earmark tune` on another host.

use std::convert::Infallible;
use std::fmt::Arguments;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Ends, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
};
use rustix::process::{Pid, Signal, kill_process};

use super::admission::{Admission, AdmissionSlot};
use super::allowed::{Allowed, allowed, followed};
use super::channel::{self, Receiver, Sender};
use super::code::{Code, VARIABLE};
use super::{PORT, addresses};
use bench::records::AgentMessage;
use explain::far::FollowOrder;
use sys::refusals::{Refusals, is_allowed};

/// From a connection to the specification of its agent.
const TIMEOUT: Duration = Duration::from_secs(5);

/// From an agent's start to its *go*: others of the same run may start in between.
const GO_WITHIN: Duration = Duration::from_secs(60);

/// From the end of an agent's run to its *stop*.
const STOP_WITHIN: Duration = Duration::from_secs(60);

/// How long an agent may go on when the host that it works for has gone.
const END_WITHIN: Duration = Duration::from_secs(2);

/// The most bytes of all orders of a run, *go* and *stop*. A pipe has room for more, so an agent
/// that reads nothing does not keep its thread from noticing that its host has gone.
const MAX_ORDERS: usize = 64;

/// A host that has gone without a word is asked after so much silence, and then so often with such
/// pauses.
const SILENT_FOR: Duration = Duration::from_secs(10);
const ASK_EVERY: Duration = Duration::from_secs(5);
const ASK_TIMES: u32 = 4;

/// How long no connection is taken after one that could not be.
const PAUSE: Duration = Duration::from_millis(100);

/// What `earmark serve` takes.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// The address of this host at which to listen, with a port or without. The usual one is for
    /// this host alone; 0.0.0.0, or the same of IPv6, is for all who can reach it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub listen: String,
    /// Only for hosts with this address; may be given more than once. Without it, for all that
    /// have the code
    #[arg(long, value_name = "IP")]
    pub allow: Vec<IpAddr>,
    /// Follow requests between this host and a paired one for its `earmark explain --with`, too; it
    /// takes the rights of explain
    #[arg(long)]
    pub explain: bool,
    /// Keep the pairing code in this file: it is read, or made with a new code if it is not there.
    /// Without it, and without EARMARK_CODE, each start has a new code, which is printed
    #[arg(long, value_name = "FILE")]
    pub(crate) code_file: Option<PathBuf>,
}

struct Service {
    code: Code,
    allow: Vec<IpAddr>,
    explains: bool,
    refusals: Arc<Refusals>,
    report: fn(Arguments<'_>),
}

/// A service that listens.
pub struct Server {
    listener: TcpListener,
    service: Service,
    code_words: String,
}

impl Server {
    /// Listens; `report` prints a line.
    pub fn bind(args: &ServeArgs, report: fn(Arguments<'_>)) -> Result<Self> {
        let (code, code_words) = code(args)?;
        let wanted = addresses(&args.listen);
        ensure!(!wanted.is_empty(), "--listen: {} is no address of this host", args.listen);
        let listener = TcpListener::bind(&wanted[..])
            .with_context(|| format!("listen at {}; choose another with --listen", args.listen))?;
        let refusals = Refusals::new("earmark serve", report);
        let service = Service {
            code,
            allow: args.allow.clone(),
            explains: args.explain,
            refusals: Arc::new(refusals),
            report,
        };
        Ok(Self { listener, service, code_words })
    }

    /// How the other host reaches it, in lines for people.
    pub fn instructions(&self) -> Result<Vec<String>> {
        let own = self.listener.local_addr()?;
        let host = match own.ip() {
            ip if ip.is_unspecified() => "THIS-HOST".to_owned(),
            ip if own.port() == PORT => ip.to_string(),
            _ => own.to_string(),
        };
        let mut lines = vec![
            format!("serves at {own}; on the other host:"),
            format!("earmark tune DEV --goal GOAL --peer {host} {}", self.code_words),
        ];
        if self.service.explains {
            lines.push(format!("earmark explain HOST --with {host} {}", self.code_words));
        }
        if own.ip().is_loopback() {
            lines
                .push("this address is for this host alone; --listen ADDRESS names another".into());
        }
        Ok(lines)
    }

    /// Serves until it is ended from outside.
    pub fn run(self) -> Result<Infallible> {
        let Self { listener, service, .. } = self;
        service.refusals.report_at_the_end().context("take signals")?;
        let service = Arc::new(service);
        let admission = Arc::new(Admission::default());
        loop {
            let accepted = listener.accept();
            if let Err(error) = accepted.and_then(|(stream, from)| {
                take(&service, &admission, (stream, from.ip().to_canonical()))
            }) && !matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted)
            {
                // No descriptors or no memory, most likely: there may be some when an agent has
                // ended.
                (service.report)(format_args!("cannot take a connection: {error}"));
                thread::sleep(PAUSE);
            }
        }
    }
}

fn code(args: &ServeArgs) -> Result<(Code, String)> {
    if let Some(path) = &args.code_file {
        return Ok((Code::read_or_create(path)?, "--code-file FILE".to_owned()));
    }
    if let Some(code) = Code::from_environment()? {
        return Ok((code, format!("(with the same {VARIABLE})")));
    }
    let code = Code::random()?;
    let words = format!("--code {code}");
    Ok((code, words))
}

fn take(
    service: &Arc<Service>,
    admission: &Arc<Admission>,
    (stream, from): (TcpStream, IpAddr),
) -> std::io::Result<()> {
    if !is_allowed(&service.allow, from) {
        service.refusals.count("from addresses that are not allowed", from);
        return Ok(());
    }
    let Some(slot) = admission.enter(from, &stream)? else {
        service.refusals.count("beyond the limit of connections", from);
        return Ok(());
    };
    let service = Arc::clone(service);
    let answer = move || {
        let until = Instant::now() + TIMEOUT;
        match stream
            .try_clone()
            .map_err(Into::into)
            .and_then(|end| channel::answer(end, &service.code, until))
        {
            Ok(Some(ends)) => session(&service, &stream, from, (ends, until), slot),
            Ok(None) => service.refusals.count("with another code", from),
            Err(_) => service.refusals.count("that did not pair in time", from),
        }
        let _ = stream.shutdown(Shutdown::Both);
    };
    thread::Builder::new().spawn(answer).map(drop)
}

/// What a paired host asks for. It hears why something is refused.
///
/// Only its first message shows that it has the code: the greeting may be one that was recorded.
fn session(
    service: &Service,
    stream: &TcpStream,
    from: IpAddr,
    ((mut sender, mut receiver), until): ((Sender, Receiver), Instant),
    mut slot: AdmissionSlot,
) {
    let text = match receiver.receive(Some(until)) {
        Ok(Some(text)) => text,
        // Without a specification it only looked whether we are here.
        Ok(None) => return,
        Err(_) => return service.refusals.count("that did not go on as a paired host does", from),
    };
    let agent = || -> Result<Orders> {
        let own = stream.local_addr()?.ip().to_canonical();
        let order = std::str::from_utf8(&text).ok().and_then(FollowOrder::parse);
        let allowed = match order {
            Some(order) => followed(order, service.explains, from, own)?,
            None => allowed(&text, from, own)?,
        };
        ask_if_there(stream).context("watch the connection")?;
        slot.start_agent()?;
        play(stream, (&mut sender, receiver), &allowed)
    };
    match agent() {
        Ok(Orders::Few) => {}
        Ok(Orders::TooMany) => {
            service.refusals.count("that gave more orders than an agent takes", from);
        }
        Err(error) => {
            let message = format!("{error:#}");
            let line = serde_json::to_string(&AgentMessage::Error { message }).unwrap_or_default();
            let _ = sender.send(format!("{line}\n").as_bytes());
        }
    }
}

/// Has the kernel find out whether the other host is still there.
fn ask_if_there(stream: &TcpStream) -> rustix::io::Result<()> {
    set_tcp_keepidle(stream, SILENT_FOR)?;
    set_tcp_keepintvl(stream, ASK_EVERY)?;
    set_tcp_keepcnt(stream, ASK_TIMES)?;
    set_socket_keepalive(stream, true)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Orders {
    /// No more than a run takes.
    Few,
    /// More than [`MAX_ORDERS`].
    TooMany,
}

#[derive(Clone, Copy)]
struct Deadlines {
    /// From its start to the first.
    go: Duration,
    /// From then on to its end.
    stop: Duration,
}

fn play(
    stream: &TcpStream,
    (sender, receiver): (&mut Sender, Receiver),
    allowed: &Allowed,
) -> Result<Orders> {
    let mut child = Command::new("/proc/self/exe")
        .args([allowed.command, &allowed.json])
        .env_remove(VARIABLE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("start an agent")?;
    let deadlines = Deadlines { go: GO_WITHIN, stop: allowed.run + STOP_WITHIN };
    let relayed = relay(stream, (sender, receiver), &mut child, deadlines);
    // It has ended, or the host that it works for has gone.
    let _ = child.kill();
    let _ = child.wait();
    relayed
}

fn relay(
    stream: &TcpStream,
    (sender, receiver): (&mut Sender, Receiver),
    child: &mut Child,
    deadlines: Deadlines,
) -> Result<Orders> {
    let orders = child.stdin.take().context("the agent has no standard input")?;
    let mut words = child.stdout.take().context("the agent has no standard output")?;
    let (ended, ends) = channel::<()>();
    let (pid, connection) = (Pid::from_child(child), stream.try_clone()?);
    let forward = thread::Builder::new().spawn(move || {
        let said = forward_orders(receiver, orders, deadlines);
        let may_end = if said == Orders::Few { END_WITHIN } else { Duration::ZERO };
        end(pid, &ends, may_end);
        // What the agent has said may be more than its host has taken, and takes.
        let _ = connection.shutdown(Shutdown::Both);
        said
    })?;
    let carried = sender.carry(&mut words);
    if carried.is_err() {
        // What it says is not taken any more.
        let _ = child.kill();
    }
    drop((ended, words));
    // Wakes up the thread that still listens.
    let _ = stream.shutdown(Shutdown::Read);
    let said = forward.join().unwrap_or(Orders::TooMany);
    if said == Orders::Few {
        carried.context("relay what the agent says")?;
    }
    Ok(said)
}

/// Hands on what the paired host says, until it has gone, says too much, or the agent should have
/// ended. Then the agent's standard input ends.
fn forward_orders(mut receiver: Receiver, mut orders: ChildStdin, deadlines: Deadlines) -> Orders {
    let mut until = Instant::now() + deadlines.go;
    let (mut said, mut left, mut has_begun) = (Vec::new(), MAX_ORDERS, false);
    while let Ok(Some(text)) = receiver.receive(Some(until)) {
        // A message without text is none, but takes time.
        let Some(rest) = left.checked_sub(text.len().max(1)) else { return Orders::TooMany };
        left = rest;
        said.extend_from_slice(&text);
        if !has_begun && is_go(&said) {
            has_begun = true;
            until = Instant::now() + deadlines.stop;
        }
        if orders.write_all(&text).is_err() {
            break;
        }
    }
    Orders::Few
}

fn is_go(said: &[u8]) -> bool {
    let line = said.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    line.ends_with(b"\n") && line.trim_ascii() == b"go"
}

/// Kills an agent that goes on without orders. Its process is not waited for before this returns,
/// so its number is not another one's.
fn end(pid: Pid, ends: &Ends<()>, within: Duration) {
    if ends.recv_timeout(within) == Err(RecvTimeoutError::Timeout) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    /// How an agent ends that does nothing, whose host says `order` and then stays or goes, and
    /// what is found of the orders.
    fn ends(order: Vec<u8>, stays: bool, deadlines: Deadlines) -> (Option<i32>, Orders) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let code = Code::random().unwrap();
        let (same, until) = (code.clone(), Instant::now() + Duration::from_secs(30));
        let far = thread::spawn(move || channel::greet(far, &same, until).unwrap());
        let near = channel::answer(stream.try_clone().unwrap(), &code, until).unwrap();
        let (mut sender, receiver) = near.unwrap();
        let mut far = far.join().unwrap();
        let far = thread::spawn(move || {
            // It may be hung up on before all is said.
            let _ = far.0.send(&order);
            stays.then_some(far)
        });
        let mut agent = Command::new("sleep");
        agent.arg("1000").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut agent = agent.spawn().unwrap();
        let said = relay(&stream, (&mut sender, receiver), &mut agent, deadlines).unwrap();
        drop((stream, sender));
        drop(far.join().unwrap());
        (agent.wait().unwrap().signal(), said)
    }

    #[test]
    fn an_agent_ends_without_orders_and_without_its_host() {
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(1_000));
        let flood = vec![b'x'; 4 << 20];
        let cases = [
            (b"".to_vec(), true, Deadlines { go: short, stop: long }, Orders::Few),
            (b"g".to_vec(), true, Deadlines { go: short, stop: long }, Orders::Few),
            (b"stop\ngo\n".to_vec(), true, Deadlines { go: short, stop: long }, Orders::Few),
            (b"go\n".to_vec(), true, Deadlines { go: long, stop: short }, Orders::Few),
            (b"go\n".to_vec(), false, Deadlines { go: long, stop: long }, Orders::Few),
            // More than a pipe has room for.
            (flood.clone(), true, Deadlines { go: long, stop: long }, Orders::TooMany),
            (
                [b"go\n", &flood[..]].concat(),
                false,
                Deadlines { go: long, stop: long },
                Orders::TooMany,
            ),
        ];
        let (sender, ended) = channel();
        for (order, stays, deadlines, said) in cases {
            let sender = sender.clone();
            thread::spawn(move || sender.send((ends(order, stays, deadlines), said)));
        }
        drop(sender);
        for _ in 0..7 {
            let (ended, said) = ended.recv_timeout(Duration::from_secs(120)).expect("it ends");
            assert_eq!(ended, (Some(Signal::KILL.as_raw()), said));
        }
    }
}
