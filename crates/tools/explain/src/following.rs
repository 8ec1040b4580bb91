//! Requests while they are followed, and what was seen and missed.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::symbols::Symbols;
use anyhow::Result;
use flows::follower::{FlowDetail, FlowFollower, FlowScope};
use flows::record::TracedRequest;
use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::Serialize;

/// How often records are read: the kernel has room for a few thousand.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// What was followed, and what was not.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Account {
    /// The tracepoints in use.
    pub(crate) tracepoints: Vec<&'static str>,
    /// Tracepoints that this kernel lacks, and what is missing for it.
    pub(crate) missing: Vec<(&'static str, &'static str)>,
    /// Requests that have ended.
    pub(crate) requests: u64,
    /// Of these, those for whose record there was no room.
    pub(crate) lost_records: u64,
    /// Sockets for which there was no room.
    pub(crate) lost_flows: u64,
    /// For how long, in seconds.
    pub(crate) elapsed_s: f64,
    /// CPU time of this process meanwhile, in seconds.
    pub(crate) own_cpu_s: f64,
    /// How often programs of the kernel side have run.
    pub(crate) events: u64,
    /// CPU time that they have taken, in seconds: it is part of that of the programs that are
    /// followed, and of others.
    pub(crate) kernel_cpu_s: f64,
    /// By how much the stages of a request were longer than it at most, in microseconds.
    pub(crate) excess_us: f64,
}

/// Requests, while they are followed.
pub(crate) struct Following {
    follower: FlowFollower,
    began: Instant,
    cpu_before: f64,
    excess: u64,
    /// Names of functions, if stacks were asked for.
    symbols: Option<Symbols>,
    /// The kernel measures what this costs as long as it is there.
    _cost: OwnedFd,
}

impl Following {
    /// Follows those of a scope from now on.
    pub(crate) fn start(scope: &FlowScope, pid: Option<u32>, detail: FlowDetail) -> Result<Self> {
        let mut follower = FlowFollower::open(scope, detail)?;
        if let Some(pid) = pid {
            follower.follow(pid)?;
        }
        let cost = FlowFollower::measure_cost()?;
        follower.start()?;
        let symbols = detail.stacks.then(Symbols::default);
        Ok(Self {
            follower,
            began: Instant::now(),
            cpu_before: cpu_s(),
            excess: 0,
            symbols,
            _cost: cost,
        })
    }

    /// Waits a moment, and shows the requests that have ended since the last time.
    pub(crate) fn step(&mut self, mut each: impl FnMut(TracedRequest)) {
        std::thread::sleep(PAUSE);
        let Self { follower, excess, symbols, .. } = self;
        let mut all = Vec::new();
        follower.read(|request| all.push(request));
        for mut request in all {
            *excess = request.settle().max(*excess);
            if let Some(symbols) = symbols {
                symbols.name(&mut request, |stack| follower.stack(stack));
            }
            each(request);
        }
    }

    /// For how long, in seconds.
    pub(crate) fn elapsed_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Shows the last requests, and ends.
    pub(crate) fn finish(mut self, each: impl FnMut(TracedRequest)) -> Account {
        let elapsed_s = self.elapsed_s();
        self.step(each);
        let (counts, cost) = (self.follower.counts(), self.follower.cost());
        let missing = self.follower.missing().iter().map(|it| (it.tracepoint, it.effect));
        Account {
            tracepoints: self.follower.tracepoints(),
            missing: missing.collect(),
            requests: counts.requests,
            lost_records: counts.lost_records,
            lost_flows: counts.lost_flows,
            elapsed_s,
            own_cpu_s: cpu_s() - self.cpu_before,
            events: cost.iter().map(|(_, runs, _)| runs).sum(),
            kernel_cpu_s: cost.iter().map(|(_, _, nanos)| nanos).sum::<u64>() as f64 / 1e9,
            excess_us: self.excess as f64 / 1e3,
        }
    }
}

/// CPU time of this process so far, in seconds.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
