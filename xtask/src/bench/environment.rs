//! The machine that the figures belong to.

use std::fmt;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::shell;

/// What a reader needs to judge the figures.
#[derive(Clone, Serialize)]
pub(crate) struct Environment {
    cpu: String,
    cores: usize,
    kernel: String,
    rustc: String,
    date: String,
    /// Before the first measurement; above 0.5 or so, others were measured, too.
    load_average_1_min: f64,
}

impl Environment {
    pub(crate) fn read() -> Result<Self> {
        let load = read("/proc/loadavg")?;
        let load = load.split(' ').next().unwrap_or_default();
        Ok(Self {
            cpu: cpu_model(&read("/proc/cpuinfo")?),
            cores: std::thread::available_parallelism().context("counting cores")?.get(),
            kernel: read("/proc/sys/kernel/osrelease")?.trim().into(),
            rustc: shell::output(Command::new("rustc").arg("--version"))?.trim().into(),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
            load_average_1_min: load.parse().context("reading /proc/loadavg")?,
        })
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, kernel, rustc, date, load_average_1_min } = self;
        write!(f, "{date}: {cpu}, {cores} cores, Linux {kernel}, {rustc}; ")?;
        write!(f, "load average before: {load_average_1_min}")
    }
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {path}"))
}

/// The model of the first core; not every architecture tells.
fn cpu_model(cpuinfo: &str) -> String {
    let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let mut models = fields.filter(|(name, _)| name.trim() == "model name");
    models.next().map_or(std::env::consts::ARCH, |(_, model)| model.trim()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_model_is_the_first_cores() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: Xeon\nmodel name: B\n"), "Xeon");
        assert_eq!(cpu_model("Features\t: fp\n"), std::env::consts::ARCH);
    }
}
