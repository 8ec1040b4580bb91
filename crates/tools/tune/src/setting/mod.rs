//! Settings of a device as text: names and values as `ethtool -c` prints and `ethtool -C` takes
//! them.
//!
//! What `ethtool -C` sets has ethtool's names (`Documentation/networking/ethtool-netlink.rst`,
//! COALESCE_SET). NAPI deferral and busy polling have no command of ethtool's; they are called as
//! the kernel calls them (`Documentation/networking/napi.rst`), with dashes. `queue:1:rx-usecs` is
//! the same of a single queue, `sysctl:net.core.netdev_budget` a number below `/proc/sys/net`.

mod change;
pub(crate) mod profile;
pub(crate) mod steering;
pub(crate) mod strategy;
pub(crate) mod sysctl;
mod value;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use base::quantity::Unit;
use netdev::ethtool::Parameter;
use report::names::did_you_mean;
use serde::{Deserialize, Serialize};

pub use change::{Change, Knob, State};
use steering::Placed;
use sysctl::Sysctl;
pub use value::Value;
pub(crate) use value::ValueKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The driver's interrupt coalescing: `ethtool -C`.
    Coalescing,
    /// That of a single queue: `ethtool --per-queue`.
    QueueCoalescing,
    Profile,
    /// The kernel's deferral of interrupts, one for each device: files of the device.
    Deferral,
    /// That of NAPI instances, one for each: netlink's `napi-set`.
    Napi,
    /// Which queue a packet goes to: rules, and the table of the hash (`ethtool -N`, `-X`).
    Steering,
    /// Which processors a queue's interrupts and packets go to: files of `/proc/irq` and of the
    /// device.
    Placement,
    /// A number below `/proc/sys/net`, of a network or of the whole machine.
    Sysctl,
    /// The whole setting of a NIC of ours, as `delay:75`.
    Strategy,
}

impl Mechanism {
    pub(crate) fn interface(self) -> &'static str {
        match self {
            Self::Coalescing | Self::Profile => "coalesce-set",
            Self::QueueCoalescing => "per-queue",
            Self::Deferral => "sysfs",
            Self::Napi => "napi-set",
            Self::Steering => "ioctl",
            Self::Placement => "procfs and sysfs",
            Self::Sysctl => "sysctl",
            Self::Strategy => "lab",
        }
    }
}

const RULE: &str = "rule:";

const QUEUE: &str = "queue:";

const SYSCTL: &str = "sysctl:";

