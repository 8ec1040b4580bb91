//! A small blind test of captures, on seeds that nothing was tuned on.
#![allow(non_snake_case, reason = "test names are subject__case")]

use blind::{CaptureRating, CaptureScore, CapturedCase};

#[test]
fn captured_cases__named_families_are_right_and_no_decoy_is_accused() {
    let scores: Vec<CaptureScore> =
        (500_000..500_080).map(|seed| CapturedCase::draw(seed).score()).collect();
    let count = |rating| scores.iter().filter(|score| score.rating == rating).count();
    assert_eq!(count(CaptureRating::Accused), 0, "{scores:#?}");
    let held =
        |rating| scores.iter().filter(|score| !score.is_decoy && score.rating == rating).count();
    let (right, wrong) = (held(CaptureRating::Right), held(CaptureRating::Wrong));
    assert!(right > 20 && right >= 9 * wrong, "{right} right, {wrong} wrong: {scores:#?}");
}
