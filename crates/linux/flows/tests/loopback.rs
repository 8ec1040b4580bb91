//! Requests of this very process over the loopback. Without the right to follow them, the error
//! says what to do; then that is what is tested.
#![allow(non_snake_case, reason = "test names are subject__condition__result")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};

use flows::FlowError;
use flows::follower::{FlowDetail, FlowFollower, FlowScope};
use flows::histograms::FlowGrouping;
use flows::record::{FlowRole, FlowStage, TracedRequest, Transport};

/// How long a server of these tests sleeps: nothing else here takes as long.
const LONG: Duration = Duration::from_millis(60);

/// The requests of what `work` does, which returns the port that its server had; nothing for a
/// process that may not follow requests, after a check of the refusal.
fn followed(by_calls: bool, work: impl FnOnce() -> u16) -> Option<Vec<TracedRequest>> {
    let detail = FlowDetail { by_calls, stacks: true };
    let opened = FlowFollower::open(&FlowScope::Processes, detail);
    let mut follower = match opened {
        Ok(follower) => follower,
        Err(error) => {
            assert!(!rustix::process::geteuid().is_root(), "root may follow: {error}");
            assert!(matches!(error, FlowError::NotAllowed | FlowError::NoTypes), "{error}");
            return None;
        }
    };
    // Older kernels do not show datagrams; then there are none.
    let has_udp = follower.missing().is_empty();
    assert!(follower.missing().iter().all(|it| it.effect.starts_with("UDP")));
    follower.follow(std::process::id()).unwrap();
    follower.start().unwrap();
    let port = work();
    let mut requests = Vec::new();
    follower.read(|request| requests.push(request));
    // Other tests of this process do the same at the same time.
    requests.retain(|request| {
        [request.flow.local, request.flow.remote].iter().any(|address| address.port() == port)
    });
    for request in &mut requests {
        assert_eq!(request.settle(), 0, "{request:?}");
        let is_known = !request.partial.thread_unknown && !request.partial.threads;
        assert!(!is_known || request.accounted() > 0.9, "{request:?}");
        assert_eq!(request.program.pid, std::process::id(), "{request:?}");
    }
    assert!(requests.is_sorted_by_key(|request| request.id));
    assert!(has_udp || requests.iter().all(|it| it.flow.transport == Transport::Tcp));
    let is_udp = requests.is_empty() && !has_udp;
    if is_udp {
        return None;
    }
    Some(requests)
}

/// Answers one connection: `serve` gets it with what was read.
fn server(
    at: &str,
    mut serve: impl FnMut(&mut TcpStream, &[u8]) + Send + 'static,
) -> (SocketAddr, thread::JoinHandle<()>) {
    let listener = TcpListener::bind(at).unwrap();
    let address = listener.local_addr().unwrap();
    let thread = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.set_nodelay(true).unwrap();
        let mut bytes = [0; 4_096];
        while let Ok(length @ 1..) = stream.read(&mut bytes) {
            serve(&mut stream, &bytes[..length]);
        }
    });
    (address, thread)
}

fn echo(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
}

fn ask(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
    let mut answer = vec![0; bytes.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, bytes);
}

fn other_side(role: FlowRole) -> FlowRole {
    if role == FlowRole::Asks { FlowRole::Answers } else { FlowRole::Asks }
}

fn of(requests: &[TracedRequest], role: FlowRole) -> Vec<&TracedRequest> {
    requests.iter().filter(|request| request.role == role).collect()
}

#[test]
fn requests__over_ipv4_and_ipv6__are_followed_on_both_sides() {
    for (at, by_calls) in [("127.0.0.1:0", false), ("[::1]:0", false), ("127.0.0.1:0", true)] {
        let requests = followed(by_calls, || {
            let (address, thread) = server(at, echo);
            let mut client = TcpStream::connect(address).unwrap();
            (0..10).for_each(|_| ask(&mut client, b"twelve bytes"));
            drop(client);
            thread.join().unwrap();
            address.port()
        });
        let Some(requests) = requests else { return };
        for role in [FlowRole::Asks, FlowRole::Answers] {
            let all = of(&requests, role);
            let connects = all.iter().map(|request| request.stages.of(FlowStage::Connect) > 0);
            let is_first = (0..10).map(|number| number == 0 && role == FlowRole::Asks);
            assert!(connects.eq(is_first), "{role:?}: {requests:#?}");
            assert_eq!(all.len(), 10, "{role:?}: {requests:#?}");
            for (request, other) in all.iter().zip(of(&requests, other_side(role))) {
                let [segments, same] = [request, &other].map(|it| it.segments.unwrap());
                assert_eq!(segments.first, same.first, "both sides know it by one number");
                assert!(segments.sent < segments.came || role == FlowRole::Answers, "{request:?}");
                assert!(segments.sent.is_some() && segments.came.is_some(), "{request:?}");
                assert_eq!((request.counts.bytes_out, request.counts.bytes_in), (12, 12));
                assert_eq!((request.counts.writes, request.counts.reads), (1, 1));
                assert_eq!(request.flow.transport, Transport::Tcp);
                assert_eq!(request.flow.local.is_ipv6(), at.starts_with('['));
                assert!(request.tcp.is_some_and(|tcp| tcp.mss > 0));
                assert!(!request.partial.pipelined, "{request:?}");
                assert!(request.stages.of(FlowStage::StackOut) > 0, "{request:?}");
            }
        }
    }
}

