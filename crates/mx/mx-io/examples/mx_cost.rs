//! What a message costs over MX, and over TCP on the same cable: one-way latency of eight bytes,
//! spinning and sleeping, and the bandwidth of messages of 64 KiB; and over MX straight onto a NIC
//! of ours.
//!
//! MX and TCP take turns, so that whatever else the machine does befalls both; each line is one
//! turn, as JSON. Compare the medians of their ratios. The cable is a veth pair without
//! segmentation offload: with it, TCP would move frames of 64 KiB that no Ethernet carries.
//!
//! ```console
//! $ cargo run --release -p earmark-mx-io --example mx_cost -- 5
//! ```
//!
//! A second argument, `spin`, `sleep`, `stream`, `virtio` or `wire`, selects what is measured.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use base::quantiles::nearest_rank;
use bytes::Bytes;
use mx::config::Config;
use mx::ids::PeerId;
use mx::matching::Match;
use mx_io::endpoint::{Endpoint, EndpointOptions, MxError, Progress, WaitMode};
use mx_io::port::Port;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::{Value, json};

#[allow(dead_code, reason = "tests use the rest")]
#[path = "../tests/ports/kinds.rs"]
mod kinds;
#[allow(dead_code, reason = "tests use the rest")]
#[path = "../../../hosts/vhost/tests/ports/nic.rs"]
mod nic_of_tests;
#[allow(dead_code, reason = "tests use the rest")]
#[path = "../../../hosts/vhost/tests/ports/traffic.rs"]
mod traffic;

use kinds::{A, B, PortPair, Veth};

