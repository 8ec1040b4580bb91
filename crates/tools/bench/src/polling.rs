//! How guests and the programs on them get at the packets that have come: what rivals moderation by
//! the NIC (`Documentation/networking/napi.rst` of Linux).

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, ensure};
use base::quantity::Unit;
use base::time::Duration;
use model::napi::{BusyPolling, NapiSettings, NapiThread};
use serde::{Deserialize, Serialize};

use crate::experiment::{A, B, Experiment};
use crate::options::NicOptions;
use crate::world::WorldKind;

/// Who looks for packets when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PollMode {
    /// Programs sleep in `epoll_wait`; an interrupt has the kernel poll.
    #[default]
    Epoll,
    /// The same, and after an interrupt the kernel polls by a timer until it has found nothing a
    /// few times: `gro-flush-timeout` with `napi-defer-hard-irqs`.
    Defer,
    /// `epoll_wait` polls for a time before it sleeps (`EPIOCSPARAMS`, Linux 6.9).
    Busy,
    /// While `epoll_wait` finds something, its polls are the only ones; when it does not, the
    /// kernel polls by a timer: `irq-suspend-timeout` (Linux 6.13).
    Suspend,
    /// Reads poll for a time before the program sleeps, and interrupts stay off meanwhile
    /// (`SO_BUSY_POLL`, `SO_PREFER_BUSY_POLL`).
    SoBusyPoll,
    /// Programs wait with io_uring, which polls for a time before they sleep, and interrupts stay
    /// off meanwhile (`IORING_REGISTER_NAPI`, Linux 6.9).
    IoUring,
    /// A kernel thread polls instead of the softirq, on a core of its own; an interrupt wakes it
    /// (`threaded` of a device or NAPI instance).
    Threaded,
    /// The same with a thread that never sleeps, and no interrupts (`busy-poll`).
    ThreadedBusy,
}

impl PollMode {
    const ALL: [Self; 8] = [
        Self::Epoll,
        Self::Defer,
        Self::Busy,
        Self::Suspend,
        Self::SoBusyPoll,
        Self::IoUring,
        Self::Threaded,
        Self::ThreadedBusy,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Epoll => "epoll",
            Self::Defer => "defer",
            Self::Busy => "busy",
            Self::Suspend => "suspend",
            Self::SoBusyPoll => "so-busy-poll",
            Self::IoUring => "io-uring",
            Self::Threaded => "threaded",
            Self::ThreadedBusy => "threaded-busy",
        }
    }

    /// Microseconds where no option says otherwise, as in the measurements that came with
    /// `irq-suspend-timeout`: 20 of a timer, 200 of a program that polls. A mode without any has 0.
    fn usual_usecs(self) -> u32 {
        match self {
            Self::Epoll | Self::Threaded | Self::ThreadedBusy => 0,
            Self::Defer | Self::Suspend => 20,
            Self::Busy | Self::SoBusyPoll | Self::IoUring => 200,
        }
    }

    /// The thread of the kernel that polls, if one does.
    fn thread(self) -> Option<NapiThread> {
        match self {
            Self::Threaded => Some(NapiThread::Woken),
            Self::ThreadedBusy => Some(NapiThread::Polling),
            _ => None,
        }
    }
}

/// For how many milliseconds interrupts may be suspended at most: the application is taken for dead
/// then.
const SUSPEND_MS: u64 = 20;

/// After how many polls by the timer that found nothing the kernel waits for interrupts again.
const EMPTY_POLLS: u32 = 2;

/// The longest time, a second.
const MAX_USECS: u32 = 1_000_000;

/// A mode and its time, written as in `busy:200`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Polling {
    /// Who looks for packets when.
    pub mode: PollMode,
    /// Microseconds of the timer, or for which a program polls.
    pub usecs: u32,
}

impl Polling {
    /// Whether programs sleep, and nothing is set for them.
    pub fn is_epoll(&self) -> bool {
        *self == Self::default()
    }

    /// How waits of an epoll object poll, if they do.
    pub fn of_epoll(self) -> Option<BusyPolling> {
        let lasts = Duration::from_micros(self.usecs.into());
        match self.mode {
            PollMode::Busy => Some(BusyPolling { lasts, prefer: false }),
            PollMode::Suspend => Some(BusyPolling { lasts: Duration::ZERO, prefer: true }),
            _ => None,
        }
    }

    /// How reads of a socket poll, if they do.
    pub fn of_socket(self) -> Option<BusyPolling> {
        let lasts = Duration::from_micros(self.usecs.into());
        (self.mode == PollMode::SoBusyPoll).then_some(BusyPolling { lasts, prefer: true })
    }

    /// How waits of an io_uring poll, if programs wait with one.
    pub fn of_ring(self) -> Option<BusyPolling> {
        let lasts = Duration::from_micros(self.usecs.into());
        (self.mode == PollMode::IoUring).then_some(BusyPolling { lasts, prefer: true })
    }

    /// For how long a wait polls at most, if it does for a time.
    pub fn longest(self) -> Option<Duration> {
        let polls = matches!(self.mode, PollMode::Busy | PollMode::SoBusyPoll | PollMode::IoUring);
        polls.then(|| Duration::from_micros(self.usecs.into()))
    }

    /// What `earmark apply` is to set on the host's interface, if anything.
    pub(crate) fn settings(self) -> Option<String> {
        let timer =
            |usecs: u32| format!("gro-flush-timeout {usecs}us napi-defer-hard-irqs {EMPTY_POLLS}");
        match self.mode {
            PollMode::Epoll | PollMode::Busy => None,
            // No world of guests has them (`check`).
            PollMode::Threaded | PollMode::ThreadedBusy => None,
            PollMode::Defer => Some(timer(self.usecs)),
            PollMode::Suspend => {
                Some(format!("{} irq-suspend-timeout {SUSPEND_MS}ms", timer(self.usecs)))
            }
            // As long as the program polls, each poll puts the timer off. Both as long as each
            // other would be a trap: a host would give up just before the other one answers.
            PollMode::SoBusyPoll | PollMode::IoUring => Some(timer(PollMode::Defer.usual_usecs())),
        }
    }

