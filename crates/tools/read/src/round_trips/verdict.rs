//! What round trips bound, and what they cannot tell.
//!
//! Theory. A *delay* starts with a packet, so it holds every lone packet for its whole time: no
//! round trip is shorter than it, and a change of it moves the shortest as much as the mean. A
//! *throttle* or a *tick* holds only packets that come too soon after the last interrupt: the
//! shortest need not move. A closed loop, which sends when it has an answer, runs at the rate of a
//! throttle, or at a whole fraction of it. Idle states, wake-ups, servers and other paths make the
//! same numbers, so none of this names a cause: trains of packets do.

use schemars::JsonSchema;
use serde::Serialize;

use super::RoundTrips;

/// Fewer samples than this have no levels.
const LEAST_SAMPLES: usize = 20;

/// A level has this part of all samples, or it is chance.
const LEAST_PART: f64 = 0.05;

/// Figures this near to each other are the same, in parts of them; and never nearer than the
/// last, in microseconds.
const SAME: f64 = 0.03;
const SAME_US: f64 = 3.0;

/// Gaps between interrupts that drivers set by themselves: interrupts a second, microseconds, and
/// where they are from.
const GAPS: [(u32, f64, &str); 4] = [
    (8_000, 125.0, "the InterruptThrottleRate that e1000 had by default"),
    (4_000, 250.0, "what e1000, e1000e and igb choose for bulk"),
    (20_000, 50.0, "what e1000, e1000e and igb choose for small packets"),
    (12_048, 83.0, "what ixgbevf chooses for bulk"),
];

/// What follows from round trips.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RoundTripBounds {
    /// What they show.
    pub says: Vec<String>,
    /// What they cannot tell.
    pub cannot_tell: Vec<String>,
    /// The command that can.
    pub next: String,
}

/// What is known beside round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside {
    /// `rx-usecs` before and after a change in the text.
    pub(crate) change: Option<(u32, u32)>,
    /// `rx-usecs` of the device, if the text has one.
    pub(crate) rx_usecs: Option<u32>,
    /// How many series come before the change.
    pub(crate) before: usize,
}

/// What follows from all series of a text, in their order.
pub(crate) fn verdict(series: &[RoundTrips], beside: Beside) -> Option<RoundTripBounds> {
    let first = series.first()?;
    let mut says = floors(series);
    says.extend(series.iter().flat_map(|one| alone(one, beside)));
    says.extend(multiples(series));
    says.extend(together(series, beside));
    let host = series.iter().find_map(|one| one.host.clone()).unwrap_or_else(|| "HOST".into());
    let mut cannot_tell = vec![
        "on which side and in which direction the time goes, and by what: a NIC that holds, an \
         idle state, a wake-up, a slow program and a long path look the same in round trips"
            .to_owned(),
    ];
    if series.iter().any(|one| one.is_smoothed) {
        cannot_tell.push(
            "how long single packets took: iperf3 prints the kernel's smoothed figure, under its \
             own load, so queues are in it"
                .into(),
        );
    }
    if first.source.starts_with("chrony") || first.source.starts_with("ntp") {
        cannot_tell.push(
            "whether the clock is wrong: a hold of one way only moves the offset by half of it, \
             and no delay shows that"
                .into(),
        );
    }
    let next = format!(
        "earmark probe {host}: trains of packets at chosen distances tell a delay, a throttle and \
         a tick apart, with side and length"
    );
    Some(RoundTripBounds { says, cannot_tell, next })
}

/// A time as people read it.
fn us(value: f64) -> String {
    match value {
        value if value >= 10_000.0 => format!("{:.1} ms", value / 1e3),
        value => show::us(value),
    }
}

fn is_same(one: f64, another: f64) -> bool {
    (one - another).abs() <= (one.abs().max(another.abs()) * SAME).max(SAME_US)
}

/// The shortest round trips of each source, and what they bound.
fn floors(series: &[RoundTrips]) -> Vec<String> {
    let mut sources: Vec<&str> = Vec::new();
    for one in series.iter().filter(|one| one.min_us.is_some()) {
        if !sources.contains(&one.source.as_str()) {
            sources.push(&one.source);
        }
    }
    let of_source = |source: &str| {
        let its = || series.iter().filter(move |one| one.source == source);
        let mins: Vec<String> =
            its().filter_map(|one| one.min_us.map(|min| us(one.whole(min)))).collect();
        let half = if its().any(|one| one.is_half) { " (twice what it prints)" } else { "" };
        let of_run = if mins.len() > 1 { " of its run" } else { "" };
        format!(
            "{source}: the shortest took {}{half}: delays that start with each packet are no \
             longer than that{of_run}, both ways together; a throttle or a tick may be longer",
            mins.join(", ")
        )
    };
    sources.into_iter().map(of_source).collect()
}