type TestEndpoint = Endpoint<Bytes, Vec<u8>>;
type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Round trips of a measurement, and how many before it are not counted.
const ROUNDS: usize = 20_000;
const WARMUP: usize = 2_000;
const SMALL: usize = 8;
const LARGE: usize = 64 << 10;
/// Messages of a stream, and how many are under way.
const STREAM: usize = 4_000;
const DEPTH: usize = 16;
/// Small messages, one after the other.
const RATE: usize = 500_000;
fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let turns = arguments.next().map_or(Ok(3), |turns| turns.parse());
    let Ok(turns) = turns else {
        eprintln!("mx_cost: use a number of turns, such as 3");
        return ExitCode::FAILURE;
    };
    let part = arguments.next();
    match (0..turns).try_for_each(|turn| measure(turn, part.as_deref())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mx_cost: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(turn: u32, part: Option<&str>) -> Result<(), AnyError> {
    let is_wanted = |name: &str| part.is_none_or(|part| part == name);
    let line = |name: &str, mtu: u16, value: Value| {
        println!("{}", json!({ "turn": turn, "what": name, "mtu": mtu, "value": value }));
    };
    let waits = [("spin", true), ("sleep", false)];
    for (name, spins) in waits.into_iter().filter(|(name, _)| is_wanted(name)) {
        line(&format!("mx {name}"), 1500, mx_latency(&veth(1500), spins)?);
        line(&format!("tcp {name}"), 1500, tcp_latency(&veth(1500), spins)?);
    }
    for mtu in [1500, 9000].into_iter().filter(|_| is_wanted("stream")) {
        line("mx stream", mtu, mx_stream(&veth(mtu), mtu)?);
        line("tcp stream", mtu, tcp_stream(&veth(mtu))?);
    }
    let kinds = [("virtio", kinds::over_polling_nic as fn() -> PortPair), ("wire", kinds::wire)];
    for (kind, make) in kinds.into_iter().filter(|(kind, _)| is_wanted(kind)) {
        // The thread of the NIC stays where it begins.
        pin(1);
        let [latency, rate] = one_thread(make())?;
        line(&format!("{kind} one thread"), 1500, latency);
        line(&format!("{kind} rate"), 1500, rate);
    }
    Ok(())
}

/// Two hosts and a cable that carries what Ethernet carries.
fn veth(mtu: u16) -> Veth {
    let veth = Veth::new(mtu);
    for (host, address) in ["10.87.0.1/24", "10.87.0.2/24"].iter().enumerate() {
        veth.ip(host, &format!("address add {address} dev m0"));
        veth.run(host, "ethtool -K m0 tso off gso off gro off");
    }
    veth
}

fn endpoints(
    veth: &Veth,
    mtu: u16,
    waiting: WaitMode,
) -> Result<(TestEndpoint, TestEndpoint, PeerId), AnyError> {
    let open = |host, number| -> Result<TestEndpoint, AnyError> {
        let port = veth.port(host, number)?;
        let config = Config { mtu, ..Config::default() };
        Ok(TestEndpoint::open(
            Box::new(port),
            config,
            EndpointOptions { progress: Progress::Thread, waiting },
        )?)
    };
    let (a, b) = (open(0, A)?, open(1, B)?);
    let peer = a.connect(b.address(), 0, Duration::from_secs(5))?;
    Ok((a, b, peer))
}

fn mx_latency(veth: &Veth, spins: bool) -> Result<Value, AnyError> {
    let waiting = if spins { WaitMode::Spin } else { WaitMode::Sleep };
    let (a, b, to_b) = endpoints(veth, 1500, waiting)?;
    let took = std::thread::scope(|scope| {
        let mirror = scope.spawn(|| -> Result<(), MxError> {
            pin(1);
            let mut place = vec![0; SMALL];
            for _ in 0..WARMUP + ROUNDS {
                let request = b.irecv(None, Match::ANY, place)?;
                let got = b.wait(request, None)?.expect("waits for ever");
                let from = got.status.peer.expect("messages have a sender");
                place = got.sink.unwrap_or_default();
                let sent = b.isend(from, 0, Bytes::copy_from_slice(&place))?;
                b.forget(sent);
            }
            Ok(())
        });
        pin(0);
        let message = Bytes::from_static(&[7; SMALL]);
        let mut place = vec![0; SMALL];
        let took = rounds(|| -> Result<(), MxError> {
            let request = a.irecv(None, Match::ANY, std::mem::take(&mut place))?;
            let sent = a.isend(to_b, 0, message.clone())?;
            a.forget(sent);
            let got = a.wait(request, None)?;
            place = got.and_then(|got| got.sink).unwrap_or_default();
            Ok(())
        })?;
        mirror.join().expect("the mirror does not panic")?;
        Ok::<_, AnyError>(took)
    })?;
    Ok(percentiles(took))
}

fn tcp_latency(veth: &Veth, spins: bool) -> Result<Value, AnyError> {
    let (mut a, mut b) = tcp(veth, spins)?;
    std::thread::scope(|scope| {
        let mirror = scope.spawn(move || -> std::io::Result<()> {
            pin(1);
            let mut message = [0; SMALL];
            for _ in 0..WARMUP + ROUNDS {
                read(&mut b, &mut message)?;
                b.write_all(&message)?;
            }
            Ok(())
        });
        pin(0);
        let mut message = [7; SMALL];
        let took = rounds(|| -> std::io::Result<()> {
            a.write_all(&message)?;
            read(&mut a, &mut message)
        })?;
        mirror.join().expect("the mirror does not panic")?;
        Ok(percentiles(took))
    })
}

fn tcp(veth: &Veth, spins: bool) -> Result<(TcpStream, TcpStream), AnyError> {
    let listener = veth.enter(1, || TcpListener::bind("10.87.0.2:7000"))?;
    let a = veth.enter(0, || TcpStream::connect("10.87.0.2:7000"))?;
    let (b, _) = listener.accept()?;
    for end in [&a, &b] {
        end.set_nodelay(true)?;
        end.set_nonblocking(spins)?;
    }
    Ok((a, b))
}

/// Reads all of it, spinning if the socket does not block.
fn read(from: &mut TcpStream, mut into: &mut [u8]) -> std::io::Result<()> {
    while !into.is_empty() {
        match from.read(into) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => into = &mut into[count..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn mx_stream(veth: &Veth, mtu: u16) -> Result<Value, AnyError> {
    let (a, b, to_b) = endpoints(veth, mtu, WaitMode::Sleep)?;
    let took = stream(&a, &b, to_b, (LARGE, STREAM, DEPTH))?;
    let (engine, port) = a.counters();
    let mut value = megabytes(took, STREAM * LARGE);
    value["resent"] = json!(engine.resent);
    let (engine, receiver) = b.counters();
    value["asked_again"] = json!(engine.asked_again);
    value["lost_in_the_ring"] = json!(receiver.overrun);
    value["frames_per_call"] = json!(port.frames_out as f64 / port.calls_out.max(1) as f64);
    Ok(value)
}

/// Bytes of a message, how many there are, and how many of them are under way.
type Stream = (usize, usize, usize);

/// How long it takes until all messages have been received.
fn stream(
    a: &TestEndpoint,
    b: &TestEndpoint,
    to_b: PeerId,
    (size, count, depth): Stream,
) -> Result<Duration, AnyError> {
    std::thread::scope(|scope| {
        let begin = Instant::now();
        let receiver = scope.spawn(move || -> Result<(), MxError> {
            pin(1);
            let mut requests = std::collections::VecDeque::new();
            for _ in 0..depth {
                requests.push_back(b.irecv(None, Match::ANY, vec![0; size])?);
            }
            for done in 0..count {
                let request = requests.pop_front().expect("one is always posted");
                let got = b.wait(request, None)?.expect("waits for ever");
                if done + depth < count {
                    requests.push_back(b.irecv(None, Match::ANY, got.sink.unwrap_or_default())?);
                }
            }
            Ok(())
        });
        pin(0);
        let message = Bytes::from(vec![7; size]);
        let mut requests = std::collections::VecDeque::new();
        for _ in 0..count {
            if requests.len() == depth
                && let Some(oldest) = requests.pop_front()
            {
                a.wait(oldest, None)?;
            }
            requests.push_back(a.isend(to_b, 0, message.clone())?);
        }
        receiver.join().expect("the receiver does not panic")?;
        Ok(begin.elapsed())
    })
}

fn tcp_stream(veth: &Veth) -> Result<Value, AnyError> {
    let (mut a, mut b) = tcp(veth, false)?;
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || -> std::io::Result<()> {
            pin(1);
            let mut message = vec![0; LARGE];
            (0..STREAM).try_for_each(|_| b.read_exact(&mut message))
        });
        pin(0);
        let message = vec![7; LARGE];
        (0..STREAM).try_for_each(|_| a.write_all(&message))?;
        receiver.join().expect("the receiver does not panic")?;
        Ok(megabytes(begin.elapsed(), STREAM * LARGE))
    })
}

/// Both endpoints in one thread, and the NIC, if there is one, on the other core; and messages as
/// fast as they go. The wire is a queue in this process, which shows what the engine costs.
fn one_thread(pair: PortPair) -> Result<[Value; 2], AnyError> {
    let open = |port: Box<dyn Port>| {
        let life = EndpointOptions { progress: Progress::Manual, waiting: WaitMode::Spin };
        TestEndpoint::open(port, Config::default(), life)
    };
    let (a, b) = (open(pair.a)?, open(pair.b)?);
    pin(0);
    let connecting = a.iconnect(b.address(), 0, Duration::from_secs(5))?;
    let to_b = loop {
        b.progress()?;
        if let Some(connected) = a.test(connecting)? {
            break connected.status.peer.ok_or("not connected")?;
        }
    };
    let message = Bytes::from_static(&[7; SMALL]);
    let receive = |end: &TestEndpoint| -> Result<(), MxError> {
        let request = end.irecv(None, Match::ANY, vec![0; SMALL])?;
        while end.test(request)?.is_none() {}
        Ok(())
    };
    let mut to_a = None;
    let took = rounds(|| -> Result<(), MxError> {
        a.forget(a.isend(to_b, 0, message.clone())?);
        receive(&b)?;
        let back = *to_a.get_or_insert_with(|| b.peers()[0].0);
        b.forget(b.isend(back, 0, message.clone())?);
        receive(&a)
    })?;
    let latency = percentiles(took);
    let begin = Instant::now();
    let mut received = 0;
    let mut sent = 0;
    let mut posted = std::collections::VecDeque::new();
    while received < RATE {
        while sent < RATE && sent - received < 128 {
            posted.push_back(b.irecv(None, Match::ANY, vec![0; SMALL])?);
            a.forget(a.isend(to_b, 0, message.clone())?);
            sent += 1;
        }
        a.progress()?;
        while let Some(&oldest) = posted.front() {
            if b.test(oldest)?.is_none() {
                break;
            }
            posted.pop_front();
            received += 1;
        }
    }
    let rate = RATE as f64 / begin.elapsed().as_secs_f64();
    Ok([latency, json!({ "messages_per_s": rate })])
}

/// How long half of each round trip took, in nanoseconds.
fn rounds<E: Into<AnyError>>(
    mut round: impl FnMut() -> Result<(), E>,
) -> Result<Vec<u64>, AnyError> {
    for _ in 0..WARMUP {
        round().map_err(Into::into)?;
    }
    let mut took = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        round().map_err(Into::into)?;
        took.push(start.elapsed().as_nanos() as u64 / 2);
    }
    Ok(took)
}

fn percentiles(mut took: Vec<u64>) -> Value {
    took.sort_unstable();
    let at = |per_mille| nearest_rank(&took, per_mille);
    json!({ "p10_ns": at(100), "p50_ns": at(500), "p99_ns": at(990) })
}

fn megabytes(took: Duration, bytes: usize) -> Value {
    json!({ "megabytes_per_s": bytes as f64 / 1e6 / took.as_secs_f64() })
}

/// Keeps this thread on a core, if there is that one.
fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    let _ = sched_setaffinity(None, &set);
}
