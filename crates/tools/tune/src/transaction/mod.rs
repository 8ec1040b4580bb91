//! A change of a device that is undone unless it is said to be done.
//!
//! # Theory of operation
//!
//! 1. Take the lock of the device, so that no other process changes it.
//! 2. Undo what a dead predecessor has left behind.
//! 3. Read the device.
//! 4. Start the guard ([`super::guard`]), a process that undoes the change if this one dies.
//! 5. Write the journal, which is on disk before anything is changed.
//! 6. Change, read back, say what the device really took; as often as need be.
//! 7. Keep: the journal says *kept* instead of *trying*. Or undo: the device is as it was, that was
//!    read back, and only then the journal forgets.
//!
//! An error, or the end of the function that holds a [`Transaction`], undoes it. Ctrl-C and signals
//! set a flag that all work looks at ([`sys::ctrl_c`]). SIGKILL is the guard's
//! business, and so is a process that is stopped: `Transaction::check_in_force` says whether the
//! guard has acted. Where guard and process are killed together, the next command undoes the change
//! ([`super::recover`]).

use anyhow::{Context, Result, bail, ensure};

use super::device::TunedDevice;
use super::failpoint::failpoint;
use super::guard::Guard;
use super::journal::{Held, Journal, Kept, Store, Trying, changed};
use super::setting::{Change, Mechanism, Setting, State, Value};
use report::{errln, output};

/// What became of one setting.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct SettingResult {
    /// The setting that was asked for, or changed along.
    #[schemars(with = "String")]
    pub setting: Setting,
    /// What it was.
    pub before: Option<Value>,
    /// What was asked for; `None` if it changed along with others.
    pub asked: Option<Value>,
    /// What it is now.
    pub now: Option<Value>,
    /// What to make of that.
    pub verdict: Verdict,
    /// The interface of the kernel that changes it.
    pub by: &'static str,
}

/// What a device did with a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It took it as it was asked for.
    Taken,
    /// It took another value, near what it was asked for.
    Rounded,
    /// It said yes and changed nothing.
    Ignored,
    /// Adaptive moderation is on and chooses this value by itself.
    Overridden,
    /// Not requested; it changed along with others.
    AlongWith,
}

impl SettingResult {
    /// What happened, in words.
    pub fn describe(&self) -> String {
        let setting = self.setting;
        let shown = |value: &Option<Value>| {
            value.as_ref().map_or("?".into(), |value| setting.with_unit(value))
        };
        let (before, now) = (shown(&self.before), shown(&self.now));
        let asked = shown(&self.asked);
        match self.verdict {
            Verdict::Taken if before == now => format!("{setting} {now}, as it was"),
            Verdict::Taken if setting.mechanism() == Mechanism::Napi => {
                format!("{setting} {before} -> {now} ({})", self.by)
            }
            Verdict::Taken => format!("{setting} {before} -> {now}"),
            Verdict::Rounded => {
                format!("{setting} {before} -> {now}: the device made {now} of {asked}")
            }
            Verdict::Ignored => {
                format!("{setting} is still {now}: the device said yes to {asked} and ignored it")
            }
            Verdict::Overridden => format!(
                "{setting} {now}: adaptive moderation chooses it by itself; to fix it, add {} off",
                adaptive_of(self.setting)
            ),
            Verdict::AlongWith => format!("{setting} {before} -> {now}: it changed along"),
        }
    }
}

fn adaptive_of(setting: Setting) -> Setting {
    let [receiving, sending] = setting.switches();
    if setting.follows(sending) { sending } else { receiving }
}

/// Compares what was asked for with what a device says afterwards.
pub fn took(before: &State, change: &Change, after: &State) -> Vec<SettingResult> {
    let asked = change.0.iter().map(|(setting, asked)| {
        let (was, now) = (before.get(*setting).cloned(), after.get(*setting).cloned());
        let verdict = if after.is_driven(*setting) {
            Verdict::Overridden
        } else if now.as_ref().is_some_and(|now| asked.is_met_by(now)) {
            Verdict::Taken
        } else if now == was {
            Verdict::Ignored
        } else {
            Verdict::Rounded
        };
        let by = setting.mechanism().interface();
        let asked = Some(asked.clone());
        SettingResult { setting: *setting, before: was, asked, now, verdict, by }
    });
    let along = changed(before, after, &[]).into_iter().filter(|kept| {
        // The strategy of a NIC of ours says again what its parts say.
        let is_apart = kept.before == kept.after;
        change.get(kept.setting).is_none() && kept.setting != Setting::Strategy && !is_apart
    });
    let along = along.map(|Kept { setting, before, after }| {
        let (verdict, by) = (Verdict::AlongWith, setting.mechanism().interface());
        SettingResult { setting, before: Some(before), asked: None, now: Some(after), verdict, by }
    });
    asked.chain(along).collect()
}

