//! An echo over TCP and UDP, and one with faults on demand, for trying `earmark explain`.
//!
//! ```text
//! echo [PORT [--work-us N] [--sleepy-us N]]
//! ```
//!
//! `--work-us` is a server that works on each request; `--sleepy-us` is one that takes that long to
//! wake up after a millisecond without requests.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread::spawn;
use std::time::{Duration, Instant};

/// After this long without a request, a sleepy server is asleep.
const DOZES_OFF: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Default)]
struct Faults {
    work: Duration,
    sleepy: Duration,
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    let number = |text: Option<String>| {
        text.and_then(|text| text.parse::<u64>().ok()).ok_or_else(|| bad("a number is missing"))
    };
    let mut port = 7;
    let mut faults = Faults::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--work-us" => faults.work = Duration::from_micros(number(arguments.next())?),
            "--sleepy-us" => faults.sleepy = Duration::from_micros(number(arguments.next())?),
            text => port = number(Some(text.to_owned()))? as u16,
        }
    }
    let listener = TcpListener::bind(("0.0.0.0", port))?;
    let socket = UdpSocket::bind(("0.0.0.0", port))?;
    spawn(move || datagrams(&socket, faults));
    for stream in listener.incoming() {
        let stream = stream?;
        spawn(move || serve(stream, faults));
    }
    Ok(())
}

fn serve(mut stream: TcpStream, faults: Faults) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = vec![0; 65_536];
    let mut last = Instant::now();
    loop {
        let length = stream.read(&mut bytes)?;
        if length == 0 {
            return Ok(());
        }
        dally(faults, last);
        stream.write_all(&bytes[..length])?;
        last = Instant::now();
    }
}

fn datagrams(socket: &UdpSocket, faults: Faults) -> io::Result<()> {
    let mut bytes = vec![0; 65_536];
    let mut last = Instant::now();
    loop {
        let (length, from) = socket.recv_from(&mut bytes)?;
        dally(faults, last);
        socket.send_to(&bytes[..length], from)?;
        last = Instant::now();
    }
}

/// Spends time as the faults say, without sleeping: a sleep is never as short as one asks.
fn dally(faults: Faults, last: Instant) {
    let began = Instant::now();
    let asleep = began.duration_since(last) >= DOZES_OFF;
    let length = faults.work + if asleep { faults.sleepy } else { Duration::ZERO };
    while began.elapsed() < length {
        std::hint::spin_loop();
    }
}
