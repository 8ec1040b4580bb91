//! A device that only pretends, with the bad habits of real ones, for tests.

use std::cell::{Cell, RefCell};

use anyhow::{Result, bail};

use super::{Counted, DeviceKind, Identity, TunedDevice};
use crate::setting::{Change, Setting, State, Value};

/// A device made of a state and habits.
pub struct FakeDevice {
    identity: Identity,
    state: RefCell<State>,
    /// It counts `rx-usecs` in steps of so many.
    pub quantum: u64,
    /// It says yes, and does nothing.
    pub ignores: Option<Setting>,
    /// It refuses this, once others of the same request are in force.
    pub refuses: Option<Setting>,
    /// What drives it.
    pub driver_name: Option<&'static str>,
    /// How many changes it was asked for.
    pub changes: Cell<u32>,
}

impl FakeDevice {
    /// A device called `name` in this state.
    pub fn new(name: &str, state: &str) -> Self {
        let change: Change = state.parse().unwrap();
        let (place, kind) = ("nowhere".to_owned(), DeviceKind::Interface);
        Self {
            identity: Identity { kind, name: name.to_owned(), place, number: 1, address: None },
            state: RefCell::new(State(change.0.into_iter().collect())),
            quantum: 1,
            ignores: None,
            refuses: None,
            driver_name: None,
            changes: Cell::new(0),
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

    fn read_with(&self, _: &[Setting]) -> Result<State> {
        Ok(self.state.borrow().clone())
    }

    fn change(&self, change: &Change) -> Result<()> {
        self.changes.set(self.changes.get() + 1);
        let mut state = self.state.borrow_mut();
        for (setting, value) in &change.0 {
            if self.refuses == Some(*setting) {
                bail!("{setting}: Invalid argument");
            }
            if self.ignores == Some(*setting) {
                continue;
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
