//! Requests over loopback, and what they cost: what `cargo xtask bench explain-cost` traces, and
//! does not, in turns.
//!
//! ```text
//! explain_load FILE SECONDS PER_SECOND
//! ```
//!
//! As many requests in each millisecond as that is, one after the other, to an echo in a thread of
//! its own, both on one processor: with two, what a request costs depends on where the scheduler
//! puts them. Then one line of JSON in `FILE`: requests, seconds, seconds of CPU of both threads,
//! and quantiles.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use base::quantiles::nearest_rank;
use rustix::thread::{CpuSet, sched_getaffinity};
use rustix::time::{ClockId, clock_gettime};

const SIZE: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, file, seconds, per_s] = arguments.as_slice() else {
        return Err("usage: explain_load FILE SECONDS PER_SECOND".into());
    };
    let burst: u32 = per_s.parse::<u32>()? / 1_000;
    let length = Duration::from_secs_f64(seconds.parse()?);
    stay_on_one_processor()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    client.set_nodelay(true)?;
    let server = listener.accept()?.0;
    std::thread::spawn(move || echo(server));
    let (began, cpu_before) = (Instant::now(), cpu());
    let mut times = Vec::new();
    let mut bytes = [0; SIZE];
    let mut next = began;
    while began.elapsed() < length {
        for _ in 0..burst {
            let from = Instant::now();
            client.write_all(&bytes)?;
            client.read_exact(&mut bytes)?;
            times.push(from.elapsed().as_nanos());
        }
        next += Duration::from_millis(1);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    let (took, cpu) = (began.elapsed().as_secs_f64(), cpu() - cpu_before);
    times.sort_unstable();
    let quantile = |per_mille| nearest_rank(&times, per_mille).unwrap_or(0) as f64 / 1e3;
    let line = format!(
        "{{\"requests\": {}, \"seconds\": {took}, \"cpu_s\": {cpu}, \"p50_us\": {}, \"p99_us\": {}}}\n",
        times.len(),
        quantile(500),
        quantile(990),
    );
    Ok(std::fs::write(file, line)?)
}

fn stay_on_one_processor() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu));
    sys::cpu::pin(None, last.ok_or(io::ErrorKind::NotFound)?)
}

fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = [0; SIZE];
    loop {
        stream.read_exact(&mut bytes)?;
        stream.write_all(&bytes)?;
    }
}

/// Seconds of CPU of all threads.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