#[test]
fn server__that_sleeps__is_far_to_the_client_and_asleep_itself() {
    let requests = followed(false, || {
        let (address, thread) = server("127.0.0.1:0", |stream, bytes| {
            thread::sleep(LONG);
            echo(stream, bytes);
        });
        let mut client = TcpStream::connect(address).unwrap();
        (0..3).for_each(|_| ask(&mut client, b"x"));
        drop(client);
        thread.join().unwrap();
        address.port()
    });
    let Some(requests) = requests else { return };
    let long = LONG.as_nanos() as u64 * 9 / 10;
    for request in of(&requests, FlowRole::Answers) {
        assert!(request.stages.of(FlowStage::Sleep) > long, "{request:?}");
        let block = request.block.as_ref().unwrap();
        assert_eq!(block.call, Some(libc::SYS_clock_nanosleep as u32), "{request:?}");
        assert_eq!(block.name.as_deref(), Some("clock_nanosleep"), "{request:?}");
        assert!(block.stack.is_some(), "{request:?}");
    }
    for request in of(&requests, FlowRole::Asks) {
        let far = request.stages.of(FlowStage::FarUnacked) + request.stages.of(FlowStage::FarAcked);
        assert!(far > long, "{request:?}");
    }
    assert_eq!(requests.len(), 6);
}

#[test]
fn client__that_reads_late__leaves_the_data_there() {
    let requests = followed(false, || {
        let (address, thread) = server("127.0.0.1:0", echo);
        let mut client = TcpStream::connect(address).unwrap();
        for _ in 0..3 {
            client.write_all(b"x").unwrap();
            thread::sleep(LONG);
            client.read_exact(&mut [0]).unwrap();
        }
        drop(client);
        thread.join().unwrap();
        address.port()
    });
    let Some(requests) = requests else { return };
    let long = LONG.as_nanos() as u64 / 2;
    for request in of(&requests, FlowRole::Asks) {
        assert!(request.stages.of(FlowStage::Sleep) > long, "{request:?}");
    }
}

#[test]
fn answers__in_two_parts__have_a_rest() {
    let requests = followed(false, || {
        let (address, thread) = server("127.0.0.1:0", |stream, bytes| {
            stream.write_all(&bytes[..1]).unwrap();
            thread::sleep(LONG);
            stream.write_all(&bytes[1..]).unwrap();
        });
        let mut client = TcpStream::connect(address).unwrap();
        (0..3).for_each(|_| ask(&mut client, b"xyz"));
        drop(client);
        thread.join().unwrap();
        address.port()
    });
    let Some(requests) = requests else { return };
    let long = LONG.as_nanos() as u64 * 9 / 10;
    let asked = of(&requests, FlowRole::Asks);
    assert_eq!(asked.len(), 3, "a request ends with the last read, not with the first");
    for request in asked {
        // A client that wakes up late finds the rest there.
        let waits = [FlowStage::RestUnacked, FlowStage::RestAcked, FlowStage::WakeUp];
        let rest: u64 = waits.into_iter().map(|stage| request.stages.of(stage)).sum();
        assert!(rest > long, "{request:?}");
    }
    for request in of(&requests, FlowRole::Answers) {
        assert_eq!(request.counts.writes, 2);
        assert!(request.length() > long, "{request:?}");
    }
}

