//! The far host of `explain --with HOST`: what it follows for this one, and how that gets here.
//!
//! `earmark serve --explain` starts a process of its own for each host that asks ([`follow`]). It
//! follows the TCP connections between the two hosts, nothing else, for a time that is bounded, and
//! prints each request that this host answers as a line of JSON. The host that asks reads these
//! lines ([`FarHost`]) from a child that stands for that process.

use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use flows::follower::{FlowDetail, FlowScope};
use flows::record::{FlowRole, TracedRequest};
use netdev::routes;
use rustix::process::{Signal, set_parent_process_death_signal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::both::FarRequests;
use crate::evidence::OwnHold;
use crate::following::Following;
use crate::hold;

/// The longest look at another host, in seconds.
pub const LONGEST: f64 = 3_600.0;

/// Requests that a far host sends at most: more do not make quantiles better.
const MOST: usize = 50_000;

/// The most bytes that a far host may send: a record has one kilobyte.
pub const MAX_SAID: usize = 64 << 20;

/// How long the far host may take until it follows, and from *stop* to its last line.
const READY_WITHIN: Duration = Duration::from_secs(20);
const END_WITHIN: Duration = Duration::from_secs(20);

/// What a host asks another one to follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowOrder {
    /// For how many seconds at most.
    pub follow_s: f64,
    /// The host whose connections are followed; the one that serves replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<IpAddr>,
    /// The address of the host that follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<IpAddr>,
}

impl FollowOrder {
    /// The order of a text; `None`: it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The order as it may be followed: for `host`, which asks, at the address `own`.
    pub fn bounded(self, host: IpAddr, own: IpAddr) -> Result<Self> {
        let seconds = self.follow_s;
        ensure!(
            (0.0..=LONGEST).contains(&seconds),
            "a look of {seconds} s is too long: at most {LONGEST}"
        );
        Ok(Self { follow_s: seconds, host: Some(host), own: Some(own) })
    }
}

/// A line of the far host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum FarMessage {
    /// Requests are followed from now on.
    Ready,
    /// A request has ended.
    Request(Box<TracedRequest>),
    /// It follows no more.
    End(FarAccount),
    /// It could not go on.
    Error { message: String },
}

/// What the far host has followed, and what is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FarAccount {
    /// Requests that have ended.
    pub(crate) requests: u64,
    /// Of these, those that were not sent.
    pub(crate) lost: u64,
    /// How long its NIC holds what it receives, as it counts that, in nanoseconds.
    pub(crate) held: u64,
    /// How long its NIC may hold packets at most, in microseconds; `None`: nothing says it.
    pub(crate) hold_up_to_us: Option<f64>,
}

/// Follows what an order says until standard input says *stop* or ends; prints lines to `out`.
pub fn follow(order: &str, out: &mut impl Write) -> Result<()> {
    let done = followed(order, out);
    if let Err(error) = &done {
        let message = format!("{error:#}");
        line(out, &FarMessage::Error { message })?;
    }
    done
}

fn followed(order: &str, out: &mut impl Write) -> Result<()> {
    let order = FollowOrder::parse(order).context("this is no order to follow requests")?;
    let host = order.host.context("the order names no host")?;
    set_parent_process_death_signal(Some(Signal::KILL)).context("ask to end with the parent")?;
    let mut following = Following::start(&FlowScope::With(host), None, FlowDetail::default())?;
    line(out, &FarMessage::Ready)?;
    let is_over = until_stop();
    let (mut left, mut failed) = (MOST, None);
    let mut each = |request: TracedRequest| {
        if request.role == FlowRole::Answers && left > 0 && failed.is_none() {
            left -= 1;
            failed = line(out, &FarMessage::Request(Box::new(request))).err();
        }
    };
    while following.elapsed_s() < order.follow_s && !is_over.load(Ordering::Relaxed) {
        following.step(&mut each);
    }
    let account = following.finish(&mut each);
    if let Some(error) = failed {
        return Err(error);
    }
    let device = order.own.and_then(|own| routes::device(own, host));
    let own_hold = device.as_deref().map_or(OwnHold::Unknown, hold::of);
    let sent = (MOST - left) as u64;
    let account = FarAccount {
        requests: account.requests,
        lost: account.lost_records + account.requests.saturating_sub(account.lost_records + sent),
        held: own_hold.counted_us().filter(|us| *us >= hold::NO_HOLD).map_or(0, nanos),
        hold_up_to_us: own_hold.up_to_us(),
    };
    line(out, &FarMessage::End(account))
}

fn nanos(us: f64) -> u64 {
    (us * 1e3) as u64
}

/// Whether standard input has said *stop*, or has ended.
fn until_stop() -> Arc<AtomicBool> {
    let over = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&over);
    thread::spawn(move || {
        let lines = std::io::stdin().lines();
        // *go* comes first, as for any agent.
        let _ = lines.map_while(Result::ok).find(|line| line.trim() == "stop");
        set.store(true, Ordering::Relaxed);
    });
    over
}

fn line(out: &mut impl Write, message: &FarMessage) -> Result<()> {
    let mut text = serde_json::to_string(message)?;
    text.push('\n');
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("print a request")
}

/// A far host that follows.
#[derive(Debug)]
pub struct FarHost {
    name: String,
    child: Child,
    orders: ChildStdin,
    lines: Receiver<Result<FarMessage>>,
}

