//! What a setting of moderation would do to packets that have arrived elsewhere.
//!
//! # Theory of operation
//!
//! ```text
//! capture ─▶ arrivals ─▶ (WireSpread) ─┬▶ SettingRun: nic::Port, a host that polls
//!                                      ├▶ SettingRun ...
//!                                      └▶ a bounded sample ─▶ grid, proposals of marks
//! ```
//!
//! The NIC is a function of its arrivals, so the same arrivals go through it once for each setting
//! ([`SettingRun`]), all in one pass, and nothing of a packet is kept. The host takes an interrupt
//! and polls at once, or, with [`Costs`], when its processor has time.
//!
//! # What it cannot know
//!
//! Senders do not react: one that waits for an answer would have sent later under a longer hold.
//! And a stamp that the kernel took is later than the arrival by the hold that was in force;
//! [`WireSpread`] undoes of that only what the rate of the wire proves.
//!
//! [`Costs`]: nic::processor::Costs
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod arrival;
mod grid;
mod group;
mod host;
mod outcome;
mod prediction;
mod proposal;
mod recorded;
mod run;
mod session;
mod spread;
mod words;

pub use arrival::{ArrivedPacket, Sample};
pub use grid::{Grid, GridPoint, front};
pub use group::{By, Groups, flow_number};
pub use outcome::{GroupHolds, SettingOutcome};
pub use prediction::{CaptureFlaws, Prediction, Stamps};
pub use proposal::{Proposal, propose};
pub use recorded::RecordedHolds;
pub use run::{RunSettings, SettingRun};
pub use session::{PredictError, Predictor, Question};
pub use spread::{SpreadCounts, WireSpread};
