//! The score of blind tests of captures: `captured FIRST_SEED COUNT [all]`.
//!
//! Prints a line for each case with `all`, and what came of them in JSON.

use std::process::ExitCode;

use blind::{CaptureRating, CaptureScore, CapturedCase};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u64>().ok());
    let Some((first, count)) = number(0).zip(number(1)) else {
        eprintln!("captured: the first lines of captured.rs say how to call it");
        return ExitCode::FAILURE;
    };
    let scores: Vec<CaptureScore> =
        (first..first + count).map(|seed| CapturedCase::draw(seed).score()).collect();
    if arguments.len() > 2 {
        for CaptureScore { seed, truth, rating, said, .. } in &scores {
            println!("{seed} {truth}: {rating:?}: {}", said.in_words());
        }
    }
    let of = |is_decoy, rating| {
        scores.iter().filter(|it| it.is_decoy == is_decoy && it.rating == rating).count()
    };
    let [right, wrong, no_family, cannot_tell] = [
        CaptureRating::Right,
        CaptureRating::Wrong,
        CaptureRating::NoFamily,
        CaptureRating::CannotTell,
    ]
    .map(|rating| of(false, rating));
    let decoys = scores.iter().filter(|it| it.is_decoy).count();
    let accused = of(true, CaptureRating::Accused);
    let mut errors: Vec<f64> = scores.iter().filter_map(|it| it.length_error).collect();
    errors.sort_unstable_by(f64::total_cmp);
    let p90 = errors.get(errors.len() * 9 / 10).copied().unwrap_or_default();
    println!(
        "{{\"held\": {}, \"right\": {right}, \"wrong\": {wrong}, \"no_family\": {no_family}, \
         \"cannot_tell\": {cannot_tell}, \"decoys\": {decoys}, \"accused\": {accused}, \
         \"length_error_p90\": {p90:.3}}}",
        scores.len() - decoys
    );
    ExitCode::SUCCESS
}