/// What one series shows by itself.
fn alone(series: &RoundTrips, beside: Beside) -> Vec<String> {
    let mut says = Vec::new();
    let name = &series.source;
    if let Some(min) = series.min_us.map(|min| series.whole(min)) {
        let usecs = beside.rx_usecs.map(f64::from).filter(|usecs| *usecs > min && *usecs > 0.0);
        if let Some(usecs) = usecs.filter(|_| beside.change.is_none()) {
            says.push(format!(
                "{name}: the shortest is shorter than rx-usecs {usecs}, so not every packet was \
                 held that long"
            ));
        }
    }
    if let Some(lost) = series.lost.filter(|lost| *lost > 0) {
        says.push(format!("{name}: {lost} were not answered, which no hold explains"));
    }
    if let Some(levels) = levels(series.samples.kept()) {
        let parts: Vec<String> = levels.iter().map(|level| level.words(series)).collect();
        let steps: Vec<String> = levels
            .windows(2)
            .map(|pair| step(series.whole(pair[1].middle - pair[0].middle)))
            .collect();
        says.push(format!(
            "{name}: they lie at {} levels, {}: steps of {}, each of which may be a hold, an idle \
             state or another path",
            levels.len(),
            parts.join(", "),
            steps.join(", ")
        ));
    }
    says
}

/// A step, and the gap that it is, if drivers set such a gap.
fn step(size: f64) -> String {
    let gap = GAPS.iter().find(|(_, gap, _)| (size - gap).abs() < 0.02 * gap);
    let known =
        gap.map(|(rate, _, whose)| format!(" (the gap of {rate} interrupts a second: {whose})"));
    us(size) + &known.unwrap_or_default()
}

/// Samples close together.
struct Level {
    low: f64,
    high: f64,
    middle: f64,
    part: f64,
}

impl Level {
    fn words(&self, series: &RoundTrips) -> String {
        let (low, high) = (series.whole(self.low), series.whole(self.high));
        format!("{} to {} ({:.0} %)", us(low), us(high), 100.0 * self.part)
    }
}

