//! What a probe found, for people and as JSON.

use base::quantiles::Quantiles;
use infer::{
    Family, Finding, Length, Lengths, MeasuredTrain, NoHold, OtherDelay, Place, Purpose, Unclear,
    UnclearReason, Verdict,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::prober::EchoKind;
use super::recording::Origin;
use report::terminal::{Table, Width, number};

/// How wide the longest bar of the histogram is.
const BAR: usize = 40;

/// Columns beside the bars.
const BESIDE: usize = 36;

const ROWS: usize = 10;

/// What a probe found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Its name, as it was given.
    host: String,
    /// What answered: an echo, or a server of this protocol.
    kind: EchoKind,
    /// Probes that asked for an answer.
    sent: usize,
    /// Those that got one.
    answered: usize,
    /// All round trips, in trains and alone, but of answers that were asked for later.
    round_trip_us: Option<Quantiles>,
    /// Those of short lone probes after a silence: what a quiet client sees.
    lone_round_trip_us: Option<Quantiles>,
    /// All round trips in nanoseconds, ascending, for the histogram.
    #[serde(skip)]
    sorted: Vec<u64>,
    /// The step in which times move, if it is coarse.
    quantum_ns: Option<u64>,
    /// The holds found, at most one a side and length.
    holds: Vec<Finding>,
    /// Where longer holds are excluded.
    no_holds: Vec<NoHold>,
    /// Where the data does not say whether there is a hold.
    cannot_tell: Vec<CannotTell>,
    /// What costs time and is no hold.
    not_holds: Vec<NotHold>,
    /// By how much an NTP client believes this host's clock to be ahead of what it is.
    offset_bend_us: Option<f64>,
    /// All of it in words, a sentence each.
    words: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CannotTell {
    /// The side; both where only round trips are known.
    side: Place,
    /// Of which packets.
    lengths: Lengths,
    /// Longer ones are excluded; null where none is.
    below_usecs: Option<f64>,
    /// What keeps the data from telling: the reasons of docs/probe.md.
    why: Vec<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct NotHold {
    /// What looks like a hold.
    what: &'static str,
    /// The side, where it has one.
    side: Option<Place>,
    /// How long it takes, in microseconds.
    usecs: f64,
}

/// The device of this host that answers come through, and what it says of itself.
#[derive(Clone, Debug)]
pub struct Local {
    /// The interface, such as `eth0`.
    pub device: String,
    /// `rx-usecs`, where its driver has that.
    pub rx_usecs: Option<u64>,
    /// `gro_flush_timeout` in nanoseconds and `napi_defer_hard_irqs`, where interrupts are
    /// deferred.
    pub deferral: Option<(u64, u64)>,
}

impl Local {
    fn remedy(&self, family: Family) -> String {
        let Self { device, rx_usecs, deferral } = self;
        let adaptive = if family == Family::Adaptive { "adaptive-rx off " } else { "" };
        let setting = match rx_usecs {
            Some(now) => format!(
                "{device} has rx-usecs {now}: `earmark apply {device} {adaptive}rx-usecs 0` ends that, \
                 at an interrupt for each packet"
            ),
            None => format!("{device} has no rx-usecs"),
        };
        let deferred = deferral.map(|(nanos, polls)| {
            format!(
                "; its kernel defers interrupts, gro_flush_timeout {nanos} ns and napi_defer_hard_irqs {polls}: \
                 `earmark apply {device} napi-defer-hard-irqs 0`"
            )
        });
        setting + &deferred.unwrap_or_default()
    }
}

/// What is known here of what changes a hold.
fn remedy(finding: &Finding, local: Option<&Local>) -> Option<String> {
    match (finding.place, local) {
        (Place::Mine, Some(local)) => Some(local.remedy(finding.family)),
        (Place::Mine, None) => Some("`earmark show` says what sets it here".to_owned()),
        (Place::Theirs, _) => Some(
            "what sets it there is not known here: `earmark show` on the far host says".to_owned(),
        ),
        (Place::Nowhere | Place::Unknown, _) => None,
    }
}

impl Report {
    /// Its cells in a table of hosts: echo, median and 99th percentile of lone round trips,
    /// answers, and what was found.
    pub fn cells(&self) -> [String; 5] {
        let lone = |of: fn(Quantiles) -> f64| number(self.lone_round_trip_us.map(of), 1);
        let answered = format!("{}/{}", self.answered, self.sent);
        [self.kind.name().to_owned(), lone(|it| it.p50), lone(|it| it.p99), answered, self.found()]
    }

    /// The packets that are meant, where it is not all that this echo answers.
    fn of(&self, lengths: Lengths) -> &'static str {
        match lengths {
            Lengths::Full => " (full segments)",
            Lengths::Short if self.kind.can_be_full() => " (short packets)",
            _ => "",
        }
    }

    fn found(&self) -> String {
        let holds = self.holds.iter().map(|hold| {
            let frames = hold.frames.map_or_else(String::new, |it| format!(" or {it} frames"));
            let of = self.of(hold.lengths);
            format!("{}: {} {:.1} us{frames}{of}", hold.place.name(), hold.family, hold.usecs.value)
        });
        let unclear = self
            .cannot_tell
            .iter()
            .map(|it| format!("{}: cannot tell{}", it.side.name(), self.of(it.lengths)));
        let all: Vec<String> = holds.chain(unclear).collect();
        let above = self.no_holds.iter().map(|it| it.above).fold(0.0, f64::max);
        if all.is_empty() { format!("no hold above {above:.1} us") } else { all.join("; ") }
    }

    /// What was heard from `origin`, and judged.
    pub fn new(
        origin: &Origin,
        heard: &[MeasuredTrain],
        verdict: &Verdict,
        local: Option<&Local>,
    ) -> Self {
        let mut words = verdict.reasons.clone();
        // The first ones are of the findings, in their order.
        for (words, finding) in words.iter_mut().zip(&verdict.findings) {
            words.extend(remedy(finding, local).into_iter().flat_map(|it| ["; ".to_owned(), it]));
        }
        let is_lone =
            |heard: &&MeasuredTrain| heard.probes.len() == 1 && heard.train.length == Length::Short;
        let sorted = sorted_round_trips(heard.iter());
        Self {
            host: origin.host.clone(),
            kind: origin.kind,
            sent: verdict.answered.1,
            answered: verdict.answered.0,
            round_trip_us: Quantiles::of_sorted(&sorted),
            lone_round_trip_us: Quantiles::of_sorted(&sorted_round_trips(
                heard.iter().filter(is_lone),
            )),
            sorted,
            quantum_ns: verdict.quantum,
            holds: verdict.findings.clone(),
            no_holds: verdict.excluded.clone(),
            cannot_tell: verdict.unclear.iter().map(cannot_tell).collect(),
            not_holds: verdict.other_delays.iter().map(not_hold).collect(),
            offset_bend_us: verdict.offset_bend,
            words,
        }
    }

    /// What was found, in words, and below that a table and a histogram, for people.
    pub fn text(&self, width: Width) -> String {
        let Self { host, kind, sent, answered, .. } = self;
        let title = format!("{host} by {}: {answered} of {sent} probes answered", kind.name());
        let sentences = std::iter::once(&title).chain(&self.words);
        let sentences: Vec<String> = sentences.map(|words| width.wrap(words)).collect();
        let mut table = Table::new([
            ("round trip us", 0),
            ("min", 0),
            ("p50", 0),
            ("p90", 1),
            ("p99", 0),
            ("max", 2),
        ]);
        for (name, times) in
            [("lone probes", self.lone_round_trip_us), ("all probes", self.round_trip_us)]
        {
            let of = |of: fn(Quantiles) -> f64| number(times.map(of), 1);
            let values = [of(|it| it.min), of(|it| it.p50), of(|it| it.p90), of(|it| it.p99)];
            table.add_row([name.to_owned()].into_iter().chain(values).chain([of(|it| it.max)]));
        }
        let mut text = sentences.join("\n") + "\n\n" + &table.fit(width) + "\n\n";
        for (from, to, count, bar) in self.rows(width.bar(BESIDE, BAR)) {
            text += &format!("{from:8.1} to {to:8.1} us {count:6}  {bar}\n");
        }
        if let Some(quantum) = self.quantum_ns {
            text += &format!("\ntimes move in steps of {quantum} ns\n");
        }
        text
    }

    /// Equal shares of the time between the minimum and the 99th percentile, and what is beyond.
    fn rows(&self, longest: usize) -> Vec<(f64, f64, usize, String)> {
        let Some(Quantiles { min, p99, max, .. }) = self.round_trip_us else { return Vec::new() };
        let width = (p99 - min) / ROWS as f64;
        if width <= 0.0 {
            return Vec::new();
        }
        let mut counts = [0; ROWS + 1];
        for time in &self.sorted {
            counts[(((*time as f64 / 1e3 - min) / width) as usize).min(ROWS)] += 1;
        }
        let most = counts.iter().copied().max().unwrap_or(1).max(1);
        let row = |(row, count): (usize, &usize)| {
            let from = min + width * row as f64;
            let to = if row == ROWS { max.max(from) } else { from + width };
            (from, to, *count, "#".repeat(count * longest / most))
        };
        counts.iter().enumerate().map(row).collect()
    }
}

/// Round trips in nanoseconds, ascending, but those whose answer was asked for later.
fn sorted_round_trips<'a>(heard: impl Iterator<Item = &'a MeasuredTrain>) -> Vec<u64> {
    let usual = heard.filter(|heard| heard.train.purpose != Purpose::Spaced);
    let probes = usual.flat_map(|heard| &heard.probes);
    let mut times: Vec<u64> = probes.filter_map(|it| Some(it.received? - it.sent)).collect();
    times.sort_unstable();
    times
}

