//! What killed predecessors have left behind, found by the next command.

use anyhow::Result;

use super::device::{self, Reopened};
use super::journal::{Journal, Store};
use super::transaction::{boot, current, undo};
use report::errln;

/// What is the matter with a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    /// Somebody is at it, or it is done.
    Well,
    /// Whoever changed the device is dead, and so is the guard.
    Orphaned,
    /// The machine has been started anew since, which undid everything.
    Stale,
}

/// Undoes whatever dead Earmarks have left half done, and says so. Devices that cannot be reached
/// from here are left alone; what cannot be undone is said, and stays.
pub fn recover(store: &Store) {
    for journal in store.all() {
        let mended = journal.and_then(|journal| mend_one(store, &journal));
        if let Err(error) = mended {
            errln!("{error:#}");
        }
    }
}

/// Says of which devices [`recover`] would undo something. It changes nothing.
pub fn remind() {
    let Ok(store) = Store::find(None) else { return };
    let orphans = store.all().into_iter().flatten();
    for journal in
        orphans.filter(|journal| past(&store, journal).is_ok_and(|p| p == Past::Orphaned))
    {
        let name = &journal.device.name;
        errln!(
            "{name}: an Earmark that was changing it was killed; undo it with `earmark rollback`"
        );
    }
}

fn past(store: &Store, journal: &Journal) -> Result<Past> {
    if journal.boot != boot()? {
        return Ok(Past::Stale);
    }
    let Some(trying) = &journal.trying else { return Ok(Past::Well) };
    if trying.until.is_some() && store.guard(&journal.device)?.is_none() {
        // The guard waits for the user.
        return Ok(Past::Well);
    }
    Ok(store.try_hold(&journal.device)?.map_or(Past::Well, |_| Past::Orphaned))
}

fn mend_one(store: &Store, journal: &Journal) -> Result<()> {
    match past(store, journal)? {
        Past::Well => Ok(()),
        Past::Stale => forget(store, journal),
        Past::Orphaned => {
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
