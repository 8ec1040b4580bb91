//! What a rule can be about: settings by the names of `ethtool`, and what `earmark show` computes.

use std::fmt;
use std::str::FromStr;

use netdev::ethtool::Parameter;

/// The unit of a rule's numbers, if they have none of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
    /// Megabits a second.
    Mbit,
    /// Frames, bytes, times: a number without a unit.
    Count,
    /// `on` or `off`; 1 or 0.
    Switch,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A parameter of coalescing, by its name of `ethtool -C`.
    Coalescing(Parameter),
    /// Anything else, by its place in a table.
    Other(Other),
}

/// Declares what rules can be about beside coalescing: a name and a unit for each.
macro_rules! others {
    ($($(#[$about:meta])* $variant:ident, $name:literal, $unit:ident;)*) => {
        /// What a rule can be about beside coalescing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Other {
            $($(#[$about])* $variant,)*
        }

        impl Other {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            const fn unit(self) -> Unit {
                match self { $(Self::$variant => Unit::$unit,)* }
            }
        }
    };
}

others! {
    /// The longest that the NIC or NAPI deferral holds a lone packet.
    LongestHold, "longest-hold", Micros;
    /// The longest that anything delays a lone packet, as the first line of `earmark show` has it.
    LongestDelay, "longest-delay", Micros;
    /// How long the deepest idle state that is allowed takes to come back from.
    IdleLatency, "idle-latency", Micros;
    /// The kernel's deferral of interrupts: how long.
    GroFlushTimeout, "gro-flush-timeout", Nanos;
    /// The kernel's deferral of interrupts: how often in a row.
    NapiDeferHardIrqs, "napi-defer-hard-irqs", Count;
    /// A kernel thread polls instead of the softirq.
    Threaded, "threaded", Switch;
    /// Busy polling of `poll` and `select`.
    BusyPoll, "busy-poll", Micros;
    /// Busy polling of reads.
    BusyRead, "busy-read", Micros;
    /// Descriptors of each receive ring.
    RingRx, "ring-rx", Count;
    /// Descriptors of each transmit ring.
    RingTx, "ring-tx", Count;
    /// The kernel merges packets of a stream.
    RxGro, "rx-gro", Switch;
    /// The NIC or its driver merges packets of a stream.
    RxLro, "rx-lro", Switch;
    /// The NIC merges packets of a stream as GRO would.
    RxGroHw, "rx-gro-hw", Switch;
    /// The NIC stamps what comes and what goes.
    HardwareTimestamps, "hardware-timestamps", Switch;
    /// The largest packet, in bytes.
    Mtu, "mtu", Count;
    /// The rate of the link.
    Speed, "speed", Mbit;
}

impl Key {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = Other::ALL.iter().copied().map(Self::Other);
        Parameter::all().map(Self::Coalescing).chain(others)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Coalescing(parameter) => parameter.name(),
            Self::Other(other) => other.name(),
        }
    }

    pub(super) fn unit(self) -> Unit {
        match self {
            Self::Coalescing(parameter) if parameter.is_switch() => Unit::Switch,
            Self::Coalescing(Parameter::RxCqeNsecs) => Unit::Nanos,
            Self::Coalescing(parameter) if parameter.name().contains("usecs") => Unit::Micros,
            Self::Coalescing(_) => Unit::Count,
            Self::Other(other) => other.unit(),
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
            let near = |key: &Self| strsim::damerau_levenshtein(key.name(), text);
            // A word that is far from all of them says nothing.
            match Self::all().min_by_key(near).filter(|key| near(key) * 2 <= text.len()) {
                Some(key) => format!("no rule is called {text}; is {key} meant?"),
                None => {
                    let names: Vec<&str> = Self::all().map(Self::name).collect();
                    format!("no rule is called {text}; there are {}", names.join(", "))
                }
            }
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

    #[test]
    fn units_are_those_of_ethtool() {
        let unit = |name: &str| name.parse::<Key>().unwrap().unit();
        assert_eq!(unit("rx-usecs-high"), Unit::Micros);
        assert_eq!(unit("tx-aggr-time-usecs"), Unit::Micros);
        assert_eq!(unit("rx-cqe-nsecs"), Unit::Nanos);
        assert_eq!(unit("sample-interval"), Unit::Count);
        assert_eq!(unit("cqe-mode-rx"), Unit::Switch);
    }
}
