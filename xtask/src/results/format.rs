//! Figures as the pages show them.

use serde_json::Value;

/// The elements of a list, if there is one.
pub(super) fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

/// A number, or a dash where there is none.
pub(super) fn number(value: &Value, digits: usize) -> String {
    value.as_f64().map_or_else(|| "-".to_owned(), |number| format!("{number:.digits$}"))
}

/// The smallest and the largest of the rounds, if there are several.
pub(super) fn spread(result: &Value, figure: &str) -> String {
    let rounds: Vec<f64> = list(result, "rounds").filter_map(|r| r[figure].as_f64()).collect();
    if rounds.len() < 2 {
        return String::new();
    }
    let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("({least:.0}-{most:.0})")
}

/// The machine and the moment of a measurement.
pub(super) fn environment(environment: &Value) -> String {
    let field = |name: &str| environment[name].as_str().unwrap_or_default();
    let lane = field("lane");
    let lane = if lane.is_empty() { String::new() } else { format!(" Lanes: `{lane}`.") };
    format!(
        "\n{} x {}, Linux {}, load {}, {}, {}. NIC waits: {}. TCP: {}.{lane}\n`{}`\n",
        environment["cpus"],
        field("cpu_model"),
        field("kernel"),
        number(&environment["load_average"], 1),
        field("privilege"),
        field("date"),
        field("wait"),
        field("congestion_control"),
        field("command"),
    )
}
