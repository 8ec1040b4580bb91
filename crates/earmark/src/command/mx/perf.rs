//! `earmark mx perf`: how long a message takes, as `omx_perf` measures it.

use std::time::Instant;

use anyhow::{Result, ensure};
use base::distribution::Distribution;
use base::times::Times;
use bytes::Bytes;
use clap::Args;
use serde::Serialize;

use super::session::{EndArgs, Partner, Session, Task};

use base::quantiles::Quantiles;
use bench::options::bytes;
use report::terminal::{Stream, Width, number};
use report::{json, outln};

#[derive(Args, Debug)]
pub(crate) struct PerfArgs {
    #[command(flatten)]
    at: EndArgs,
    /// The smallest message, in bytes
    #[arg(long, default_value_t = 0, value_name = "BYTES", value_parser = bytes)]
    start: usize,
    /// The largest message, in bytes
    #[arg(long, default_value_t = 4 << 20, value_name = "BYTES", value_parser = bytes)]
    end: usize,
    /// How much larger each size is than the one before
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..))]
    multiply: u32,
    /// One size only, in bytes
    #[arg(long, value_name = "BYTES", value_parser = bytes, conflicts_with_all = ["start", "end", "multiply"])]
    size: Option<usize>,
    /// Round trips of each size
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    iterations: u64,
    /// Round trips before those
    #[arg(long, default_value_t = 10)]
    warmup: u64,
    /// A send ends when its message was received, not before
    #[arg(long)]
    synchronous: bool,
    /// Messages go one way, one at a time
    #[arg(long)]
    unidirectional: bool,
    /// Print the result as JSON
    #[arg(long, requires = "peer")]
    json: bool,
}

/// What was measured with messages of one size.
#[derive(Debug, Serialize)]
struct Row {
    size: usize,
    iterations: u64,
    /// Half a round trip; one way: the time of all messages, divided by their number.
    mean_us: f64,
    /// Not known one way.
    half_round_trip_us: Option<Quantiles>,
    /// Millions of bytes a second, in one direction.
    mb_per_s: f64,
}

/// Measures, or answers those who do.
pub(super) fn run(args: &PerfArgs) -> Result<()> {
    let sizes = args.sizes()?;
    Session::run(&args.at, |session, peer| {
        let columns = columns(Width::of_output());
        if !args.json {
            outln!("{}", columns.header());
        }
        let mut rows = Vec::new();
        for size in sizes {
            let measure = if args.unidirectional { one_way } else { round_trips };
            let row = measure(session, peer, args, size)?;
            if !args.json {
                outln!("{}", columns.row(&row.cells()));
            }
            rows.push(row);
        }
        if args.json { json::print_list("results", &rows) } else { Ok(()) }
    })
}

impl PerfArgs {
    fn sizes(&self) -> Result<Vec<usize>> {
        if let Some(size) = self.size {
            return Ok(vec![size]);
        }
        let Self { start, end, multiply, .. } = self;
        ensure!(start <= end, "--start {start} is larger than --end {end}; swap them");
        let next = |size: &usize| Some(size.saturating_mul(*multiply as usize).max(1));
        Ok(std::iter::successors(Some(*start), next).take_while(|it| it <= end).collect())
    }
}

fn round_trips(session: &Session, peer: &Partner, args: &PerfArgs, size: usize) -> Result<Row> {
    let count = args.warmup + args.iterations;
    let done = session.expect_done(peer)?;
    session.order(peer, &Task { size, count, depth: 0, synchronous: args.synchronous })?;
    let message = Bytes::from(vec![0xa5; size]);
    let mut memory = vec![0; size];
    let mut halves = Times::default();
    let mut sum = 0;
    for round in 0..count {
        let begin = Instant::now();
        let receive = session.post(peer, memory)?;
        let sent = session.send(peer, message.clone(), args.synchronous)?;
        memory = session.wait(peer, receive)?.sink.unwrap_or_default();
        let nanos = begin.elapsed().as_nanos() as u64 / 2;
        session.wait(peer, sent)?;
        if round >= args.warmup {
            halves.record(nanos);
            sum += nanos;
        }
    }
    session.wait(peer, done)?;
    let mean_us = sum as f64 / args.iterations as f64 / 1e3;
    let half_round_trip_us = Quantiles::of(&Distribution::of(&halves, 1));
    let mb_per_s = size as f64 / mean_us;
    Ok(Row { size, iterations: args.iterations, mean_us, half_round_trip_us, mb_per_s })
}

fn one_way(session: &Session, peer: &Partner, args: &PerfArgs, size: usize) -> Result<Row> {
    let mut seconds = 0.0;
    for count in [args.warmup, args.iterations] {
        let task = Task { size, count, depth: 1, synchronous: args.synchronous };
        seconds = session.send_all(peer, &task)?;
    }
    let mean_us = seconds * 1e6 / args.iterations as f64;
    let mb_per_s = size as f64 / mean_us;
    Ok(Row { size, iterations: args.iterations, mean_us, half_round_trip_us: None, mb_per_s })
}

impl Row {
    fn cells(&self) -> [String; 5] {
        let Self { size, mean_us, mb_per_s, .. } = self;
        let [median, p99] = [|it: Quantiles| it.p50, |it: Quantiles| it.p99]
            .map(|of| number(self.half_round_trip_us.map(of), 2));
        [size.to_string(), format!("{mean_us:.2}"), median, p99, format!("{mb_per_s:.1}")]
    }
}

fn columns(width: Width) -> Stream {
    let headers = ["bytes", "mean us", "p50 us", "p99 us", "MB/s"];
    Stream::new(headers.map(|header| (header, 0, 10)), width)
}
