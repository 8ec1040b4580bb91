//! What a frontend may do to make the data plane wait, and what frames between two other ports have
//! to wait for meanwhile.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::net::sockopt::set_socket_linger;
use vhost::driver::VirtioDriver;
use vhost::transport::message::{FrontendRequest, VringFd};

use super::nic::{Nic, NicSettings};
use super::rogue::{RECEIVE, Rogue, WRITE, buffer, descriptor};
use super::traffic::{carry, frame, until};

/// How long an attacker could have the data plane wait; it would be noticed.
const LINGER: Duration = Duration::from_secs(20);

/// More than a busy machine takes for one frame, and much less than that.
const BOUND: Duration = Duration::from_secs(8);

/// How long an attack that goes on goes on.
const FLOOD: Duration = Duration::from_millis(500);

/// The third port is the attacker's.
const ATTACKER: usize = 2;

fn nic() -> Nic {
    Nic::start(NicSettings { ports: 3, ..NicSettings::default() })
}

/// Carries frames between two honest drivers, one by one, until `attack` has ended and some more
/// times; the longest that one took.
fn worst(honest: &mut [VirtioDriver; 2], attack: impl FnOnce() + Send) -> Duration {
    let [a, b] = honest;
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            attack();
            ended.store(true, Ordering::Release);
        });
        let (mut worst, mut left, mut number) = (Duration::ZERO, 200, 0);
        while left > 0 {
            left -= u32::from(ended.load(Ordering::Acquire));
            number += 1;
            let (begin, frames) = (Instant::now(), [frame(number, 60)]);
            assert_eq!(carry(a, b, &frames), frames);
            worst = worst.max(begin.elapsed());
        }
        worst
    })
}

/// Runs an attack, and says what it did to the other ports.
fn withstood(name: &str, attack: impl FnOnce(&Path) + Send) {
    let nic = nic();
    let mut honest = [nic.driver(0), nic.driver(1)];
    let calm = worst(&mut honest, || std::thread::sleep(FLOOD));
    let path = nic.path(ATTACKER);
    let attacked = worst(&mut honest, || attack(&path));
    println!("{name}: the worst frame of other ports took {attacked:?}, without it {calm:?}");
    assert!(attacked < BOUND, "{name}: {attacked:?}");
}

/// A socket whose last close takes as long as it lingers: what it has sent is never read.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (unread, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    while socket.write(&[0; 65_536]).is_ok() {}
    socket.set_nonblocking(false).unwrap();
    set_socket_linger(&socket, Some(LINGER)).unwrap();
    (socket, unread)
}

#[test]
fn a_socket_that_lingers_holds_up_its_own_port_alone() {
    withstood("SO_LINGER", |path| {
        let (socket, _unread) = lingering();
        let error = FrontendRequest::SetVringErr(VringFd { index: 0, none: false }).encode(false);
        // By a message that takes it, by one that does not, and by one that is not read.
        for message in [&error[..], &FrontendRequest::SetOwner.encode(false), &error[..3]] {
            let mut rogue = Rogue::connect(path).unwrap();
            rogue.say(message, &[socket.as_fd()]).unwrap();
            let _ = rogue.ask(&FrontendRequest::GetFeatures, &[]);
        }
        let rogue = Rogue::connect(path).unwrap();
        rogue.say(&error, &[socket.as_fd()]).unwrap();
        drop(socket);
        drop(rogue);
        std::thread::sleep(FLOOD);
    });
}

#[test]
fn a_full_eventfd_that_blocks_holds_up_no_port() {
    withstood("blocking eventfd", |path| {
        let mut rogue = Rogue::connect(path).unwrap();
        for number in 0..8 {
            let free = descriptor(buffer(number.into()), 2048, WRITE, 0);
            rogue.describe(RECEIVE, number, &free).unwrap();
        }
        rogue.attach().unwrap();
        for call in &rogue.calls {
            rustix::io::write(call, &(u64::MAX - 1).to_ne_bytes()).unwrap();
            fcntl_setfl(call, fcntl_getfl(call).unwrap() - OFlags::NONBLOCK).unwrap();
        }
        // Frames to an unknown address go to this port, too, and interrupt it.
        rogue.offer(RECEIVE, &[0, 1, 2, 3, 4, 5, 6, 7]).unwrap();
        std::thread::sleep(FLOOD);
    });
}

#[test]
fn a_flood_of_messages_waits_for_its_turn() {
    withstood("SET_VRING_KICK", |path| {
        let rogue = Rogue::connect(path).unwrap();
        let kick = FrontendRequest::SetVringKick(VringFd { index: 1, none: false }).encode(false);
        let begin = Instant::now();
        while begin.elapsed() < FLOOD {
            // The port may be lost meanwhile.
            if rogue.say(&kick, &[rogue.kicks[1].as_fd()]).is_err() {
                break;
            }
        }
    });
}

/// What an attacker says that its own process does, and ends.
const ROLE: &str = "EARMARK_TEST_FRONTEND";

/// Run by the next test in a process of its own, and nothing without it.
#[test]
fn frontend_that_holds_itself() {
    let Some(path) = std::env::var_os(ROLE) else { return };
    let stream = UnixStream::connect(path).unwrap();
    let itself = stream.try_clone().unwrap();
    let mut rogue = Rogue::new(stream).unwrap();
    rogue.negotiate().unwrap();
    let call = FrontendRequest::SetVringCall(VringFd { index: 0, none: false });
    rogue.ask(&call, &[itself.as_fd()]).unwrap();
    println!("it has passed its own end");
}

#[test]
fn a_frontend_that_has_ended_cannot_hold_its_port() {
    let nic = nic();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "attacks::frontend_that_holds_itself", "--nocapture"])
        .env(ROLE, nic.path(ATTACKER))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said: Vec<_> = lines.map_while(Result::ok).collect();
    assert!(said.iter().any(|line| line.contains("its own end")), "{said:?}");
    assert!(child.wait().unwrap().success());
    until("the port is free", || !nic.attachment(ATTACKER).connected);
    assert_eq!(nic.reason(ATTACKER), "the frontend's process has ended");
    nic.driver(ATTACKER).check().unwrap();
}

#[test]
fn the_holder_of_a_port_can_be_evicted() {
    let nic = nic();
    assert!(!nic.evict(ATTACKER));
    let stubborn = Rogue::connect(&nic.path(ATTACKER)).unwrap();
    until("it is connected", || nic.attachment(ATTACKER).connected);
    assert!(nic.evict(ATTACKER));
    assert_eq!(nic.reason(ATTACKER), "evicted");
    nic.driver(ATTACKER).check().unwrap();
    drop(stubborn);
}