impl FarHost {
    /// Starts `command`, which stands for [`follow`] on the host `name`, and waits until it
    /// follows.
    pub fn start(name: &str, command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start what stands for the far host")?;
        let orders = child.stdin.take().context("it has no standard input")?;
        let out = child.stdout.take().context("it has no standard output")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for text in BufReader::new(out).lines() {
                let read = text.context("read what the far host says");
                let read = read.and_then(|text| {
                    serde_json::from_str(&text).context("it says what no far host says")
                });
                if sender.send(read).is_err() {
                    return;
                }
            }
        });
        let mut far = Self { name: name.to_owned(), child, orders, lines };
        match far.next(READY_WITHIN)? {
            FarMessage::Ready => {}
            _ => bail!("{name} says something else than that it follows"),
        }
        far.order("go")?;
        Ok(far)
    }

    fn order(&mut self, word: &str) -> Result<()> {
        let sent = writeln!(self.orders, "{word}").and_then(|()| self.orders.flush());
        sent.with_context(|| format!("say {word} to {}", self.name))
    }

    fn next(&mut self, within: Duration) -> Result<FarMessage> {
        let name = &self.name;
        match self.lines.recv_timeout(within) {
            Ok(Ok(FarMessage::Error { message })) => Err(anyhow!("{name}: {message}")),
            Ok(message) => message.with_context(|| format!("listen to {name}")),
            Err(RecvTimeoutError::Timeout) => {
                bail!("{name} has said nothing for {} s; try again", within.as_secs())
            }
            Err(RecvTimeoutError::Disconnected) => bail!("{name} has hung up; try again"),
        }
    }

    /// Has it stop; what it has followed.
    pub(crate) fn finish(mut self) -> Result<(Vec<TracedRequest>, FarAccount)> {
        // One whose time is over has ended already, and its lines are here.
        let _ = self.order("stop");
        let mut all = Vec::new();
        loop {
            match self.next(END_WITHIN)? {
                FarMessage::Request(mut request) if all.len() < MOST => {
                    request.settle();
                    all.push(*request);
                }
                FarMessage::Request(_) => bail!("{} sends more than it may", self.name),
                FarMessage::End(account) => return Ok((all, account)),
                FarMessage::Ready | FarMessage::Error { .. } => {}
            }
        }
    }
}

/// What a far host has followed, ready to be joined with what this one has.
#[derive(Debug)]
pub(crate) struct FarLook {
    pub(crate) requests: FarRequests,
    pub(crate) account: FarAccount,
    pub(crate) summary: WithHost,
}

/// What a far host was asked to follow beside this one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct WithHost {
    /// Its name, as it was given.
    pub(crate) host: String,
    /// Requests between the two hosts that it has followed.
    pub(crate) requests: u64,
    /// Of these, those that did not get here.
    pub(crate) lost: u64,
    /// Why it did not go on, if it did not.
    pub(crate) failed: Option<String>,
}

impl FarLook {
    /// Ends the look of a far host. If that has failed, what this host has seen counts all the
    /// same.
    pub(crate) fn end(far: FarHost) -> Self {
        let host = far.name.clone();
        let (finished, failed) = match far.finish() {
            Ok(finished) => (finished, None),
            Err(error) => (Default::default(), Some(format!("{error:#}"))),
        };
        let (requests, account): (Vec<TracedRequest>, FarAccount) = finished;
        let summary = WithHost { host, requests: account.requests, lost: account.lost, failed };
        Self { requests: FarRequests::new(requests), account, summary }
    }
}

impl Drop for FarHost {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::checks::request;
    use flows::record::FlowStage;

    /// What is read of a far host that prints `lines`.
    fn read(lines: &str) -> Result<(Vec<TracedRequest>, FarAccount)> {
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf '%s\\n' \"$0\"; read go; read stop", lines]);
        FarHost::start("there", &mut shell)?.finish()
    }

    #[test]
    fn lines_of_a_far_host_are_requests_and_an_account() {
        let one = request(1, &[(FlowStage::Lock, 7)]);
        let line = serde_json::to_string(&FarMessage::Request(Box::new(one.clone()))).unwrap();
        let account = FarAccount { requests: 3, lost: 2, held: 5, hold_up_to_us: Some(0.0) };
        let end = serde_json::to_string(&FarMessage::End(account)).unwrap();
        let said = format!("{{\"event\":\"ready\"}}\n{line}\n{end}");
        assert_eq!(read(&said).unwrap(), (vec![one], account));
    }

    #[test]
    fn far_host_that_fails_or_says_anything_else_is_named() {
        for (said, words) in [
            (r#"{"event":"error","message":"no rights"}"#, "there: no rights"),
            (r#"{"event":"hello"}"#, "listen to there"),
            ("{\"event\":\"ready\"}\nx", "listen to there"),
            ("{\"event\":\"ready\"}", "there has hung up"),
        ] {
            let refusal = format!("{:#}", read(said).unwrap_err());
            assert!(refusal.contains(words), "{said}: {refusal}");
        }
    }

    #[test]
    fn orders_are_of_the_host_that_asks_and_bounded() {
        let [host, own, other] =
            ["10.0.0.7", "10.0.0.9", "10.0.0.1"].map(|text| text.parse().unwrap());
        let order = FollowOrder { follow_s: 10.0, host: Some(other), own: None };
        let text = serde_json::to_string(&order).unwrap();
        let order = FollowOrder::parse(&text).unwrap().bounded(host, own).unwrap();
        assert_eq!((order.host, order.own), (Some(host), Some(own)));
        assert_eq!(FollowOrder::parse(r#"{"workload":{"kind":"rr-client"}}"#), None);
        for follow_s in [-1.0, 3_601.0, f64::NAN] {
            assert!(FollowOrder { follow_s, host: None, own: None }.bounded(host, own).is_err());
        }
    }
}
