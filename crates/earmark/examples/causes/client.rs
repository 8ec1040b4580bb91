//! Clients that ask in a way of their own.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use base::prng::Prng;
use base::quantiles::nearest_rank;

use crate::server::{ANSWER, compute};

/// Bytes of a record's header, as TLS has it: what a library reads first.
const HEADER: usize = 5;

/// How a request is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ask {
    /// In one write of so many bytes.
    Plain(usize),
    /// In two writes, with Nagle's algorithm.
    Halves,
    /// Computes that long before it reads the answer.
    Late(Duration),
    /// So many bytes, after a pause of that length; the answer is short.
    Idle(usize, Duration),
    /// In two records in two writes, with Nagle's algorithm; an answer's header is read first.
    Records,
    /// Over a connection of its own.
    Connect,
}

impl Ask {
    /// Reads a kind and its numbers, which are bytes or microseconds.
    pub(crate) fn parse(words: &[String]) -> Option<Self> {
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let time = |at| number(at).map(Duration::from_micros);
        Some(match words.first()?.as_str() {
            "plain" => Self::Plain(number(1)? as usize),
            "halves" => Self::Halves,
            "late" => Self::Late(time(1)?),
            "idle" => Self::Idle(number(1)? as usize, time(2)?),
            "records" => Self::Records,
            "connect" => Self::Connect,
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Self::Plain(size) | Self::Idle(size, _) => size,
            _ => ANSWER,
        }
    }

    /// Where the second write of a request begins, if there are two.
    fn cut(self) -> Option<usize> {
        matches!(self, Self::Halves | Self::Records).then_some(40)
    }
}

/// Asks for that long, and prints to standard error what it measured itself.
pub(crate) fn run(to: &str, length: Duration, ask: Ask) -> io::Result<()> {
    let mut stream = connect(to, ask)?;
    let mut random = Prng::new(1);
    let mut bytes = vec![0; ask.size()];
    let mut times = Vec::new();
    let started = Instant::now();
    while started.elapsed() < length {
        match ask {
            Ask::Idle(_, pause) => sleep(pause),
            _ => sleep(Duration::from_micros(1_000 + random.below(2_000))),
        }
        let began = Instant::now();
        if ask == Ask::Connect {
            stream = connect(to, ask)?;
        }
        let cut = ask.cut().unwrap_or(bytes.len());
        stream.write_all(&bytes[..cut])?;
        if cut < bytes.len() {
            stream.write_all(&bytes[cut..])?;
        }
        if let Ask::Late(time) = ask {
            compute(time);
        }
        let header = if ask == Ask::Records { HEADER } else { 0 };
        stream.read_exact(&mut bytes[..header])?;
        let end = if let Ask::Idle(..) = ask { ANSWER } else { bytes.len() };
        stream.read_exact(&mut bytes[header..end])?;
        times.push(began.elapsed().as_nanos());
    }
    times.sort_unstable();
    let us = |per_mille| nearest_rank(&times, per_mille).unwrap_or(0) / 1_000;
    eprintln!("the client itself: p50 {} p99 {} us of {}", us(500), us(990), times.len());
    Ok(())
}

fn connect(to: &str, ask: Ask) -> io::Result<TcpStream> {
    let began = Instant::now();
    loop {
        match TcpStream::connect(to) {
            Ok(stream) => {
                stream.set_nodelay(ask.cut().is_none())?;
                return Ok(stream);
            }
            // The server may be about to start.
            Err(error) if began.elapsed() > Duration::from_secs(10) => return Err(error),
            Err(_) => sleep(Duration::from_millis(20)),
        }
    }
}
