//! Which causes the requests of a part have.

use std::collections::BTreeMap;

use base::quantiles::nearest_rank;
use flows::record::{FlowStage, LongestBlock, Stages, TracedRequest};

use super::ranked::{HostStage, Ranked, RankedRequest};
use super::text;
use super::verdict::{Acquitted, CauseGroup, PartVerdict, RequestVerdict};
use super::{ACCOUNTED, Facts, FlowCause, Side};
use crate::evidence::Far;

/// A cause is named if it has this share of the time, or the most of all.
const NAMED: f64 = 0.2;
/// What this host does to receive: a processor that is busy with interrupts, packets or programs
/// makes all of them longer.
const RECEIVING: [FlowStage; 4] =
    [FlowStage::Softirq, FlowStage::StackIn, FlowStage::WakeUp, FlowStage::Preempted];
/// One of these that has this share of their time is the cause by itself.
const ALONE: f64 = 0.8;
/// So many causes of a part are named at most.
const MOST_NAMED: usize = 3;
/// A stage is acquitted if no request has more of it than this share of a typical request.
const ACQUITTED: f64 = 0.1;
/// The slowest requests have causes of their own if they take so many times a typical one.
pub(crate) const SLOWER: f64 = 1.5;

/// What references show of typical requests holds of others that take hardly longer: typical ones
/// have this share of their far time.
const USUAL: f64 = 0.8;

/// Linux delays an acknowledgement by 40 ms at least, once it does (`TCP_DELACK_MIN`); less the
/// resolution of its timer, in microseconds.
const DELAYED_ACK_US: f64 = 35_000.0;
/// The least retransmission timeout of Linux (`TCP_RTO_MIN`), in microseconds.
const RTO_MIN_US: f64 = 200_000.0;
/// After that long a first packet is sent again (`TCP_TIMEOUT_INIT`), in microseconds.
const SYN_TIMEOUT_US: f64 = 1e6;
/// The slow-start threshold of a connection that has lost nothing (`TCP_INFINITE_SSTHRESH`).
const NO_SSTHRESH: u32 = 0x7fff_ffff;

impl RequestVerdict {
    /// Judges all parts.
    pub fn new(ranked: &Ranked, facts: &Facts) -> Self {
        let typical = RequestPart::new(ranked.typical().iter().collect());
        let judge = |part: &RequestPart, beside: Option<&RequestPart>| part.judge(beside, facts);
        let beside = Some(&typical);
        Self {
            typical: judge(&typical, None),
            mean: judge(&RequestPart::new(ranked.all().iter().collect()), beside),
            slowest: judge(&RequestPart::new(ranked.slowest().iter().collect()), beside),
            acquitted: acquitted(ranked, typical.total_us, facts),
            pipelined: ranked.all().iter().filter(|it| it.request.partial.pipelined).count(),
        }
    }
}

fn acquitted(ranked: &Ranked, typical_us: f64, facts: &Facts) -> Vec<Acquitted> {
    let most = |at| ranked.all().iter().map(|it| it.of(at)).max();
    let stages = HostStage::all().filter(|at| at.stage != FlowStage::Unaccounted);
    let short = stages.filter_map(|at| {
        let at_most_us = most(at)? as f64 / 1e3;
        let is_no_hold = at == HostStage::near(FlowStage::Hold) && !facts.own_hold.may_be(1.0);
        let is_there = at_most_us > 0.0 || is_no_hold;
        (is_there && at_most_us < ACQUITTED * typical_us).then_some(Acquitted { at, at_most_us })
    });
    short.collect()
}

/// Whether the program is blocked by itself.
fn is_block(stage: FlowStage) -> bool {
    matches!(stage, FlowStage::Lock | FlowStage::Disk | FlowStage::Sleep | FlowStage::Blocked)
}

/// Whether it is what this host does to receive.
fn receives(at: HostStage) -> bool {
    !at.far && RECEIVING.contains(&at.stage)
}

/// What takes the time that neither host has a request: its way, and NICs that hold it.
fn wire(us: f64, facts: &Facts) -> Vec<FlowCause> {
    match facts.far {
        Some(Far::RemoteHold) => vec![FlowCause::FarHold],
        Some(Far::SleepyMachine) => vec![FlowCause::FarAsleep],
        Some(Far::Way) => vec![FlowCause::Way],
        _ => {
            let may_hold = facts.far_hold_up_to_us.is_none_or(|up_to| up_to >= us / 2.0);
            let far = may_hold.then_some(FlowCause::FarHold);
            let own = facts.own_hold.may_be(us / 2.0).then_some(FlowCause::Hold);
            [Some(FlowCause::Way), far, own].into_iter().flatten().collect()
        }
    }
}

