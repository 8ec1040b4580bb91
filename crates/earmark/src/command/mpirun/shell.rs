//! What the launcher of an MPI takes for `ssh`: how it starts its helpers on the other hosts.
//!
//! Hosts have processes of their own, and none of them can start one on another. So what the
//! launcher calls hands its input and outputs to this process, which starts the command where it
//! belongs and says how it ended:
//!
//! ```text
//!   launcher on a ─▶ earmark remote-shell ─▶ socket in a's /run ─▶ this process ─▶ command on b
//! ```

use std::io::{BufRead, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::thread::Scope;

use anyhow::{Context, Result, bail, ensure};
use lab::host::Host;
use lab::machine::Machine;
use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

use crate::command::code;

/// Options of `ssh` that have a value.
const WITH_VALUE: [&str; 6] = ["-F", "-S", "-i", "-l", "-o", "-p"];

/// The exit status of `ssh` where it could not do its work.
const FAILED: u8 = 255;

/// The longest request that is read, in bytes: a word of a command has 128 KiB at most
/// (`execve(2)`), and JSON makes six bytes of some.
const MAX_REQUEST: u64 = 1 << 20;

/// What is to run where.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ShellRequest {
    host: String,
    command: String,
}

/// Has a command run as `words` say, with the input and outputs of this process; its exit status.
pub(crate) fn ask(socket: &Path, words: Vec<String>) -> Result<ExitCode> {
    let order = order(words)?;
    let stream = UnixStream::connect(socket).with_context(|| {
        format!("reach the lab at {}; `earmark mpirun` starts this by itself", socket.display())
    })?;
    let streams = [
        std::io::stdin().as_fd().try_clone_to_owned()?,
        std::io::stdout().as_fd().try_clone_to_owned()?,
        std::io::stderr().as_fd().try_clone_to_owned()?,
    ];
    let passed = streams.each_ref().map(AsFd::as_fd);
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    ensure!(control.push(SendAncillaryMessage::ScmRights(&passed)), "pass three descriptors");
    sendmsg(&stream, &[IoSlice::new(b"\n")], &mut control, SendFlags::empty())?;
    let line = serde_json::to_string(&order)? + "\n";
    let mut status = [0];
    let asked = (&stream).write_all(line.as_bytes());
    // Why the socket was closed does not matter.
    if asked.and_then(|()| (&stream).read_exact(&mut status)).is_err() {
        bail!("run a command on host {}: the lab has ended; run the program again", order.host);
    }
    Ok(ExitCode::from(status[0]))
}

/// Finds host and command among what `ssh` would be given.
fn order(words: Vec<String>) -> Result<ShellRequest> {
    let mut words = words.into_iter();
    let mut next = words.next();
    while let Some(option) = next.take_if(|word| word.starts_with('-')) {
        if WITH_VALUE.contains(&option.as_str()) {
            words.next();
        }
        next = words.next();
    }
    let host = next.context("start a command on another host: no host is named")?;
    let command = words.collect::<Vec<_>>().join(" ");
    ensure!(!command.is_empty(), "start a command on host {host}: there is no command");
    Ok(ShellRequest { host, command })
}

/// Does what is asked for at `listener` on threads of `scope`, until the other end of `until` is
/// closed; then ends what still runs.
pub(super) fn serve<'scope>(
    scope: &'scope Scope<'scope, '_>,
    listener: UnixListener,
    hosts: &'scope [&'scope Host],
    until: UnixStream,
) {
    scope.spawn(move || {
        while is_first(&listener, &until) {
            let (Ok((stream, _)), Ok(until)) = (listener.accept(), until.try_clone()) else {
                break;
            };
            scope.spawn(move || {
                // Who asked finds out that the connection ends without a status.
                let _ = answer(&stream, hosts, &until);
            });
        }
    });
}

/// Waits until something happens to `one`, or else to `other`; whether it was `one`.
fn is_first(one: &impl AsFd, other: &impl AsFd) -> bool {
    let mut watched = [PollFd::new(one, PollFlags::IN), PollFd::new(other, PollFlags::IN)];
    let happened = retry_on_intr(|| poll(&mut watched, None)).is_ok();
    happened && watched[1].revents().is_empty()
}

fn answer(stream: &UnixStream, hosts: &[&Host], until: &UnixStream) -> Result<()> {
    let streams = streams(stream)?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_REQUEST)).read_line(&mut line)?;
    let order: ShellRequest = serde_json::from_str(&line)?;
    let status = match start(&order, hosts, streams) {
        Ok(mut child) => attend(&mut child, stream, until)?,
        Err(error) => {
            report::errln!("earmark: {error:#}");
            FAILED
        }
    };
    Ok((&*stream).write_all(&[status])?)
}

/// The input and the two outputs that came with the first byte.
fn streams(stream: &UnixStream) -> Result<[OwnedFd; 3]> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    recvmsg(stream, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut passed = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            passed.extend(descriptors);
        }
    }
    let Ok(streams) = passed.try_into() else { bail!("three descriptors were expected") };
    Ok(streams)
}

fn start(order: &ShellRequest, hosts: &[&Host], streams: [OwnedFd; 3]) -> Result<Child> {
    let host = hosts.iter().find(|host| host.name() == order.host);
    let host = host.with_context(|| format!("this lab has no host {}", order.host))?;
    let [input, output, error] = streams;
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(&order.command).stdin(input).stdout(output).stderr(error);
    super::rank_setup::prepare(&mut command);
    Ok(Machine::spawn(*host, &mut command)?)
}

/// Waits for `child`, and kills it when its asker or the lab has gone; its exit status.
fn attend(child: &mut Child, stream: &UnixStream, until: &UnixStream) -> Result<u8> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let mut watched = [pidfd.as_fd(), stream.as_fd(), until.as_fd()]
        .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
    retry_on_intr(|| poll(&mut watched, None))?;
    if watched[0].revents().is_empty() {
        child.kill()?;
    }
    Ok(code(child.wait()?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_ssh_are_skipped() {
        for words in ["b exec it -x", "-x b exec it -x", "-q -l me -o A=b b exec it -x"] {
            let words = words.split(' ').map(str::to_owned).collect();
            let expected = ShellRequest { host: "b".into(), command: "exec it -x".into() };
            assert_eq!(order(words).unwrap(), expected);
        }
        for words in [&["-x"][..], &["b"], &["-l", "b"]] {
            assert!(order(words.iter().map(|&word| word.to_owned()).collect()).is_err());
        }
    }
}
