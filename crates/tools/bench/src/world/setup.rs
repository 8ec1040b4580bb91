//! What options say of marks, seeds and the cable, for every world.

use anyhow::{Context, Result};
use base::time::Duration;
use network::link::LinkSettings;
use nic::marker::{Rules, USUAL_RULES};

use crate::options::{NicOptions, Text};

/// The marking rules that `options` name, or the usual ones.
pub fn rules(options: &NicOptions) -> Result<Rules> {
    match &options.mark {
        Some(Text(rules)) => Ok(rules.clone()),
        None => USUAL_RULES.parse().context("the usual marking rules"),
    }
}

/// The cable in one direction; each direction has a stream of random numbers of its own.
pub fn link(options: &NicOptions, direction: u64) -> LinkSettings {
    let ppm = |percent: Option<f64>| (percent.unwrap_or(0.0) * 10_000.0).round() as u32;
    LinkSettings {
        rate_mbit: options.link_rate,
        latency: micros(options.link_latency),
        loss_ppm: ppm(options.link_loss),
        duplicate_ppm: ppm(options.link_duplicate),
        reorder_ppm: ppm(options.link_reorder),
        reorder_delay: micros(options.link_reorder_delay.or(Some(100))),
        seed: stream(options.seed, direction),
    }
}

/// Where the phases of ticks of port `number` come from: other numbers than those of its link.
pub fn tick_seed(seed: Option<u64>, number: usize) -> u64 {
    !stream(seed, number as u64)
}

/// The seed of what is random at one port.
fn stream(seed: Option<u64>, port: u64) -> u64 {
    seed.unwrap_or(1).wrapping_mul(2).wrapping_add(port)
}

/// The seeds of what is random on the links of a round, by port.
pub fn streams(seed: u64) -> impl Iterator<Item = u64> + Send + 'static {
    (0..).map(move |port| stream(Some(seed), port))
}

/// A span that an option gives in microseconds; none without it.
pub fn micros(value: Option<u32>) -> Duration {
    Duration::from_micros(value.unwrap_or(0).into())
}

/// A cable of this rate and latency, with the faults of `options`.
pub fn describe_link(rate_mbit: Option<u32>, latency: Duration, options: &NicOptions) -> String {
    let rate = rate_mbit.map_or("any rate".into(), |rate| format!("{rate} Mbit/s"));
    let mut text = format!("{rate}, latency {} us", latency.as_nanos() as f64 / 1e3);
    let faults = [
        ("loss", options.link_loss),
        ("duplication", options.link_duplicate),
        ("reordering", options.link_reorder),
    ];
    for (name, percent) in faults {
        if let Some(percent) = percent.filter(|percent| *percent > 0.0) {
            text += &format!(", {name} {percent} %");
        }
    }
    text
}
