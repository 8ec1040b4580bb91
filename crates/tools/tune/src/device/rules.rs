//! Rules that choose queues, on drivers with habits: some ask the device and answer before it has,
//! some choose places by themselves, some make another rule of the one they were asked for.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use netdev::DeviceError;
use netdev::ethtool::{Ethtool, FlowRule, PlacedRule};

use crate::failpoint::failpoint;
use crate::setting::steering::Placed;

/// How long a driver may take to find that the device refuses a rule that it has said yes to: a
/// virtual function asks the physical one, as iavf does.
const SETTLING: Duration = Duration::from_millis(50);

/// How long between two looks for a rule that is going, and how many looks there are.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const TRIES: u32 = 500;

pub(super) trait RuleDriver {
    fn locations(&self) -> Result<Vec<u32>, DeviceError>;
    fn rule(&self, location: u32) -> Result<Option<PlacedRule>, DeviceError>;
    /// Adds one; without a location the driver chooses.
    fn insert(&self, location: Option<u32>, rule: &FlowRule) -> Result<(), DeviceError>;
    fn delete(&self, location: u32) -> Result<(), DeviceError>;
}

/// The driver of a device of this machine.
pub(super) struct OfDevice<'a> {
    pub(super) ethtool: &'a Ethtool,
    pub(super) name: &'a str,
}

impl RuleDriver for OfDevice<'_> {
    fn locations(&self) -> Result<Vec<u32>, DeviceError> {
        Ok(self.ethtool.flow_rules(self.name)?.locations)
    }

    fn rule(&self, location: u32) -> Result<Option<PlacedRule>, DeviceError> {
        self.ethtool.flow_rule(self.name, location)
    }

    fn insert(&self, location: Option<u32>, rule: &FlowRule) -> Result<(), DeviceError> {
        self.ethtool.insert_flow_rule(self.name, location, rule)
    }

    fn delete(&self, location: u32) -> Result<(), DeviceError> {
        self.ethtool.delete_flow_rule(self.name, location)
    }
}

pub(super) struct Rules<'a, D> {
    pub(super) driver: D,
    pub(super) name: &'a str,
}

