//! What the cores of this machine cost without a NIC: no rights are needed to measure it.

use std::hint::{black_box, spin_loop};
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use base::quantiles::median;
use serde::Serialize;
use sys::cpu;

use super::spread;
use bench::ratio::Spread;

/// What programs pay, beside packets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CoreCosts {
    /// Nanoseconds from a write until the thread runs that slept in a read of it.
    pub wake_ns: Spread,
    /// Nanoseconds for a read of one byte from a socket that has it.
    pub call_ns: Spread,
    /// Nanoseconds for a byte of packets that caches do not hold, copied into a buffer.
    pub copy_ns_per_byte: Spread,
    /// Nanoseconds until a core sees what another one has written to a cache line. None where one
    /// processor is all there is.
    pub line_ns: Option<Spread>,
}

/// Wake-ups in a round, and how long the thread sleeps before each.
const WAKES: usize = 200;
const ASLEEP: Duration = Duration::from_micros(100);
/// Reads in a round.
const READS: usize = 4_096;
/// Bytes that are copied: the payload of a packet, into a buffer, out of all.
const PACKET: usize = 1_448;
const BUFFER: usize = 64 << 10;
const ALL: usize = 32 << 20;
/// Times that a cache line goes there and back in one go, and how often that is repeated: a go in
/// which a thread lost its processor is none of the median.
const TRIPS: u32 = 100;
const GOES: usize = 200;
/// Looks at a line after which a thread lets others run; as a rule it takes less than ten.
const PATIENCE: u64 = 1_000;

impl CoreCosts {
    /// Measures, so many times.
    pub(super) fn measure(rounds: u32) -> Result<Self> {
        let of = |measure: fn() -> io::Result<f64>| -> Result<Spread> {
            let each = (0..rounds).map(|_| measure()).collect::<io::Result<Vec<_>>>();
            let each = each.context("measure what cores cost; give --rounds fewer")?;
            spread(each.into_iter()).context("nothing was measured; give --rounds 1 or more")
        };
        let is_alone = cpu::allowed().len() < 2;
        Ok(Self {
            wake_ns: of(wake)?,
            call_ns: of(call)?,
            copy_ns_per_byte: of(|| Ok(copy()))?,
            line_ns: if is_alone { None } else { Some(of(|| Ok(line()))?) },
        })
    }
}

/// Runs two threads, each on a processor of its own if there are two; what the first one returns.
fn in_two<T: Send>(one: impl FnOnce() -> T + Send, other: impl FnOnce() + Send) -> T {
    let allowed = cpu::allowed();
    // The last one is no sibling of the first, unless there are but two.
    let places = [allowed.first().copied(), allowed.last().copied()];
    let pin = |place: Option<usize>| {
        if let Some(processor) = place {
            // Threads that the system places do as well.
            let _ = cpu::pin(None, processor);
        }
    };
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(places[1]);
            other();
        });
        let one = scope.spawn(move || {
            pin(places[0]);
            one()
        });
        one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn wake() -> io::Result<f64> {
    let (mut reader, mut writer) = UnixStream::pair()?;
    let began = Instant::now();
    let now = move || began.elapsed().as_nanos() as u64;
    let sent_at = &AtomicU64::new(0);
    let sends = move || {
        for _ in 0..WAKES {
            thread::sleep(ASLEEP);
            sent_at.store(now(), Ordering::Release);
            // The answer says that the time was looked at.
            if writer.write_all(&[0]).and_then(|()| writer.read_exact(&mut [0])).is_err() {
                return;
            }
        }
    };
    let reads = move || -> io::Result<Vec<f64>> {
        let mut byte = [0];
        let mut read = || {
            reader.read_exact(&mut byte)?;
            let waited = now().saturating_sub(sent_at.load(Ordering::Acquire));
            reader.write_all(&byte)?;
            Ok(waited as f64)
        };
        (0..WAKES).map(|_| read()).collect()
    };
    Ok(median(in_two(reads, sends)?).unwrap_or_default())
}

fn call() -> io::Result<f64> {
    let (mut reader, mut writer) = UnixStream::pair()?;
    writer.write_all(&[0; READS])?;
    let mut byte = [0];
    let began = Instant::now();
    for _ in 0..READS {
        reader.read_exact(&mut byte)?;
    }
    Ok(began.elapsed().as_nanos() as f64 / READS as f64)
}

fn copy() -> f64 {
    let all = black_box(vec![1; ALL]);
    let mut buffer = vec![0; BUFFER];
    let began = Instant::now();
    let mut places = (0..BUFFER - PACKET).step_by(PACKET).cycle();
    for packet in all.chunks_exact(PACKET) {
        let place = places.next().unwrap_or(0);
        black_box(&mut buffer)[place..place + PACKET].copy_from_slice(packet);
    }
    began.elapsed().as_nanos() as f64 / (ALL / PACKET * PACKET) as f64
}

fn line() -> f64 {
    /// Alone in its cache line, and in the pair that processors fetch.
    #[repr(align(128))]
    struct Line(AtomicU32);

    let line = Line(AtomicU32::new(0));
    let all = TRIPS * GOES as u32;
    // One makes even numbers odd, the other one odd numbers even.
    let follow = |from: u32| {
        let next = |number: u32| {
            for spins in 1_u64.. {
                if line.0.load(Ordering::Acquire) == number {
                    break;
                }
                // The other one may be without a processor.
                if spins.is_multiple_of(PATIENCE) { thread::yield_now() } else { spin_loop() }
            }
            line.0.store(number + 1, Ordering::Release);
        };
        (from..from + 2 * TRIPS).step_by(2).for_each(next);
    };
    let times: Vec<f64> = in_two(
        || {
            let go = |number: usize| {
                let began = Instant::now();
                follow(2 * TRIPS * number as u32);
                began.elapsed().as_nanos() as f64 / f64::from(2 * TRIPS)
            };
            (0..GOES).map(go).collect()
        },
        || (0..all / TRIPS).for_each(|number| follow(2 * TRIPS * number + 1)),
    );
    median(times).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_costs() {
        let CoreCosts { wake_ns, call_ns, copy_ns_per_byte, line_ns } =
            CoreCosts::measure(1).unwrap();
        for cost in [Some(wake_ns), Some(call_ns), Some(copy_ns_per_byte), line_ns] {
            assert!(cost.is_none_or(|cost| cost.median > 0.0), "{cost:?}");
        }
        assert_eq!(line_ns.is_some(), cpu::allowed().len() > 1);
    }
}
