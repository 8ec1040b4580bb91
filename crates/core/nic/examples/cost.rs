//! What a packet costs: the loops that `cargo xtask bench` counts and times.
//!
//! ```text
//! cost count WORK SETTING FRAME PACKETS     does WORK for so many packets; count from outside
//! cost time WORK SETTING FRAME SECONDS      prints: packets, then nanoseconds
//! ```
//!
//! WORK is `loop` (nothing, to subtract), `classify` (headers and rules), `moderate` (vector and
//! strategy), `both`, or `port` (all of it, with ring, poll and re-arm). FRAME is the length of a
//! TCP segment over IPv4 with PSH set, or `mixed`: three of 1514 bytes for each of 66, in no order
//! that a branch predictor could learn. Rules are `tcp-psh & length<=512`.

use std::hint::black_box;
use std::process::ExitCode;

use nic::descriptor::Descriptor;
use nic::headers;
use nic::marker::Rules;
use nic::moderation::{Moderation, Unseen};
use nic::port::{Port, PortSettings};
use nic::prng::Prng;
use nic::time::{Duration, Instant};
use nic::vector::Vector;

const RULES: &str = "tcp-psh & length<=512";
const SHORT: usize = 66;
const LONG: usize = 1_514;
/// Packets come a microsecond apart.
const GAP: Duration = Duration::from_micros(1);
const BUDGET: usize = 64;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("cost: {problem}; the first lines of cost.rs say how to call it");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let [action, work, setting, frame, amount] = arguments else {
        return Err("five arguments, please".into());
    };
    let moderation: Moderation = setting.parse().map_err(|e| format!("{setting}: {e}"))?;
    let rules: Rules = black_box(RULES).parse().map_err(|e| format!("{RULES}: {e}"))?;
    let amount: u64 = amount.parse().map_err(|e| format!("{amount}: {e}"))?;
    let mut bench = Bench::new(frames(frame)?, moderation, rules);
    let step: fn(&mut Bench, u64) = match work.as_str() {
        "loop" => Bench::nothing,
        "classify" => Bench::classify,
        "moderate" => Bench::moderate,
        "both" => Bench::both,
        "port" => Bench::port,
        _ => return Err(format!("{work}: no such work")),
    };
    match action.as_str() {
        "count" => step(&mut bench, amount),
        "time" => {
            let (packets, nanos) = time(&mut bench, step, amount);
            println!("{packets} {nanos}");
        }
        _ => return Err(format!("{action}: no such action")),
    }
    Ok(())
}

/// Repeats `step` for so many seconds: how many packets, in how many nanoseconds.
fn time(bench: &mut Bench, step: fn(&mut Bench, u64), seconds: u64) -> (u64, u128) {
    const BATCH: u64 = 100_000;
    let started = std::time::Instant::now();
    let mut packets = 0;
    loop {
        step(bench, BATCH);
        packets += BATCH;
        let elapsed = started.elapsed();
        if elapsed.as_secs() >= seconds {
            return (packets, elapsed.as_nanos());
        }
    }
}

/// The frames of a run; their number is a power of two.
fn frames(kind: &str) -> Result<Vec<Vec<u8>>, String> {
    if kind == "mixed" {
        let mut random = Prng::new(1);
        let length = |short: bool| if short { SHORT } else { LONG };
        return Ok((0..1_024).map(|_| segment(length(random.below(4) == 0))).collect());
    }
    let length = kind.parse().map_err(|e| format!("{kind}: {e}"))?;
    if !(54..=LONG).contains(&length) {
        return Err(format!("{length}: frames have 54 to {LONG} bytes"));
    }
    Ok(vec![segment(length)])
}

