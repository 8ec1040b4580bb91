//! What of an interface chooses queues and processors: rules, the table of the hash, affinity, XPS.

use anyhow::{Context, Result, ensure};
use netdev::Root;
use netdev::ethtool::Ethtool;
use netdev::interrupts::{affinity, of_device, of_queue, read_interrupts, set_affinity};
use netdev::netdev::{Direction, Netdev};
use netdev::steering::{read_xps, write_xps};

use super::request::Requests;
use super::rules::{OfDevice, Rules};
use crate::failpoint::failpoint;
use crate::setting::steering::{cpus_text, table_text};
use crate::setting::{Setting, Value};

pub(super) struct Steering<'a> {
    pub(super) ethtool: &'a Ethtool,
    pub(super) root: &'a Root,
    pub(super) name: &'a str,
}

impl Steering<'_> {
    pub(super) fn read(&self, setting: Setting) -> Result<Option<Value>> {
        let found = match setting {
            Setting::RssTable => self
                .ethtool
                .rss(self.name)
                .map(|rss| (!rss.table.is_empty()).then(|| Value::Text(table_text(&rss.table)))),
            Setting::Ntuple => self.ethtool.has_ntuple(self.name).map(|on| Some(Value::Switch(on))),
            Setting::Rule(placed) => {
                self.rules().find(&placed).map(|it| Some(Value::Switch(it.is_some())))
            }
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
        let gone = requests.rules.iter().filter(|(_, is_on)| !is_on);
        gone.into_iter().try_for_each(|(placed, _)| self.rules().remove(placed))?;
        Ok(())
    }

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
        self.rules().add(&wanted.map(|(placed, _)| *placed).collect::<Vec<_>>())?;
        if requests.ntuple == Some(false) {
            self.ethtool.set_ntuple(self.name, false)?;
            failpoint("change: rules do not count");
        }
        Ok(())
    }

    pub(super) fn rules(&self) -> Rules<'_, OfDevice<'_>> {
        Rules { driver: OfDevice { ethtool: self.ethtool, name: self.name }, name: self.name }
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
