//! The closing sentences of the demo: what was seen, and what to try next. Each follows from the
//! figures of the run, and says which.

use super::Row;
use bench::compare::not_measured;
use bench::experiment::{MIXED_BULK_MBIT, MIXED_ROUND_TRIPS_PER_S};
use bench::measurement::Measurement;

/// How far apart two figures of one noisy run must be before the difference is worth a word.
const NOISE: f64 = 1.10;

/// The part of the load that may be missing where it counts as carried.
const MISSING: f64 = 0.02;

/// What to do where marking did not give what it gives elsewhere.
const REPEAT: &str = "Repeat it when the machine is quiet, with `--rounds 5`.";

const NEXT: &str = "Next: `earmark bench mixed --compare disabled,delay:75,marked:75 --bulk-rate 800` for a \
     heavier flow, `earmark lab shell` for your own programs, `earmark bench --scenario e1000` for \
     exactly 8000 round trips a second.";

/// Tells what the rows show.
pub(super) fn sentences(rows: &[Row]) -> String {
    let of =
        |name| rows.iter().find(|row| row.setting == name).and_then(|row| Figures::of(&row.both));
    let all = (of("disabled"), of("delay:75"), of("marked:75"));
    let seen = match all {
        (Some(disabled), Some(delay), Some(marked)) => {
            format!(
                "{} {}",
                medians(&disabled, &delay, &marked),
                verdict(&disabled, &delay, &marked)
            )
        }
        _ => {
            "Both at once: without a measurement of each of disabled, delay:75 and marked:75 there \
              is no verdict."
                .to_owned()
        }
    };
    let measured = rows.iter().flat_map(|row| [&row.round_trips, &row.bulk, &row.both]);
    let missed = not_measured(measured);
    format!("{seen} {}{missed}\n{NEXT}", load(rows))
}

fn medians(disabled: &Figures, delay: &Figures, marked: &Figures) -> String {
    format!(
        "Both at once: delay:75 answered in {:.0} us, disabled in {:.0} us, marked:75 in {:.0} us \
         (medians), with {:.0}, {:.0} and {:.0} interrupts a second.",
        delay.p50,
        disabled.p50,
        marked.p50,
        delay.interrupts,
        disabled.interrupts,
        marked.interrupts,
    )
}

/// Whether the load of *both at once* was carried under each strategy, and which ones did not.
pub(super) fn load(rows: &[Row]) -> String {
    let carried = rows.iter().map(|row| {
        let mbit = row.both.bulk_bits_per_s.map(|bits| bits / 1e6);
        (row.setting.as_str(), mbit, row.both.transactions_per_s)
    });
    load_of(&carried.collect::<Vec<_>>())
}

/// A strategy, and the Mbit/s and round trips a second that it carried, where they were measured.
type Carried<'a> = (&'a str, Option<f64>, Option<f64>);

fn load_of(strategies: &[Carried<'_>]) -> String {
    let all = [f64::from(MIXED_BULK_MBIT), f64::from(MIXED_ROUND_TRIPS_PER_S)];
    let offered = format!("{:.0} Mbit/s and {:.0} round trips a second", all[0], all[1]);
    let lacks = |carried: Option<f64>, all: f64| {
        carried.is_some_and(|carried| carried < all * (1.0 - MISSING))
    };
    let short = strategies.iter().filter(|it| lacks(it.1, all[0]) || lacks(it.2, all[1]));
    let short: Vec<String> = short
        .map(|(setting, mbit, round_trips)| {
            let (mbit, round_trips) = (mbit.unwrap_or(0.0), round_trips.unwrap_or(0.0));
            format!("{setting} carried {mbit:.0} Mbit/s and {round_trips:.0} a second")
        })
        .collect();
    if !short.is_empty() {
        return format!(
            "Not all strategies carried the load of {offered}: {}. Their latency and interrupts do \
             not compare with those of the others.",
            short.join(", ")
        );
    }
    let is_known = |it: &Carried<'_>| it.1.is_some() && it.2.is_some();
    let all = strategies.iter().all(is_known);
    let who = if all { "All strategies" } else { "The strategies that were measured" };
    format!("{who} carried the load of {offered}, within {:.0} %.", MISSING * 100.0)
}

/// What a verdict is made of, for one strategy.
struct Figures {
    p50: f64,
    interrupts: f64,
}

impl Figures {
    fn of(both: &Measurement) -> Option<Self> {
        Some(Self { p50: both.latency_us?.p50, interrupts: both.interrupts_per_s? })
    }
}

fn verdict(disabled: &Figures, delay: &Figures, marked: &Figures) -> String {
    let as_fast = marked.p50 <= disabled.p50 * NOISE;
    let as_few = marked.interrupts <= delay.interrupts * NOISE;
    // Near those of both is not evidence for either.
    let as_many = as_few && disabled.interrupts <= marked.interrupts * NOISE;
    if as_fast && (as_many || disabled.interrupts <= delay.interrupts * NOISE) {
        return "Marking gave the latency of `disabled`; at this load the interrupts of the \
                strategies differ too little to tell, so only latency tells them apart."
            .to_owned();
    }
    match (as_fast, as_few) {
        (true, true) => {
            "Marking the packets that complete a message gave the latency of one setting \
                         and the interrupts of the other: no trade-off."
                .to_owned()
        }
        (true, false) => "Marking gave the latency of `disabled`, but not the interrupts of \
                          `delay:75`: a capture (`bench mixed --pcap FILE`) says of each packet \
                          why it interrupted."
            .to_owned(),
        (false, true) => format!(
            "Marking kept the interrupts of `delay:75`, but did not reach the latency of \
             `disabled`. {REPEAT}"
        ),
        (false, false) => format!("On this run marking reached neither. {REPEAT}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(p50: f64, interrupts: f64) -> Figures {
        Figures { p50, interrupts }
    }

    #[test]
    fn the_verdict_follows_the_numbers() {
        let (disabled, delay) = (figures(120.0, 3000.0), figures(340.0, 2400.0));
        let verdict_of = |p50, interrupts| verdict(&disabled, &delay, &figures(p50, interrupts));
        assert!(verdict_of(110.0, 2150.0).contains("no trade-off"));
        assert!(verdict_of(110.0, 3000.0).contains("but not the interrupts"));
        assert!(verdict_of(300.0, 2150.0).contains("did not reach the latency"));
        assert!(verdict_of(300.0, 3000.0).contains("neither"));
        for (disabled, marked) in [(2500.0, 2450.0), (2500.0, 2150.0), (2700.0, 2560.0)] {
            let (disabled, marked) = (figures(120.0, disabled), figures(110.0, marked));
            assert!(verdict(&disabled, &delay, &marked).contains("only latency"));
        }
    }

    #[test]
    fn a_load_that_was_not_carried_is_named() {
        let carried =
            |setting, mbit: f64, round_trips: f64| (setting, Some(mbit), Some(round_trips));
        let (full, short) = (carried("disabled", 299.0, 998.0), carried("adaptive", 251.0, 870.0));
        assert!(load_of(&[full]).starts_with("All strategies carried the load of 300 Mbit/s and"));
        let unknown = ("delay:75", None, None);
        assert!(load_of(&[unknown]).starts_with("The strategies that were measured carried"));
        let text = load_of(&[carried("disabled", 299.0, 998.0), short]);
        assert!(text.contains("Not all") && text.contains("adaptive carried 251 Mbit/s and 870"));
        assert!(!text.contains("disabled"), "{text}");
    }
}
