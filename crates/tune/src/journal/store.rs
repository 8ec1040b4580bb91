//! Where journals are, and how they are locked, read and replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{FlockOperation, OFlags, flock};

use super::{Journal, OF_ROOT, SCHEMA};
use crate::device::{DeviceKind, Identity};
use crate::failpoint::failpoint;

/// The end of a journal's name.
const JOURNAL: &str = ".journal";

/// The largest journal that is read, in bytes.
const MAX_JOURNAL: u64 = 1 << 20;

/// Opens no link, and waits for nobody at the other end of a pipe.
const PLAIN: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits() as i32;

/// Says where journals are, before anything else.
const DIRECTORY_VARIABLE: &str = "EARMARK_STATE_DIR";

/// A directory of journals.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

/// The right to change a device, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Held {
    _lock: File,
}

impl Store {
    /// The directory that is given, or the usual one: `/run/earmark` for root, one in
    /// `$XDG_RUNTIME_DIR` for others. It need not be there yet.
    ///
    /// # Errors
    /// If there is none for this user.
    pub fn find(given: Option<&Path>) -> Result<Self> {
        let named = given.map(Path::to_owned);
        let variable = || std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from);
        let root = || rustix::process::geteuid().is_root().then(|| PathBuf::from(OF_ROOT));
        let own = || std::env::var_os("XDG_RUNTIME_DIR").map(|run| Path::new(&run).join("earmark"));
        let directory = named.or_else(variable).or_else(root).or_else(own).context(
            "find a place for the journal: there is no XDG_RUNTIME_DIR; name one with --state-dir",
        )?;
        Ok(Self { directory })
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn file(&self, device: &Identity, end: &str) -> PathBuf {
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
        self.directory.join(format!("{kind}+{}+{}{end}", plain(place), plain(&name)))
    }

    /// Takes the right to change a device, if nobody else has it.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn try_hold(&self, device: &Identity) -> Result<Option<Held>> {
        self.lock(device, ".lock")
    }

    /// Takes the right to change a device, waiting for it as long as a roll-back may take.
    ///
    /// # Errors
    /// If somebody else keeps it.
    pub fn hold(&self, device: &Identity) -> Result<Held> {
        for _ in 0..100 {
            if let Some(held) = self.try_hold(device)? {
                return Ok(held);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let holder = self.read(device).ok().flatten().and_then(|journal| journal.trying);
        let holder =
            holder.map(|trying| format!("`earmark {}`, process {}", trying.what, trying.process));
        bail!(
            "another Earmark is changing {} ({}); wait for it, or end it: it undoes what it has \
             done so far",
            device.name,
            holder.unwrap_or_else(|| "it has just begun".into())
        )
    }

    /// Shows others that somebody waits for a confirmation; `None` if somebody does already.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn guard(&self, device: &Identity) -> Result<Option<Held>> {
        self.lock(device, ".guard")
    }

    fn lock(&self, device: &Identity, end: &str) -> Result<Option<Held>> {
        let path = self.file(device, end);
        fs::DirBuilder::new().recursive(true).mode(0o755).create(&self.directory).with_context(
            || format!("create {}; name another place with --state-dir", self.directory.display()),
        )?;
        let open = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(PLAIN)
            .open(&path);
        let file = open.with_context(|| format!("open {}", path.display()))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Held { _lock: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("lock {}", path.display())),
        }
    }

    /// The journal of a device, if there is one.
    ///
    /// # Errors
    /// If there is one and it cannot be understood.
    pub fn read(&self, device: &Identity) -> Result<Option<Journal>> {
        read(&self.file(device, JOURNAL))
    }

    /// All journals, and files that should be some but cannot be read.
    pub fn all(&self) -> Vec<Result<Journal>> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return Vec::new() };
        let paths = entries.flatten().map(|entry| entry.path());
        let mut journals: Vec<PathBuf> =
            paths.filter(|path| path.to_string_lossy().ends_with(JOURNAL)).collect();
        journals.sort();
        journals.iter().filter_map(|path| read(path).transpose()).collect()
    }

    /// Replaces the journal of a device, or takes an empty one away. It is on disk afterwards.
    ///
    /// # Errors
    /// If the directory cannot be written; the old journal is still there then.
    pub fn write(&self, journal: &Journal, _held: &Held) -> Result<()> {
        let path = self.file(&journal.device, JOURNAL);
        let fail = |what: &str| format!("{what} the journal {}", path.display());
        failpoint("journal: before writing");
        if journal.is_empty() {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).context(fail("remove"));
                }
                _ => failpoint("journal: removed"),
            }
        } else {
            let beside = self.file(&journal.device, ".new");
            // What is there is half of a journal at best, or a link to a file of somebody else's.
            let _ = fs::remove_file(&beside);
            let create = OpenOptions::new().create_new(true).write(true).mode(0o644).open(&beside);
            let mut file = create.with_context(|| fail("write"))?;
            failpoint("journal: created");
            let text = serde_json::to_string_pretty(journal)? + "\n";
            file.write_all(text.as_bytes()).with_context(|| fail("write"))?;
            failpoint("journal: written");
            file.sync_all().with_context(|| fail("synchronise"))?;
            failpoint("journal: synchronised");
            fs::rename(&beside, &path).with_context(|| fail("replace"))?;
            failpoint("journal: replaced");
        }
        let directory = File::open(&self.directory).with_context(|| fail("synchronise"))?;
        directory.sync_all().with_context(|| fail("synchronise"))?;
        failpoint("journal: on disk");
        Ok(())
    }
}

