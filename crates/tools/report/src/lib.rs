//! What people look at: tables that fit a terminal, lines of a command, and HTML pages with
//! pictures.
//!
//! # Theory of operation
//!
//! Plain data in, text out. Nothing here knows of experiments or worlds. [`terminal`] lays out text
//! in the width there is: a column that does not fit is left out and named, a number is never
//! broken. [`output`] prints lines, and ends the command without a message when its reader has
//! gone. A [`Report`] becomes one self-contained page with SVG pictures, without scripts or other
//! files. Values that cannot be drawn (not a number, infinite, not positive on a logarithmic axis)
//! are left out; a chart without any value says so.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "names say it, or a comment does")]
// Standard output may be closed; see `output`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod cdf;
pub mod document;
mod html;
pub mod json;
mod label;
pub mod names;
pub mod numbers;
pub mod output;
pub mod pairs;
mod palette;
pub mod panels;
pub mod progress;
mod scale;
mod svg;
pub mod terminal;
mod timeline;
mod tradeoff;

pub use html::render;
pub use palette::Palette;

/// All that one page shows. Empty parts are left out of the page.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The heading, and the title of the browser's tab.
    pub title: String,
    pub subtitle: String,
    /// When the measurement was made, as it should be read.
    pub made_at: String,
    /// What the numbers say, in one to three sentences.
    pub summary: String,
    pub table: Table,
    pub latency: Vec<CdfChart>,
    pub tradeoff: TradeoffChart,
    /// Excerpts of a NIC's trace; all are drawn with the same time scale.
    pub timelines: Vec<Timeline>,
    /// Name and value of what a reader needs to judge or repeat the measurement.
    pub environment: Vec<(String, String)>,
}

/// A table whose first column names the row.
#[derive(Debug, Clone, Default)]
pub struct Table {
    pub headers: Vec<String>,
    /// Rows of cells; a row may be shorter than the headings.
    pub rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Clone, Default)]
pub struct Cell {
    pub text: String,
    pub emphasis: Emphasis,
}

impl Cell {
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis: Emphasis::None }
    }

    /// A cell with a value to be glad of.
    pub fn good(text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis: Emphasis::Good }
    }

    pub fn bad(text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis: Emphasis::Bad }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Emphasis {
    #[default]
    None,
    Good,
    Bad,
}

#[derive(Debug, Clone, Default)]
pub struct CdfChart {
    pub title: String,
    /// What to see in it; may be empty.
    pub note: String,
    pub series: Vec<CdfSeries>,
}

#[derive(Debug, Clone, Default)]
pub struct CdfSeries {
    pub name: String,
    /// Latency in microseconds, and the fraction (0 to 1) of round trips that took no longer.
    pub points: Vec<(f64, f64)>,
}

/// Latency against interrupts, or against the load of the host, one point for each setting.
#[derive(Debug, Clone, Default)]
pub struct TradeoffChart {
    pub title: String,
    /// What to see in it; may be empty.
    pub note: String,
    pub points: Vec<TradeoffPoint>,
}

#[derive(Debug, Clone, Default)]
pub struct TradeoffPoint {
    pub name: String,
    /// Median round trip, microseconds.
    pub latency_us: f64,
    pub interrupts_per_s: f64,
    /// Part of the time in which the busiest host's processor is busy, where that is modelled: if
    /// all points have it, it takes the place of interrupts in the picture.
    pub host_busy: Option<f64>,
    /// Goodput of the bulk stream beside it, Mbit/s, if there was one.
    pub bulk_mbit: Option<f64>,
}

/// A few hundred microseconds of one experiment under one setting.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    pub setting: String,
    /// What to see in it; may be empty.
    pub note: String,
    /// Start of the excerpt, microseconds on the experiment's clock.
    pub from_us: f64,
    /// End of the excerpt, microseconds on the experiment's clock.
    pub to_us: f64,
    pub lanes: Vec<Lane>,
}

/// What one port received, and when it interrupted its host.
#[derive(Debug, Clone, Default)]
pub struct Lane {
    pub port: String,
    pub packets: Vec<HeldPacket>,
    pub interrupts: Vec<Interrupt>,
}

#[derive(Debug, Clone, Default)]
pub struct HeldPacket {
    /// When its DMA completed, microseconds on the experiment's clock.
    pub arrived_us: f64,
    /// When its interrupt was raised, or the host took it, microseconds.
    pub delivered_us: f64,
    pub marked: bool,
    /// Length of the frame in bytes.
    pub length_bytes: u32,
}

#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    /// When it was raised, microseconds on the experiment's clock.
    pub at_us: f64,
    /// Why: `mark`, `timer`, `frames`, `stream-end`, `rearm`, or another word.
    pub reason: String,
}
