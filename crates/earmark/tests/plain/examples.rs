//! Examples of help that any user can run anywhere.

use crate::support::examples::Needs;
use crate::support::{example_lines, typed};

#[test]
fn examples_that_need_nothing_work() {
    let lines = example_lines(Needs::Nothing);
    assert!(lines.len() > 15, "{lines:?}");
    lines.into_iter().for_each(typed);
}
