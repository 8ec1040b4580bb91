//! Tables IV and V of the Open-MX paper, by the model: `npb [PROGRAM.CLASS ...] [--calibrate]`.
//!
//! Each figure is the mean of some seeds. A change is that from the default, in percent, with the
//! standard error of the model's.

use std::error::Error;

use model::machine::Machine;
use model::npb::{Benchmark, Class, calibrate, run};

/// The columns of both tables.
const SETTINGS: [&str; 4] = ["delay:75", "disabled", "marked:75", "stream:75"];
/// A program with its seconds and, of some, its interrupts.
type PaperRow = (&'static str, [f64; 4], Option<[f64; 4]>);
/// Table IV, and Table V.
const PAPER: [PaperRow; 9] = [
    ("bt.C", [271.2, 272.8, 273.3, 272.6], None),
    ("cg.C", [90.04, 91.50, 90.76, 90.70], None),
    ("ep.C", [31.30, 31.45, 31.49, 31.36], None),
    ("ft.B", [24.24, 24.86, 24.21, 24.20], None),
    ("is.C", [32.75, 37.03, 30.51, 31.96], Some([86_400.0, 1_930_000.0, 100_500.0, 101_600.0])),
    ("is.B", [21.98, 22.97, 20.32, 21.76], Some([22_400.0, 496_000.0, 26_700.0, 27_200.0])),
    ("lu.C", [203.8, 202.4, 203.2, 206.6], None),
    ("mg.C", [43.91, 43.63, 43.75, 43.72], None),
    ("sp.C", [549.1, 551.1, 546.8, 546.1], None),
];
const SEEDS: u64 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    let calibrates = wanted.iter().any(|it| it == "--calibrate");
    wanted.retain(|it| it != "--calibrate");
    let machine = Machine::named("clovertown").ok_or("the machine comes with the crate")?;
    println!(
        "                 |      seconds      | change, %             |     interrupts     | x default"
    );
    println!(
        "program setting  |   paper    model  | paper  model          |    paper     model | paper model"
    );
    for (name, seconds, interrupts) in PAPER {
        if !wanted.is_empty() && !wanted.iter().any(|it| it == name) {
            continue;
        }
        let (benchmark, class) = name.split_once('.').ok_or("PROGRAM.CLASS")?;
        let program: (Benchmark, Class) = (benchmark.parse()?, class.parse()?);
        if calibrates {
            let ms = calibrate(program, &machine, SETTINGS[0].parse()?, 1, seconds[0])?;
            println!("{name} computes for {ms:.1} ms in an iteration");
        }
        columns(name, program, &machine, seconds, interrupts)?;
    }
    Ok(())
}

/// Runs all settings, and prints a line for each.
fn columns(
    name: &str,
    (benchmark, class): (Benchmark, Class),
    machine: &Machine,
    seconds: [f64; 4],
    interrupts: Option<[f64; 4]>,
) -> Result<(), Box<dyn Error>> {
    let mut default = Vec::new();
    for (column, setting) in SETTINGS.into_iter().enumerate() {
        let mut outcomes = Vec::new();
        for seed in 1..=SEEDS {
            outcomes.push(run(benchmark, class, machine, setting.parse()?, seed)?);
        }
        if column == 0 {
            default.clone_from(&outcomes);
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let changes: Vec<f64> = outcomes
            .iter()
            .zip(&default)
            .map(|(it, of)| 100.0 * (it.seconds / of.seconds - 1.0))
            .collect();
        let change = mean(&changes);
        let squares: Vec<f64> = changes.iter().map(|it| (it - change).powi(2)).collect();
        let error = (mean(&squares) / (SEEDS - 1) as f64).sqrt();
        let took = mean(&outcomes.iter().map(|it| it.seconds).collect::<Vec<_>>());
        let raised = mean(&outcomes.iter().map(|it| it.interrupts).collect::<Vec<_>>());
        let first = mean(&default.iter().map(|it| it.interrupts).collect::<Vec<_>>());
        let said = 100.0 * (seconds[column] / seconds[0] - 1.0);
        let (counted, times) = interrupts.map_or_else(
            || ("-".into(), "-".into()),
            |it| (format!("{:.0}", it[column]), format!("{:.2}", it[column] / it[0])),
        );
        println!(
            "{name:6} {setting:9} | {:7.2}  {took:7.2}  | {said:+5.1}  {change:+6.2} +-{error:4.2}  \
             | {counted:>8}  {raised:8.0} | {times:>5} {:5.2}",
            seconds[column],
            raised / first
        );
    }
    Ok(())
}
