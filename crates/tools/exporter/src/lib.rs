//! Metrics of network devices for Prometheus: `earmark exporter`.
//!
//! # Theory of operation
//!
//! A [`Collector`] reads each device with the readers of `netdev` and bounds its holds as `show`
//! does. What it reads becomes [`Sample`]s of the metrics in [`metric`], and these become a text.
//! [`serve`] answers scrapes over HTTP, from one collection a second at most. Nothing here changes
//! a device.
//!
//! | module | what |
//! |---|---|
//! | [`metric`], [`sample`] | all metrics; values of them, and the text formats |
//! | [`select`] | which devices |
//! | `reading`, [`collector`] | one device at one moment; all of them, again and again |
//! | [`background`] | measurements that are taken seldom, and collected with the rest |
//! | [`stages`] | all requests of this machine, from histograms of the kernel |
//! | [`serve`] | where the text goes |
//!
//! [`Collector`]: collector::Collector
//! [`Sample`]: sample::Sample

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod background;
pub mod collector;
mod interrupts;
pub mod metric;
mod process;
mod reading;
pub mod sample;
pub mod select;
pub mod serve;
pub mod stages;