/// The stages of a request, by their causes: several that have one are together in the first.
fn by_cause(request: &TracedRequest) -> Stages {
    let mut stages = request.stages;
    let us = |stage| request.stages.of(stage) as f64 / 1e3;
    let min_rtt_us = request.tcp.and_then(|tcp| tcp.min_rtt_us).map_or(0.0, f64::from);
    // The rest came a round trip after our acknowledgement, which was delayed: it waited for it.
    let rest_acked = us(FlowStage::RestAcked);
    let waited = us(FlowStage::RestUnacked) >= DELAYED_ACK_US
        && rest_acked > 0.0
        && rest_acked <= 2.0 * min_rtt_us + 2_000.0;
    let rest = if waited { FlowStage::RestUnacked } else { FlowStage::FarUnacked };
    for from in [FlowStage::RestAcked, FlowStage::RestUnacked] {
        stages.shift(from, rest, u64::MAX);
    }
    // A delayed acknowledgement long before the answer says that the request had come long before.
    let (unacked, acked) = (us(FlowStage::FarUnacked), us(FlowStage::FarAcked));
    let is_delayed = unacked >= DELAYED_ACK_US && min_rtt_us < unacked / 4.0;
    if is_delayed && acked > unacked / 10.0 {
        let waited = ((unacked - min_rtt_us) * 1e3) as u64;
        stages.shift(FlowStage::FarUnacked, FlowStage::FarAcked, waited);
    }
    stages
}

/// Some requests, and what they take on average.
struct RequestPart<'a> {
    requests: Vec<&'a RankedRequest>,
    /// The same as the far host has followed them, if it has.
    far: Option<Box<Self>>,
    total_us: f64,
    /// Microseconds of each, as [`by_cause`] has them.
    stages: Vec<(HostStage, f64)>,
}

impl<'a> RequestPart<'a> {
    fn new(requests: Vec<&'a RankedRequest>) -> Self {
        let mean_us = |sum: u64| sum as f64 / requests.len().max(1) as f64 / 1e3;
        let causes: Vec<Stages> = requests.iter().map(|it| by_cause(&it.request)).collect();
        let far: Vec<&RankedRequest> = requests.iter().filter_map(|it| it.far.as_deref()).collect();
        let far = (!far.is_empty()).then(|| Box::new(Self::new(far)));
        let of = |at: HostStage| match &far {
            Some(far) if at.far => far.us(at.stage),
            None if at.far => 0.0,
            _ => mean_us(causes.iter().map(|stages| stages.of(at.stage)).sum()),
        };
        let stages = HostStage::all().map(|at| (at, of(at))).filter(|(_, us)| *us > 0.0).collect();
        let total_us = mean_us(requests.iter().map(|it| it.total()).sum());
        Self { requests, far, total_us, stages }
    }

    /// Microseconds of a stage of this host.
    fn us(&self, stage: FlowStage) -> f64 {
        let at = HostStage::near(stage);
        self.stages.iter().find(|(it, _)| *it == at).map_or(0.0, |(_, us)| *us)
    }

    /// What receives on this host, if it takes more of this than any other stage and no stage of it
    /// does so alone: together that is one cause. `weight` is how much of a stage counts.
    fn receiving(&self, weight: impl Fn(HostStage, f64) -> f64) -> Option<Vec<(HostStage, f64)>> {
        let known = self.stages.iter().filter(|(at, _)| at.stage != FlowStage::Unaccounted);
        let (ours, others): (Vec<_>, Vec<_>) = known.copied().partition(|(at, _)| receives(*at));
        let most = |of: &[(HostStage, f64)]| {
            of.iter().map(|(at, us)| weight(*at, *us)).fold(0.0, f64::max)
        };
        let sum: f64 = ours.iter().map(|(at, us)| weight(*at, *us)).sum();
        let is_one =
            sum > most(&others) && most(&others) > most(&ours) && most(&ours) < ALONE * sum;
        is_one.then_some(ours)
    }

