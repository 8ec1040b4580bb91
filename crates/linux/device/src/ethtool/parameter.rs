//! The parameters of coalescing, by the names of `ethtool -C`.

use std::fmt;
use std::str::FromStr;

use base::quantity::Unit;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A parameter of coalescing. Its number is that of its netlink attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Parameter {
    /// How long to wait after a packet has come, in microseconds.
    RxUsecs = 2,
    /// After how many packets not to wait any longer.
    RxFrames = 3,
    /// As `rx-usecs`, while an interrupt is being served.
    RxUsecsIrq = 4,
    /// As `rx-frames`, while an interrupt is being served.
    RxFramesIrq = 5,
    /// How long to wait after a packet has gone, in microseconds.
    TxUsecs = 6,
    /// After how many packets sent not to wait any longer.
    TxFrames = 7,
    /// As `tx-usecs`, while an interrupt is being served.
    TxUsecsIrq = 8,
    /// As `tx-frames`, while an interrupt is being served.
    TxFramesIrq = 9,
    /// How often the device updates its counters in memory, in microseconds.
    StatsBlockUsecs = 10,
    /// The driver or the device changes the receive values as it sees fit; 0 or 1.
    AdaptiveRx = 11,
    /// The driver or the device changes the transmit values as it sees fit; 0 or 1.
    AdaptiveTx = 12,
    /// Below this rate, in packets per second, the `-low` values count.
    PktRateLow = 13,
    /// `rx-usecs` at low rates.
    RxUsecsLow = 14,
    /// `rx-frames` at low rates.
    RxFramesLow = 15,
    /// `tx-usecs` at low rates.
    TxUsecsLow = 16,
    /// `tx-frames` at low rates.
    TxFramesLow = 17,
    /// Above this rate, in packets per second, the `-high` values count.
    PktRateHigh = 18,
    /// `rx-usecs` at high rates.
    RxUsecsHigh = 19,
    /// `rx-frames` at high rates.
    RxFramesHigh = 20,
    /// `tx-usecs` at high rates.
    TxUsecsHigh = 21,
    /// `tx-frames` at high rates.
    TxFramesHigh = 22,
    /// How often the rate is measured, in seconds.
    SampleInterval = 23,
    /// The transmit timer starts anew at each completion, not at the first one; 0 or 1.
    CqeModeTx = 24,
    /// The receive timer starts anew at each packet, not at the first one; 0 or 1.
    CqeModeRx = 25,
    /// How many bytes of small packets are gathered before they are sent.
    TxAggrMaxBytes = 26,
    /// How many small packets are gathered before they are sent.
    TxAggrMaxFrames = 27,
    /// How long small packets are gathered, in microseconds.
    TxAggrTimeUsecs = 28,
    /// How many received packets may share one completion entry.
    RxCqeFrames = 31,
    /// How long the first packet of a completion entry waits for others, in nanoseconds.
    RxCqeNsecs = 32,
}

/// Unit of a switch: none.
const SWITCH: Option<Unit> = None;
const COUNT: Option<Unit> = Some(Unit::Count);
const MICROS: Option<Unit> = Some(Unit::Micros);

const TABLE: [(Parameter, &str, Option<Unit>); 29] = {
    use Parameter::*;
    use Unit::{Nanos, Seconds};
    [
        (RxUsecs, "rx-usecs", MICROS),
        (RxFrames, "rx-frames", COUNT),
        (RxUsecsIrq, "rx-usecs-irq", MICROS),
        (RxFramesIrq, "rx-frames-irq", COUNT),
        (TxUsecs, "tx-usecs", MICROS),
        (TxFrames, "tx-frames", COUNT),
        (TxUsecsIrq, "tx-usecs-irq", MICROS),
        (TxFramesIrq, "tx-frames-irq", COUNT),
        (StatsBlockUsecs, "stats-block-usecs", MICROS),
        (AdaptiveRx, "adaptive-rx", SWITCH),
        (AdaptiveTx, "adaptive-tx", SWITCH),
        (PktRateLow, "pkt-rate-low", COUNT),
        (RxUsecsLow, "rx-usecs-low", MICROS),
        (RxFramesLow, "rx-frames-low", COUNT),
        (TxUsecsLow, "tx-usecs-low", MICROS),
        (TxFramesLow, "tx-frames-low", COUNT),
        (PktRateHigh, "pkt-rate-high", COUNT),
        (RxUsecsHigh, "rx-usecs-high", MICROS),
        (RxFramesHigh, "rx-frames-high", COUNT),
        (TxUsecsHigh, "tx-usecs-high", MICROS),
        (TxFramesHigh, "tx-frames-high", COUNT),
        (SampleInterval, "sample-interval", Some(Seconds)),
        (CqeModeTx, "cqe-mode-tx", SWITCH),
        (CqeModeRx, "cqe-mode-rx", SWITCH),
        (TxAggrMaxBytes, "tx-aggr-max-bytes", COUNT),
        (TxAggrMaxFrames, "tx-aggr-max-frames", COUNT),
        (TxAggrTimeUsecs, "tx-aggr-time-usecs", MICROS),
        (RxCqeFrames, "rx-cqe-frames", COUNT),
        (RxCqeNsecs, "rx-cqe-nsecs", Some(Nanos)),
    ]
};

/// A word that is no parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no coalescing parameter is called {0:?}; they are: {all}", all = all_names())]
pub struct UnknownParameter(String);

fn all_names() -> String {
    TABLE.map(|(_, name, _)| name).join(", ")
}

impl Parameter {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.into_iter().map(|(parameter, ..)| parameter)
    }

    /// Its name, as `ethtool -C` takes it.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |(_, name, _)| name)
    }

    pub(super) fn of_attribute(kind: u16) -> Option<Self> {
        Self::all().find(|parameter| *parameter as u16 == kind)
    }

    /// The unit of its values; `None` for a switch, which is 0 or 1.
    pub fn unit(self) -> Option<Unit> {
        self.row().and_then(|(.., unit)| unit)
    }

    /// Whether it is on or off, and no number.
    pub fn is_switch(self) -> bool {
        self.unit().is_none()
    }

    fn row(self) -> Option<(Self, &'static str, Option<Unit>)> {
        TABLE.into_iter().find(|(parameter, ..)| *parameter == self)
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Parameter {
    type Err = UnknownParameter;

    fn from_str(text: &str) -> Result<Self, UnknownParameter> {
        let found = TABLE.into_iter().find(|(_, name, _)| *name == text);
        found.map(|(parameter, ..)| parameter).ok_or_else(|| UnknownParameter(text.to_owned()))
    }
}

impl Serialize for Parameter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_of_one_parameter_and_is_read_back() {
        for parameter in Parameter::all() {
            assert_eq!(parameter.name().parse(), Ok(parameter));
            assert_eq!(Parameter::of_attribute(parameter as u16), Some(parameter));
        }
        let error = "rx-usec".parse::<Parameter>().unwrap_err().to_string();
        assert!(error.contains("\"rx-usec\"") && error.contains("rx-usecs-high"), "{error}");
        // The header, both profiles, and what is not known yet.
        assert!(
            [0, 1, 29, 30, 33, 65_535].map(Parameter::of_attribute).iter().all(Option::is_none)
        );
        assert_eq!("tx-aggr-time-usecs".parse::<Parameter>().unwrap().unit(), MICROS);
    }
}
