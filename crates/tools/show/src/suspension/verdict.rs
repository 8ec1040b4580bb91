//! From settings and counts to a verdict.

use device::napi::Threaded;
use schemars::JsonSchema;
use serde::Serialize;

use super::{BusyPoll, Instance, Poller, PollerKind, Window};

/// Something that has to be there before interrupts can be suspended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Missing {
    /// What is missing, and what comes of that.
    pub what: String,
    /// The command that sets it, if one does.
    pub fix: Option<String>,
}

/// Whether a poller suspends the interrupts of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SuspensionState {
    /// All is set, and own polls took a tenth of the packets or more.
    Active,
    /// All is set, and own polls took less than a tenth of the packets.
    HardlyUsed,
    /// All is set, packets came, and none by an own poll.
    Unused,
    /// A setting is missing.
    Unarmed,
    /// It cannot work here.
    Impossible,
    /// The counts do not tell.
    Unknown,
}

impl SuspensionState {
    /// It in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::HardlyUsed => "hardly used",
            Self::Unused => "armed, but not used",
            Self::Unarmed => "not armed",
            Self::Impossible => "impossible here",
            Self::Unknown => "unknown",
        }
    }
}

/// Whose polls were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CountedBy {
    /// Those of the poller's process, of this NAPI instance.
    Process,
    /// Those of all programs in the network, of all devices.
    Network,
}

/// The share of the packets that programs find by themselves, from which on interrupts count as
/// suspended. Suspension changes nothing for the others: interrupts or the timer bring them, as
/// under deferral alone. Below a tenth that goes for nine of ten packets, so what suspension could
/// save of interrupts or latency is a tenth at most, which two measurements of a live server hardly
/// tell apart.
const USED: f64 = 0.1;

/// A state, and what it follows from.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// What it is.
    pub state: SuspensionState,
    /// The share of the packets that were taken by own polls, from 0 to 1; none where settings
    /// decide, or nothing was counted.
    pub polled_share: Option<f64>,
    /// Whose polls these are: `process` (of packets of the NAPI instance) or `network` (of packets
    /// of the device).
    pub counted_by: Option<CountedBy>,
    /// What it follows from.
    pub why: String,
    /// What is missing where it is unarmed.
    pub missing: Vec<Missing>,
}

impl Verdict {
    fn new(state: SuspensionState, why: impl Into<String>) -> Self {
        Self { state, polled_share: None, counted_by: None, why: why.into(), missing: Vec::new() }
    }

    /// It in few words: where interrupts are suspended, for which share of the packets.
    pub fn name(&self) -> String {
        use SuspensionState::{Active, HardlyUsed};
        let name = self.state.name();
        let share = self.polled_share.filter(|_| matches!(self.state, Active | HardlyUsed));
        match share.map(|share| (share * 100.0) as u32) {
            None => name.to_owned(),
            Some(0) => format!("{name}, below 1 %"),
            Some(percent) => format!("{name}, {percent} %"),
        }
    }
}

/// The usual values of `irq-suspend-timeout` and of the two that take over, those of the
/// measurements that came with the former (Linux 6.13).
const SUSPEND: &str = "irq-suspend-timeout 20ms";
const TAKES_OVER: &str = "gro-flush-timeout 20us napi-defer-hard-irqs 2";

const NOT_IN_KERNEL: &str =
    "the kernel has no irq-suspend-timeout of NAPI instances (Linux 6.13 has)";

/// What an instance lacks.
pub(super) fn missing(device: &str, instance: &Instance) -> Vec<Missing> {
    let Some(suspend) = instance.irq_suspend_timeout_us else {
        return vec![Missing { what: NOT_IN_KERNEL.into(), fix: None }];
    };
    let mut missing = Vec::new();
    let mut lacks = |what: &str, settings: &str| {
        let fix = format!("earmark apply {device} {}", own(instance, settings));
        missing.push(Missing { what: what.into(), fix: Some(fix) });
    };
    if suspend == 0.0 {
        lacks("irq-suspend-timeout is 0: interrupts are never suspended", SUSPEND);
    }
    let has_timer = instance.gro_flush_timeout_us.is_some_and(|it| it > 0.0);
    if !has_timer || instance.defer_hard_irqs.unwrap_or(0) == 0 {
        lacks(
            "gro-flush-timeout and napi-defer-hard-irqs are not both set: after each poll of a \
             program the kernel goes back to interrupts",
            TAKES_OVER,
        );
    }
    missing
}

