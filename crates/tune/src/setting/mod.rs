//! Settings of a device as text: names and values as `ethtool -c` prints and `ethtool -C` takes
//! them.
//!
//! What `ethtool -C` sets has ethtool's names (`Documentation/networking/ethtool-netlink.rst`,
//! COALESCE_SET). NAPI deferral and busy polling have no command of ethtool's; they are called as
//! the kernel calls them (`Documentation/networking/napi.rst`), with dashes.

mod change;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use change::{Change, State};

/// What part of the system a setting belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The driver's interrupt coalescing: `ethtool -C`.
    Coalescing,
    /// The kernel's deferral of interrupts, one for each device.
    Deferral,
    /// Busy polling of sockets, one for the whole machine.
    BusyPolling,
    /// The whole setting of a NIC of ours, as `delay:75`.
    Strategy,
}

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
    /// Frames, bytes or times: a number without a unit.
    Count,
    /// `on` or `off`.
    Switch,
    /// Words.
    Text,
}

/// Declares the settings: a name, a mechanism and a unit for each.
macro_rules! settings {
    ($($(#[$about:meta])* $variant:ident, $name:literal, $mechanism:ident, $unit:ident;)*) => {
        /// One setting.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Setting {
            $($(#[$about])* $variant,)*
        }

        impl Setting {
            /// All of them, in the order in which they are printed.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name, as ethtool or the kernel has it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it belongs to.
            #[must_use]
            pub fn mechanism(self) -> Mechanism {
                match self { $(Self::$variant => Mechanism::$mechanism,)* }
            }

            /// The unit of its value.
            #[must_use]
            pub fn unit(self) -> Unit {
                match self { $(Self::$variant => Unit::$unit,)* }
            }
        }
    };
}

settings! {
    /// The whole setting of a NIC of ours.
    Strategy, "strategy", Strategy, Text;
    /// The driver changes the settings of reception as it sees fit.
    AdaptiveRx, "adaptive-rx", Coalescing, Switch;
    /// The same for transmission.
    AdaptiveTx, "adaptive-tx", Coalescing, Switch;
    /// How long a received packet may wait for its interrupt.
    RxUsecs, "rx-usecs", Coalescing, Micros;
    /// How many received packets may wait for theirs.
    RxFrames, "rx-frames", Coalescing, Count;
    /// `rx-usecs` while the host serves an interrupt.
    RxUsecsIrq, "rx-usecs-irq", Coalescing, Micros;
    /// `rx-frames` while the host serves an interrupt.
    RxFramesIrq, "rx-frames-irq", Coalescing, Count;
    /// How long a sent packet may wait until the completion interrupt.
    TxUsecs, "tx-usecs", Coalescing, Micros;
    /// How many sent packets may wait for that.
    TxFrames, "tx-frames", Coalescing, Count;
    /// `tx-usecs` while the host serves an interrupt.
    TxUsecsIrq, "tx-usecs-irq", Coalescing, Micros;
    /// `tx-frames` while the host serves an interrupt.
    TxFramesIrq, "tx-frames-irq", Coalescing, Count;
    /// The receive timer starts anew at each packet, not at the first one.
    CqeModeRx, "cqe-mode-rx", Coalescing, Switch;
    /// The transmit timer starts anew at each completion, not at the first one.
    CqeModeTx, "cqe-mode-tx", Coalescing, Switch;
    /// Below this rate, in packets a second, the `-low` values count.
    PktRateLow, "pkt-rate-low", Coalescing, Count;
    /// `rx-usecs` at low rates.
    RxUsecsLow, "rx-usecs-low", Coalescing, Micros;
    /// `rx-frames` at low rates.
    RxFramesLow, "rx-frames-low", Coalescing, Count;
    /// `tx-usecs` at low rates.
    TxUsecsLow, "tx-usecs-low", Coalescing, Micros;
    /// `tx-frames` at low rates.
    TxFramesLow, "tx-frames-low", Coalescing, Count;
    /// Above this rate, in packets a second, the `-high` values count.
    PktRateHigh, "pkt-rate-high", Coalescing, Count;
    /// `rx-usecs` at high rates.
    RxUsecsHigh, "rx-usecs-high", Coalescing, Micros;
    /// `rx-frames` at high rates.
    RxFramesHigh, "rx-frames-high", Coalescing, Count;
    /// `tx-usecs` at high rates.
    TxUsecsHigh, "tx-usecs-high", Coalescing, Micros;
    /// `tx-frames` at high rates.
    TxFramesHigh, "tx-frames-high", Coalescing, Count;
    /// How often the rate is measured, in seconds.
    SampleInterval, "sample-interval", Coalescing, Count;
    /// How often the device updates its counters in memory.
    StatsBlockUsecs, "stats-block-usecs", Coalescing, Micros;
    /// How many bytes of small packets are gathered before they are sent.
    TxAggrMaxBytes, "tx-aggr-max-bytes", Coalescing, Count;
    /// How many small packets are gathered before they are sent.
    TxAggrMaxFrames, "tx-aggr-max-frames", Coalescing, Count;
    /// How long small packets are gathered.
    TxAggrTimeUsecs, "tx-aggr-time-usecs", Coalescing, Micros;
    /// How many received packets may share one completion entry.
    RxCqeFrames, "rx-cqe-frames", Coalescing, Count;
    /// How long the first packet of a completion entry waits for others.
    RxCqeNsecs, "rx-cqe-nsecs", Coalescing, Nanos;
    /// How long the kernel may wait before it polls again, or lets the device interrupt.
    GroFlushTimeout, "gro-flush-timeout", Deferral, Nanos;
    /// How many empty polls the kernel makes before it lets the device interrupt.
    NapiDeferHardIrqs, "napi-defer-hard-irqs", Deferral, Count;
    /// How long `poll` and `select` look at a device before they sleep (net.core.busy_poll).
    BusyPoll, "busy-poll", BusyPolling, Micros;
    /// How long a read looks at a device before it sleeps (net.core.busy_read).
    BusyRead, "busy-read", BusyPolling, Micros;
}

impl Setting {
    /// Whether adaptive moderation changes it by itself while `adaptive` is on.
    #[must_use]
    pub fn follows(self, adaptive: Self) -> bool {
        match adaptive {
            Self::AdaptiveRx => matches!(self, Self::RxUsecs | Self::RxFrames),
            Self::AdaptiveTx => matches!(self, Self::TxUsecs | Self::TxFrames),
            _ => false,
        }
    }

    /// Reads a value of this setting.
    ///
    /// # Errors
    /// If it is not one; the message has an example.
    pub fn parse_value(self, text: &str) -> Result<Value, String> {
        let name = self.name();
        match self.unit() {
            Unit::Switch => match text {
                "on" => Ok(Value::Switch(true)),
                "off" => Ok(Value::Switch(false)),
                _ => Err(format!("{name} {text}: on or off")),
            },
            Unit::Text => Ok(Value::Text(text.to_owned())),
            unit => number(text, unit).map(Value::Number).map_err(|why| format!("{name} {why}")),
        }
    }
}

/// A whole number; a time may have a unit of its own, which is converted.
fn number(text: &str, unit: Unit) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = &text[digits.len()..];
    let own: u64 = match unit {
        Unit::Micros => 1_000,
        Unit::Nanos => 1,
        _ if suffix.is_empty() => 1,
        _ => return Err(format!("{text}: a whole number without a unit, as in 16")),
    };
    let nanos = match suffix {
        "" => own,
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        _ => return Err(format!("{text}: the units of a time are ns, us and ms, as in 20us")),
    };
    let wrong = || format!("{text}: not a whole number of 0 to {}", u32::MAX);
    let value: u64 = digits.parse().map_err(|_| wrong())?;
    let value = value.checked_mul(nanos).ok_or_else(wrong)?;
    if value % own != 0 {
        return Err(format!("{text}: this setting counts whole microseconds"));
    }
    Some(value / own).filter(|value| *value <= u64::from(u32::MAX)).ok_or_else(wrong)
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|setting| setting.name() == text);
        known.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|setting| setting.name()).collect();
            format!("no setting is called {text}; there are {}", names.join(", "))
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Setting {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `on` or `off`.
    Switch(bool),
    /// A number in the unit of its setting.
    Number(u64),
    /// Words.
    Text(String),
}

impl Value {
    /// The number; that of a switch is 0 or 1, words have none.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Switch(on) => Some(u64::from(*on)),
            Self::Number(number) => Some(*number),
            Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(text: &str) -> Change {
        text.parse().unwrap()
    }

    #[test]
    fn changes_are_read_and_written_alike() {
        for text in [
            "rx-usecs 50",
            "rx-usecs 50 rx-frames 0 adaptive-rx off",
            "gro-flush-timeout 20000 napi-defer-hard-irqs 2 busy-poll 50",
            "strategy marked:75",
        ] {
            assert_eq!(change(text).to_string(), text);
        }
        assert_eq!(change("").to_string(), "no change");
        assert_eq!(change("gro-flush-timeout 20us rx-usecs 1ms").to_string(), {
            "gro-flush-timeout 20000 rx-usecs 1000"
        });
    }

    #[test]
    fn nothing_holds_a_packet_that_finds_no_timer() {
        for (state, expected) in [
            ("rx-usecs 0 rx-frames 8", "no change"),
            ("adaptive-rx off rx-usecs 3 rx-frames 8 tx-usecs 5", "rx-usecs 0"),
            ("adaptive-rx on rx-usecs 0", "adaptive-rx off rx-usecs 0"),
            ("rx-frames 8 napi-defer-hard-irqs 2", "napi-defer-hard-irqs 0 rx-frames 0"),
        ] {
            let state = State(change(state).0.into_iter().collect());
            assert_eq!(state.unheld().to_string(), expected, "{state}");
        }
    }

    #[test]
    fn wrong_changes_are_refused_in_words() {
        for (text, words) in [
            ("rx-usec 5", "no setting is called rx-usec; there are strategy, adaptive-rx"),
            ("rx-usecs", "`rx-usecs` has no value"),
            ("rx-usecs 5 rx-usecs 6", "rx-usecs is given twice"),
            ("rx-usecs -1", "rx-usecs -1: not a whole number"),
            ("rx-usecs many", "the units of a time"),
            ("rx-usecs 4294967296", "not a whole number of 0 to 4294967295"),
            ("rx-usecs 99999999999999999999", "not a whole number"),
            ("rx-usecs 18446744073709551615ms", "not a whole number"),
            ("rx-usecs 500ns", "whole microseconds"),
            ("rx-frames 5us", "without a unit"),
            ("adaptive-rx maybe", "adaptive-rx maybe: on or off"),
        ] {
            let refusal = text.parse::<Change>().unwrap_err();
            assert!(refusal.contains(words), "{text}: {refusal}");
        }
    }

    #[test]
    fn what_adaptive_moderation_chooses_is_not_restored() {
        let state = |text: &str| State(change(text).0.into_iter().collect());
        let before = state("adaptive-rx on rx-usecs 8 tx-usecs 8");
        let drifted = state("adaptive-rx on rx-usecs 64 tx-usecs 8");
        assert!(before.restored_from(&drifted).is_empty());
        let changed = state("adaptive-rx off rx-usecs 50 tx-usecs 9");
        let back = before.restored_from(&changed);
        assert_eq!(back.to_string(), "adaptive-rx on rx-usecs 8 tx-usecs 8");
        assert!(state("rx-usecs 5").restored_from(&state("rx-frames 5")).is_empty());
    }

    #[test]
    fn a_state_survives_json() {
        let state =
            State(change("strategy delay:75 adaptive-rx on rx-usecs 8").0.into_iter().collect());
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(text, r#"{"strategy":"delay:75","adaptive-rx":true,"rx-usecs":8}"#);
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
    }
}