#[test]
fn requests__that_overlap__are_marked() {
    let requests = followed(false, || {
        let (address, thread) = server("127.0.0.1:0", |stream, bytes| {
            for byte in bytes {
                thread::sleep(Duration::from_millis(5));
                stream.write_all(&[*byte]).unwrap();
            }
        });
        let mut client = TcpStream::connect(address).unwrap();
        client.set_nodelay(true).unwrap();
        client.write_all(b"12").unwrap();
        for _ in 0..5 {
            client.read_exact(&mut [0]).unwrap();
            client.write_all(b"3").unwrap();
        }
        (0..2).for_each(|_| client.read_exact(&mut [0]).unwrap());
        drop(client);
        thread.join().unwrap();
        address.port()
    });
    let Some(requests) = requests else { return };
    // That a client asks before it is answered shows where it is answered.
    let answered = of(&requests, FlowRole::Answers);
    assert!(answered.iter().any(|request| request.partial.pipelined), "{answered:#?}");
}

#[test]
fn datagrams__of_connected_and_unconnected_sockets__are_followed() {
    for (by_calls, is_connected) in [(false, true), (false, false), (true, true), (true, false)] {
        let requests = followed(by_calls, || {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap();
            let thread = thread::spawn(move || {
                for _ in 0..10 {
                    let (_, from) = server.recv_from(&mut [0; 64]).unwrap();
                    server.send_to(b"answer", from).unwrap();
                }
            });
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            if is_connected {
                client.connect(address).unwrap();
            }
            for _ in 0..10 {
                match is_connected {
                    true => client.send(b"request").unwrap(),
                    false => client.send_to(b"request", address).unwrap(),
                };
                client.recv(&mut [0; 64]).unwrap();
            }
            thread.join().unwrap();
            address.port()
        });
        let Some(requests) = requests else { return };
        // The last one ends when the next one begins.
        let all: Vec<_> =
            requests.iter().filter(|it| it.flow.transport == Transport::Udp).collect();
        assert!(all.len() >= 16, "{by_calls} {is_connected}: {all:#?}");
        for request in &all {
            let is_answered = request.counts.segments_in == 1 && request.counts.reads == 1;
            assert!(is_answered || request.partial.began_before, "{request:?}");
            assert!(!request.partial.pipelined, "{request:?}");
        }
    }
}

#[test]
fn answer__by_another_thread__is_the_time_of_that_thread() {
    let requests = followed(false, || {
        let (give, take) = mpsc::channel::<(TcpStream, u8)>();
        // The worker computes, while the thread that reads waits for the next request.
        let worker = thread::spawn(move || {
            for (mut stream, byte) in take {
                let end = Instant::now() + LONG;
                while Instant::now() < end {}
                stream.write_all(&[byte]).unwrap();
            }
        });
        let (address, thread) = server("127.0.0.1:0", move |stream, bytes| {
            give.send((stream.try_clone().unwrap(), bytes[0])).unwrap();
        });
        let mut client = TcpStream::connect(address).unwrap();
        (0..4).for_each(|_| ask(&mut client, b"x"));
        drop(client);
        thread.join().unwrap();
        worker.join().unwrap();
        address.port()
    });
    let Some(requests) = requests else { return };
    let answered = of(&requests, FlowRole::Answers);
    assert_eq!(answered.len(), 4);
    for request in answered {
        assert!(request.partial.threads, "{request:?}");
        let computes = request.stages.of(FlowStage::Computes);
        let preempted = request.stages.of(FlowStage::Preempted);
        assert!(computes + preempted > LONG.as_nanos() as u64 * 8 / 10, "{request:?}");
    }
}

#[test]
fn files__that_are_sent_and_spliced__are_writes_and_reads() {
    for by_calls in [false, true] {
        let requests = followed(by_calls, || {
            let (address, thread) = server("127.0.0.1:0", echo);
            let mut client = TcpStream::connect(address).unwrap();
            let file = std::fs::File::open("/proc/self/exe").unwrap();
            let (out, into) = rustix::pipe::pipe().unwrap();
            for _ in 0..3 {
                let sent = rustix::fs::sendfile(&client, &file, None, 3_000).unwrap();
                assert_eq!(sent, 3_000);
                let mut rest = sent;
                while rest > 0 {
                    let flags = rustix::pipe::SpliceFlags::empty();
                    let moved = rustix::pipe::splice(&client, None, &into, None, rest, flags);
                    let moved = moved.unwrap();
                    rustix::io::read(&out, &mut vec![0; moved][..]).unwrap();
                    rest -= moved;
                }
            }
            client.flush().unwrap();
            drop(client);
            thread.join().unwrap();
            address.port()
        });
        let Some(requests) = requests else { return };
        let asked = of(&requests, FlowRole::Asks);
        assert_eq!(asked.len(), 3, "{by_calls}: {requests:#?}");
        for request in asked {
            assert_eq!((request.counts.bytes_out, request.counts.bytes_in), (3_000, 3_000));
        }
    }
}