    /// Its causes, by what it takes more than typical requests, if that is much.
    fn judge(&self, typical: Option<&Self>, facts: &Facts) -> PartVerdict {
        let total_us = self.total_us.max(1e-3);
        let unaccounted = |(at, us): &(HostStage, f64)| {
            if at.stage == FlowStage::Unaccounted { *us } else { 0.0 }
        };
        let accounted = 1.0 - self.stages.iter().map(unaccounted).sum::<f64>() / total_us;
        let beside = typical.filter(|it| total_us >= SLOWER * it.total_us);
        let us_of = |part: &Self, at| {
            part.stages.iter().find(|(it, _)| *it == at).map_or(0.0, |(_, us)| *us)
        };
        let weight = |at, us: f64| us - beside.map_or(0.0, |it| us_of(it, at));
        let whole = total_us - beside.map_or(0.0, |it| it.total_us);
        let receiving = self.receiving(weight);
        let mut stages = self.stages.clone();
        stages.retain(|(at, _)| {
            at.stage != FlowStage::Unaccounted && !(receiving.is_some() && receives(*at))
        });
        stages.sort_by(|a, b| weight(b.0, b.1).total_cmp(&weight(a.0, a.1)));
        let first = receiving.map(|stages| self.together(&stages, facts));
        let is_named = |(place, (at, us)): &(usize, (HostStage, f64))| {
            *place == 0 && first.is_none() || weight(*at, *us) >= NAMED * whole
        };
        let named = stages.into_iter().enumerate().filter(is_named);
        let named = named.map(|(_, (at, us))| self.of_stage(at, us, typical, facts));
        let causes = first.iter().cloned().chain(named).take(MOST_NAMED);
        PartVerdict {
            requests: self.requests.len(),
            total_us: self.total_us,
            accounted,
            causes: if accounted < ACCOUNTED { Vec::new() } else { causes.collect() },
        }
    }

    /// The stages that receive on this host, as one cause.
    fn together(&self, stages: &[(HostStage, f64)], facts: &Facts) -> CauseGroup {
        let us = stages.iter().map(|(_, us)| us).sum();
        let each = stages.iter().map(|(at, us)| format!("{} {}", at.name(), text::time(*us)));
        let seen = each.collect::<Vec<_>>().join(", ");
        self.group(vec![FlowCause::Receiving], us, Some(seen), facts)
    }

    /// The causes of one stage.
    fn of_stage(&self, at: HostStage, us: f64, beside: Option<&Self>, facts: &Facts) -> CauseGroup {
        let Some(far) = self.far.as_ref().filter(|_| at.far) else {
            let (causes, seen) = self.causes(at.stage, us, beside, facts);
            let stack = if is_block(at.stage) { self.stack() } else { Vec::new() };
            return CauseGroup { stack, ..self.group(causes, us, seen, facts) };
        };
        // Nagle's algorithm there waits for what is done here.
        if at.stage == FlowStage::Nagle {
            return self.group(vec![FlowCause::FarNagle], us, None, facts);
        }
        let there = facts.of_far_host();
        let (causes, seen) = far.causes(at.stage, us, None, &there);
        let group = self.group(causes, us, seen, &there);
        text::seen_there(group)
    }

    fn group(
        &self,
        causes: Vec<FlowCause>,
        us: f64,
        seen: Option<String>,
        facts: &Facts,
    ) -> CauseGroup {
        let first = causes[0].side();
        let side = if causes.iter().all(|it| it.side() == first) { first } else { Side::Unknown };
        CauseGroup {
            side,
            us,
            share: us / self.total_us.max(1e-3),
            what: text::what(&causes),
            seen,
            stack: Vec::new(),
            advice: causes.iter().map(|cause| text::advice(*cause, facts)).collect(),
            separates: text::separates(&causes, facts),
            causes,
        }
    }

    /// The causes that a stage may have, and what else was seen.
    fn causes(
        &self,
        stage: FlowStage,
        us: f64,
        beside: Option<&Self>,
        facts: &Facts,
    ) -> (Vec<FlowCause>, Option<String>) {
        let only = |cause| (vec![cause], None);
        match stage {
            FlowStage::Connect => self.connection(us),
            FlowStage::BetweenWrites => only(FlowCause::BetweenWrites),
            FlowStage::StackOut => only(FlowCause::StackOut),
            FlowStage::SendBuffer => only(FlowCause::SendBuffer),
            FlowStage::Nagle => only(FlowCause::Nagle),
            FlowStage::Pacing => only(FlowCause::Pacing),
            FlowStage::CongestionWindow => self.window(facts),
            FlowStage::ReceiverWindow => only(FlowCause::ReceiverWindow),
            FlowStage::Qdisc => only(FlowCause::Qdisc),
            FlowStage::Driver => only(FlowCause::Driver),
            FlowStage::Retransmission => (vec![FlowCause::Loss], Some(self.losses())),
            FlowStage::FarUnacked => self.far(us, beside, facts),
            FlowStage::FarAcked => self.far_acked(us, beside),
            FlowStage::Wire => (wire(us, facts), None),
            FlowStage::RestUnacked | FlowStage::RestAcked => only(FlowCause::FarNagle),
            FlowStage::OutOfOrder => only(self.hole()),
            FlowStage::Hold => only(FlowCause::Hold),
            FlowStage::Deferral => only(FlowCause::Deferral),
            FlowStage::Softirq => only(FlowCause::Softirq),
            FlowStage::StackIn => only(FlowCause::StackIn),
            FlowStage::WakeUp => self.waits_for_processor(FlowCause::WakeUp, facts),
            FlowStage::Preempted => self.waits_for_processor(FlowCause::Preempted, facts),
            FlowStage::Elsewhere => only(FlowCause::Elsewhere),
            FlowStage::Read => only(FlowCause::Read),
            FlowStage::Lock => (vec![FlowCause::Lock], self.call()),
            FlowStage::Disk => (vec![FlowCause::Disk], self.call()),
            FlowStage::Sleep => (vec![FlowCause::Sleep], self.call()),
            FlowStage::Blocked | FlowStage::Unaccounted => (vec![FlowCause::Blocked], self.call()),
            FlowStage::Computes => match facts.frequency {
                Some(share) if share < ACCOUNTED => (
                    vec![FlowCause::Computes, FlowCause::Frequency],
                    Some(format!("processors may have {:.0} % of their frequency", 100.0 * share)),
                ),
                _ => only(FlowCause::Computes),
            },
        }
    }

