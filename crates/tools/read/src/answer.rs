//! What was read, and what follows.

use report::terminal::NOT_HERE;
use schemars::JsonSchema;
use serde::Serialize;
use show::{Rates, Report};

use crate::kind::InputKind;
use crate::round_trips::{RoundTripBounds, RoundTrips};

/// All that inputs say.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ReadResult {
    /// What each part of each input was taken for.
    pub taken: Vec<Taken>,
    /// Devices, as `earmark show --json` has them.
    pub devices: Vec<Report>,
    /// What devices did between two readings of counters.
    pub between: Vec<Ratio>,
    /// Round trips, in the order of the inputs.
    pub round_trips: Vec<RoundTrips>,
    /// What follows from the round trips; `None`: there are none.
    pub verdict: Option<RoundTripBounds>,
    /// Settings in files of programs that configure devices.
    pub settings: Vec<FileSetting>,
    /// What else there is to say, each with its device or subject.
    pub notes: Vec<String>,
}

impl ReadResult {
    /// Whether no part of any input is known.
    pub fn is_nothing(&self) -> bool {
        self.taken.iter().all(|taken| taken.kind == InputKind::Unknown) && self.devices.is_empty()
    }

    /// What was expected, as the parts that are not recognised say.
    pub fn expected(&self) -> String {
        let remark = self.taken.iter().find_map(|taken| taken.remark.clone());
        remark.unwrap_or_else(|| "try: ethtool -c eth0 | earmark read -".into())
    }

    /// A line of a shell that prints what is missing of the devices; empty if nothing is.
    pub fn missing(&self) -> String {
        let all = self.devices.iter().flat_map(|device| &device.unreadable);
        let mut commands: Vec<&str> = Vec::new();
        for command in all.filter_map(|it| it.why.strip_prefix(NOT_HERE)) {
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        commands.join("; ")
    }
}

/// A part of an input, and what it was taken for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Taken {
    /// The name of the input.
    pub input: String,
    /// Its first line, from 1.
    pub line: usize,
    /// How many lines it has.
    pub lines: usize,
    /// What it is.
    pub kind: InputKind,
    /// The device that it is of; `None`: none, or several.
    pub device: Option<String>,
    /// Lines that say nothing that is known.
    pub not_understood: usize,
    /// What was expected instead, where it is not recognised.
    pub remark: Option<String>,
}

/// What a device did between two readings.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// The name of the device.
    pub device: String,
    /// Packets that were received.
    pub rx_packets: u64,
    /// How often any interrupt of the device came.
    pub interrupts: u64,
    /// Packets received for each interrupt that is for receiving; `None`: there was none, or no
    /// count of packets.
    pub rx_packets_per_interrupt: Option<f64>,
    /// Rates, where it is known how long it was.
    pub rates: Option<Rates>,
}

/// A setting in a file.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FileSetting {
    /// The device that it is for.
    pub device: String,
    /// The program that reads it.
    pub by: String,
    /// The path of the file.
    pub path: String,
    /// The setting, by the name of `ethtool -C` or of an option of the driver.
    pub name: String,
    /// Its value, as the file has it.
    pub value: String,
    /// What it means for the driver; `None`: its name says enough, or nothing is known.
    pub means: Option<String>,
    /// Whether it is for this device for sure.
    pub is_certain: bool,
    /// The file that sets it again, later at boot.
    pub overridden_by: Option<String>,
    /// A file that sets it as well, and nothing says which is last.
    pub contested_by: Option<String>,
}
