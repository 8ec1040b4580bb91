//! What a rule can be about: settings by the names of `ethtool`, and what `earmark show` computes.

use std::fmt;
use std::str::FromStr;

use base::quantity::Unit;
use device::ethtool::Parameter;
use report::names::did_you_mean;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Number(Unit),
    /// `on` or `off`; 1 or 0.
    Switch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Coalescing(Parameter),
    Other(Other),
}

macro_rules! others {
    ($($variant:ident, $name:literal, $kind:expr;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Other {
            $($variant,)*
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
    // The longest that the NIC or NAPI deferral holds a lone packet.
    LongestHold, "longest-hold", Number(Unit::Micros);
    LongestDelay, "longest-delay", Number(Unit::Micros);
    IdleLatency, "idle-latency", Number(Unit::Micros);
    GroFlushTimeout, "gro-flush-timeout", Number(Unit::Nanos);
    NapiDeferHardIrqs, "napi-defer-hard-irqs", Number(Unit::Count);
    IrqSuspendTimeout, "irq-suspend-timeout", Number(Unit::Nanos);
    // A kernel thread polls instead of the softirq.
    Threaded, "threaded", Switch;
    BusyPoll, "busy-poll", Number(Unit::Micros);
    BusyRead, "busy-read", Number(Unit::Micros);
    RingRx, "ring-rx", Number(Unit::Count);
    RingTx, "ring-tx", Number(Unit::Count);
    RxGro, "rx-gro", Switch;
    RxLro, "rx-lro", Switch;
    RxGroHw, "rx-gro-hw", Switch;
    HardwareTimestamps, "hardware-timestamps", Switch;
    // The largest packet, in bytes.
    Mtu, "mtu", Number(Unit::Count);
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
