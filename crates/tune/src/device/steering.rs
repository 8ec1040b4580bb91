//! What of an interface chooses queues and processors: rules, the table of the hash, affinity, XPS.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use netdev::ethtool::{Ethtool, PlacedRule};
use netdev::interrupts::{affinity, of_device, of_queue, read_interrupts, set_affinity};
use netdev::netdev::{Direction, Netdev};
use netdev::steering::{read_xps, write_xps};
use netdev::{DeviceError, Root};

use super::request::Requests;
use crate::failpoint::failpoint;
use crate::setting::steering::{Placed, cpus_text, table_text};
use crate::setting::{Setting, Value};

/// How long a driver may take to find that the device refuses a rule that it has said yes to: a
/// virtual function asks the physical one, as iavf does.
const SETTLING: Duration = Duration::from_millis(50);

/// How long between two looks for a rule that is going, and how many looks there are.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const TRIES: u32 = 500;

/// That part of an interface.
pub(super) struct Steering<'a> {
    pub(super) ethtool: &'a Ethtool,
    pub(super) root: &'a Root,
    pub(super) name: &'a str,
}

impl Steering<'_> {
    /// The value of a setting, if the device has it.
    pub(super) fn read(&self, setting: Setting) -> Result<Option<Value>> {
        let found = match setting {
            Setting::RssTable => self
                .ethtool
                .rss(self.name)
                .map(|rss| (!rss.table.is_empty()).then(|| Value::Text(table_text(&rss.table)))),
            Setting::Ntuple => self.ethtool.has_ntuple(self.name).map(|on| Some(Value::Switch(on))),
            Setting::Rule(placed) => self.is_there(&placed).map(|it| Some(Value::Switch(it))),
            Setting::Queue(queue, of) => {
                let cpus = match of {
                    Setting::XpsCpus => read_xps(self.root, self.name, queue.into()),
                    _ => self.interrupt(queue).and_then(|irq| affinity(self.root, irq).allowed),
                };
                Ok(cpus.map(|cpus| Value::Text(cpus_text(&cpus))))
            }
            _ => Ok(None),
        };
        match found {
            Err(error) if error.is_unsupported() => Ok(None),
            found => Ok(found?),
        }
    }

    /// The interrupt of a receive queue.
    pub(super) fn interrupt(&self, queue: u16) -> Option<u32> {
        let by_kernel = || {
            let netdev = Netdev::open().ok()?;
            let queues = netdev.queues(self.name).ok()?;
            let is_it = |it: &&netdev::netdev::Queue| {
                it.direction == Direction::Rx && it.id == u32::from(queue)
            };
            let napi = queues.iter().find(is_it)?.napi?;
            netdev.napis(self.name).ok()?.iter().find(|it| it.id == napi)?.irq
        };
        let by_name = || {
            let all = read_interrupts(self.root).ok()?;
            of_queue(&of_device(self.root, self.name, &all).ok()?, queue.into())
        };
        by_kernel().or_else(by_name)
    }

    /// What comes before all else: rules can be there, and those that go are gone, so that no
    /// packet finds a queue that is not ready.
    pub(super) fn begin(&self, requests: &Requests) -> Result<()> {
        if requests.ntuple == Some(true) {
            self.ethtool.set_ntuple(self.name, true)?;
            failpoint("change: rules count");
        }
        for (placed, _) in requests.rules.iter().filter(|(_, is_on)| !is_on) {
            // Another one that is there by now is somebody else's.
            if self.is_there(placed)? {
                self.remove(placed.location)?;
                failpoint("change: a rule is gone");
            }
        }
        Ok(())
    }

    /// What comes after all else.
    pub(super) fn finish(&self, requests: &Requests) -> Result<()> {
        if let Some(table) = &requests.rss_table {
            self.ethtool.set_rss_table(self.name, table)?;
            failpoint("change: the hash's table");
        }
        for ((queue, of), cpus) in &requests.placement {
            if *of == Setting::XpsCpus {
                write_xps(self.root, self.name, u32::from(*queue), cpus)?;
            } else {
                let irq = self.interrupt(*queue).with_context(|| {
                    format!("which interrupt queue {queue} of {} has is not known", self.name)
                })?;
                set_affinity(self.root, irq, cpus)?;
            }
            failpoint("change: processors");
        }
        let wanted = requests.rules.iter().filter(|(_, is_on)| *is_on);
        for (placed, _) in wanted.clone() {
            self.add(placed)?;
        }
        if wanted.clone().next().is_some() {
            sleep(SETTLING);
        }
        for (placed, _) in wanted {
            ensure!(
                self.is_there(placed)?,
                "{} took the rule {} and dropped it again; what its driver says: dmesg",
                self.name,
                placed.rule
            );
        }
        if requests.ntuple == Some(false) {
            self.ethtool.set_ntuple(self.name, false)?;
            failpoint("change: rules do not count");
        }
        Ok(())
    }

    /// Removes whatever rule is there. Some drivers only ask the device for that, and refuse while
    /// they still ask for the rule to be added.
    fn remove(&self, location: u32) -> Result<()> {
        let mut tries = 0..TRIES;
        while let Err(error) = self.ethtool.delete_flow_rule(self.name, location) {
            ensure!(error.is_busy() && tries.next().is_some(), error);
            sleep(POLL_INTERVAL);
        }
        while self.ethtool.flow_rule(self.name, location)?.is_some() {
            ensure!(tries.next().is_some(), "{} keeps the rule at {location}", self.name);
            sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Whether a rule is there, or what the driver may have made of it: one that was just added
    /// has to be known for ours even if this process ends before it has looked.
    fn is_there(&self, placed: &Placed) -> Result<bool, DeviceError> {
        let there = self.ethtool.flow_rule(self.name, placed.location)?;
        let there = there.and_then(PlacedRule::known);
        Ok(there.is_some_and(|rule| rule.is_left_of(&placed.rule)))
    }

    fn add(&self, placed: &Placed) -> Result<()> {
        let (name, location) = (self.name, placed.location);
        match self.ethtool.flow_rule(name, location)? {
            None => {}
            Some(PlacedRule::Known(rule)) if rule == placed.rule => return Ok(()),
            Some(_) => {
                bail!("{name} has another rule at {location}, which stays; name another place")
            }
        }
        self.ethtool
            .insert_flow_rule(name, location, &placed.rule)
            .with_context(|| format!("rule {}", placed.rule))?;
        failpoint("change: a rule is there");
        match self.ethtool.flow_rule(name, location)? {
            Some(PlacedRule::Known(rule)) if rule == placed.rule => Ok(()),
            None => bail!("{name} said yes to the rule {} and ignored it", placed.rule),
            Some(other) => {
                // It may fit more than was asked for, and would not be known again.
                self.remove(location)?;
                let other = other.known().map_or("something else".into(), |it| it.to_string());
                bail!("{name} made {other} of the rule {}; it is gone again", placed.rule)
            }
        }
    }

    /// Whether there are rules besides these.
    pub(super) fn has_other_rules(&self, own: &[Placed]) -> bool {
        let locations = self.ethtool.flow_rules(self.name).map(|rules| rules.locations);
        let is_other = |location: &u32| {
            let own = own.iter().find(|placed| placed.location == *location);
            own.is_none_or(|placed| !self.is_there(placed).unwrap_or(false))
        };
        locations.unwrap_or_default().iter().any(is_other)
    }

    /// Refuses a table that the device cannot have.
    pub(super) fn check(&self, requests: &Requests) -> Result<()> {
        let Some(table) = &requests.rss_table else { return Ok(()) };
        let (own, queues) =
            (self.ethtool.rss(self.name)?.table.len(), self.ethtool.receive_queues(self.name)?);
        ensure!(
            table.len() == own,
            "the hash's table of {} has {own} entries, not {}; nothing was changed",
            self.name,
            table.len()
        );
        let unknown = table.iter().find(|queue| **queue >= queues);
        ensure!(
            unknown.is_none(),
            "{} has no queue {}: there are {queues}, from 0 on; nothing was changed",
            self.name,
            unknown.unwrap_or(&0)
        );
        Ok(())
    }
}