/// Refuses what a device cannot do, before anything is changed.
pub fn check(device: &dyn TunedDevice, change: &Change) -> Result<()> {
    let named: Vec<Setting> = change.settings().collect();
    let state = device.read_with(&named).context("nothing was changed")?;
    let name = &device.identity().name;
    if change.is_empty() {
        bail!("nothing to change; name settings and values, as in `rx-usecs 50`");
    }
    if state.0.is_empty() {
        bail!(
            "{name} ({}) has no setting that can be changed: its driver knows no coalescing, and \
             the kernel no NAPI deferral for it",
            device.driver()
        );
    }
    for setting in change.settings() {
        if state.get(setting).is_none() {
            let has: Vec<_> = state.0.keys().map(|setting| setting.name()).collect();
            let (driver, has) = (device.driver(), has.join(", "));
            bail!("{name} ({driver}) has no {setting}; it has {has}; nothing was changed");
        }
    }
    Ok(())
}

/// A change that is undone when this is dropped, unless it was [kept](Self::keep).
pub struct Transaction<'a> {
    device: &'a dyn TunedDevice,
    store: Store,
    held: Held,
    journal: Journal,
    before: State,
    /// What may be changed beyond the settings of the whole device.
    named: Vec<Setting>,
    asked: Vec<Setting>,
    guard: Option<Guard>,
    open: bool,
}

impl<'a> Transaction<'a> {
    /// Begins a change by `what`, a command of Earmark, with a guard. `named` are the settings that
    /// it may change, if they are of single queues, NAPI instances or sysctls.
    pub fn begin(
        device: &'a dyn TunedDevice,
        store: &Store,
        what: &str,
        named: impl Iterator<Item = Setting>,
    ) -> Result<Self> {
        Self::prepare(device, store, what, named.collect(), true)
    }

    pub(crate) fn prepare(
        device: &'a dyn TunedDevice,
        store: &Store,
        what: &str,
        named: Vec<Setting>,
        guarded: bool,
    ) -> Result<Self> {
        let (store, identity) = (store.clone(), device.identity());
        let held = store.hold(identity)?;
        let mut journal = current(&store, device)?;
        refuse_while_waiting(&store, &journal)?;
        if journal.trying.is_some() {
            undo(device, &store, &held, &mut journal)?;
            errln!("{}: what an Earmark that was killed had changed is undone", identity.name);
        }
        refuse_shared(&store, &journal, &named)?;
        failpoint("begin: locked");
        let before = device.read_with(&named)?;
        let guard = guarded.then(|| Guard::start(&store, identity)).transpose()?;
        failpoint("begin: guarded");
        let (what, process) = (what.to_owned(), std::process::id());
        let trying =
            Trying { what, process, before: before.clone(), changed: Vec::new(), until: None };
        journal.trying = Some(trying);
        store.write(&journal, &held)?;
        let asked = Vec::new();
        Ok(Self { device, store, held, journal, before, named, asked, guard, open: true })
    }

    /// Takes in more settings that it may change: those that the device shows only after a change.
    ///
    /// # Errors
    /// If they cannot be read, or the journal cannot be written; what was changed so far is undone
    /// with the rest, then.
    pub fn extend(&mut self, named: Vec<Setting>) -> Result<()> {
        refuse_shared(&self.store, &self.journal, &named)?;
        self.named.extend(named);
        let now = self.read()?;
        for (setting, value) in now.0 {
            self.before.0.entry(setting).or_insert(value);
        }
        if let Some(trying) = &mut self.journal.trying {
            trying.before = self.before.clone();
        }
        self.store.write(&self.journal, &self.held)
    }

