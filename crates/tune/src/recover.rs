//! What killed predecessors have left behind, found by the next command.

use anyhow::Result;

use super::device::{self, Reopened};
use super::journal::{Journal, Store};
use super::transaction::{boot, current, undo};
use report::errln;

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

/// Undoes whatever dead Earmarks have left half done, and says so. Devices that cannot be reached
/// from here are left alone; what cannot be undone is said, and stays.
pub fn recover(store: &Store) {
    for journal in store.all() {
        let recovered = journal.and_then(|journal| recover_one(store, &journal));
        if let Err(error) = recovered {
            errln!("{error:#}");
        }
    }
}

/// Says of which devices [`recover`] would undo something. It changes nothing.
pub fn remind() {
    let Ok(store) = Store::find(None) else { return };
    let orphans = store.all().into_iter().flatten();
    for journal in
        orphans.filter(|journal| past(&store, journal).is_ok_and(|p| p == JournalState::Orphaned))
    {
        let name = &journal.device.name;
        errln!(
            "{name}: an Earmark that was changing it was killed; undo it with `earmark rollback`"
        );
    }
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

fn recover_one(store: &Store, journal: &Journal) -> Result<()> {
    match past(store, journal)? {
        JournalState::Consistent => Ok(()),
        JournalState::Stale => forget(store, journal),
        JournalState::Orphaned => {
            let held = store.hold(&journal.device)?;
            let device = match device::reopen(&journal.device)? {
                Reopened::Here(device) => device,
                Reopened::Elsewhere => return Ok(()),
                Reopened::Gone => return forget(store, journal),
            };
            // Somebody may have been quicker.
            let mut journal = current(store, device.as_ref())?;
            if journal.trying.is_some() {
                undo(device.as_ref(), store, &held, &mut journal)?;
                errln!(
                    "{}: an Earmark was killed while it changed it; that is undone",
                    journal.device.name
                );
            }
            Ok(())
        }
    }
}

/// Takes a journal away that has nothing to undo.
fn forget(store: &Store, journal: &Journal) -> Result<()> {
    let held = store.hold(&journal.device)?;
    store.write(&Journal::new(&journal.boot, journal.device.clone()), &held)
}
