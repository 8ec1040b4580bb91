//! Figures of a result, by the names that the files use.

use std::str::FromStr;

use bench::measurement::{Measurement, OneWayDelays, Quantiles};

/// Of the peak rate, at which a server counts as saturated.
const SATURATED: f64 = 0.95;

/// A figure of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The shortest latency, us.
    Min,
    /// The median, us.
    P50,
    /// The mean, us.
    Mean,
    /// The longest, us.
    Max,
    /// Half of the median round trip, us.
    Half,
    /// Answers a second.
    Transactions,
    /// Datagrams a second.
    Datagrams,
    /// Messages of MX a second.
    Messages,
    /// Interrupts a second.
    Interrupts,
    /// Interrupts of both hosts for each message of MX.
    InterruptsPerMessage,
    /// Interrupts and packets of the receiver, busy nanoseconds for each packet.
    ReceiveNs,
    /// Most answers a second, over all numbers of clients.
    Peak,
    /// The fewest clients that have 95 % of the peak.
    SaturatesAt,
    /// The median of NTP's round trip before the change, us.
    RoundTripBefore,
    /// And after it.
    RoundTripAfter,
    /// The request's way before the change, us.
    RequestBefore,
    /// And after it.
    RequestAfter,
    /// The answer's way before the change, us.
    ResponseBefore,
    /// And after it.
    ResponseAfter,
    /// NTP's offset before the change, us.
    OffsetBefore,
    /// And after it.
    OffsetAfter,
}

impl Figure {
    const ALL: [(Self, &'static str); 21] = [
        (Self::Min, "min"),
        (Self::P50, "p50"),
        (Self::Mean, "mean"),
        (Self::Max, "max"),
        (Self::Half, "half"),
        (Self::Transactions, "transactions"),
        (Self::Datagrams, "datagrams"),
        (Self::Messages, "messages"),
        (Self::Interrupts, "interrupts"),
        (Self::InterruptsPerMessage, "interrupts-per-message"),
        (Self::ReceiveNs, "receive-ns"),
        (Self::Peak, "peak"),
        (Self::SaturatesAt, "saturates-at"),
        (Self::RoundTripBefore, "round-trip-before"),
        (Self::RoundTripAfter, "round-trip-after"),
        (Self::RequestBefore, "request-before"),
        (Self::RequestAfter, "request-after"),
        (Self::ResponseBefore, "response-before"),
        (Self::ResponseAfter, "response-after"),
        (Self::OffsetBefore, "offset-before"),
        (Self::OffsetAfter, "offset-after"),
    ];

    /// Its name in a file.
    pub(crate) fn name(self) -> &'static str {
        let entry = Self::ALL.iter().find(|(figure, _)| *figure == self);
        entry.map_or("", |(_, name)| name)
    }

    /// Its value in the results of one setting: those of each number of clients, or one.
    pub(crate) fn value(self, cells: &[&Measurement]) -> Option<f64> {
        match self {
            Self::Peak => peak(cells),
            Self::SaturatesAt => {
                let enough = SATURATED * peak(cells)?;
                let saturated = cells.iter().filter(|cell| cell.transactions_per_s >= Some(enough));
                saturated.filter_map(|cell| cell.clients).min().map(f64::from)
            }
            _ => self.of_one(cells.first()?),
        }
    }

    fn of_one(self, cell: &Measurement) -> Option<f64> {
        let latency = |of: fn(&Quantiles) -> f64| cell.latency_us.as_ref().map(of);
        let ntp = |half: usize, of: fn(&OneWayDelays) -> Option<Quantiles>| {
            Some(of(cell.one_way.get(half)?)?.p50)
        };
        match self {
            Self::Min => latency(|it| it.min),
            Self::P50 => latency(|it| it.p50),
            Self::Mean => latency(|it| it.mean),
            Self::Max => latency(|it| it.max),
            Self::Half => Some(cell.half_round_trip_us?.p50),
            Self::Transactions => cell.transactions_per_s,
            Self::Datagrams => cell.datagrams_per_s,
            Self::Messages => cell.messages_per_s,
            Self::Interrupts => cell.interrupts_per_s,
            Self::InterruptsPerMessage => cell.interrupts_per_message,
            Self::ReceiveNs => receive_ns(cell),
            Self::RoundTripBefore => ntp(0, |it| it.round_trip_us),
            Self::RoundTripAfter => ntp(1, |it| it.round_trip_us),
            Self::RequestBefore => ntp(0, |it| it.request_us),
            Self::RequestAfter => ntp(1, |it| it.request_us),
            Self::ResponseBefore => ntp(0, |it| it.response_us),
            Self::ResponseAfter => ntp(1, |it| it.response_us),
            Self::OffsetBefore => ntp(0, |it| it.offset_us),
            Self::OffsetAfter => ntp(1, |it| it.offset_us),
            Self::Peak | Self::SaturatesAt => None,
        }
    }
}

/// Of the port that received most.
fn receive_ns(cell: &Measurement) -> Option<f64> {
    let port = cell.ports.iter().max_by_key(|port| port.packets)?;
    let processor = port.processor?;
    let busy = processor.wakeup + processor.interrupt + processor.receive;
    (port.packets > 0).then(|| busy * cell.seconds * 1e9 / port.packets as f64)
}

fn peak(cells: &[&Measurement]) -> Option<f64> {
    cells.iter().filter_map(|cell| cell.transactions_per_s).max_by(f64::total_cmp)
}

impl FromStr for Figure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let entry = Self::ALL.iter().find(|(_, name)| *name == text);
        entry.map(|(figure, _)| *figure).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(_, name)| *name).collect();
            format!("no figure `{text}`; there are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_one_figure() {
        for (figure, name) in Figure::ALL {
            assert_eq!(name.parse(), Ok(figure));
            assert_eq!(figure.name(), name);
        }
        assert!("p51".parse::<Figure>().unwrap_err().contains("there are min, p50"));
    }
}
