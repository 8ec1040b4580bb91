//! A prediction for people: options, what is asked where they say nothing, what a screen and a page
//! show.
//!
//! The command `earmark predict` and the page in a browser share it, so that both say the same of
//! the same capture. It builds for `wasm32-unknown-unknown`: no files, no clock.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod asked;
mod feed;
mod options;
mod page;
mod screen;
mod trials;

pub use asked::CaptureQuestion;
pub use feed::feed;
pub use options::QuestionOptions;
pub use page::{report, tradeoff};
pub use screen::screen;
