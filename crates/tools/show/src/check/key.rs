//! What a rule can be about: settings by the names of `ethtool`, and what `earmark show` computes.

use std::fmt;
use std::str::FromStr;

use base::quantity::Unit;
use netdev::ethtool::Parameter;
use report::names::did_you_mean;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Number(Unit),
    /// `on` or `off`; 1 or 0.
    Switch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A parameter of coalescing, by its name of `ethtool -C`.
    Coalescing(Parameter),
    /// Anything else, by its place in a table.
    Other(Other),
}

/// Declares what rules can be about beside coalescing: a name and a kind of value for each.
macro_rules! others {
    ($($(#[$about:meta])* $variant:ident, $name:literal, $kind:expr;)*) => {
        /// What a rule can be about beside coalescing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Other {
            $($(#[$about])* $variant,)*
        }

        impl Other {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            const fn kind(self) -> ValueKind {
                use ValueKind::{Number, Switch};
                match self { $(Self::$variant => $kind,)* }
            }
        }
    };
}

others! {
    /// The longest that the NIC or NAPI deferral holds a lone packet.
    LongestHold, "longest-hold", Number(Unit::Micros);
    /// The longest that anything delays a lone packet, as the first line of `earmark show` has it.
    LongestDelay, "longest-delay", Number(Unit::Micros);
    /// How long the deepest idle state that is allowed takes to come back from.
    IdleLatency, "idle-latency", Number(Unit::Micros);
    /// The kernel's deferral of interrupts: how long.
    GroFlushTimeout, "gro-flush-timeout", Number(Unit::Nanos);
    /// The kernel's deferral of interrupts: how often in a row.
    NapiDeferHardIrqs, "napi-defer-hard-irqs", Number(Unit::Count);
    /// A kernel thread polls instead of the softirq.
    Threaded, "threaded", Switch;
    /// Busy polling of `poll` and `select`.
    BusyPoll, "busy-poll", Number(Unit::Micros);
    /// Busy polling of reads.
    BusyRead, "busy-read", Number(Unit::Micros);
    /// Descriptors of each receive ring.
    RingRx, "ring-rx", Number(Unit::Count);
    /// Descriptors of each transmit ring.
    RingTx, "ring-tx", Number(Unit::Count);
    /// The kernel merges packets of a stream.
    RxGro, "rx-gro", Switch;
    /// The NIC or its driver merges packets of a stream.
    RxLro, "rx-lro", Switch;
    /// The NIC merges packets of a stream as GRO would.
    RxGroHw, "rx-gro-hw", Switch;
    /// The NIC stamps what comes and what goes.
    HardwareTimestamps, "hardware-timestamps", Switch;
    /// The largest packet, in bytes.
    Mtu, "mtu", Number(Unit::Count);
    /// The rate of the link.
    Speed, "speed", Number(Unit::Mbit);
}

impl Key {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let others = Other::ALL.iter().copied().map(Self::Other);
        Parameter::all().map(Self::Coalescing).chain(others)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Coalescing(parameter) => parameter.name(),
            Self::Other(other) => other.name(),
        }
    }

    pub(super) fn kind(self) -> ValueKind {
        match self {
            Self::Coalescing(parameter) => {
                parameter.unit().map_or(ValueKind::Switch, ValueKind::Number)
            }
            Self::Other(other) => other.kind(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::all().find(|key| key.name() == text).ok_or_else(|| {
            let names = did_you_mean(text, Self::all().map(Self::name), None);
            format!("no rule is called {text}; {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_answered_with_the_nearest() {
        for key in Key::all() {
            assert_eq!(key.name().parse(), Ok(key));
        }
        let refused = |text: &str| text.parse::<Key>().unwrap_err();
        assert!(refused("rx-usec").ends_with("is rx-usecs meant?"));
        assert!(refused("adaptiverx").ends_with("is adaptive-rx meant?"));
        assert!(refused("longest-holds").ends_with("is longest-hold meant?"));
        assert!(refused("colour").contains("there are rx-usecs, rx-frames"));
    }
}
