//! chronyd in three guests, in virtual time: two clients, and a server whose NIC holds what it
//! receives for 393 us, and from second 48 on for 50.

use std::collections::BTreeMap;
use std::process::Command;

/// When the server's own `ethtool -C` changes its setting, in seconds since 1 January 2026.
pub(crate) const CHANGE_AT_S: f64 = 48.0;

/// The hosts that ask.
pub(crate) const CLIENTS: [&str; 2] = ["a", "c"];

/// How long they ask.
const CLIENTS_FOR_S: u32 = 99;

/// Polls a second: `minpoll -2`.
const POLLS_PER_S: f64 = 4.0;

/// What a client has found out by one exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// When, in seconds.
    pub(crate) at_s: f64,
    /// What chronyd computes: by how much the server's clock is ahead, in microseconds.
    pub(crate) offset_us: f64,
    /// There and back, in microseconds.
    pub(crate) round_trip_us: f64,
}

impl Sample {
    /// From client to server. Both read one clock, so this is what it took.
    pub(crate) fn request_us(&self) -> f64 {
        self.round_trip_us / 2.0 + self.offset_us
    }

    /// From server to client.
    pub(crate) fn response_us(&self) -> f64 {
        self.round_trip_us / 2.0 - self.offset_us
    }
}

/// The arguments of `earmark` that let it happen. The clients print what they have measured.
pub(crate) fn arguments() -> Vec<String> {
    let server = "printf 'allow all\\nlocal stratum 1\\n' > /tmp/conf
        printf 'cmdport 0\\nbindcmdaddress /\\npidfile /tmp/pid\\n' >> /tmp/conf
        ethtool -C b0 rx-usecs 393
        chronyd -u root -x -d -f /tmp/conf 2> /tmp/said &
        sleep 47
        ethtool -C b0 rx-usecs 50
        exec sleep 55";
    let client = |name: &str| {
        // A server that is selected would have its offset taken off the samples to come.
        format!(
            "printf 'server 10.9.0.2 minpoll -2 maxpoll -2 noselect\\n' > /tmp/conf
            printf 'cmdport 0\\nbindcmdaddress /\\npidfile /tmp/pid\\n' >> /tmp/conf
            printf 'logdir /tmp\\nlog rawmeasurements\\n' >> /tmp/conf
            timeout {CLIENTS_FOR_S} chronyd -u root -x -d -f /tmp/conf 2> /tmp/said
            grep ' 10.9.0.2 ' /tmp/measurements.log | sed 's/^/{name} /' | grep . || cat /tmp/said"
        )
    };
    let mut words = ["lab", "run", "--time", "virtual", "--until", "all", "--strategy"]
        .map(str::to_owned)
        .to_vec();
    words.extend(["disabled", "--on", "b", server].map(str::to_owned));
    for name in CLIENTS {
        words.extend(["--on".to_owned(), name.to_owned(), client(name)]);
    }
    words
}

/// What `earmark`, started by `command` with [`arguments`], has measured on each client.
pub(crate) fn measure(command: &mut Command) -> Result<BTreeMap<String, Vec<Sample>>, String> {
    let output =
        command.args(arguments()).output().map_err(|error| format!("start it: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!(
            "{}\n{said}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let mut samples: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
    for line in said.lines() {
        let (client, mut sample) =
            sample(line).ok_or_else(|| format!("no measurement of chronyd's: `{line}`"))?;
        let client = samples.entry(client).or_default();
        // The log tells whole seconds.
        let same = client.iter().rev().take_while(|before| before.at_s >= sample.at_s).count();
        sample.at_s += same as f64 / POLLS_PER_S;
        client.push(sample);
    }
    Ok(samples)
}

/// A line of a client's log: its name, date, time, address, nine columns of flags and scores,
/// offset, delay.
fn sample(line: &str) -> Option<(String, Sample)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let us = |at: usize| Some(words.get(at)?.parse::<f64>().ok()? * 1e6);
    let at_s = words.get(2)?.split(':').try_fold(0.0, |sum, part| {
        let part: f64 = part.parse().ok()?;
        Some(sum * 60.0 + part)
    })?;
    let sample = Sample { at_s, offset_us: us(12)?, round_trip_us: us(13)? };
    Some(((*words.first()?).to_owned(), sample))
}

/// The median of a figure before the change, and after it.
pub(crate) fn medians(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> [f64; 2] {
    let median = |wanted: &dyn Fn(f64) -> bool| {
        let mut values: Vec<f64> =
            samples.iter().filter(|sample| wanted(sample.at_s)).map(&figure).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    // The exchange that meets the change belongs to neither side.
    [median(&|at| at < CHANGE_AT_S - 1.0), median(&|at| at > CHANGE_AT_S + 1.0)]
}