/// Declares the settings: parameters of coalescing, as [`Parameter`] has them, and the others, each
/// with its name, mechanism and kind of values.
macro_rules! settings {
    (
        $($parameter:ident)*;
        $($(#[$about:meta])* $variant:ident, $name:literal, $mechanism:ident, $kind:expr;)*
    ) => {
        /// A setting, by its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Setting {
            /// The whole setting of a NIC of ours.
            Strategy,
            $(
                #[doc = concat!("[`Parameter::", stringify!($parameter), "`]")]
                $parameter,
            )*
            $($(#[$about])* $variant,)*
            /// A setting of a single queue, or of the NAPI instance that polls it.
            Queue(u16, &'static Setting),
            /// Any number below `/proc/sys/net`.
            Sysctl(Sysctl),
            /// Whether there is this rule.
            Rule(Placed),
        }

        impl Setting {
            /// Those of a device, in the order in which they are printed.
            pub const ALL: &'static [Self] =
                &[Self::Strategy, $(Self::$parameter,)* $(Self::$variant,)*];

            pub(crate) fn parameter(self) -> Option<Parameter> {
                match self {
                    $(Self::$parameter => Some(Parameter::$parameter),)*
                    Self::Queue(_, of) => of.parameter(),
                    _ => None,
                }
            }

            /// Its name, as ethtool or the kernel has it.
            pub fn name(self) -> Cow<'static, str> {
                match self {
                    Self::Strategy => "strategy".into(),
                    $(Self::$parameter => Parameter::$parameter.name().into(),)*
                    $(Self::$variant => $name.into(),)*
                    Self::Queue(queue, of) => format!("{QUEUE}{queue}:{of}").into(),
                    Self::Sysctl(name) => format!("{SYSCTL}{name}").into(),
                    Self::Rule(placed) => format!("{RULE}{placed}").into(),
                }
            }

            /// The part of the system that it belongs to.
            pub fn mechanism(self) -> Mechanism {
                match self {
                    Self::Strategy => Mechanism::Strategy,
                    $(Self::$parameter => Mechanism::Coalescing,)*
                    $(Self::$variant => Mechanism::$mechanism,)*
                    Self::Queue(_, of) => match of.mechanism() {
                        Mechanism::Coalescing => Mechanism::QueueCoalescing,
                        Mechanism::Placement => Mechanism::Placement,
                        _ => Mechanism::Napi,
                    },
                    Self::Sysctl(_) => Mechanism::Sysctl,
                    Self::Rule(_) => Mechanism::Steering,
                }
            }

            /// The kind of its values.
            pub fn kind(self) -> ValueKind {
                use ValueKind::{Cpus, Number, Steps, Switch, Table};
                match self {
                    Self::Strategy => ValueKind::Text,
                    $(Self::$parameter => Parameter::$parameter.unit().map_or(Switch, Number),)*
                    $(Self::$variant => $kind,)*
                    Self::Queue(_, of) => of.kind(),
                    Self::Sysctl(_) => Number(Unit::Count),
                    Self::Rule(_) => Switch,
                }
            }
        }
    };
}

settings! {
    AdaptiveRx AdaptiveTx RxUsecs RxFrames RxUsecsIrq RxFramesIrq TxUsecs TxFrames TxUsecsIrq
    TxFramesIrq CqeModeRx CqeModeTx PktRateLow RxUsecsLow RxFramesLow TxUsecsLow TxFramesLow
    PktRateHigh RxUsecsHigh RxFramesHigh TxUsecsHigh TxFramesHigh SampleInterval StatsBlockUsecs
    TxAggrMaxBytes TxAggrMaxFrames TxAggrTimeUsecs RxCqeFrames RxCqeNsecs;
    /// The steps of adaptive moderation of reception (DIM).
    RxProfile, "rx-profile", Profile, Steps;
    /// The same for transmission.
    TxProfile, "tx-profile", Profile, Steps;
    /// How long the kernel may wait before it polls again, or lets the device interrupt.
    GroFlushTimeout, "gro-flush-timeout", Deferral, Number(Unit::Nanos);
    /// How many empty polls the kernel makes before it lets the device interrupt.
    NapiDeferHardIrqs, "napi-defer-hard-irqs", Deferral, Number(Unit::Count);
    /// How long interrupts stay off while a program polls and finds something.
    IrqSuspendTimeout, "irq-suspend-timeout", Napi, Number(Unit::Nanos);
    /// Kernel threads poll instead of the softirq.
    Threaded, "threaded", Deferral, Switch;
    /// Rules that choose queues count (`ntuple-filters` of `ethtool -k`).
    Ntuple, "ntuple", Steering, Switch;
    /// The queue of each hash (`ethtool -x`).
    RssTable, "rss-table", Steering, Table;
    /// The processors that the interrupt of a receive queue may go to.
    SmpAffinity, "smp-affinity", Placement, Cpus;
    /// The processors whose packets a transmit queue sends.
    XpsCpus, "xps-cpus", Placement, Cpus;
    /// How long `poll` and `select` look at a device before they sleep (net.core.busy_poll).
    BusyPoll, "busy-poll", Sysctl, Number(Unit::Micros);
    /// How long a read looks at a device before it sleeps (net.core.busy_read).
    BusyRead, "busy-read", Sysctl, Number(Unit::Micros);
}

impl Setting {
    /// Whether adaptive moderation changes it by itself while `adaptive` is on.
    pub fn follows(self, adaptive: Self) -> bool {
        match (self, adaptive) {
            (Self::RxUsecs | Self::RxFrames, Self::AdaptiveRx)
            | (Self::TxUsecs | Self::TxFrames, Self::AdaptiveTx) => true,
            (Self::Queue(own, of), Self::Queue(queue, adaptive)) => {
                own == queue && of.follows(*adaptive)
            }
            _ => false,
        }
    }

    pub(crate) fn switches(self) -> [Self; 2] {
        match self {
            Self::Queue(queue, _) => {
                [&Self::AdaptiveRx, &Self::AdaptiveTx].map(|adaptive| Self::Queue(queue, adaptive))
            }
            _ => [Self::AdaptiveRx, Self::AdaptiveTx],
        }
    }

    pub(crate) fn of_queue(self, queue: u16) -> Option<Self> {
        let of = Self::ALL.iter().find(|setting| **setting == self)?;
        let has = match of.mechanism() {
            Mechanism::Coalescing => self.parameter().is_some_and(Parameter::is_of_queues),
            Mechanism::Deferral | Mechanism::Napi | Mechanism::Placement => true,
            _ => false,
        };
        has.then_some(Self::Queue(queue, of))
    }

    pub(crate) fn of_device(self) -> Option<Self> {
        match self {
            Self::Queue(_, of) => Some(*of),
            _ => None,
        }
    }

    /// The rule that it is.
    pub fn placed(self) -> Option<Placed> {
        match self {
            Self::Rule(placed) => Some(placed),
            _ => None,
        }
    }

    /// A value with its unit, if the name does not say it: `20000ns`, but `50` of rx-usecs.
    pub fn with_unit(self, value: &Value) -> String {
        match self.kind() {
            ValueKind::Number(unit) if !self.name().contains("secs") => {
                format!("{value}{}", unit.suffix())
            }
            _ => value.to_string(),
        }
    }

    pub(crate) fn parse_value(self, text: &str) -> Result<Value, String> {
        self.kind().read(&self.name(), text)
    }
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix(SYSCTL) {
            let name: Sysctl = name.parse()?;
            // Two have a shorter name.
            return Ok(match name.to_string().as_str() {
                "net.core.busy_poll" => Self::BusyPoll,
                "net.core.busy_read" => Self::BusyRead,
                _ => Self::Sysctl(name),
            });
        }
        if let Some(rest) = text.strip_prefix(QUEUE) {
            return of_queue(text, rest);
        }
        if let Some(rest) = text.strip_prefix(RULE) {
            return rest.parse().map(Self::Rule);
        }
        // As netdev.yaml has it.
        let text = if text == "defer-hard-irqs" { "napi-defer-hard-irqs" } else { text };
        let known = Self::ALL.iter().find(|setting| setting.name() == text);
        known.copied().ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|setting| setting.name()).collect();
            let names = names.iter().map(Cow::as_ref);
            let others = format!("{QUEUE}NUMBER:NAME, {SYSCTL}NAME, {RULE}PLACE:RULE");
            format!("no setting is called {text}; {}", did_you_mean(text, names, Some(&others)))
        })
    }
}

