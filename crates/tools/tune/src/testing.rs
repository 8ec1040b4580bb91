//! What several unit tests use: a device that only pretends, with the bad habits of real ones, and
//! directories that go away.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};

use crate::device::{Counted, DeviceKind, Identity, TunedDevice};
use crate::journal::Store;
use crate::setting::{Change, Setting, State, Value};

/// Settings as a device has them.
pub(crate) fn state(text: &str) -> State {
    text.parse().unwrap()
}

pub(crate) fn identity(name: &str) -> Identity {
    let (kind, place) = (DeviceKind::Interface, "nowhere".to_owned());
    Identity { kind, name: name.to_owned(), place, number: 1, address: None }
}

/// A directory of its own, which goes away with this value.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("earmark-tune-{:x}", sys::seed::seed()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn store(&self) -> Store {
        Store::find(Some(&self.0)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A device made of a state and habits.
pub(crate) struct FakeDevice {
    identity: Identity,
    state: RefCell<State>,
    /// It counts `rx-usecs` in steps of so many.
    pub(crate) quantum: u64,
    /// It says yes, and does nothing.
    pub(crate) ignores: Option<Setting>,
    /// It refuses this, once others of the same request are in force.
    pub(crate) refuses: Option<Setting>,
    /// It takes rules that begin so.
    pub(crate) takes_rules: &'static [&'static str],
    pub(crate) driver_name: Option<&'static str>,
}

impl FakeDevice {
    pub(crate) fn new(name: &str, state: &str) -> Self {
        Self {
            identity: identity(name),
            state: RefCell::new(state.parse().unwrap()),
            quantum: 1,
            ignores: None,
            refuses: None,
            takes_rules: &[],
            driver_name: None,
        }
    }
}

impl TunedDevice for FakeDevice {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn driver(&self) -> String {
        "fake".into()
    }

    fn driver_name(&self) -> Option<String> {
        self.driver_name.map(str::to_owned)
    }

    fn read_with(&self, named: &[Setting]) -> Result<State> {
        let mut state = self.state.borrow().clone();
        for rule in named.iter().filter(|setting| setting.placed().is_some()) {
            state.0.entry(*rule).or_insert(Value::Switch(false));
        }
        Ok(state)
    }

    fn change(&self, change: &Change) -> Result<()> {
        let mut state = self.state.borrow_mut();
        for (setting, value) in &change.0 {
            if self.refuses == Some(*setting) {
                bail!("{setting}: Invalid argument");
            }
            if self.ignores == Some(*setting) {
                continue;
            }
            if let (Some(placed), Value::Switch(true)) = (setting.placed(), value) {
                let rule = placed.rule.to_string();
                let is_taken = self.takes_rules.iter().any(|start| rule.starts_with(start));
                ensure!(is_taken, "Operation not supported");
            }
            let rounded = match (setting, value) {
                (Setting::RxUsecs, Value::Number(usecs)) => {
                    Value::Number(usecs.div_ceil(self.quantum) * self.quantum)
                }
                _ => value.clone(),
            };
            state.0.insert(*setting, rounded);
        }
        Ok(())
    }

    fn counted(&self) -> Result<Counted> {
        Ok(Counted::default())
    }
}