    /// The median of what requests have, of those that have it.
    fn median(&self, of: impl Fn(&RankedRequest) -> Option<f64>) -> Option<f64> {
        let mut values: Vec<f64> = self.requests.iter().filter_map(|it| of(it)).collect();
        values.sort_by(f64::total_cmp);
        nearest_rank(&values, 500)
    }

    fn min_rtt_us(&self) -> Option<f64> {
        self.median(|it| it.request.tcp?.min_rtt_us.map(f64::from))
    }

    /// The value that most requests have of what `of` makes of their longest blocks.
    fn most<T: Ord>(&self, of: impl Fn(&LongestBlock) -> Option<T>) -> Option<T> {
        let mut counts = BTreeMap::new();
        for value in self.requests.iter().filter_map(|it| of(it.request.block.as_ref()?)) {
            *counts.entry(value).or_insert(0_u32) += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(value, _)| value)
    }

    /// The system call in which most requests are blocked for longest.
    fn call(&self) -> Option<String> {
        let (call, name) = self.most(|block| Some((block.call?, block.name.clone())))?;
        Some(format!("longest in {}", name.unwrap_or_else(|| format!("system call {call}"))))
    }

    /// The stack in which most of them are.
    fn stack(&self) -> Vec<String> {
        let frames = |block: &LongestBlock| Some(block.frames.clone()).filter(|it| !it.is_empty());
        self.most(frames).unwrap_or_default()
    }

    /// A first packet that is not answered is sent again after a second.
    fn connection(&self, us: f64) -> (Vec<FlowCause>, Option<String>) {
        if us >= SYN_TIMEOUT_US {
            let seen = "the first packet was not answered and sent again";
            return (vec![FlowCause::Connection, FlowCause::Loss], Some(seen.to_owned()));
        }
        (vec![FlowCause::Connection], None)
    }

    /// Why the congestion window is small.
    fn window(&self, facts: &Facts) -> (Vec<FlowCause>, Option<String>) {
        let cwnd = self.median(|it| it.request.tcp.map(|tcp| f64::from(tcp.cwnd)));
        let idle_us = self.median(|it| it.idle.map(|nanos| nanos as f64 / 1e3));
        let srtt_us = self.median(|it| it.request.tcp.map(|tcp| f64::from(tcp.srtt_us)));
        let seen =
            |words: &str| Some(format!("{words}; at the end {:.0} segments", cwnd.unwrap_or(0.0)));
        let paused = idle_us.filter(|idle| *idle >= RTO_MIN_US + srtt_us.unwrap_or(0.0));
        if let (Some(idle_us), Some(true) | None) = (paused, facts.slow_start_after_idle) {
            let idle = format!("pauses of {} before requests", text::time(idle_us));
            let mut causes = vec![FlowCause::CwndAfterIdle];
            if facts.slow_start_after_idle.is_none() {
                causes.push(FlowCause::CongestionWindow);
            }
            return (causes, seen(&idle));
        }
        let lost =
            |it: &&&RankedRequest| it.request.tcp.is_some_and(|tcp| tcp.ssthresh < NO_SSTHRESH);
        let cause = if 2 * self.requests.iter().filter(lost).count() > self.requests.len() {
            FlowCause::CwndAfterLoss
        } else {
            FlowCause::CongestionWindow
        };
        (vec![cause], seen("no pause was long enough to reset it"))
    }

