//! Servers that answer each request in a way of their own.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use base::prng::Prng;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};

/// After this long without a request, a server that wakes up late is asleep.
const DOZES_OFF: Duration = Duration::from_millis(1);

/// Bytes of a short answer.
pub(crate) const ANSWER: usize = 100;

/// What a server does with each request before it answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Serve {
    /// Nothing but the answer.
    Echo,
    /// Sleeps that long.
    Sleep(Duration),
    /// Sleeps for a random time with that mean, exponentially distributed.
    Random(Duration),
    /// Sleeps that long for one request of a hundred.
    Rare(Duration),
    /// Computes that long.
    Compute(Duration),
    /// Computes that long, if there was no request for a millisecond.
    WakeLate(Duration),
    /// Waits for a lock that another thread holds that long, and leaves free for the second time.
    Lock(Duration, Duration),
    /// All its threads stop for the first time, once in the second one, as for a garbage collector.
    Collect(Duration, Duration),
    /// Answers in two writes, with Nagle's algorithm.
    Halves,
    /// Answers when so many bytes have come, with 100 at most.
    Need(usize),
    /// Has buffers of so many bytes.
    Small(usize),
    /// Has small buffers, and comes for what is there only after that time.
    ReadLate(Duration),
}

impl Serve {
    /// Reads a kind and its numbers, which are microseconds or bytes.
    pub(crate) fn parse(words: &[String]) -> Option<Self> {
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let time = |at| number(at).map(Duration::from_micros);
        Some(match words.first()?.as_str() {
            "echo" => Self::Echo,
            "sleep" => Self::Sleep(time(1)?),
            "random" => Self::Random(time(1)?),
            "rare" => Self::Rare(time(1)?),
            "compute" => Self::Compute(time(1)?),
            "wake-late" => Self::WakeLate(time(1)?),
            "lock" => Self::Lock(time(1)?, time(2)?),
            "collect" => Self::Collect(time(1)?, time(2)?),
            "halves" => Self::Halves,
            "need" => Self::Need(number(1)? as usize),
            "small" => Self::Small(number(1)? as usize),
            "read-late" => Self::ReadLate(time(1)?),
            _ => return None,
        })
    }
}

/// What the threads of a server share.
struct Shared {
    serve: Serve,
    lock: Mutex<()>,
    world: RwLock<()>,
}

/// Serves until it is killed.
pub(crate) fn run(port: u16, serve: Serve) -> io::Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", port))?;
    let shared = Arc::new(Shared { serve, lock: Mutex::new(()), world: RwLock::new(()) });
    let other = Arc::clone(&shared);
    thread::spawn(move || disturb(&other));
    for stream in listener.incoming() {
        let (stream, shared) = (stream?, Arc::clone(&shared));
        thread::spawn(move || answer(stream, &shared));
    }
    Ok(())
}

/// Holds what the others want, again and again.
fn disturb(shared: &Shared) {
    match shared.serve {
        Serve::Lock(holds, leaves) => loop {
            let held = shared.lock.lock();
            compute(holds);
            drop(held);
            sleep(leaves);
        },
        Serve::Collect(stops, each) => loop {
            sleep(each.saturating_sub(stops));
            let stopped = shared.world.write();
            compute(stops);
            drop(stopped);
        },
        _ => {}
    }
}

fn answer(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let serve = &shared.serve;
    stream.set_nodelay(*serve != Serve::Halves)?;
    let small = match serve {
        Serve::Small(bytes) => Some(*bytes),
        Serve::ReadLate(_) => Some(2_048),
        _ => None,
    };
    if let Some(bytes) = small {
        set_socket_recv_buffer_size(&stream, bytes)?;
        set_socket_send_buffer_size(&stream, bytes)?;
    }
    let mut random = Prng::new(7);
    let room = if let Serve::Need(bytes) = serve { *bytes } else { 65_536 };
    let (mut bytes, mut last) = (vec![0; room], Instant::now());
    loop {
        if let Serve::ReadLate(time) = serve {
            sleep(*time);
        }
        let length = match serve {
            Serve::Need(bytes_needed) => {
                stream.read_exact(&mut bytes[..*bytes_needed])?;
                *bytes_needed
            }
            _ => stream.read(&mut bytes)?,
        };
        if length == 0 {
            return Ok(());
        }
        work(shared, last, &mut random);
        let length = if matches!(serve, Serve::Need(_)) { length.min(ANSWER) } else { length };
        let halves = if *serve == Serve::Halves { length / 2 } else { 0 };
        for part in [&bytes[..halves], &bytes[halves..length]] {
            if !part.is_empty() {
                stream.write_all(part)?;
            }
        }
        last = Instant::now();
    }
}

/// What comes before an answer.
fn work(shared: &Shared, last: Instant, random: &mut Prng) {
    match shared.serve {
        Serve::Sleep(time) => sleep(time),
        Serve::Random(mean) => {
            // In (0, 1], as the logarithm needs it.
            let share = (random.below(1 << 32) + 1) as f64 / f64::from(1_u32 << 31) / 2.0;
            sleep(mean.mul_f64(-share.ln()));
        }
        Serve::Rare(time) if random.below(100) == 0 => sleep(time),
        Serve::Compute(time) => compute(time),
        Serve::WakeLate(time) if last.elapsed() >= DOZES_OFF => compute(time),
        Serve::Lock(..) => drop(shared.lock.lock()),
        Serve::Collect(..) => drop(shared.world.read()),
        _ => {}
    }
}

/// Keeps a processor busy.
pub(crate) fn compute(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Takes what comes and answers nothing.
pub(crate) fn sink(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", port))?;
    let socket = UdpSocket::bind(("0.0.0.0", port))?;
    thread::spawn(move || {
        let mut bytes = [0; 2_048];
        while socket.recv(&mut bytes).is_ok() {}
    });
    for stream in listener.incoming() {
        let mut stream = stream?;
        thread::spawn(move || io::copy(&mut stream, &mut io::sink()));
    }
    Ok(())
}

/// Sends datagrams of so many bytes, `per_s` a second, or as fast as it can if that is 0.
pub(crate) fn flood(to: &str, size: usize, per_s: u64) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(to)?;
    let (bytes, began, mut sent) = (vec![0; size], Instant::now(), 0_u64);
    loop {
        // Where nothing listens any more, every other one is refused.
        let _ = socket.send(&bytes);
        sent += 1;
        let due = (sent * 1_000_000_000).checked_div(per_s).map(Duration::from_nanos);
        sleep(due.unwrap_or_default().saturating_sub(began.elapsed()));
    }
}

/// Sends without end over TCP.
pub(crate) fn bulk(to: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect(to)?;
    let bytes = vec![0; 65_536];
    loop {
        stream.write_all(&bytes)?;
    }
}
