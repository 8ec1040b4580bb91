//! IRQ suspension: is a device ready for it, and does a server use it?
//!
//! # Theory of operation
//!
//! Since Linux 6.13 a NAPI instance may leave its interrupts off for as long as a program finds
//! packets by itself (`Documentation/networking/napi.rst`, *IRQ suspension*). It takes three
//! settings of the [instance](Instance) and one of the [poller](Poller), an epoll object of the
//! server. An io_uring may poll (`IORING_REGISTER_NAPI`), but no kernel up to 7.3 suspends for it:
//!
//! - `irq-suspend-timeout`: for how long interrupts stay off at most;
//! - `gro-flush-timeout` and `napi-defer-hard-irqs`: the timer that takes over when the program
//!   finds nothing. Without both, the kernel goes back to interrupts after each poll;
//! - `prefer_busy_poll` (`EPIOCSPARAMS`): the program polls, and wants no interrupts meanwhile.
//!
//! Settings say only that it may happen. Whether it did is counted: packets that programs took by
//! their own polls, and interrupts beside all packets, in a [`Window`]. A [`Verdict`] needs both.
//! The kernel counts such packets by network; who polled which instance ([`Polls`]) is counted at
//! its tracepoint, where this process may.

mod text;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use device::napi::{Direction, Napi, Threaded};
use schemars::JsonSchema;
use serde::Serialize;

use crate::lines::count;
use crate::rates::Rates;
use crate::report::Report;

pub use text::lines;
pub use verdict::{CountedBy, Missing, SuspensionState, Verdict};

/// What is known of suspension on a device, and of programs that could use it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Suspension {
    /// Name of the device.
    pub device: String,
    /// What polls its queues; empty: nothing does, or the kernel is older than 6.8.
    pub instances: Vec<Instance>,
    /// What was counted meanwhile; none where nothing was looked at.
    pub window: Option<Window>,
    /// The pollers whose sockets have packets from this device.
    pub pollers: Vec<Judged>,
}

/// A NAPI instance of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Instance {
    /// Its number, until the device goes down.
    pub id: u32,
    /// The receive queues that it polls; empty where the driver does not say.
    pub queues: Vec<u32>,
    /// Its interrupt; none where the driver does not say.
    pub irq: Option<u32>,
    /// The processors that have this interrupt.
    pub cpus: Vec<u32>,
    /// Empty polls, a timer apart, before interrupts are on again; none before Linux 6.13.
    pub defer_hard_irqs: Option<u32>,
    /// The timer of deferral, in microseconds; none before Linux 6.13.
    pub gro_flush_timeout_us: Option<f64>,
    /// For how long a program that finds packets keeps interrupts off; none before Linux 6.13.
    pub irq_suspend_timeout_us: Option<f64>,
    /// Who polls: `disabled` (the softirq), `enabled` (a kernel thread) or `busy-poll` (one that
    /// never sleeps); none before Linux 6.17.
    #[schemars(with = "Option<String>")]
    pub threaded: Option<Threaded>,
    /// What it lacks; empty: it is ready.
    pub missing: Vec<Missing>,
}

/// A part of a program that waits for packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Poller {
    /// Number of the process.
    pub pid: u32,
    /// Name of the program, as in `/proc/PID/comm`.
    pub program: String,
    /// The descriptor there.
    pub descriptor: u32,
    /// What it is.
    pub kind: PollerKind,
    /// How it polls; none where the kernel does not say.
    pub busy_poll: Option<BusyPoll>,
    /// Sockets that it waits for; none where that cannot be seen.
    pub sockets: Option<usize>,
    /// Those whose last packet came by a NAPI instance: how many, by its number.
    pub napis: BTreeMap<u32, usize>,
}

/// What waits for packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PollerKind {
    /// An epoll object.
    #[default]
    Epoll,
    /// A ring of io_uring.
    IoUring,
}

/// How a poller polls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BusyPoll {
    /// For how many microseconds it does before it sleeps.
    pub usecs: u32,
    /// Packets of one poll, where that is known.
    pub budget: Option<u16>,
    /// Interrupts are to stay off meanwhile.
    pub prefer: bool,
}

/// What was counted while a server worked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Window {
    /// How long it was, in seconds.
    pub seconds: f64,
    /// Packets that the device received.
    pub packets: u64,
    /// Interrupts of the device; none where it has no count of them.
    pub interrupts: Option<u64>,
    /// Packets that programs of this network took by their own polls, of whatever device; none
    /// where the kernel does not count them.
    pub busy_polled: Option<u64>,
    /// Who polled the device's NAPI instances; none where that could not be counted: it takes root,
    /// or `CAP_BPF` and `CAP_PERFMON`, and a kernel with BTF.
    pub polls: Option<Vec<Polls>>,
}