/// The setting of a queue that `text` is; `rest` is what follows its prefix.
fn of_queue(text: &str, rest: &str) -> Result<Setting, String> {
    let (number, name) = rest.split_once(':').unwrap_or((rest, ""));
    let queue: u16 = number
        .parse()
        .map_err(|_| format!("{text}: write it like {QUEUE}1:rx-usecs; queues begin at 0"))?;
    let setting: Setting = name.parse()?;
    setting.of_queue(queue).ok_or_else(|| {
        let all = Setting::ALL.iter().filter(|setting| setting.of_queue(0).is_some());
        let names: Vec<_> = all.map(|setting| setting.name()).collect();
        format!("{text}: a queue has no {name} of its own; it may have {}", names.join(", "))
    })
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl Serialize for Setting {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, state};

    #[test]
    fn nothing_holds_a_packet_that_finds_no_timer() {
        for (state, expected) in [
            ("rx-usecs 0 rx-frames 8", "no change"),
            ("adaptive-rx off rx-usecs 3 rx-frames 8 tx-usecs 5", "rx-usecs 0"),
            ("adaptive-rx on rx-usecs 0", "adaptive-rx off rx-usecs 0"),
            ("rx-frames 8 napi-defer-hard-irqs 2", "napi-defer-hard-irqs 0 rx-frames 0"),
        ] {
            assert_eq!(testing::state(state).unheld().to_string(), expected, "{state}");
        }
    }

    #[test]
    fn what_adaptive_moderation_chooses_is_not_restored() {
        let before = state("adaptive-rx on rx-usecs 8 tx-usecs 8");
        let drifted = state("adaptive-rx on rx-usecs 64 tx-usecs 8");
        assert!(before.restored_from(&drifted).is_empty());
        let changed = state("adaptive-rx off rx-usecs 50 tx-usecs 9");
        let back = before.restored_from(&changed);
        assert_eq!(back.to_string(), "adaptive-rx on rx-usecs 8 tx-usecs 8");
        assert!(state("rx-usecs 5").restored_from(&state("rx-frames 5")).is_empty());
    }

    #[test]
    fn what_a_queue_chooses_by_itself_is_its_own() {
        let own = state("adaptive-rx on queue:1:adaptive-rx off queue:1:rx-usecs 8");
        let [one, two] = [1, 2].map(|queue| Setting::RxUsecs.of_queue(queue).unwrap());
        assert!(own.is_driven(Setting::RxUsecs) && !own.is_driven(one));
        let driven = state("queue:2:adaptive-rx on queue:2:rx-usecs 8");
        assert!(driven.is_driven(two) && !driven.is_driven(one));
    }

    #[test]
    fn a_state_survives_json() {
        let text = "strategy delay:75 adaptive-rx on rx-usecs 8 queue:1:tx-usecs 9";
        let state = state(text);
        let text = serde_json::to_string(&state).unwrap();
        let expected =
            r#"{"strategy":"delay:75","adaptive-rx":true,"rx-usecs":8,"queue:1:tx-usecs":9}"#;
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
    }
}
