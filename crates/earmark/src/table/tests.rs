//! The tables of `bench`: ratios, and what of them fits common terminals.

use super::*;
use base::distribution::Distribution;
use bench::compare::Figure;
use bench::environment::Environment;
use bench::measurement::{Cpu, Round};
use bench::ratio::Spread;
use report::terminal::checks::fits;

/// Wide values in every column that an experiment may have.
fn measurement(setting: &str) -> Measurement {
    let quantiles = Quantiles {
        count: 1_000,
        min: 144.4,
        p50: 28_156.3,
        p90: 300_000.5,
        p99: 1_234_567.8,
        p999: 12_345_678.9,
        max: 98_765_432.1,
        mean: 31_415.9,
        exact: true,
    };
    let mut environment = Environment::of("live");
    environment.cpu_model = "a processor of 128 cores at 2.25 GHz".into();
    environment.link = "1000 Mbit/s, 50 us, no loss".into();
    Measurement {
        busy_polled: None,
        polling_cpu: None,
        setting: setting.into(),
        clients: None,
        seconds: 6.0,
        latency_us: Some(quantiles),
        half_round_trip_us: None,
        service_us: None,
        latency_histogram: Vec::new(),
        transactions_per_s: Some(123_456.0),
        lost: Some(0),
        bulk_bits_per_s: None,
        datagrams_per_s: None,
        messages_per_s: None,
        message_bytes_per_s: None,
        interrupts_per_message: None,
        interrupts: Some(1),
        interrupts_per_s: Some(654_321.0),
        interrupts_by_reason: [].into(),
        packets: Some(1),
        packets_per_interrupt: Some(43.9),
        hold_us: Some(quantiles),
        timer_overshoot_us: Some(quantiles),
        cpu: Some(Cpu { nic: 0.98, nic_spin: 0.0, host: 1.97, host_receive: 0.5 }),
        receive_ns_per_packet: Some(1_765.0),
        ports: Vec::new(),
        one_way: Vec::new(),
        rounds: Vec::new(),
        environment,
        latency: Distribution::default(),
        series: Vec::new(),
    }
}

fn comparison(experiment: &str, results: Vec<Measurement>) -> Comparison {
    let (experiment, ratios) = (experiment.to_owned(), Vec::new());
    Comparison { experiment, world: "live".into(), crowd: None, mx: None, results, ratios }
}

const SETTINGS: [&str; 4] = ["disabled", "delay:75+frames:16", "marked+throttle:125", "stream:75"];

/// Ratios of each setting to each other one, wide ones.
fn every_ratio(figure: Figure, clients: Option<u32>) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    for of in SETTINGS {
        for to in SETTINGS.into_iter().filter(|to| *to != of) {
            let (of, to) = (of.to_owned(), to.to_owned());
            let spread = Spread { median: 123.45, min: 0.07, max: 9_876.54 };
            ratios.push(Ratio { figure, of, to, clients, spread });
        }
    }
    ratios
}

/// Rounds enough for a range.
fn repeat(results: &mut [Measurement]) {
    for result in results {
        result.rounds = (0..2).map(|_| Round::default()).collect();
    }
}

#[test]
fn settings_that_are_compared_and_their_ratios_fit_every_terminal() {
    let mut comparison = comparison("mixed", SETTINGS.map(measurement).to_vec());
    comparison.results.iter_mut().for_each(|result| result.bulk_bits_per_s = Some(9.4e9));
    repeat(&mut comparison.results);
    comparison.ratios = every_ratio(Figure::LatencyP50, None);
    comparison.ratios.extend(every_ratio(Figure::Interrupts, None));
    let matrix = ["p50 us", "28156.3", "latency p50 x that of", "123.45 (0.07-9876.54)"];
    fits(|width| of(&comparison, true, width), &[&matrix[..], &SETTINGS].concat());
    let narrow = of(&comparison, false, Width::columns(80)).replace('\n', " ");
    assert!(narrow.contains("Left out at 80 columns:") && narrow.contains("--json"), "{narrow}");
    assert!(narrow.contains("x123.45 (0.070-9876.54)"), "{narrow}");
    assert!(!narrow.contains("x that of"), "a matrix is for --ratios: {narrow}");
}

#[test]
fn usual_ratios_of_latency_and_interrupts_fit_80_columns() {
    let mut comparison =
        comparison("mixed", SETTINGS[..2].iter().map(|it| measurement(it)).collect());
    repeat(&mut comparison.results);
    for figure in [Figure::LatencyP50, Figure::Interrupts, Figure::Transactions] {
        let mut ratios = every_ratio(figure, None);
        for ratio in &mut ratios {
            ratio.spread = Spread { median: 0.42, min: 0.40, max: 0.45 };
        }
        comparison.ratios.extend(ratios);
    }
    let text = of(&comparison, false, Width::columns(80));
    let row = text.lines().find(|line| line.starts_with("delay:75")).unwrap();
    assert_eq!(row.matches("x0.42 (0.40-0.45)").count(), 2, "{text}");
    let first = text.lines().find(|line| line.starts_with("disabled")).unwrap();
    assert_eq!(first.split_whitespace().filter(|cell| *cell == "1").count(), 2, "{text}");
    assert!(text.contains("Ratios to disabled: median"), "{text}");
}

#[test]
fn ratios_are_to_the_first_setting_with_as_many_clients() {
    let mut results = Vec::new();
    let mut ratios = Vec::new();
    for (clients, median) in [(1, 0.25), (2, 4.0)] {
        for setting in ["throttle:125", "throttle:10"] {
            results.push(Measurement { clients: Some(clients), ..measurement(setting) });
        }
        let (of, to) = ("throttle:10".to_owned(), "throttle:125".to_owned());
        let (figure, clients) = (Figure::LatencyP50, Some(clients));
        let spread = Spread { median, min: median, max: median };
        let back = Ratio { figure, of: to.clone(), to: of.clone(), clients, spread };
        ratios.extend([Ratio { figure, of, to, clients, spread }, back]);
    }
    let mut comparison = comparison("loaded-server", results);
    comparison.ratios = ratios;
    // Those to throttle:10, which no cell may show.
    for (ratio, at) in comparison.ratios.iter_mut().zip(0..) {
        if at % 2 == 1 {
            ratio.spread.median = 77.0;
        }
    }
    let text = of(&comparison, false, Width::columns(usize::MAX));
    let cells = text.lines().filter(|line| line.starts_with("throttle:"));
    let cells: Vec<Vec<&str>> = cells.map(|line| line.split_whitespace().collect()).collect();
    let header: Vec<&str> = text.lines().nth(1).unwrap().split("  ").collect();
    assert!(header.iter().any(|it| it.trim() == "p50 ratio"), "{text}");
    // Setting, clients, least, median, and its ratio; one round has no range.
    let ratios: Vec<&str> = cells.iter().map(|cells| cells[4]).collect();
    assert_eq!(ratios, ["1", "x0.25", "1", "x4.00"], "{text}");
}

#[test]
fn a_figure_that_is_the_same_under_all_settings_has_no_ratios() {
    let mut comparison = comparison("mixed", SETTINGS.map(measurement).to_vec());
    comparison.ratios = every_ratio(Figure::Transactions, None);
    comparison.ratios.iter_mut().for_each(|ratio| ratio.spread.median = 1.01);
    let text = of(&comparison, true, Width::columns(usize::MAX));
    assert!(!text.contains("answers ratio") && !text.contains("Ratios to"), "{text}");
}