/// Has the kernel do one thing, and waits for it; what comes of it.
fn done(ring: &mut IoUring, what: &io_uring::squeue::Entry) -> i32 {
    // SAFETY: the buffer that it names lives until its completion is here, which is waited for.
    unsafe { ring.submission().push(what) }.unwrap();
    ring.submit_and_wait(1).unwrap();
    ring.completion().next().unwrap().result()
}

#[test]
fn requests__by_io_uring__are_followed() {
    let mut ring = match IoUring::new(4) {
        Ok(ring) => ring,
        Err(error) => {
            let off = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
            assert!(off.is_ok_and(|off| off.trim() != "0"), "io_uring is there: {error}");
            return;
        }
    };
    let requests = followed(false, || {
        let (address, thread) = server("127.0.0.1:0", |stream, bytes| {
            thread::sleep(LONG);
            echo(stream, bytes);
        });
        let client = TcpStream::connect(address).unwrap();
        let socket = types::Fd(client.as_raw_fd());
        let mut bytes = *b"twelve bytes";
        for _ in 0..5 {
            let send = opcode::Send::new(socket, bytes.as_ptr(), 12).build();
            assert_eq!(done(&mut ring, &send), 12);
            let receive = opcode::Recv::new(socket, bytes.as_mut_ptr(), 12).build();
            assert_eq!(done(&mut ring, &receive), 12);
        }
        drop(client);
        thread.join().unwrap();
        address.port()
    });
    let Some(requests) = requests else { return };
    let asked = of(&requests, FlowRole::Asks);
    // Before Linux 6.16 writes are seen as system calls, of which there are none here.
    let sees_sockets = has_tracepoint("tcp_sendmsg_locked");
    assert_eq!(asked.len(), if sees_sockets { 5 } else { 0 }, "{requests:#?}");
    for request in asked {
        assert_eq!((request.counts.bytes_out, request.counts.bytes_in), (12, 12));
        let far = request.stages.of(FlowStage::FarUnacked) + request.stages.of(FlowStage::FarAcked);
        assert!(far > LONG.as_nanos() as u64 / 2, "{request:?}");
    }
}

fn has_tracepoint(name: &str) -> bool {
    let scope = FlowScope::Processes;
    let follower = FlowFollower::open(&scope, FlowDetail::default()).unwrap();
    follower.tracepoints().contains(&name)
}

#[test]
fn histograms__of_all_programs__have_stages_that_add_up_to_the_whole() {
    let scope = FlowScope::Everything(FlowGrouping::Device);
    let mut follower = match FlowFollower::open(&scope, FlowDetail::default()) {
        Ok(follower) => follower,
        Err(error) => {
            assert!(!rustix::process::geteuid().is_root(), "root may follow: {error}");
            return;
        }
    };
    let _cost = FlowFollower::measure_cost().unwrap();
    // What is followed after a pause is added.
    for _ in 0..2 {
        follower.start().unwrap();
        let (address, thread) = server("127.0.0.1:0", echo);
        let mut client = TcpStream::connect(address).unwrap();
        (0..10).for_each(|_| ask(&mut client, b"x"));
        drop(client);
        thread.join().unwrap();
        follower.stop().unwrap();
    }
    let all = follower.histograms().unwrap();
    for role in [FlowRole::Asks, FlowRole::Answers] {
        let of = all.iter().filter(|it| it.role == role && it.group == 1);
        let (whole, stages): (Vec<_>, Vec<_>) = of.partition(|it| it.stage.is_none());
        assert!(whole[0].counts.iter().sum::<u64>() >= 20, "{role:?}: {whole:?}");
        // Counters of one processor are not exact where a softirq interrupts a call.
        let sum: u64 = stages.iter().map(|it| it.sum).sum();
        assert!(sum.abs_diff(whole[0].sum) <= whole[0].sum / 100, "{role:?}: {all:?}");
        assert!(stages.iter().any(|it| it.stage == Some(FlowStage::StackOut)));
    }
    assert!(follower.counts().requests >= 40);
    let runs: u64 = follower.cost().iter().map(|(_, runs, _)| runs).sum();
    assert!(runs > 200, "{runs}");
}
