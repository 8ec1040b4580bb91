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
// Standard output may be closed; see `output`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod json;
mod label;
pub mod names;
pub mod numbers;
pub mod output;
mod page;
mod palette;
pub mod panels;
#[cfg(not(target_family = "wasm"))]
pub mod progress;
mod scale;
mod screen;
pub mod shell;
mod svg;
pub mod terminal;
pub mod timeline;
mod tradeoff;

pub use page::{Chapter, Document, Figure, fragment, render};
use palette::Palette;
use panels::Picture;
pub use screen::{Screen, ScreenPart};
use serde::{Deserialize, Serialize};

/// The style sheet of every page.
pub const STYLE: &str = include_str!("../templates/report.css");

/// All that one page shows. Empty parts are left out of the page.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The heading, and the title of the browser's tab.
    pub title: String,
    /// The line below the heading.
    pub subtitle: String,
    /// When the measurement was made, as it should be read.
    pub made_at: String,
    /// What the numbers say, in one to three sentences.
    pub summary: String,
    /// A row for each setting.
    pub table: Table,
    /// How late round trips are.
    pub latency: Option<Picture>,
    /// Latency against interrupts.
    pub tradeoff: TradeoffChart,
    /// Name and value of what a reader needs to judge or repeat the measurement.
    pub environment: Vec<(String, String)>,
    /// Whether times are holds of packets; else they are round trips.
    pub is_of_holds: bool,
    /// Other measurements, below its own: each a chapter, of its title, its summary, and what it
    /// shows.
    pub parts: Vec<Report>,
}

/// A table whose first column names the row.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The headings of its columns.
    pub headers: Vec<String>,
    /// Rows of cells; a row may be shorter than the headings.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// What is in it.
    pub text: String,
    /// How it stands out.
    pub emphasis: Emphasis,
}

impl Cell {
    /// A cell like any other.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis: Emphasis::None }
    }

    /// A cell with a value to be glad of.
    pub fn good(text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis: Emphasis::Good }
    }

    /// A cell with a value that is far from the best.
    pub fn bad(text: impl Into<String>) -> Self {
        Self { text: text.into(), emphasis: Emphasis::Bad }
    }
}

/// How a cell stands out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Emphasis {
    /// As any other.
    #[default]
    None,
    /// A value to be glad of.
    Good,
    /// A value that is far from the best.
    Bad,
}

/// Latency against interrupts, or against the load of the host, one point for each setting.
#[derive(Debug, Clone, Default)]
pub struct TradeoffChart {
    /// The heading of it.
    pub title: String,
    /// What to see in it; may be empty.
    pub note: String,
    /// What the latency of its points is; the median round trip if this is empty.
    pub latency: String,
    /// A point for each setting.
    pub points: Vec<TradeoffPoint>,
    /// Limits that settings are to meet.
    pub limits: Vec<ChartLimit>,
}

/// A limit in such a picture: a line across it.
#[derive(Debug, Clone)]
pub struct ChartLimit {
    /// It is one of the latency; else one of the interrupts.
    pub is_of_latency: bool,
    /// In the unit of that axis.
    pub value: f64,
    /// The limit as text.
    pub text: String,
}

/// What a setting in such a picture is, of those that were tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PointRole {
    /// One of them.
    #[default]
    Other,
    /// The one that was picked.
    Pick,
    /// The one that was in force before.
    Old,
}

/// One setting in such a picture.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TradeoffPoint {
    /// The setting as text.
    pub name: String,
    /// Whether it was picked, or in force before.
    pub role: PointRole,
    /// Median round trip, or what the chart says that it is, microseconds.
    pub latency_us: f64,
    /// Interrupts of both hosts, per second.
    pub interrupts_per_s: f64,
    /// Part of the time in which the busiest host's processor is busy, where that is modelled: if
    /// all points have it, it takes the place of interrupts in the picture.
    pub host_busy: Option<f64>,
    /// Goodput of the bulk stream beside it, Mbit/s, if there was one.
    pub bulk_mbit: Option<f64>,
}