/// The text of a regular file that is no link and not too large. A device or a pipe in its place
/// would never end, or never begin.
fn read_plain(path: &Path) -> io::Result<String> {
    let file = OpenOptions::new().read(true).custom_flags(PLAIN).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is no regular file"));
    }
    let mut text = String::new();
    if file.take(MAX_JOURNAL + 1).read_to_string(&mut text)? as u64 > MAX_JOURNAL {
        return Err(ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

fn read(path: &Path) -> Result<Option<Journal>> {
    let advice = || {
        format!(
            "read the journal {}; put the device right by hand (`earmark show`), then remove it",
            path.display()
        )
    };
    let text = match read_plain(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.with_context(advice)?,
    };
    let journal: Journal = serde_json::from_str(&text).with_context(advice)?;
    ensure!(
        journal.schema == SCHEMA,
        "the journal {} is of another version of Earmark ({}); roll back with that one",
        path.display(),
        journal.schema
    );
    Ok(Some(journal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Kept, Trying};
    use crate::setting::{Setting, State, Value};

    fn device(name: &str) -> Identity {
        Identity {
            kind: DeviceKind::Port,
            name: name.into(),
            place: "a/../b".into(),
            number: 1,
            address: None,
        }
    }

    fn store() -> Store {
        let name =
            format!("earmark-store-{}-{:?}", std::process::id(), std::thread::current().id());
        Store { directory: std::env::temp_dir().join(name) }
    }

    #[test]
    fn a_journal_is_replaced_as_a_whole_and_goes_when_it_is_empty() {
        let store = store();
        let held = store.try_hold(&device("b0")).unwrap().unwrap();
        assert!(store.read(&device("b0")).unwrap().is_none());
        let mut journal = Journal::new("boot", device("b0"));
        let before = State::default();
        let trying =
            Trying { what: "tune".into(), process: 1, before, changed: vec![], until: None };
        journal.trying = Some(trying);
        store.write(&journal, &held).unwrap();
        assert_eq!(store.read(&device("b0")).unwrap().as_ref(), Some(&journal));
        let (before, after) = (Value::Number(1), Value::Number(2));
        journal.trying = None;
        journal.keep(vec![Kept { setting: Setting::RxUsecs, before, after }]);
        store.write(&journal, &held).unwrap();
        assert_eq!(store.all().into_iter().collect::<Result<Vec<_>>>().unwrap(), [journal.clone()]);
        journal.kept.clear();
        store.write(&journal, &held).unwrap();
        assert!(store.read(&device("b0")).unwrap().is_none() && store.all().is_empty());
        fs::remove_dir_all(store.directory()).unwrap();
    }

    #[test]
    fn one_at_a_time_may_change_a_device() {
        let store = store();
        let held = store.try_hold(&device("b0")).unwrap();
        assert!(held.is_some() && store.try_hold(&device("b0")).unwrap().is_none());
        assert!(store.try_hold(&device("a0")).unwrap().is_some());
        drop(held);
        assert!(store.try_hold(&device("b0")).unwrap().is_some());
        fs::remove_dir_all(store.directory()).unwrap();
    }

    #[test]
    fn a_journal_that_makes_no_sense_is_an_error_with_its_path() {
        let store = store();
        drop(store.try_hold(&device("b0")).unwrap());
        let path = store.file(&device("b0"), JOURNAL);
        for wrong in ["", "half of a journ", "\u{0}", "[]"] {
            fs::write(&path, wrong).unwrap();
            let error = format!("{:#}", store.read(&device("b0")).unwrap_err());
            assert!(error.contains("by hand") && error.contains("b0.journal"), "{error}");
            assert!(store.all()[0].is_err());
        }
        fs::remove_dir_all(store.directory()).unwrap();
    }
}
