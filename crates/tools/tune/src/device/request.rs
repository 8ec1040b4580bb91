//! A change of an interface as what the kernel is asked for.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use netdev::deferral::Deferral;
use netdev::ethtool::Coalesce;
use netdev::netdev::{NapiChange, Threaded};

use crate::setting::steering::{Placed, parse_cpus, parse_table};
use crate::setting::{Change, Mechanism, Setting, Value, profile};

/// A change, apart by the interfaces that it takes. What is empty is not asked for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Requests {
    pub(super) coalesce: Coalesce,
    /// Of single queues.
    pub(super) queues: BTreeMap<u16, Coalesce>,
    pub(super) deferral: Deferral,
    /// Of the NAPI instances of single queues; `None`: of all.
    pub(super) napis: BTreeMap<Option<u16>, NapiChange>,
    /// Whether rules count.
    pub(super) ntuple: Option<bool>,
    pub(super) rss_table: Option<Vec<u32>>,
    /// Rules that shall be there, or not.
    pub(super) rules: Vec<(Placed, bool)>,
    /// Processors of queues: of their interrupts, or of what they send.
    pub(super) placement: Vec<((u16, Setting), Vec<u32>)>,
    /// Files below the root, and their numbers.
    pub(super) sysctls: Vec<(String, u64)>,
}

impl Requests {
    pub(super) fn of(change: &Change) -> Result<Self> {
        let mut requests = Self::default();
        for (setting, value) in &change.0 {
            requests.add(*setting, value).with_context(|| format!("{setting} {value}"))?;
        }
        Ok(requests)
    }

    fn add(&mut self, setting: Setting, value: &Value) -> Result<()> {
        let number = || value.number().context("this is no number");
        match (setting, setting.mechanism()) {
            (_, Mechanism::Coalescing | Mechanism::QueueCoalescing) => {
                let parameter = setting.parameter().context("no driver has this")?;
                let of = match setting {
                    Setting::Queue(queue, _) => self.queues.entry(queue).or_default(),
                    _ => &mut self.coalesce,
                };
                of.set(parameter, u32::try_from(number()?)?);
            }
            (_, Mechanism::Profile) => {
                let steps = profile::parse(&value.to_string()).map_err(anyhow::Error::msg)?;
                match setting {
                    Setting::RxProfile => self.coalesce.rx_profile = Some(steps),
                    _ => self.coalesce.tx_profile = Some(steps),
                }
            }
            (Setting::Ntuple, _) => self.ntuple = Some(number()? != 0),
            (Setting::Rule(placed), _) => self.rules.push((placed, number()? != 0)),
            (Setting::RssTable, _) => {
                let table = parse_table(&value.to_string()).map_err(anyhow::Error::msg)?;
                self.rss_table = Some(table);
            }
            (Setting::Queue(queue, of), Mechanism::Placement) => {
                let cpus = parse_cpus(&value.to_string()).map_err(anyhow::Error::msg)?;
                self.placement.push(((queue, *of), cpus));
            }
            (Setting::GroFlushTimeout, _) => self.deferral.gro_flush_timeout = Some(number()?),
            (Setting::NapiDeferHardIrqs, _) => {
                self.deferral.napi_defer_hard_irqs = Some(number()?);
            }
            (Setting::Threaded, _) => self.deferral.threaded = Some(number()?),
            (Setting::Queue(queue, of), _) => self.add_napi(Some(queue), *of, number()?)?,
            (_, Mechanism::Napi) => self.add_napi(None, setting, number()?)?,
            (_, Mechanism::Sysctl) => {
                let path = sysctl_path(setting).context("this is no sysctl")?;
                self.sysctls.push((path, number()?));
            }
            (_, Mechanism::Deferral | Mechanism::Strategy | Mechanism::Placement)
            | (_, Mechanism::Steering) => {
                anyhow::bail!("an interface of this machine does not have it")
            }
        }
        Ok(())
    }

    fn add_napi(&mut self, queue: Option<u16>, of: Setting, number: u64) -> Result<()> {
        let napi = self.napis.entry(queue).or_default();
        match of {
            Setting::GroFlushTimeout => napi.gro_flush_timeout = Some(number),
            Setting::NapiDeferHardIrqs => napi.defer_hard_irqs = Some(u32::try_from(number)?),
            Setting::IrqSuspendTimeout => napi.irq_suspend_timeout = Some(number),
            _ => {
                let is_on = number != 0;
                let threaded = if is_on { Threaded::Enabled } else { Threaded::Disabled };
                napi.threaded = Some(threaded);
            }
        }
        Ok(())
    }
}

pub(super) fn sysctl_path(setting: Setting) -> Option<String> {
    match setting {
        Setting::BusyPoll => Some("proc/sys/net/core/busy_poll".into()),
        Setting::BusyRead => Some("proc/sys/net/core/busy_read".into()),
        Setting::Sysctl(name) => Some(name.path()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use netdev::ethtool::Parameter;

    use super::*;

    fn requests(text: &str) -> Requests {
        Requests::of(&text.parse().unwrap()).unwrap()
    }

    #[test]
    fn each_setting_goes_where_it_belongs() {
        let all = requests(
            "rx-usecs 9 queue:1:rx-usecs 0 queue:1:adaptive-rx off queue:0:irq-suspend-timeout 7us \
             irq-suspend-timeout 8us threaded on queue:2:threaded off queue:2:defer-hard-irqs 3 \
             gro-flush-timeout 5 sysctl:net.core.dev_weight 64 busy-read 50 rx-profile 1,n,n",
        );
        let mut coalesce = Coalesce::new().with(Parameter::RxUsecs, 9);
        coalesce.rx_profile = Some(profile::parse("1,n,n").unwrap());
        assert_eq!(all.coalesce, coalesce);
        let queue = Coalesce::new().with(Parameter::RxUsecs, 0).with(Parameter::AdaptiveRx, 0);
        assert_eq!(all.queues, [(1, queue)].into());
        let deferral = Deferral { gro_flush_timeout: Some(5), ..Deferral::default() };
        assert_eq!(all.deferral, Deferral { threaded: Some(1), ..deferral });
        let suspended =
            |nanos| NapiChange { irq_suspend_timeout: Some(nanos), ..NapiChange::default() };
        let second = NapiChange {
            threaded: Some(Threaded::Disabled),
            defer_hard_irqs: Some(3),
            ..NapiChange::default()
        };
        let napis = [(Some(0), suspended(7_000)), (None, suspended(8_000)), (Some(2), second)];
        assert_eq!(all.napis, napis.into());
        let sysctls = [("dev_weight", 64), ("busy_read", 50)];
        let sysctls = sysctls.map(|(name, value)| (format!("proc/sys/net/core/{name}"), value));
        assert_eq!(all.sysctls, sysctls);
    }

    #[test]
    fn every_setting_of_a_device_but_the_strategy_is_asked_for() {
        for setting in Setting::ALL.iter().filter(|setting| **setting != Setting::Strategy) {
            let value = match setting.mechanism() {
                Mechanism::Profile => Value::Text("1,n,n".into()),
                Mechanism::Placement => Value::Text("1".into()),
                _ if *setting == Setting::RssTable => Value::Text("1".into()),
                _ => Value::Number(1),
            };
            // Processors are those of queues.
            let own = setting.of_queue(1).filter(|_| setting.mechanism() == Mechanism::Placement);
            let change = Change(vec![(own.unwrap_or(*setting), value)]);
            assert_ne!(Requests::of(&change).unwrap(), Requests::default(), "{setting}");
        }
        assert!(Requests::of(&"strategy delay:75".parse().unwrap()).is_err());
    }
}