    fn losses(&self) -> String {
        let all = self.requests.iter().map(|it| it.request.counts);
        let sum = |of: fn(&flows::record::RequestCounts) -> u32| {
            all.clone().map(|it| of(&it)).sum::<u32>()
        };
        let hit = all.clone().filter(|it| it.timeouts + it.fast_retransmissions > 0).count();
        format!(
            "{hit} of {} requests; {} segments sent again after a timeout, {} before one",
            self.requests.len(),
            sum(|it| it.timeouts),
            sum(|it| it.fast_retransmissions)
        )
    }

    /// What happens beyond this NIC before anything is acknowledged.
    fn far(
        &self,
        us: f64,
        beside: Option<&Self>,
        facts: &Facts,
    ) -> (Vec<FlowCause>, Option<String>) {
        let (own, min_rtt_us) = (facts.own_hold, self.min_rtt_us());
        let seen = min_rtt_us.map(|us| format!("the least round trip was {}", text::time(us)));
        let rare = beside.is_some_and(|it| it.us(FlowStage::FarUnacked) < USUAL * us);
        let mut causes = match facts.far.filter(|far| !rare && *far != Far::Unknown) {
            Some(Far::SlowProgram) => vec![FlowCause::FarProgram],
            Some(Far::ProgramOrHold) => vec![FlowCause::FarProgram, FlowCause::FarHold],
            Some(Far::SleepyProgram | Far::SleepyMachine) => vec![FlowCause::FarAsleep],
            Some(Far::RemoteHold) => vec![FlowCause::FarHold],
            Some(Far::SomeHold) => vec![FlowCause::Hold, FlowCause::FarHold],
            Some(Far::Way) => vec![FlowCause::Way],
            Some(Far::WayOrHold) => vec![FlowCause::Way, FlowCause::FarHold],
            // A connection's first packets are the kernel's alone: the rest is not the way as such.
            Some(Far::Unknown) | None => match min_rtt_us {
                Some(least) if us <= 2.0 * least => vec![FlowCause::Way, FlowCause::FarHold],
                Some(_) => vec![FlowCause::FarProgram, FlowCause::FarAsleep, FlowCause::Way],
                None => vec![
                    FlowCause::FarProgram,
                    FlowCause::FarAsleep,
                    FlowCause::Way,
                    FlowCause::FarHold,
                ],
            },
        };
        if rare && us >= RTO_MIN_US {
            causes.insert(1, FlowCause::FarLoss);
        }
        let fits_hold = causes.contains(&FlowCause::FarHold) && causes.len() > 1;
        if fits_hold && !causes.contains(&FlowCause::Hold) && own.may_be(us / 2.0) {
            causes.push(FlowCause::Hold);
        }
        (causes, seen)
    }

    /// The far side had the request.
    fn far_acked(&self, us: f64, beside: Option<&Self>) -> (Vec<FlowCause>, Option<String>) {
        let rare = beside.is_some_and(|it| it.us(FlowStage::FarAcked) < USUAL * us);
        let mut causes = vec![FlowCause::FarProgram];
        if rare && us >= RTO_MIN_US {
            causes.push(FlowCause::FarLoss);
        }
        (causes, Some("the far kernel had acknowledged the request".to_owned()))
    }

    /// A segment that overtakes others is at most a round trip earlier; one that was lost comes
    /// again after at least that.
    fn hole(&self) -> FlowCause {
        let length = |it: &RankedRequest| {
            let nanos = it.request.stages.of(FlowStage::OutOfOrder);
            (nanos > 0).then_some(nanos as f64 / 1e3)
        };
        let least = self.min_rtt_us().unwrap_or(0.0);
        match self.median(length) {
            Some(us) if us >= least => FlowCause::FarLoss,
            _ => FlowCause::Reordering,
        }
    }

    fn waits_for_processor(
        &self,
        cause: FlowCause,
        facts: &Facts,
    ) -> (Vec<FlowCause>, Option<String>) {
        let waits = [FlowStage::WakeUp, FlowStage::Preempted].map(|stage| self.us(stage));
        let waited_us = waits.iter().sum::<f64>() * self.requests.len() as f64;
        match facts.throttled_us.filter(|us| *us > 0.0) {
            Some(us) => {
                let seen = format!("the program's cgroup was throttled for {}", text::time(us));
                let mut causes = vec![FlowCause::Throttled];
                if us < waited_us / 2.0 {
                    causes.push(cause);
                }
                (causes, Some(seen))
            }
            None => (vec![cause], None),
        }
    }
}
