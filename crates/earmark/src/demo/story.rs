//! The closing sentences of the demo: what was seen, and what to try next. They say what the
//! numbers say.

use super::Row;

/// How far apart two figures of one noisy run must be before the difference is worth a word.
const NOISE: f64 = 1.10;

/// Tells what the rows show.
pub(super) fn tell(rows: &[Row]) -> String {
    let find = |name: &str| rows.iter().find(|row| row.setting == name);
    let (Some(disabled), Some(delay), Some(marked)) =
        (find("disabled"), find("delay:75"), find("marked:75"))
    else {
        return String::new();
    };
    let figures = [disabled, delay, marked].map(Figures::of);
    let [disabled, delay, marked] = &figures;
    format!(
        "Both at once: delay:75 answered in {:.0} us, disabled in {:.0} us, marked:75 in {:.0} us (medians), \
         with {:.0}, {:.0} and {:.0} interrupts a second. {}{}\n\
         Next: `earmark bench mixed --compare disabled,delay:75,marked:75 --bulk-rate 800` for a heavier flow, \
         `earmark lab shell` for your own programs, `earmark bench --scenario e1000` for exactly 8000 round trips a \
         second.",
        delay.p50,
        disabled.p50,
        marked.p50,
        delay.interrupts,
        disabled.interrupts,
        marked.interrupts,
        verdict(disabled, delay, marked),
        saturation(rows),
    )
}

/// Packets for each interrupt from which on a host practically never stops polling.
const POLLING: f64 = 50.0;

/// Where queueing hides moderation, it should be said.
fn saturation(rows: &[Row]) -> &'static str {
    let polled = |row: &Row| row.bulk.packets_per_interrupt.is_some_and(|each| each > POLLING);
    if rows.iter().all(polled) {
        " Bulk alone, as fast as it goes, kept the hosts polling under every strategy: at saturation \
         queueing hides moderation."
    } else {
        ""
    }
}

struct Figures {
    p50: f64,
    interrupts: f64,
}

impl Figures {
    fn of(row: &Row) -> Self {
        Self {
            p50: row.both.latency_us.as_ref().map_or(f64::NAN, |latency| latency.p50),
            interrupts: row.both.interrupts_per_s,
        }
    }
}

fn verdict(disabled: &Figures, delay: &Figures, marked: &Figures) -> &'static str {
    let as_fast = marked.p50 <= disabled.p50 * NOISE;
    let as_few = marked.interrupts <= delay.interrupts * NOISE;
    if as_fast && disabled.interrupts <= delay.interrupts * NOISE {
        return "Marking gave the latency of `disabled`; at this load that makes few interrupts, too, so \
                only latency tells the strategies apart.";
    }
    match (as_fast, as_few) {
        (true, true) => {
            "Marking the packets that complete a message gave the latency of one setting and the interrupts of the \
             other: no trade-off."
        }
        (true, false) => {
            "Marking gave the latency of `disabled`, but not the interrupts of `delay:75`: look at how the flows \
             overlap in the report's timelines."
        }
        (false, true) => {
            "Marking kept the interrupts of `delay:75`, but did not reach the latency of `disabled`: on a busy machine, \
             queueing and wake-ups hide moderation; try again when it is quiet, or with --rounds 5."
        }
        (false, false) => {
            "On this run marking reached neither: the machine was too busy to tell; try again when it is quiet, or \
             with --rounds 5."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_follows_the_numbers() {
        let figures = |p50, interrupts| Figures { p50, interrupts };
        let (disabled, delay) = (figures(120.0, 3000.0), figures(340.0, 2400.0));
        let says = |p50, interrupts| verdict(&disabled, &delay, &figures(p50, interrupts));
        assert!(says(110.0, 2150.0).contains("no trade-off"));
        assert!(says(110.0, 3000.0).contains("but not the interrupts"));
        assert!(says(300.0, 2150.0).contains("did not reach the latency"));
        assert!(says(300.0, 3000.0).contains("neither"));
        let cheap = figures(120.0, 2500.0);
        let verdict = verdict(&cheap, &delay, &figures(110.0, 2450.0));
        assert!(verdict.contains("only latency"));
    }
}
