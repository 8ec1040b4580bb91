//! `ethtool -c`: a line for each parameter, and the switches two in a line.
//!
//! Since 5.7 (netlink) what a driver lacks is `n/a`. Since Linux 6.11 the profiles of DIM follow, a
//! step in a line (Documentation/networking/net_dim.rst). Before (ioctl) all 22 parameters of that
//! time were printed, and what a driver lacked was 0.

use device::ethtool::{Coalesce, Parameter, ProfileStep, QueueCoalesce, parse_legacy, word_of};

use super::{number, pair};
use crate::known::KnownDevice;

/// So many lines of numbers has the output of an `ethtool` that asked by ioctl.
const OF_IOCTL: usize = 20;

pub(super) fn read(lines: &[&str], known: &mut KnownDevice) -> usize {
    let mut unread = 0;
    let mut queue = None;
    let mut part = CoalesceText::default();
    for line in lines {
        if let Some(number) = line.strip_prefix("Queue:").and_then(|it| it.trim().parse().ok()) {
            std::mem::take(&mut part).finish(queue, known);
            queue = Some(number);
        } else if !part.take(line) {
            unread += usize::from(!line.starts_with("Coalesce parameters for "));
        }
    }
    part.finish(queue, known);
    unread
}

#[derive(Default)]
struct CoalesceText {
    settings: Coalesce,
    numbers: usize,
    says_n_a: bool,
    /// The profile whose steps follow.
    profile: Option<bool>,
}

impl CoalesceText {
    /// Takes a line; `false`: it says nothing of coalescing.
    fn take(&mut self, line: &str) -> bool {
        // `{.usec =   1, .pkts = 256, .comps = n/a,},`, a step in a line.
        if let (Some(of_rx), true) = (self.profile, line.starts_with('{')) {
            self.add_steps(of_rx, line);
            return true;
        }
        let Some((name, value)) = pair(line) else { return false };
        let switches = match name {
            "Adaptive RX" => Some((Parameter::AdaptiveRx, Parameter::AdaptiveTx)),
            "CQE mode RX" => Some((Parameter::CqeModeRx, Parameter::CqeModeTx)),
            _ => None,
        };
        if let Some((rx, tx)) = switches {
            let (first, second) = value.split_once("TX:").unwrap_or((value, ""));
            self.set(rx, first);
            self.set(tx, second);
            return true;
        }
        match name {
            "rx-profile" => self.profile = Some(true),
            "tx-profile" => self.profile = Some(false),
            _ => {
                let Some(parameter) = parameter(name) else { return false };
                self.numbers += 1;
                self.set(parameter, value);
                self.profile = None;
            }
        }
        if let Some(of_rx) = self.profile {
            self.says_n_a |= value.starts_with("n/a");
            self.add_steps(of_rx, value);
        }
        true
    }

    fn add_steps(&mut self, of_rx: bool, text: &str) {
        for step in text.split('{').skip(1) {
            let field = |name: &str| {
                let (_, rest) = step.split_once(name)?;
                let rest = rest.trim_start_matches([' ', '=', ':']);
                rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
            };
            let step =
                ProfileStep { usec: field("usec"), pkts: field("pkts"), comps: field("comps") };
            let profile = match of_rx {
                true => &mut self.settings.rx_profile,
                false => &mut self.settings.tx_profile,
            };
            profile.get_or_insert_default().push(step);
        }
    }

    fn set(&mut self, parameter: Parameter, value: &str) {
        self.says_n_a |= value.trim_start().starts_with("n/a");
        if let Some(value) = number(value) {
            self.settings.set(parameter, value);
        }
    }

    fn finish(self, queue: Option<u32>, known: &mut KnownDevice) {
        if self.settings.is_empty() && !self.says_n_a {
            return;
        }
        let mut settings = self.settings;
        if self.numbers >= OF_IOCTL && !self.says_n_a {
            settings = as_by_ioctl(&settings);
            known.note(match queue {
                None => {
                    "printed by an ethtool before 5.7, which shows 0 for what a driver lacks: a 0 \
                     may mean either"
                }
                Some(_) => {
                    "of single queues, ethtool shows 0 for what a driver lacks: a 0 may mean either"
                }
            });
        }
        match queue {
            Some(queue) => {
                known.queue_coalescing.retain(|it| it.queue != queue);
                known.queue_coalescing.push(QueueCoalesce { queue, coalesce: settings });
            }
            None => known.set_coalescing(settings),
        }
    }
}

/// What is left if a 0 may mean that the driver does not have it.
fn as_by_ioctl(settings: &Coalesce) -> Coalesce {
    let words: Vec<u32> = {
        let mut words = vec![0; 23];
        for (parameter, value) in settings.iter() {
            if let Some(word) = word_of(parameter).and_then(|word| words.get_mut(word)) {
                *word = value;
            }
        }
        words
    };
    parse_legacy(&words)
}

/// A parameter by its name in the output, which has `rx-frame-low` for `rx-frames-low`.
pub(super) fn parameter(name: &str) -> Option<Parameter> {
    let name = match name {
        "rx-frame-low" => "rx-frames-low",
        "tx-frame-low" => "tx-frames-low",
        "rx-frame-high" => "rx-frames-high",
        "tx-frame-high" => "tx-frames-high",
        // JSON has each switch by itself.
        "rx-cqe" => "cqe-mode-rx",
        "tx-cqe" => "cqe-mode-tx",
        name => name,
    };
    name.parse().ok()
}
