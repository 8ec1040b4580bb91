//! The engine of the page: what a browser asks, and what it gets.
//!
//! # Theory of operation
//!
//! ```text
//! page.ts ─▶ engine.ts ─▶ worker.ts ─▶ abi ─▶ Engine::ask ─▶ paste, predict, see
//!            (a promise)   (a thread)   (bytes in linear memory)
//! ```
//!
//! `cargo xtask page` compiles this crate for `wasm32-unknown-unknown` and puts it, with scripts
//! of `web/`, into one HTML file. A request is JSON (`engine.rs`), and so is its answer. Files stay
//! in the browser: the engine pulls their bytes piece by piece, as a command reads a file, so that
//! no archive or capture has to fit into memory. All that the page says is made by the crates that
//! the commands use; the scripts have no sentence, parser or model of their own.
//!
//! An engine serves one worker. If it panics the worker ends, and the page starts another one.

#![deny(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod abi;
mod engine;
mod paste;
mod predict;
mod see;

pub use engine::{Engine, Open};