/// A TCP segment over IPv4 with ACK and PSH, without options, filled up to `length` bytes.
fn segment(length: usize) -> Vec<u8> {
    let mut frame = vec![0; length];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0]);
    frame[16..18].copy_from_slice(&((length - 14) as u16).to_be_bytes());
    frame[18..34].copy_from_slice(&[0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..38].copy_from_slice(&[0x9c, 0x40, 0x2b, 0xcb]);
    frame[46..48].copy_from_slice(&[0x50, 0x18]);
    frame
}

struct Bench {
    frames: Vec<Vec<u8>>,
    next: usize,
    now: Instant,
    rules: Rules,
    vector: Vector,
    port: Port<Vec<u8>>,
    /// Frame memory to use again; a data plane has a pool, too.
    pool: Vec<Vec<u8>>,
}

impl Bench {
    fn new(frames: Vec<Vec<u8>>, moderation: Moderation, rules: Rules) -> Self {
        let now = Instant::ZERO;
        let settings = PortSettings { moderation, rules: rules.clone(), ..Default::default() };
        let pool = frames.iter().cycle().take(1_024.max(frames.len())).cloned().collect();
        Self {
            frames,
            next: 0,
            now,
            rules,
            vector: Vector::new(moderation, now),
            port: Port::new(settings, now),
            pool,
        }
    }

    /// Advances time and returns the index of the next frame.
    #[inline(always)]
    fn tick(&mut self) -> usize {
        self.now += GAP;
        self.next = (self.next + 1) & (self.frames.len() - 1);
        self.next
    }

    #[inline(never)]
    fn nothing(&mut self, packets: u64) {
        for _ in 0..packets {
            let at = self.tick();
            black_box(&self.frames[at][..]);
        }
    }

    #[inline(never)]
    fn classify(&mut self, packets: u64) {
        for _ in 0..packets {
            let at = self.tick();
            black_box(marked(&self.rules, black_box(&self.frames[at])));
        }
    }

    #[inline(never)]
    fn moderate(&mut self, packets: u64) {
        for _ in 0..packets {
            let at = self.tick();
            let length = self.frames[at].len();
            decide(&mut self.vector, self.now, length, black_box(length == SHORT));
        }
    }

    #[inline(never)]
    fn both(&mut self, packets: u64) {
        for _ in 0..packets {
            let at = self.tick();
            let frame = black_box(&self.frames[at][..]);
            let marked = marked(&self.rules, frame);
            decide(&mut self.vector, self.now, frame.len(), marked);
        }
    }

    #[inline(never)]
    fn port(&mut self, packets: u64) {
        let Self { port, pool, .. } = self;
        for _ in 0..packets {
            self.now += GAP;
            // The pool is larger than a delay is long, so it is never empty for good.
            let Some(frame) = pool.pop() else { panic!("the host never polled") };
            if let Err(drop) = port.receive(self.now, frame) {
                pool.push(drop.into_frame());
            }
            port.advance(self.now, &mut ());
            let queue = &mut port.queues_mut()[0];
            if queue.take_interrupt() {
                let mut take = |_: &_, frame| pool.push(frame);
                while queue.poll(self.now, BUDGET, &mut (), &mut take) == BUDGET {}
                queue.rearm(self.now, &mut ());
            }
        }
    }
}

#[inline(always)]
fn marked(rules: &Rules, frame: &[u8]) -> bool {
    headers::parse(frame).as_ref().is_ok_and(|headers| rules.classify(headers).mark)
}

/// One packet from its arrival to the decision; a host that polls at once and leaves nothing.
#[inline(always)]
fn decide(vector: &mut Vector, now: Instant, length: usize, marked: bool) {
    let descriptor =
        Descriptor { length: length as u32, marked, arrived_at: now, completed_at: now };
    vector.packet_arrived(now, &descriptor);
    let raised = vector.dma_completed(now, &descriptor, 0).is_some();
    // Short-circuit: a raised interrupt has masked the vector, its timer does not run.
    if raised || vector.advance(now).is_some() {
        black_box(vector.rearm(now, &Unseen::of([], 0)));
    }
}
