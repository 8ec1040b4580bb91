//! Words for numbers.

use report::terminal::NO_BREAK;

/// A number of things: `1 queue`, `2 queues`.
pub fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

pub(super) fn together(text: &str) -> String {
    text.replace(' ', &NO_BREAK.to_string())
}

/// Microseconds with as many digits as they deserve.
pub fn us(microseconds: f64) -> String {
    if microseconds.fract() == 0.0 || microseconds >= 100.0 {
        format!("{microseconds:.0} us")
    } else {
        format!("{microseconds:.1} us")
    }
}
