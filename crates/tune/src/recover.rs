//! What killed predecessors have left behind, found by the next command.

use anyhow::Result;

use super::device::{self, Reopened};
use super::journal::{Journal, Store};
use super::transaction::{boot, current, undo};

/// What is the matter with a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JournalState {
    /// Somebody is at it, or it is done.
    Consistent,
    /// Whoever changed the device is dead, and so is the guard.
    Orphaned,
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
#[must_use]
pub fn reminders() -> Vec<String> {
    let Ok(store) = Store::find(None) else { return Vec::new() };
    let journals = store.all().into_iter().flatten();
    let orphans = journals
        .filter(|journal| past(&store, journal).is_ok_and(|state| state == JournalState::Orphaned));
    let reminder = |journal: Journal| {
        let name = journal.device.name;
        format!(
            "{name}: an Earmark that was changing it was killed; undo it with `earmark rollback`"
        )
    };
    orphans.map(reminder).collect()
}

fn past(store: &Store, journal: &Journal) -> Result<JournalState> {
    if journal.boot != boot()? {
        return Ok(JournalState::Stale);
    }
    let Some(trying) = &journal.trying else { return Ok(JournalState::Consistent) };
    if trying.until.is_some() && store.guard(&journal.device)?.is_none() {
        // The guard waits for the user.
        return Ok(JournalState::Consistent);
    }
    Ok(store
        .try_hold(&journal.device)?
        .map_or(JournalState::Consistent, |_| JournalState::Orphaned))
}

/// What was undone, if anything, as a line.
fn recover_one(store: &Store, journal: &Journal) -> Result<Option<String>> {
    match past(store, journal)? {
        JournalState::Consistent => Ok(None),
        JournalState::Stale => forget(store, journal).map(|()| None),
        JournalState::Orphaned => {
            let held = store.hold(&journal.device)?;
            let device = match device::reopen(&journal.device)? {
                Reopened::Here(device) => device,
                Reopened::Elsewhere => return Ok(None),
                Reopened::Gone => return forget(store, journal).map(|()| None),
            };
            // Somebody may have been quicker.
            let mut journal = current(store, device.as_ref())?;
            if journal.trying.is_none() {
                return Ok(None);
            }
            undo(device.as_ref(), store, &held, &mut journal)?;
            let name = &journal.device.name;
            Ok(Some(format!("{name}: an Earmark was killed while it changed it; that is undone")))
        }
    }
}

/// Takes a journal away that has nothing to undo.
fn forget(store: &Store, journal: &Journal) -> Result<()> {
    let held = store.hold(&journal.device)?;
    store.write(&Journal::new(&journal.boot, journal.device.clone()), &held)
}