impl<D: RuleDriver> Rules<'_, D> {
    /// Where a rule is. At a place of its own also what the driver may have made of it: one that
    /// was just added has to be known for ours even if this process ends before it has looked.
    pub(super) fn find(&self, placed: &Placed) -> Result<Option<u32>, DeviceError> {
        let known = |location| Ok(self.driver.rule(location)?.and_then(PlacedRule::known));
        if let Some(location) = placed.location {
            let is_its = known(location)?.is_some_and(|rule| rule.is_left_of(&placed.rule));
            return Ok(is_its.then_some(location));
        }
        for location in self.driver.locations()? {
            if known(location)? == Some(placed.rule) {
                return Ok(Some(location));
            }
        }
        Ok(None)
    }

    /// Removes a rule if it is there. Another one at its place is somebody else's.
    pub(super) fn remove(&self, placed: &Placed) -> Result<()> {
        let Some(location) = self.find(placed)? else { return Ok(()) };
        self.clear(location)?;
        failpoint("change: a rule is gone");
        Ok(())
    }

    /// Removes whatever rule is there. Some drivers only ask the device for that, and refuse while
    /// they still ask for the rule to be added.
    fn clear(&self, location: u32) -> Result<()> {
        let mut tries = 0..TRIES;
        while let Err(error) = self.driver.delete(location) {
            ensure!(error.is_busy() && tries.next().is_some(), error);
            sleep(POLL_INTERVAL);
        }
        while self.driver.locations()?.contains(&location) {
            ensure!(tries.next().is_some(), "{} keeps the rule at {location}", self.name);
            sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Adds rules, and looks at what the driver has made of them.
    pub(super) fn add(&self, rules: &[Placed]) -> Result<()> {
        for placed in rules {
            self.add_one(placed)?;
        }
        if !rules.is_empty() {
            sleep(SETTLING);
        }
        for placed in rules {
            ensure!(
                self.find(placed)?.is_some(),
                "{} took the rule {} and dropped it again; what its driver says: dmesg",
                self.name,
                placed.rule
            );
        }
        Ok(())
    }

    fn add_one(&self, placed: &Placed) -> Result<()> {
        let (name, rule) = (self.name, placed.rule);
        if let Some(location) = placed.location {
            match self.driver.rule(location)? {
                None => {}
                Some(PlacedRule::Known(there)) if there == rule => return Ok(()),
                Some(_) => {
                    bail!("{name} has another rule at {location}, which stays; name another place")
                }
            }
        } else if self.find(placed)?.is_some() {
            return Ok(());
        }
        let before = self.driver.locations()?;
        self.driver.insert(placed.location, &rule).with_context(|| format!("rule {rule}"))?;
        failpoint("change: a rule is there");
        let mut new = self.driver.locations()?;
        new.retain(|location| !before.contains(location));
        let Some(location) = placed.location.or(new.first().copied()) else {
            bail!("{name} said yes to the rule {rule} and ignored it")
        };
        match self.driver.rule(location)? {
            Some(PlacedRule::Known(there)) if there == rule => Ok(()),
            None => bail!("{name} said yes to the rule {rule} and ignored it"),
            Some(other) => {
                // It may fit more than was asked for, and would not be known again.
                self.clear(location)?;
                let other = other.known().map_or("something else".into(), |it| it.to_string());
                bail!("{name} made {other} of the rule {rule}; it is gone again")
            }
        }
    }

    pub(super) fn has_others(&self, own: &[Placed]) -> bool {
        let own: Vec<u32> = own.iter().filter_map(|placed| self.find(placed).ok()?).collect();
        self.driver.locations().unwrap_or_default().iter().any(|it| !own.contains(it))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;
    use std::io;

    use super::*;

    /// A driver that only pretends, with the habits of those in Linux.
    #[derive(Default)]
    struct Pretended {
        rules: RefCell<BTreeMap<u32, PlacedRule>>,
        /// It chooses places, and takes none: bnxt, sfc.
        chooses: bool,
        /// What it makes of any rule: iavf of one by VLAN priority.
        makes: Option<PlacedRule>,
        /// It forgets a rule after so many looks at it: iavf, if its physical function refuses.
        forgets: Cell<Option<u32>>,
        /// It is busy so many times before it removes a rule.
        busy: Cell<u32>,
    }

    fn refused(code: i32) -> DeviceError {
        let (action, device) = ("try", "eth0".to_owned());
        let cause = io::Error::from_raw_os_error(code);
        DeviceError::Refused { action, device, cause, said: None }
    }

    impl RuleDriver for &Pretended {
        fn locations(&self) -> Result<Vec<u32>, DeviceError> {
            Ok(self.rules.borrow().keys().copied().collect())
        }

        fn rule(&self, location: u32) -> Result<Option<PlacedRule>, DeviceError> {
            let looks = self.forgets.get();
            self.forgets.set(looks.map(|looks| looks.saturating_sub(1)));
            if looks == Some(0) {
                self.rules.borrow_mut().remove(&location);
            }
            Ok(self.rules.borrow().get(&location).copied())
        }

        fn insert(&self, location: Option<u32>, rule: &FlowRule) -> Result<(), DeviceError> {
            if self.chooses != location.is_none() {
                return Err(refused(22));
            }
            let mut rules = self.rules.borrow_mut();
            let free = (0..).find(|place| !rules.contains_key(place));
            let place = location.or(free).unwrap();
            rules.insert(place, self.makes.unwrap_or(PlacedRule::Known(*rule)));
            Ok(())
        }

        fn delete(&self, location: u32) -> Result<(), DeviceError> {
            if let Some(left) = self.busy.get().checked_sub(1) {
                self.busy.set(left);
                return Err(refused(16));
            }
            self.rules.borrow_mut().remove(&location).map(drop).ok_or_else(|| refused(2))
        }
    }

    fn placed(text: &str) -> Placed {
        text.parse().unwrap()
    }

    fn rules(driver: &Pretended) -> Rules<'static, &Pretended> {
        Rules { driver, name: "eth0" }
    }

    #[test]
    fn a_rule_comes_once_and_goes_even_if_the_driver_is_busy() {
        let driver = Pretended { busy: Cell::new(2), ..Pretended::default() };
        let (rules, rule) = (rules(&driver), placed("7:tcp4,dst-port:80,queue:1"));
        for _ in 0..2 {
            rules.add(&[rule]).unwrap();
            assert_eq!(rules.find(&rule).unwrap(), Some(7));
        }
        assert!(!rules.has_others(&[rule]) && rules.has_others(&[]));
        let said = rules.add(&[placed("7:tcp4,dst-port:81,queue:1")]).unwrap_err().to_string();
        assert!(said.contains("has another rule at 7, which stays"), "{said}");
        rules.remove(&placed("7:tcp4,dst-port:81,queue:1")).unwrap();
        assert_eq!(rules.find(&rule).unwrap(), Some(7), "that is another one");
        rules.remove(&rule).unwrap();
        assert!(driver.rules.borrow().is_empty());
    }

    #[test]
    fn a_driver_that_chooses_places_is_known_by_its_rules() {
        let driver = Pretended { chooses: true, ..Pretended::default() };
        let theirs = placed("any:tcp4,dst-port:22,queue:0");
        let (rules, rule) = (rules(&driver), placed("any:tcp4,dst-port:80,queue:1"));
        rules.add(&[theirs]).unwrap();
        for _ in 0..2 {
            rules.add(&[rule]).unwrap();
        }
        assert_eq!(driver.rules.borrow().len(), 2);
        rules.remove(&rule).unwrap();
        assert!(rules.has_others(&[rule]) && rules.find(&rule).unwrap().is_none());
        assert_eq!(rules.find(&theirs).unwrap(), Some(0));
    }

    #[test]
    fn what_is_not_the_rule_is_removed_again() {
        let wider = PlacedRule::Known("ether,queue:1".parse().unwrap());
        for makes in [wider, PlacedRule::Other] {
            for (chooses, place) in [(false, "7"), (true, "any")] {
                let driver = Pretended { chooses, makes: Some(makes), ..Pretended::default() };
                let rule = placed(&format!("{place}:ether,vlan:40960/0xe000,queue:1"));
                let said = rules(&driver).add(&[rule]).unwrap_err().to_string();
                assert!(said.contains("it is gone again"), "{said}");
                assert!(driver.rules.borrow().is_empty());
                // If there is no time to look, the next process knows it by its place.
                (&driver).insert(rule.location, &rule.rule).unwrap();
                let is_known = makes == wider && !chooses;
                assert_eq!(rules(&driver).find(&rule).unwrap().is_some(), is_known);
            }
        }
    }

    #[test]
    fn a_rule_that_the_device_refuses_later_is_missed() {
        let driver = Pretended { forgets: Cell::new(Some(2)), ..Pretended::default() };
        let said = rules(&driver).add(&[placed("7:tcp4,dst-port:80,queue:1")]).unwrap_err();
        assert!(said.to_string().contains("dropped it again"), "{said}");
    }
}