/// Settings of this instance alone where its queue is known, otherwise of all.
fn own(instance: &Instance, settings: &str) -> String {
    let Some(queue) = instance.queues.first() else { return settings.to_owned() };
    let words: Vec<&str> = settings.split(' ').collect();
    let named = words.chunks(2).map(|pair| format!("queue:{queue}:{}", pair.join(" ")));
    named.collect::<Vec<_>>().join(" ")
}

/// What settings and counts say together.
pub(super) fn of(poller: &Poller, instance: &Instance, window: Option<&Window>) -> Verdict {
    if let Some(verdict) = settled(poller, instance) {
        return verdict;
    }
    let Some(window) = window else {
        return Verdict::new(SuspensionState::Unknown, "all is set; nothing was counted");
    };
    counted(poller, instance, window)
}

/// What is known of a poller whose packets come by no instance that was looked at.
pub(super) fn without_instance(poller: &Poller) -> Verdict {
    if poller.kind == PollerKind::IoUring {
        return of_io_uring(poller);
    }
    if poller.napis.is_empty() {
        return Verdict::new(
            SuspensionState::Impossible,
            "no packet of its sockets came by a NAPI instance: over the loopback, by a device \
             without NAPI, or none came yet",
        );
    }
    Verdict::new(
        SuspensionState::Unknown,
        "its packets come by a device that was not looked at, perhaps of another network namespace",
    )
}

/// Of all kernels up to 7.3, none suspends for it: only `fs/eventpoll.c` calls `napi_suspend_irqs`.
fn of_io_uring(poller: &Poller) -> Verdict {
    let polls = match poller.busy_poll {
        Some(BusyPoll { prefer: true, .. }) => {
            "; between polls of its own they stay off for gro-flush-timeout at a time, where \
             napi-defer-hard-irqs is set"
        }
        Some(BusyPoll { usecs: 1.., .. }) => "; it polls, beside interrupts",
        Some(_) => "; nor does it poll (IORING_REGISTER_NAPI)",
        None => "; how it polls, the kernel does not say (Linux 6.9 has)",
    };
    let why = format!("Linux suspends interrupts for epoll objects, not for an io_uring{polls}");
    Verdict::new(SuspensionState::Impossible, why)
}

/// Where settings alone decide.
fn settled(poller: &Poller, instance: &Instance) -> Option<Verdict> {
    if instance.irq_suspend_timeout_us.is_none() {
        return Some(Verdict::new(SuspensionState::Impossible, NOT_IN_KERNEL));
    }
    if instance.threaded == Some(Threaded::BusyPoll) {
        let why = "a kernel thread polls this NAPI instance without a pause (threaded busy-poll), \
                   so its interrupts are off whatever the program does";
        return Some(Verdict::new(SuspensionState::Impossible, why));
    }
    let Some(busy_poll) = poller.busy_poll else {
        let why = "the kernel has no EPIOCGPARAMS (Linux 6.9 has)";
        return Some(Verdict::new(SuspensionState::Impossible, why));
    };
    let mut missing = instance.missing.clone();
    if !busy_poll.prefer {
        let what = "its epoll object does not prefer busy polling: the program sets that by \
                    EPIOCSPARAMS, with prefer_busy_poll; it does for a program that is started \
                    with LD_PRELOAD=/usr/lib/earmark/libearmark-poll.so";
        missing.push(Missing { what: what.into(), fix: None });
    }
    let unarmed = Verdict::new(SuspensionState::Unarmed, "a setting is missing");
    (!missing.is_empty()).then_some(Verdict { missing, ..unarmed })
}

