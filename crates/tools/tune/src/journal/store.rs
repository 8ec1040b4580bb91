//! Where journals are, and how they are locked, read and replaced.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{FlockOperation, flock};
use sys::files::Directory;

use super::{Journal, OF_ROOT, SCHEMA, Trying};
use crate::device::{DeviceKind, Identity};
use crate::failpoint::failpoint;

const JOURNAL: &str = ".journal";

/// The largest journal that is read, in bytes.
const MAX_JOURNAL: u64 = 1 << 20;

/// The most files that a directory of journals may have.
const MOST_FILES: usize = 65_536;

/// Says where journals are, before anything else.
const DIRECTORY_VARIABLE: &str = "EARMARK_STATE_DIR";

/// A directory of journals. It belongs to this user or to root, and so do the journals; others
/// cannot write there. Who can write a journal decides what is undone, and with whose rights.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

#[derive(Debug)]
pub struct Held {
    _lock: File,
}

/// The directory that the environment names.
fn from_variable() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from)
}

/// The directory of this user.
fn of_user() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(|run| Path::new(&run).join("earmark"))
}

impl Store {
    /// The directory that is given, or the usual one: `/run/earmark` for root, one in
    /// `$XDG_RUNTIME_DIR` for others. It need not be there yet.
    pub fn find(given: Option<&Path>) -> Result<Self> {
        let named = given.map(Path::to_owned);
        let root = || rustix::process::geteuid().is_root().then(|| PathBuf::from(OF_ROOT));
        let directory = named.or_else(from_variable).or_else(root).or_else(of_user).context(
            "find the journal: this user has no XDG_RUNTIME_DIR; type the same with sudo, or name \
             the journal's directory with --state-dir",
        )?;
        // The guard leaves the working directory.
        let directory = std::path::absolute(directory).context("find the working directory")?;
        let store = Self { directory };
        store.open()?;
        Ok(store)
    }

    /// The directories where journals usually are, of root and of users, as far as they are there
    /// and can be read.
    pub fn usual() -> Vec<Self> {
        let users = std::fs::read_dir("/run/user").into_iter().flatten().flatten();
        let users = users.map(|user| user.path().join("earmark"));
        let all = users.chain(from_variable()).chain(of_user()).chain([PathBuf::from(OF_ROOT)]);
        let all = all
            .filter_map(|directory| Some(Self { directory: std::path::absolute(directory).ok()? }));
        all.filter(|store| matches!(store.open(), Ok(Some(_)))).collect()
    }

    /// The directory of the journals, absolute.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Opens the directory; `None` if there is none.
    fn open(&self) -> Result<Option<Directory>> {
        match Directory::open(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            opened => self.own(opened).map(Some),
        }
    }

    fn open_or_make(&self) -> Result<Directory> {
        self.own(Directory::open_or_make(&self.directory))
    }

    fn own(&self, opened: io::Result<Directory>) -> Result<Directory> {
        let own = opened.and_then(|directory| directory.check_own().map(|()| directory));
        own.with_context(|| {
            format!(
                "open the journals in {}; name a directory of your own with --state-dir",
                self.directory.display()
            )
        })
    }

