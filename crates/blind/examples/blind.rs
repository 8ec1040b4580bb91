//! Plays blind cases in made-up time, prints the score, and says which cases went wrong.
//!
//! `blind FIRST_SEED COUNT [--hindered] [--json]`: with `--hindered`, with an obstacle in each;
//! with `--json`, the table and every score instead.

use blind::{Case, Table};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, usual| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(usual);
    let (first, count) = (number(0, 1_000), number(1, 200));
    let has = |option: &str| words.iter().any(|word| word == option);
    let draw = if has("--hindered") { Case::draw_hindered } else { Case::draw };
    let scores = blind::play(first, count, draw);
    let table = Table::of(&scores, (0.01, 1.0));
    if has("--json") {
        let outcome = serde_json::json!({
            "first_seed": first, "cases": count, "table": table, "scores": scores,
        });
        println!("{outcome:#}");
        return;
    }
    for score in &scores {
        if !score.right || score.is_near(0.01, 1.0) == Some(false) || score.side == Some(false) {
            println!("{}", serde_json::json!(score));
        }
    }
    println!("{table}");
}
