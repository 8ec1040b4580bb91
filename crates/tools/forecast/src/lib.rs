//! A prediction for people: what is asked where they say nothing, what a screen and a page show.
//!
//! The command `earmark predict` and the page in a browser share it, so that both say the same of
//! the same capture. It builds for `wasm32-unknown-unknown`: no files, no clock.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod asked;
mod page;
mod screen;
mod trials;

pub use asked::{CaptureQuestion, GRIDS, USUAL, grid_timer};
pub use page::{report, tradeoff};
pub use screen::screen;