/// Levels that samples lie at, if there are two or more: between them is a gap that is wide against
/// the levels themselves.
fn levels(samples: &[f64]) -> Option<Vec<Level>> {
    if samples.len() < LEAST_SAMPLES {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut groups: Vec<&[f64]> = Vec::new();
    let mut start = 0;
    for at in 1..=sorted.len() {
        let is_end = sorted.get(at).is_none_or(|next| {
            let gap = next - sorted[at - 1];
            // Wider than most of what is below it, and than what clocks and stacks scatter.
            gap > (sorted[at - 1] * 0.1).max(10.0)
        });
        if is_end {
            groups.push(&sorted[start..at]);
            start = at;
        }
    }
    let level = |group: &&[f64]| Level {
        low: group[0],
        high: group[group.len() - 1],
        middle: group[group.len() / 2],
        part: group.len() as f64 / sorted.len() as f64,
    };
    let levels: Vec<Level> =
        groups.iter().map(level).filter(|level| level.part >= LEAST_PART).collect();
    let is_clear = levels.windows(2).all(|pair| {
        let gap = pair[1].low - pair[0].high;
        gap > (pair[0].high - pair[0].low).max(pair[1].high - pair[1].low)
    });
    ((2..=5).contains(&levels.len()) && is_clear).then_some(levels)
}

/// Figures that are whole multiples of a gap that drivers set.
fn multiples(series: &[RoundTrips]) -> Vec<String> {
    let typical = |one: &RoundTrips| one.p50_us.or(one.mean_us).map(|us| one.whole(us));
    let found: Vec<(f64, String)> = series
        .iter()
        .filter(|one| !one.is_smoothed)
        .flat_map(|one| match levels(one.samples.kept()) {
            Some(levels) => {
                let middle = |it: &Level| (one.whole(it.middle), "a level".to_owned());
                levels.iter().map(middle).collect::<Vec<_>>()
            }
            None => typical(one).map(|us| (us, words_of_rate(one))).into_iter().collect(),
        })
        .collect();
    let mut says = Vec::new();
    for (rate, gap, whose) in GAPS {
        let count = |us: f64| {
            let count = (us / gap).round();
            ((1.0..=4.0).contains(&count) && (us / gap - count).abs() < 0.02 * count)
                .then_some(count)
        };
        let fitting: Vec<(f64, &str)> =
            found.iter().filter_map(|(us, words)| Some((count(*us)?, words.as_str()))).collect();
        let mut counts: Vec<f64> = fitting.iter().map(|(count, _)| *count).collect();
        counts.sort_by(f64::total_cmp);
        counts.dedup();
        // One figure fits by chance; a rate of a closed loop is exact.
        let is_rate = fitting.iter().any(|(count, words)| *count == 1.0 && words.contains("/s"));
        if counts.len() < 2 && !is_rate {
            continue;
        }
        let times: Vec<String> = counts.iter().map(|count| format!("{count:.0}")).collect();
        says.push(format!(
            "times of {} x {gap} us: {gap} us is the gap of {rate} interrupts a second, {whose}; a \
             closed loop under such a throttle takes one gap, or two where both ends have it, \
             whatever the path takes; so does anything that happens to take that long",
            times.join(" and "),
        ));
        break;
    }
    says
}

fn words_of_rate(series: &RoundTrips) -> String {
    series.per_s.map(|rate| format!("{rate:.0}/s")).unwrap_or_default()
}

/// What two runs show, one before and one after something.
fn together(series: &[RoundTrips], beside: Beside) -> Vec<String> {
    let known =
        |one: &RoundTrips| Some((one.whole(one.mean_us?), one.min_us.map(|it| one.whole(it))));
    let mut says = Vec::new();
    if let Some((from, to)) = beside.change {
        let Some(after) = series.get(beside.before) else { return says };
        for before in series.iter().take(beside.before).take(4) {
            let (Some((mean, _)), Some((then, _))) = (known(before), known(after)) else {
                continue;
            };
            says.push(by_change(before, mean - then, from, to));
        }
        return says;
    }
    for pair in series.windows(2).take(8) {
        let [before, after] = pair else { continue };
        if before.is_smoothed || after.is_smoothed || before.source != after.source {
            continue;
        }
        let (Some((mean, Some(min))), Some((mean_after, Some(min_after)))) =
            (known(before), known(after))
        else {
            continue;
        };
        if is_same(mean, mean_after) {
            continue;
        }
        let (by_mean, by_min) = (mean_after - mean, min_after - min);
        let moved = format!(
            "from one run to the next the mean went from {} to {}",
            us(mean),
            us(mean_after)
        );
        says.push(if is_same(min, min_after) {
            format!(
                "{moved}, and the shortest stayed at {}: what changed is no delay that starts with \
                 each packet, which would have moved the shortest as well; a throttle, a tick, an \
                 idle state or other work may have",
                us(min_after)
            )
        } else if (by_mean - by_min).abs() < 0.25 * by_mean.abs() {
            format!(
                "{moved}, and the shortest as much: something that each packet meets, as a delay \
                 that starts with it, or a path"
            )
        } else {
            format!("{moved}, and the shortest from {} to {}", us(min), us(min_after))
        });
    }
    says
}

/// How a change of `rx-usecs` fits a change of the mean.
fn by_change(before: &RoundTrips, fell: f64, from: u32, to: u32) -> String {
    let set = f64::from(from) - f64::from(to);
    let (verb, size) = if fell >= 0.0 { ("fell", fell) } else { ("rose", -fell) };
    let start = format!(
        "rx-usecs went from {from} to {to}, and the mean {verb} by {} from that at {}",
        us(size),
        before.at
    );
    let ratio = if set == 0.0 { 0.0 } else { fell / set };
    let fits = match ratio {
        ratio if (0.8..1.2).contains(&ratio) => {
            "as a hold of that length in one direction would have it"
        }
        ratio if (1.7..2.3).contains(&ratio) => {
            "as a hold of that length in both directions would have it"
        }
        ratio if ratio.abs() < 0.2 => "so that setting is not what takes the time",
        _ => "which is no whole number of holds of that length",
    };
    format!("{start}, {fits} ({})", us(set.abs()))
}