fn cannot_tell(unclear: &Unclear) -> CannotTell {
    let why = |why: &UnclearReason| match why {
        UnclearReason::Lost => "answers lost",
        UnclearReason::Spacing { .. } => "probes too far apart",
        UnclearReason::Few { .. } => "few probes",
        UnclearReason::Answers { .. } => "answers too far apart",
        UnclearReason::Noise => "noise",
        UnclearReason::RoundTrips => "round trips",
    };
    CannotTell {
        side: unclear.place,
        lengths: unclear.lengths,
        below_usecs: unclear.below,
        why: unclear.why.iter().map(why).collect(),
    }
}

fn not_hold(delay: &OtherDelay) -> NotHold {
    let (what, place, usecs) = match delay {
        OtherDelay::Waking { place, takes, .. } => ("idle state", Some(*place), *takes),
        OtherDelay::Stray { place, usecs, .. } => ("late at random", Some(*place), *usecs),
        OtherDelay::Server { median, .. } => ("far program", None, *median),
        OtherDelay::First { usecs } => ("first packet", None, *usecs),
    };
    // Of round trips, which side it is on is not known.
    let side = place.map(|it| if it == Place::Nowhere { Place::Unknown } else { it });
    NotHold { what, side, usecs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use infer::Interval;
    use report::terminal::checks::fits;

    fn finding(place: Place) -> Finding {
        Finding {
            place,
            lengths: Lengths::Both,
            family: Family::Adaptive,
            usecs: Interval { value: 75.0, low: 74.0, high: 76.0 },
            frames: None,
            bound: None,
            polls: None,
            lone_usecs: 9.0,
            confidence: 1.0,
            alike: vec![Family::Delay],
            or_program: false,
        }
    }

    #[test]
    fn no_remedy_is_named_that_the_device_does_not_have() {
        let local = |rx_usecs, deferral| Local { device: "eth7".into(), rx_usecs, deferral };
        let found = |place, local: Option<Local>| remedy(&finding(place), local.as_ref());
        let mine =
            |rx_usecs, deferral| found(Place::Mine, Some(local(rx_usecs, deferral))).unwrap();
        assert!(mine(Some(9), None).contains("`earmark apply eth7 adaptive-rx off rx-usecs 0`"));
        assert_eq!(mine(None, None), "eth7 has no rx-usecs");
        let deferred = mine(None, Some((20_000, 2)));
        assert!(deferred.ends_with("`earmark apply eth7 napi-defer-hard-irqs 0`"), "{deferred}");
        for local in [None, Some(local(Some(9), None))] {
            let theirs = found(Place::Theirs, local.clone()).unwrap();
            assert!(
                theirs.contains("is not known here") && !theirs.contains("ethtool"),
                "{theirs}"
            );
            assert_eq!(found(Place::Unknown, local), None);
        }
    }

    #[test]
    fn every_terminal_has_the_medians_and_the_words() {
        let times = Quantiles {
            min: 100.0,
            p50: 28_156.5,
            p90: 98_765.4,
            p99: 123_456.7,
            p999: 123_456.7,
            max: 98_765_432.1,
            ..Quantiles::default()
        };
        let words =
            "mine, delay, 393.2 us (at least 380.1, at most 401.7): what arrives first waits";
        let report = Report {
            host: "a-host-with-a-long-name.example.org".into(),
            kind: EchoKind::Udp,
            sent: 12_345,
            answered: 12_001,
            round_trip_us: Some(times),
            lone_round_trip_us: Some(times),
            sorted: (0..2_000).map(|it| 100_000 + it * 77_700).collect(),
            quantum_ns: Some(1_000_000),
            holds: vec![finding(Place::Mine)],
            no_holds: vec![NoHold { place: Place::Nowhere, lengths: Lengths::Short, above: 9.0 }],
            cannot_tell: Vec::new(),
            not_holds: vec![not_hold(&OtherDelay::First { usecs: 900.0 })],
            offset_bend_us: None,
            words: vec![words.to_owned()],
        };
        report::json::checks::conforms(&report);
        fits(|width| report.text(width), &["28156.5", "123456.7", "lone probes", "393.2 us"]);
        let text = report.text(Width::columns(80));
        assert!(text.find("393.2 us") < text.find("lone probes"), "the verdict is on top: {text}");
    }
}
