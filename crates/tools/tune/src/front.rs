//! The front: settings that no other one beats in everything, and what the fastest of them cost.

use report::numbers::signed;

use super::figures::{Figures, Metric};

/// What counts as no worse: figures within 2 %.
const NOISE: f64 = 1.02;

/// Of each, whether no other is at least as good in `latency`, CPU time and interrupts, and better
/// in one of them. What is not measured is not compared.
pub(crate) fn front(all: &[Figures], latency: Metric) -> Vec<bool> {
    let metrics = [latency, Metric::Cpu, Metric::Interrupts];
    let beats = |a: &Figures, b: &Figures| {
        let pairs = || metrics.iter().filter_map(|metric| Some((a.get(*metric)?, b.get(*metric)?)));
        pairs().all(|(a, b)| a <= b * NOISE) && pairs().any(|(a, b)| a * NOISE < b)
    };
    let measured = |figures: &Figures| figures.get(latency).is_some();
    all.iter().map(|one| measured(one) && !all.iter().any(|other| beats(other, one))).collect()
}

/// What a setting without any hold costs, compared with another one: interrupts and CPU time. It is
/// stated wherever such a setting is recommended.
pub(crate) fn price(pick: &Figures, other: &Figures, other_name: &str) -> String {
    let mut parts = Vec::new();
    if let Some(interrupts) = pick.get(Metric::Interrupts) {
        let mut part = Metric::Interrupts.with_unit(interrupts);
        if let Some(others) = other.get(Metric::Interrupts).filter(|others| *others > 0.0) {
            part += &format!(", {:.1} times as many as {other_name}", interrupts / others);
        }
        parts.push(part);
    }
    if let Some(cpu) = pick.get(Metric::Cpu) {
        let mut part = Metric::Cpu.with_unit(cpu);
        if let Some(others) = other.get(Metric::Cpu) {
            // Apart by less than is measured, or less: that is no price.
            part += &match signed(cpu - others, 2) {
                more if more.starts_with('+') => {
                    format!(" of CPU time ({more} against {other_name})")
                }
                _ => format!(" of CPU time, no more than {other_name}"),
            };
        }
        parts.push(part);
    }
    if parts.is_empty() {
        parts.push("an interrupt for each packet, which this device does not count".into());
    }
    format!("the price of never waiting: {}; under more load it is higher", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(p99: f64, cpu: f64, interrupts: f64) -> Figures {
        Figures([(Metric::P99, p99), (Metric::Cpu, cpu), (Metric::Interrupts, interrupts)].into())
    }

    #[test]
    fn the_front_has_the_trials_that_no_other_beats() {
        let all = [
            figures(100.0, 0.9, 9_000.0),
            figures(150.0, 0.5, 5_000.0),
            figures(160.0, 0.5, 5_100.0), // beaten by the one before
            figures(300.0, 0.2, 1_000.0),
            figures(301.0, 0.2, 1_001.0), // the same as the one before, within the noise
            Figures::default(),
        ];
        assert_eq!(front(&all, Metric::P99), [true, true, false, true, true, false]);
        assert!(front(&[], Metric::P99).is_empty());
    }

    #[test]
    fn a_price_names_interrupts_and_cpu_time() {
        let text = price(&figures(50.0, 0.9, 9_000.0), &figures(60.0, 0.5, 3_000.0), "rx-usecs 8");
        assert!(text.contains("9000 interrupts/s, 3.0 times as many as rx-usecs 8"), "{text}");
        assert!(text.contains("0.90 cores of CPU time (+0.40 against rx-usecs 8)"), "{text}");
        let text = price(&figures(50.0, 0.001, 9.0), &figures(60.0, 0.01, 3.0), "rx-usecs 8");
        assert!(text.contains("0.00 cores of CPU time, no more than rx-usecs 8"), "{text}");
        assert!(price(&Figures::default(), &Figures::default(), "x").contains("does not count"));
    }
}
