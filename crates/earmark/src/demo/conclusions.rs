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

pub(super) const NEXT: &str = "Next: `earmark bench mixed --compare disabled,delay:75,marked:75 --bulk-rate 800` for a \
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
    format!("{seen} {}{}", load(rows), missed(rows))
}

fn missed(rows: &[Row]) -> String {
    let measured =
        rows.iter().flat_map(|row| [&row.round_trips, &row.both].into_iter().chain(&row.bulk));
    not_measured(measured)
}

/// Says which strategies of the model have the latency of `disabled` and the interrupts of
/// `delay:75`.
pub(super) fn of_model(rows: &[Row]) -> String {
    let figures = |row: &Row| Some((row.setting.clone(), Figures::of(&row.both)?));
    let figures: Vec<_> = rows.iter().filter_map(figures).collect();
    let short = shortfall(&carried(rows)).map_or_else(String::new, |short| format!(" {short}"));
    format!("{}{short}{}", best_of(&figures), missed(rows))
}

fn best_of(figures: &[(String, Figures)]) -> String {
    let of = |name| figures.iter().find(|(setting, _)| setting == name).map(|(_, it)| it);
    let (Some(disabled), Some(delay)) = (of("disabled"), of("delay:75")) else {
        return "Without a measurement of disabled and of delay:75 there is no verdict.".to_owned();
    };
    let (latency, interrupts) = (disabled.p50 * NOISE, delay.interrupts * NOISE);
    let within = (NOISE - 1.0) * 100.0;
    let seen = format!(
        "Beside the bulk flow `disabled` answers in {:.0} us with {:.0} interrupts a second, \
         `delay:75` in {:.0} us with {:.0}",
        disabled.p50, disabled.interrupts, delay.p50, delay.interrupts
    );
    if disabled.interrupts <= interrupts || delay.p50 <= latency {
        return format!(
            "{seen}: within {within:.0} % one of them has both the latency of `disabled` and the \
             interrupts of `delay:75`, so these hosts have no trade-off at this load."
        );
    }
    let has_both = |it: &Figures| it.p50 <= latency && it.interrupts <= interrupts;
    let best: Vec<String> = figures
        .iter()
        .filter(|(_, it)| has_both(it))
        .map(|(name, it)| format!("`{name}` ({:.0} us, {:.0})", it.p50, it.interrupts))
        .collect();
    let both = format!(
        "the latency of the one and no more interrupts than the other, within {within:.0} %"
    );
    match best.split_last() {
        None => format!("{seen}; no strategy has {both}."),
        Some((only, [])) => format!("{seen}; {only} has {both}."),
        Some((last, others)) => format!("{seen}; {} and {last} have {both}.", others.join(", ")),
    }
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
    load_of(&carried(rows))
}

fn carried(rows: &[Row]) -> Vec<Carried<'_>> {
    rows.iter()
        .map(|row| {
            let mbit = row.both.bulk_bits_per_s.map(|bits| bits / 1e6);
            (row.setting.as_str(), mbit, row.both.transactions_per_s)
        })
        .collect()
}

/// A strategy, and the Mbit/s and round trips a second that it carried, where they were measured.
type Carried<'a> = (&'a str, Option<f64>, Option<f64>);

fn load_of(strategies: &[Carried<'_>]) -> String {
    shortfall(strategies).unwrap_or_else(|| {
        let is_known = |it: &Carried<'_>| it.1.is_some() && it.2.is_some();
        let all = strategies.iter().all(is_known);
        let who = if all { "All strategies" } else { "The strategies that were measured" };
        format!("{who} carried the load of {}, within {:.0} %.", offered(), MISSING * 100.0)
    })
}

/// Names the strategies that did not carry the load, if there are any.
fn shortfall(strategies: &[Carried<'_>]) -> Option<String> {
    let lacks = |carried: Option<f64>, all: u32| {
        carried.is_some_and(|carried| carried < f64::from(all) * (1.0 - MISSING))
    };
    let short: Vec<String> = strategies
        .iter()
        .filter(|it| lacks(it.1, MIXED_BULK_MBIT) || lacks(it.2, MIXED_ROUND_TRIPS_PER_S))
        .map(|(setting, mbit, round_trips)| {
            let (mbit, round_trips) = (mbit.unwrap_or(0.0), round_trips.unwrap_or(0.0));
            format!("{setting} carried {mbit:.0} Mbit/s and {round_trips:.0} a second")
        })
        .collect();
    (!short.is_empty()).then(|| {
        format!(
            "Not all strategies carried the load of {}: {}. Their latency and interrupts do not \
             compare with those of the others.",
            offered(),
            short.join(", ")
        )
    })
}

fn offered() -> String {
    format!("{MIXED_BULK_MBIT} Mbit/s and {MIXED_ROUND_TRIPS_PER_S} round trips a second")
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
    fn the_sentence_of_the_model_names_who_has_both() {
        let sentence = |third: Figures, disabled: f64| {
            let all = [figures(30.0, disabled), figures(158.0, 9_600.0), third];
            let names = ["disabled", "delay:75", "marked:75"].map(str::to_owned);
            best_of(&names.into_iter().zip(all).collect::<Vec<_>>())
        };
        let both = sentence(figures(30.4, 8_400.0), 42_800.0);
        assert!(both.contains("`disabled` answers in 30 us with 42800 interrupts"), "{both}");
        assert!(both.contains("; `marked:75` (30 us, 8400) has the latency of the one"), "{both}");
        for third in [figures(30.0, 20_000.0), figures(90.0, 8_400.0)] {
            assert!(sentence(third, 42_800.0).contains("no strategy has"));
        }
        assert!(sentence(figures(30.0, 9_600.0), 9_700.0).contains("no trade-off"));
        assert!(best_of(&[]).contains("no verdict"));
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
