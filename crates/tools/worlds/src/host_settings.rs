//! Settings of guests' interfaces: `earmark apply` makes them there, as it would on any host.

use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail, ensure};
use lab::machine::Machine;
use lab::station::Station;

/// The arguments that give `interface` these settings.
pub(crate) fn apply(interface: &str, settings: &str) -> Vec<String> {
    let words = ["apply", interface].into_iter().chain(settings.split_whitespace());
    words.map(str::to_owned).collect()
}

/// Refuses a host on which that failed.
pub(crate) fn check(host: &str, settings: &str, succeeded: bool, stderr: &[u8]) -> Result<()> {
    let stderr = String::from_utf8_lossy(stderr);
    let kernel = if settings.contains("irq-suspend-timeout") {
        "; `earmark kernel --suite SUITE` builds a newer one for guests"
    } else {
        ""
    };
    ensure!(succeeded, "earmark apply {settings} on guest {host}: {}{kernel}", stderr.trim());
    Ok(())
}

/// Guests in real time whose interfaces have settings of a round.
pub(crate) struct Applied<'a> {
    machines: Vec<(&'a dyn Machine, String)>,
}

impl<'a> Applied<'a> {
    pub(crate) fn new(
        machines: &'a [Box<dyn Machine>],
        settings: &[(usize, String)],
    ) -> Result<Self> {
        let names: Vec<String> = machines.iter().map(|machine| machine.name().to_owned()).collect();
        let stations = Station::all(&names);
        let mut applied = Self { machines: Vec::new() };
        for (host, settings) in settings {
            let (machine, interface) = (&*machines[*host], stations[*host].interface());
            let output = start(machine, &apply(&interface, settings))?.wait_with_output()?;
            check(machine.name(), settings, output.status.success(), &output.stderr)?;
            applied.machines.push((machine, interface));
        }
        Ok(applied)
    }

    /// Undoes them, so that the next round finds none.
    pub(crate) fn undo(self) -> Result<()> {
        for (machine, interface) in self.machines {
            let output = start(machine, &["rollback".into(), interface])?.wait_with_output()?;
            if !output.status.success() {
                let stderr = String::from_utf8_lossy(&output.stderr);
                bail!("earmark rollback on guest {}: {}", machine.name(), stderr.trim());
            }
        }
        Ok(())
    }
}

fn start(machine: &dyn Machine, words: &[String]) -> Result<Child> {
    let program = std::env::current_exe().context("find the earmark program itself")?;
    let mut command = machine.command(program.as_os_str());
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    Ok(machine.spawn(&mut command)?)
}