/// Polls of a NAPI instance by one who polls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Polls {
    /// Number of the instance.
    pub napi: u32,
    /// The process that polled, 0 if it is of another PID namespace; none: the polls are those
    /// that no program asks for, after an interrupt, by a timer or by a kernel thread.
    pub pid: Option<u32>,
    /// How often it polled.
    pub polls: u64,
    /// Packets that it took.
    pub packets: u64,
}

/// What was counted of polls, of all devices, while a server worked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Packets that programs of the network took by their own polls; none where the kernel does not
    /// count them.
    pub in_network: Option<u64>,
    /// Who polled which instance, of whatever device; none where that could not be counted.
    pub by_poller: Option<Vec<Polls>>,
}

/// A poller, and whether it suspends the interrupts of an instance.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Judged {
    /// The poller that is judged.
    #[serde(flatten)]
    pub poller: Poller,
    /// The instance by which packets of its sockets came; none: of no instance of this device.
    pub napi: Option<u32>,
    /// What settings and counts say of the two.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl Window {
    /// What rates of a device say, with polls counted beside them.
    pub fn of(rates: &Rates, polled: &Polled) -> Self {
        let count = |rate: f64| (rate * rates.seconds).round() as u64;
        Self {
            seconds: rates.seconds,
            packets: count(rates.rx_packets_per_s),
            interrupts: rates.interrupts_per_s.map(count),
            busy_polled: polled.in_network,
            polls: polled.by_poller.clone(),
        }
    }

    /// Packets that programs took by their own polls: of the device, or, where that was not
    /// counted, of the network.
    pub fn polled(&self) -> Option<u64> {
        let Some(polls) = &self.polls else { return self.busy_polled };
        Some(polls.iter().filter(|it| it.pid.is_some()).map(|it| it.packets).sum())
    }
}

impl Suspension {
    /// Judges a device, and those of `pollers` whose packets come from it.
    pub fn of(report: &Report, pollers: &[Poller], mut window: Option<Window>) -> Self {
        let napis = report.napis.iter().flatten();
        let instances: Vec<Instance> = napis.map(|napi| Instance::of(report, napi)).collect();
        if let Some(polls) = window.as_mut().and_then(|window| window.polls.as_mut()) {
            polls.retain(|it| instances.iter().any(|instance| instance.id == it.napi));
        }
        let judge = |poller: &Poller, instance: &Instance| Judged {
            poller: poller.clone(),
            napi: Some(instance.id),
            verdict: verdict::of(poller, instance, window.as_ref()),
        };
        let mut judged = Vec::new();
        for poller in pollers {
            let own = instances.iter().filter(|it| poller.napis.contains_key(&it.id));
            judged.extend(own.map(|instance| judge(poller, instance)));
        }
        name_shared(&mut judged);
        Self { device: report.name.clone(), instances, window, pollers: judged }
    }

    /// Whether packets of this poller come from it.
    pub fn has(&self, poller: &Poller) -> bool {
        self.instances.iter().any(|it| poller.napis.contains_key(&it.id))
    }
}

/// Says of each poller how many others have the same count: those of the network, or of its process
/// and its instance.
fn name_shared(judged: &mut [Judged]) {
    let key = |it: &Judged| match it.verdict.counted_by? {
        CountedBy::Network => Some((None, None)),
        CountedBy::Process => Some((Some(it.poller.pid), it.napi)),
    };
    let pollers = |of: &Judged| {
        let same = judged.iter().filter(|it| key(it) == key(of));
        same.map(|it| (it.poller.pid, it.poller.descriptor)).collect::<BTreeSet<_>>().len()
    };
    let others: Vec<usize> = judged.iter().map(|it| pollers(it) - 1).collect();
    let counted = judged.iter_mut().zip(others).filter(|(it, _)| it.verdict.counted_by.is_some());
    for (it, others) in counted.filter(|(_, others)| *others > 0) {
        it.verdict.why += &format!("; polls of {} are counted in", count(others, "other poller"));
    }
}

/// A poller whose packets come from no device that was looked at.
pub fn elsewhere(poller: &Poller) -> Judged {
    Judged { poller: poller.clone(), napi: None, verdict: verdict::without_instance(poller) }
}

impl Instance {
    fn of(report: &Report, napi: &Napi) -> Self {
        let queues = report.queues.iter().flatten();
        let own = queues
            .filter(|it| it.direction == Direction::Rx && it.napi == Some(napi.id))
            .map(|it| it.id);
        let vector = report.interrupts.iter().find(|it| Some(it.number) == napi.irq);
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let mut instance = Self {
            id: napi.id,
            queues: own.collect(),
            irq: napi.irq,
            cpus: vector.and_then(|it| it.cpus_effective.clone()).unwrap_or_default(),
            defer_hard_irqs: napi.defer_hard_irqs,
            gro_flush_timeout_us: napi.gro_flush_timeout.map(micros),
            irq_suspend_timeout_us: napi.irq_suspend_timeout.map(micros),
            threaded: napi.threaded,
            missing: Vec::new(),
        };
        instance.missing = verdict::missing(&report.name, &instance);
        instance
    }
}

#[cfg(test)]
mod tests;