/// Where all is set, and the counts decide.
fn counted(poller: &Poller, instance: &Instance, window: &Window) -> Verdict {
    let seconds = window.seconds;
    let Some(Count { by, polls, polled, packets }) = Count::of(poller, instance, window) else {
        let why = "all is set; the kernel does not count packets of busy polling";
        return Verdict::new(SuspensionState::Unknown, why);
    };
    if packets == 0 {
        let why = format!(
            "all is set; no packet came in {seconds:.1} s: look again under load, for longer with \
             --sample"
        );
        return Verdict::new(SuspensionState::Unknown, why);
    }
    let interrupts = interrupts(window);
    // The count of a network may have packets of other devices.
    let share = (polled as f64 / packets as f64).min(1.0);
    let part = match polled {
        polled if polled >= packets => "all".to_owned(),
        polled => polled.to_string(),
    };
    let programs = match by {
        CountedBy::Process => "this program",
        CountedBy::Network => "programs in this network",
    };
    let looks = looks(poller, polls);
    let (state, why) = if polled == 0 {
        let why = format!(
            "all is set, {packets} packets came in {seconds:.1} s, and no poll of {programs} found \
             one{looks}"
        );
        (SuspensionState::Unused, why)
    } else if share < USED {
        let why = format!(
            "only {part} of {packets} packets came in {seconds:.1} s by polls of {programs}, the \
             others as under deferral alone{looks}"
        );
        (SuspensionState::HardlyUsed, why)
    } else {
        let why =
            format!("{part} of {packets} packets came in {seconds:.1} s by polls of {programs}");
        (SuspensionState::Active, why)
    };
    let why = format!("{why}; {interrupts}");
    Verdict { polled_share: Some(share), counted_by: Some(by), ..Verdict::new(state, why) }
}

/// What was counted of one poller and one instance, as exactly as that was possible.
struct Count {
    by: CountedBy,
    /// How often the process polled the instance, where that is known.
    polls: Option<u64>,
    /// Packets that these polls took, of so many.
    polled: u64,
    packets: u64,
}

impl Count {
    fn of(poller: &Poller, instance: &Instance, window: &Window) -> Option<Self> {
        let Some(polls) = &window.polls else {
            let (polled, packets) = (window.busy_polled?, window.packets);
            return Some(Self { by: CountedBy::Network, polls: None, polled, packets });
        };
        let all = polls.iter().filter(|it| it.napi == instance.id);
        let own = all.clone().find(|it| it.pid == Some(poller.pid));
        Some(Self {
            by: CountedBy::Process,
            polls: Some(own.map_or(0, |it| it.polls)),
            polled: own.map_or(0, |it| it.packets),
            packets: all.map(|it| it.packets).sum(),
        })
    }
}

fn interrupts(window: &Window) -> String {
    match window.interrupts {
        None => "the device has no count of its interrupts".to_owned(),
        Some(0) => "no interrupt came".into(),
        Some(count) => {
            let each = window.packets as f64 / count as f64;
            format!(
                "{count} interrupts came, those for sent packets included: {each:.1} packets each"
            )
        }
    }
}

/// Why polls find few packets or none.
fn looks(poller: &Poller, polls: Option<u64>) -> String {
    let looks_once = matches!(poller.busy_poll, Some(BusyPoll { usecs: 0, .. }));
    match polls {
        Some(0) => {
            ": it did not poll: it does not wait there, or others polled whenever it did".into()
        }
        Some(polls) if looks_once => format!(
            ": it polled {polls} times; at each wait it looks once, and busy_poll_usecs has it look \
             for longer"
        ),
        Some(polls) => format!(": it polled {polls} times"),
        None if looks_once => {
            ": at each wait it looks once, and no packet was there yet, or it does not wait there; \
             busy_poll_usecs has it look for longer"
                .into()
        }
        None => ": it does not wait there, or no packet came while it did".into(),
    }
}
