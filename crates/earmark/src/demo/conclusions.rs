//! The closing sentences of the demo: what was seen, and what to try next. Each follows from the
//! figures of the run, and says which.

use super::Row;
use super::agreement::Agreement;
use bench::compare::not_measured;
use bench::experiment::{MIXED_BULK_MBIT, MIXED_ROUND_TRIPS_PER_S};
use bench::measurement::Measurement;
use sys::ctrl_c;

/// How far apart two figures of one noisy run must be before the difference is worth a word.
const NOISE: f64 = 1.10;

/// The part of the load that may be missing where it counts as carried.
const MISSING: f64 = 0.02;

pub(super) const NEXT: &str = "\
Next:   earmark show         what delays packets on the NICs of this machine
        earmark lab shell    your own programs between two hosts
        earmark bench mixed --compare disabled,delay:75,marked:75 --bulk-rate 800";

/// Says whether real traffic confirms the model.
pub(super) fn of_real_traffic(rows: &[Row], agreement: Agreement) -> String {
    let Agreement { agreed, rounds } = agreement;
    let said = if ctrl_c::is() {
        format!("Interrupted: {agreed} of {rounds} rounds agree with the model until then.")
    } else if agreement.confirms() {
        format!(
            "Confirmed: in {agreed} of {rounds} rounds `marked:75` was nearer to the latency of \
             `disabled` than to that of `delay:75`, and nearer to the interrupts of `delay:75`."
        )
    } else {
        format!(
            "This machine cannot tell now: only in {agreed} of {rounds} rounds was `marked:75` \
             nearer to the latency of `disabled` and to the interrupts of `delay:75`. Nothing is \
             concluded from these figures; those of the model do not depend on the machine. \
             Repeat it when the machine is quiet."
        )
    };
    format!("{said}{}", missed(rows))
}

fn missed(rows: &[Row]) -> String {
    not_measured(rows.iter().flat_map(|row| row.round_trips.iter().chain([&row.both])))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(p50: f64, interrupts: f64) -> Figures {
        Figures { p50, interrupts }
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
