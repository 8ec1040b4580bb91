//! A small blind test, on seeds that are neither tuned on nor reported.
#![allow(non_snake_case, reason = "test names are subject__case")]

use blind::{Case, Table, play, probe};

/// Bars below those of the full bench, for its small number of cases.
#[test]
fn dozen_cases__families_values_and_decoys_are_told() {
    let scores = play(300_000, 12);
    let table = Table::of(&scores, (0.01, 1.0));
    assert!(table.sides >= 18, "{table}");
    assert!(table.family_right >= 0.8, "{table}");
    assert!(table.value_near >= 0.8, "{table}");
    assert!(table.acquitted >= 0.8, "{table}");
}

#[test]
fn same_seed__same_verdict() {
    let case = Case::draw(300_100);
    assert_eq!(probe(&case), probe(&case));
}