    /// The same of a host in the model, and of its programs.
    pub(crate) fn napi(self) -> NapiSettings {
        let timer = match self.mode {
            PollMode::Epoll | PollMode::Busy => 0,
            PollMode::Threaded | PollMode::ThreadedBusy => 0,
            PollMode::Defer | PollMode::Suspend => self.usecs,
            PollMode::SoBusyPoll | PollMode::IoUring => PollMode::Defer.usual_usecs(),
        };
        let suspends = self.mode == PollMode::Suspend;
        NapiSettings {
            defer_hard_irqs: if timer > 0 { EMPTY_POLLS } else { 0 },
            flush_timeout: Duration::from_micros(timer.into()),
            suspend_timeout: Duration::from_millis(if suspends { SUSPEND_MS } else { 0 }),
            busy: self.of_epoll().or_else(|| self.of_socket()).or_else(|| self.of_ring()),
            thread: self.mode.thread(),
        }
    }
}

impl FromStr for Polling {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, usecs) = match text.split_once(':') {
            Some((name, usecs)) => (name, Some(usecs)),
            None => (text, None),
        };
        let mode = PollMode::ALL.into_iter().find(|mode| mode.name() == name);
        let mode = mode.ok_or_else(|| {
            let names = PollMode::ALL.map(PollMode::name).join(", ");
            format!("`{text}`: hosts have packets by one of {names}, as in busy or busy:50")
        })?;
        let usecs = match usecs {
            None => mode.usual_usecs(),
            Some(_) if mode.usual_usecs() == 0 => {
                return Err(format!("`{text}`: {name} has no time of its own"));
            }
            Some(usecs) => {
                let usecs = Unit::Micros.read_whole(usecs, 1..=MAX_USECS.into());
                usecs
                    .map_err(|_| format!("`{text}`: {name} takes 1 to {MAX_USECS} microseconds"))?
            }
        };
        Ok(Self { mode, usecs })
    }
}

impl fmt::Display for Polling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mode.name())?;
        if self.usecs == 0 { Ok(()) } else { write!(f, ":{}", self.usecs) }
    }
}

/// Refuses ways to packets that the experiment or what hosts cost leave no room for.
pub(crate) fn check(
    nic: &NicOptions,
    (experiment, world): (Experiment, WorldKind),
    pollings: &[Option<Polling>],
) -> Result<()> {
    if world == WorldKind::Model || pollings.iter().flatten().all(Polling::is_epoll) {
        return Ok(());
    }
    let has = |modes: &[PollMode]| pollings.iter().flatten().any(|it| modes.contains(&it.mode));
    ensure!(
        !has(&[PollMode::Threaded, PollMode::ThreadedBusy]),
        "--poll: a thread of the kernel that polls is worth its core, and a guest has one for all: \
         woken, it does there what the softirq did, and one that never sleeps leaves programs \
         nothing; give --world model, where it has a core of its own"
    );
    ensure!(
        experiment != Experiment::Memcached || !has(&[PollMode::SoBusyPoll, PollMode::IoUring]),
        "--poll: memcached waits in epoll_wait; give epoll, defer, busy or suspend, or \
         --world model, whose memcached is ours"
    );
    ensure!(
        [A, B].iter().all(|host| nic.costs_of(*host).are_zero()),
        "--poll: guests are charged for interrupts (--costs and the like): polls of timers and \
         programs would be free, and find no packet before its interrupt is paid for; the model \
         charges each poll: give --world model, or drop the costs"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_read() {
        for text in ["epoll", "defer:20", "busy:200", "suspend:50", "so-busy-poll:1", "io-uring:9"]
        {
            assert_eq!(text.parse::<Polling>().unwrap().to_string(), text);
        }
        assert_eq!("busy".parse::<Polling>().unwrap().to_string(), "busy:200");
        assert_eq!("epoll".parse::<Polling>(), Ok(Polling::default()));
        for text in ["threaded", "threaded-busy"] {
            let polling = text.parse::<Polling>().unwrap();
            assert_eq!((polling.to_string().as_str(), polling.is_epoll()), (text, false));
            assert!(polling.napi().thread.is_some());
        }
    }

    #[test]
    fn wrong_ones_are_refused_with_the_choice() {
        let error = |text: &str| text.parse::<Polling>().unwrap_err();
        assert!(error("spin").contains("epoll, defer, busy, suspend, so-busy-poll"));
        assert!(error("epoll:5").contains("no time") && error("threaded:5").contains("no time"));
        for text in ["busy:0", "busy:", "busy:x", "busy:1000001"] {
            assert!(error(text).contains("1 to 1000000"), "{text}");
        }
    }

    #[test]
    fn hosts_get_what_a_mode_needs_of_them() {
        let settings = |text: &str| text.parse::<Polling>().unwrap().settings();
        assert_eq!(settings("epoll"), None);
        assert_eq!(settings("busy"), None);
        let timer = "gro-flush-timeout 20us napi-defer-hard-irqs 2";
        assert_eq!(settings("defer"), Some(timer.into()));
        assert_eq!(settings("suspend"), Some(format!("{timer} irq-suspend-timeout 20ms")));
        assert_eq!(settings("so-busy-poll:50"), Some(timer.into()));
        assert_eq!(settings("io-uring:50"), Some(timer.into()));
    }
}
