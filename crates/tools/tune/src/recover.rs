//! What killed predecessors have left behind, found by the next command.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Result;

use super::device::{self, Reopened};
use super::journal::{Journal, OF_ROOT, Store};
use super::transaction::{boot, current, since_boot, undo};

/// What is the matter with a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JournalState {
    /// A process is at it, or it is done.
    Consistent,
    /// The process that changed the device is dead, and so are its guards.
    Orphaned,
    /// The change was not confirmed in time, and the guards have not undone it: they are dead or
    /// stopped.
    Overdue,
    /// The machine has been started anew since, which undid everything.
    Stale,
}

/// Undoes what killed Earmarks have left half done. Returns a line for each device that was put
/// back, and for each that could not be, whose journal stays; devices that cannot be reached from
/// here are left alone.
#[must_use]
pub fn recover(store: &Store) -> Vec<String> {
    let recover = |journal: Result<Journal>| {
        journal
            .and_then(|journal| recover_one(store, &journal))
            .unwrap_or_else(|error| Some(format!("{error:#}")))
    };
    store.all().into_iter().filter_map(recover).collect()
}

/// A line for each device of which [`recover`] would undo something. It changes nothing.
pub fn reminders() -> Vec<String> {
    places().iter().flat_map(reminders_of).collect()
}

/// How many lines [`reminders`] has; `None` where this user may not read root's journals.
pub fn overdue() -> Option<usize> {
    let of_root = Store::find(Some(Path::new(OF_ROOT))).ok()?;
    match std::fs::read_dir(of_root.directory()) {
        Err(error) if error.kind() != ErrorKind::NotFound => None,
        _ => Some(reminders().len()),
    }
}

/// Where journals are that this user may want to know of: its own, and those of root.
fn places() -> Vec<Store> {
    let mut places: Vec<Store> = Store::find(None).into_iter().collect();
    if !rustix::process::geteuid().is_root() {
        places.extend(Store::find(Some(Path::new(OF_ROOT))));
    }
    places
}

fn reminders_of(store: &Store) -> Vec<String> {
    let reminder = |journal: Journal| {
        let state = past(store, &journal).ok()?;
        let waits = journal.trying?.until.is_some();
        let what = match (state, waits) {
            (JournalState::Overdue, _) => {
                "a change that was not confirmed in time is in force, for its guards were \
                 stopped or killed"
            }
            (JournalState::Orphaned, true) => {
                "a change waits for its confirmation, and the guards that would undo it were killed"
            }
            (JournalState::Orphaned, false) => "an Earmark that was changing it was killed",
            (JournalState::Consistent | JournalState::Stale, _) => return None,
        };
        Some(format!("{}: {what}; undo it with `earmark rollback`", journal.device.name))
    };
    store.all().into_iter().flatten().filter_map(reminder).collect()
}

fn past(store: &Store, journal: &Journal) -> Result<JournalState> {
    if journal.boot != boot()? {
        return Ok(JournalState::Stale);
    }
    let Some(trying) = &journal.trying else { return Ok(JournalState::Consistent) };
    // The locks of guards that are stopped say nothing, and other users may not look at them.
    if trying.is_overdue(since_boot()) {
        return Ok(JournalState::Overdue);
    }
    if trying.until.is_some() && store.guard(&journal.device)?.is_none() {
        // A guard waits for the user.
        return Ok(JournalState::Consistent);
    }
    Ok(store
        .try_hold(&journal.device)?
        .map_or(JournalState::Consistent, |_| JournalState::Orphaned))
}

fn recover_one(store: &Store, journal: &Journal) -> Result<Option<String>> {
    match past(store, journal)? {
        JournalState::Consistent => Ok(None),
        JournalState::Stale => forget(store, journal).map(|()| None),
        JournalState::Orphaned | JournalState::Overdue => {
            let held = store.hold(&journal.device)?;
            let device = match device::reopen(&journal.device)? {
                Reopened::Here(device) => device,
                Reopened::Elsewhere => return Ok(None),
                Reopened::Gone => return forget(store, journal).map(|()| None),
            };
            // Somebody may have been quicker.
            let mut journal = current(store, device.as_ref())?;
            let Some(trying) = &journal.trying else { return Ok(None) };
            let what = if trying.until.is_some() {
                "a change that was not confirmed was left in force, for its guards were stopped or \
                 killed"
            } else {
                "an Earmark was killed while it changed it"
            };
            undo(device.as_ref(), store, &held, &mut journal)?;
            Ok(Some(format!("{}: {what}; that is undone", journal.device.name)))
        }
    }
}

fn forget(store: &Store, journal: &Journal) -> Result<()> {
    let held = store.hold(&journal.device)?;
    store.write(&Journal::new(&journal.boot, journal.device.clone()), &held)
}