    fn shown(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    fn name(device: &Identity, end: &str) -> String {
        let Identity { kind, name, place, number, .. } = device;
        let (kind, name) = match kind {
            // An interface may get another name, and is still the one that was changed.
            DeviceKind::Interface => ("net", number.to_string()),
            DeviceKind::Port => ("lab", name.clone()),
        };
        // Names of labs may have signs in them that have a meaning in paths.
        let plain = |text: &str| -> String {
            let sign =
                |c: char| if c.is_ascii_alphanumeric() || "-_.:@".contains(c) { c } else { '_' };
            text.chars().map(sign).collect()
        };
        format!("{kind}+{}+{}{end}", plain(place), plain(&name))
    }

    /// Takes the right to change a device, if no other process has it.
    pub(crate) fn try_hold(&self, device: &Identity) -> Result<Option<Held>> {
        self.lock(device, ".lock")
    }

    /// Takes the right to change a device, waiting for it as long as a roll-back may take.
    pub fn hold(&self, device: &Identity) -> Result<Held> {
        for _ in 0..100 {
            if let Some(held) = self.try_hold(device)? {
                return Ok(held);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let holder = self.read(device).ok().flatten().and_then(|journal| journal.trying);
        let holder = holder
            .map(|Trying { what, process, .. }| format!("`earmark {what}`, process {process}"));
        bail!(
            "another Earmark is changing {} ({}); wait for it, or end it: it undoes what it has \
             done so far",
            device.name,
            holder.unwrap_or_else(|| "it has just begun".into())
        )
    }

    /// Shows others that somebody waits for a confirmation; `None` if somebody does already.
    pub fn guard(&self, device: &Identity) -> Result<Option<Held>> {
        self.lock(device, ".guard")
    }

    fn lock(&self, device: &Identity, end: &str) -> Result<Option<Held>> {
        let name = Self::name(device, end);
        let file = self.open_or_make()?.lock_file(&name);
        let file = file.with_context(|| format!("open {}", self.shown(&name)))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Held { _lock: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("lock {}", self.shown(&name))),
        }
    }

    /// The journal of a device, if there is one.
    pub fn read(&self, device: &Identity) -> Result<Option<Journal>> {
        let name = Self::name(device, JOURNAL);
        self.open()?.map_or(Ok(None), |directory| self.read_file(&directory, &name))
    }

    /// All journals, and files that should be some but cannot be read.
    pub fn all(&self) -> Vec<Result<Journal>> {
        let journals = || -> Result<Vec<Result<Journal>>> {
            let Some(directory) = self.open()? else { return Ok(Vec::new()) };
            let names = directory.names(MOST_FILES);
            let names = names.with_context(|| format!("read {}", self.directory.display()))?;
            let names = names.iter().map(|name| name.to_string_lossy());
            let names = names.filter(|name| name.ends_with(JOURNAL));
            let read = |name: std::borrow::Cow<'_, str>| self.read_file(&directory, &name);
            Ok(names.filter_map(|name| read(name).transpose()).collect())
        };
        journals().unwrap_or_else(|error| vec![Err(error)])
    }

    fn read_file(&self, directory: &Directory, name: &str) -> Result<Option<Journal>> {
        let path = self.shown(name);
        let advice = || {
            format!(
                "read the journal {path}; put the device right by hand (`earmark show`), then \
                 remove it"
            )
        };
        let text = match directory.read_own(name, MAX_JOURNAL) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.with_context(advice)?,
        };
        let journal: Journal = serde_json::from_str(&text).with_context(advice)?;
        ensure!(
            journal.schema == SCHEMA,
            "the journal {path} is of another version of Earmark ({}); roll back with that one",
            journal.schema
        );
        Ok(Some(journal))
    }

    /// Replaces the journal of a device, or takes an empty one away. It is on disk afterwards.
    ///
    /// # Errors
    /// If the directory cannot be written; the old journal is still there then.
    pub fn write(&self, journal: &Journal, _held: &Held) -> Result<()> {
        let name = Self::name(&journal.device, JOURNAL);
        let fail = |what: &str| format!("{what} the journal {}", self.shown(&name));
        let directory = self.open_or_make()?;
        failpoint("journal: before writing");
        if journal.is_empty() {
            match directory.remove(&name) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).context(fail("remove"));
                }
                _ => failpoint("journal: removed"),
            }
        } else {
            let beside = Self::name(&journal.device, ".new");
            let mut new = directory.new_file_as(beside, &name).with_context(|| fail("write"))?;
            failpoint("journal: created");
            let text = serde_json::to_string_pretty(journal)? + "\n";
            new.write_all(text.as_bytes()).with_context(|| fail("write"))?;
            failpoint("journal: written");
            new.sync().with_context(|| fail("synchronise"))?;
            failpoint("journal: synchronised");
            new.place().with_context(|| fail("replace"))?;
            failpoint("journal: replaced");
        }
        directory.sync().with_context(|| fail("synchronise"))?;
        failpoint("journal: on disk");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;
    use crate::journal::{Kept, Trying};
    use crate::setting::{Setting, State, Value};
    use crate::testing::{Scratch, identity};

    fn device(name: &str) -> Identity {
        Identity { kind: DeviceKind::Port, place: "a/../b".into(), ..identity(name) }
    }

    /// A journal with a change from 1 to 2.
    fn kept() -> Journal {
        let mut journal = Journal::new("boot", device("b0"));
        let (before, after) = (Value::Number(1), Value::Number(2));
        journal.keep(vec![Kept { setting: Setting::RxUsecs, before, after }]);
        journal
    }

    #[test]
    fn a_journal_is_replaced_as_a_whole_and_goes_when_it_is_empty() {
        let scratch = Scratch::new();
        let store = scratch.store();
        let held = store.try_hold(&device("b0")).unwrap().unwrap();
        assert!(store.read(&device("b0")).unwrap().is_none());
        let mut journal = Journal::new("boot", device("b0"));
        let before = State::default();
        let trying =
            Trying { what: "tune".into(), process: 1, before, changed: vec![], until: None };
        journal.trying = Some(trying);
        store.write(&journal, &held).unwrap();
        assert_eq!(store.read(&device("b0")).unwrap().as_ref(), Some(&journal));
        journal = kept();
        store.write(&journal, &held).unwrap();
        assert_eq!(store.all().into_iter().collect::<Result<Vec<_>>>().unwrap(), [journal.clone()]);
        journal.kept.clear();
        store.write(&journal, &held).unwrap();
        assert!(store.read(&device("b0")).unwrap().is_none() && store.all().is_empty());
    }

    #[test]
    fn one_at_a_time_may_change_a_device() {
        let scratch = Scratch::new();
        let store = scratch.store();
        let held = store.try_hold(&device("b0")).unwrap();
        assert!(held.is_some() && store.try_hold(&device("b0")).unwrap().is_none());
        assert!(store.try_hold(&device("a0")).unwrap().is_some());
        drop(held);
        assert!(store.try_hold(&device("b0")).unwrap().is_some());
    }

    #[test]
    fn the_guard_finds_the_journal_from_another_working_directory() {
        assert!(Store::find(Some(Path::new("no such"))).unwrap().directory().is_absolute());
    }

    /// A journal says what is undone, so no other user may have written it.
    #[test]
    fn journals_that_others_could_have_written_do_nothing() {
        let scratch = Scratch::new();
        let store = scratch.store();
        let held = store.try_hold(&device("b0")).unwrap().unwrap();
        let journal = kept();
        store.write(&journal, &held).unwrap();
        let directory = store.directory().to_owned();
        let path = directory.join(Store::name(&device("b0"), JOURNAL));
        let refused = |why: &str| {
            let all = store.all();
            assert_eq!(all.len(), 1);
            for refusal in [
                store.read(&device("b0")).unwrap_err(),
                all.into_iter().next().unwrap().unwrap_err(),
            ] {
                assert!(format!("{refusal:#}").contains(why), "{refusal:#}");
            }
        };
        let set =
            |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        set(&path, 0o666);
        refused(&format!("others may write to it; type: chmod go-w {}", path.display()));
        set(&path, 0o600);
        for mode in [0o777, 0o1777, 0o770] {
            set(&directory, mode);
            refused(&format!("others may write to it; type: chmod go-w {}", directory.display()));
            let found = Store::find(Some(&directory)).unwrap_err();
            assert!(
                format!("{found:#}").contains("with --state-dir: others may write"),
                "{found:#}"
            );
            assert!(
                store.try_hold(&device("b0")).is_err() && store.write(&journal, &held).is_err()
            );
        }
        set(&directory, 0o700);
        store.read(&device("b0")).unwrap().unwrap();
        // As root may, outside of user namespaces.
        for path in [&path, &directory] {
            if chown(path, Some(12_345), None).is_ok() {
                refused("it belongs to user 12345, not to root");
            }
        }
    }
}