    fn read(&self) -> Result<State> {
        self.device.read_with(&self.named)
    }

    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.device.identity().name
    }

    /// How the device was.
    pub fn before(&self) -> &State {
        &self.before
    }

    /// Changes the device; what it really took, which was read back.
    pub fn change(&mut self, change: &Change) -> Result<Vec<SettingResult>> {
        let name = &self.device.identity().name;
        for setting in change.settings() {
            if !self.asked.contains(&setting) {
                self.asked.push(setting);
            }
        }
        let before = self.read()?;
        failpoint("change: before");
        self.device.change(change).with_context(|| format!("set {change} on {name}"))?;
        failpoint("change: after");
        let after = self.read()?;
        Ok(took(&before, change, &after))
    }

    /// Makes the device be as it was before, but for `change`; what it really took.
    pub fn set(&mut self, change: &Change) -> Result<Vec<SettingResult>> {
        let back = self.device.way_back(&self.before, &self.read()?);
        let named = |setting| change.get(setting).is_some();
        let mut whole = back.without(named);
        whole.0.extend(change.0.iter().cloned());
        let beside = self.before.overwritten_by(&whole);
        whole.0.extend(beside.0);
        if whole.is_empty() {
            return Ok(Vec::new());
        }
        let mut took = self.change(&whole)?;
        took.retain(|took| named(took.setting));
        Ok(took)
    }

    /// Makes settings be as they once were, whatever order the device takes them in.
    pub fn restore(&mut self, once: &State) -> Result<Vec<SettingResult>> {
        let before = self.read()?;
        let change = self.device.way_back(once, &before);
        self.asked.extend(change.settings());
        put_back(self.device, once)?;
        Ok(took(&before, &change, &self.read()?))
    }

    /// Puts the device back as it was, and goes on.
    pub fn reset(&mut self) -> Result<()> {
        put_back(self.device, &self.before)
    }

    /// Says that the change is done. What it was stays in the journal, for `earmark rollback`.
    ///
    /// # Errors
    /// If the journal cannot be written; the change is undone then.
    pub fn keep(mut self) -> Result<()> {
        let after = self.read()?;
        let changed = changed(&self.before, &after, &self.asked);
        let mut journal = self.journal.clone();
        journal.trying = None;
        journal.keep(changed);
        failpoint("keep: before");
        self.store.write(&journal, &self.held)?;
        failpoint("keep: done");
        self.check_in_force()?;
        self.open = false;
        output::settled();
        self.guard.take().map_or(Ok(()), Guard::dismiss)
    }

    /// Keeps the change for `seconds`; without a confirmation until then, the guard undoes it.
    pub fn keep_for(mut self, seconds: f64) -> Result<()> {
        let after = self.read()?;
        let until = since_boot() + (seconds * 1e9) as u64;
        let mut journal = self.journal.clone();
        if let Some(trying) = &mut journal.trying {
            trying.until = Some(until);
            trying.changed = changed(&self.before, &after, &self.asked);
        }
        failpoint("keep: before");
        self.store.write(&journal, &self.held)?;
        failpoint("keep: to be confirmed");
        let guard = self.guard.as_mut().context("no guard waits for the confirmation")?;
        let waits = guard.wait_for_confirmation()?;
        self.refuse_undone(waits)?;
        self.open = false;
        output::settled();
        Ok(())
    }

    /// Undoes the change.
    ///
    /// # Errors
    /// If the device is not as it was; the journal remembers how that is. Or if it was undone
    /// before, as `check_in_force` has it.
    pub fn undo(mut self) -> Result<()> {
        let was_in_force = self.check_in_force();
        self.close()?;
        was_in_force
    }

    /// Goes on if the changes so far are in force, and were all the time: what was measured since
    /// the last one is true of it.
    ///
    /// # Errors
    /// If the guard has undone them because this process was stopped, or if the guard was killed.
    pub(crate) fn check_in_force(&mut self) -> Result<()> {
        let in_force = self.guard.as_mut().map_or(Ok(true), Guard::is_in_force)?;
        self.refuse_undone(in_force)
    }

    fn refuse_undone(&self, in_force: bool) -> Result<()> {
        let name = self.name();
        ensure!(
            in_force,
            "{name} was put back as it was while this process was stopped, so nothing that it has \
             measured or changed counts; start it again"
        );
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.open) {
            return Ok(());
        }
        undo(self.device, &self.store, &self.held, &mut self.journal)?;
        self.guard.take().map_or(Ok(()), Guard::dismiss)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        let name = self.device.identity().name.clone();
        match self.close() {
            Ok(()) => errln!("{name} is as it was"),
            Err(error) => errln!("{error:#}"),
        }
    }
}

/// Refuses to change a sysctl that was changed with another device: whichever of the two is rolled
/// back last would win.
fn refuse_shared(store: &Store, own: &Journal, named: &[Setting]) -> Result<()> {
    let shared = |setting: &Setting| setting.mechanism() == Mechanism::Sysctl;
    for other in store.all().into_iter().flatten() {
        let is_other = other.boot == own.boot
            && other.device.place == own.device.place
            && !other.device.is(&own.device);
        let kept = other.kept.iter().filter(|kept| is_other && shared(&kept.setting));
        if let Some(kept) = kept.into_iter().find(|kept| named.contains(&kept.setting)) {
            let (setting, name) = (kept.setting, &other.device.name);
            bail!(
                "{setting} is not {}'s alone, and was changed with {name}; change it there, or \
                 call `earmark rollback {name}` first; nothing was changed",
                own.device.name
            );
        }
    }
    Ok(())
}

fn refuse_while_waiting(store: &Store, journal: &Journal) -> Result<()> {
    let waits = journal.trying.as_ref().is_some_and(|trying| trying.until.is_some());
    if waits && store.guard(&journal.device)?.is_none() {
        let name = &journal.device.name;
        bail!(
            "a change of {name} waits for its confirmation; call `earmark confirm {name}` or \
             `earmark rollback {name}` first"
        );
    }
    Ok(())
}

pub(crate) mod undo;

pub use undo::{boot, current, put_back, since_boot, undo};

#[cfg(test)]
mod tests;
