//! `earmark persist`: settings that come back at each boot.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use linux::device::Root;

use super::apply::DeviceArgs;
use crate::say::say;
use crate::tune::device::{Device, Kind};
use crate::tune::journal::Store;
use crate::tune::persist::{File, MARK, Subject, files};
use crate::tune::setting::{Setting, State};
use crate::tune::transaction::current;

/// What `earmark persist` takes.
#[derive(Args, Debug)]
pub struct PersistArgs {
    /// The device, such as eth0
    #[arg(value_name = "DEV")]
    pub device: String,
    /// The settings, by name; without any, those that Earmark has changed
    #[arg(value_name = "SETTING")]
    pub settings: Vec<String>,
    /// Print the files, which is usual
    #[arg(long)]
    pub print: bool,
    /// Write them
    #[arg(long, conflicts_with = "print")]
    pub write: bool,
    /// Remove what was written
    #[arg(long, conflicts_with_all = ["print", "write"])]
    pub remove: bool,
    /// Write below this directory, as for the image of another machine
    #[arg(long, value_name = "DIRECTORY", default_value = "/")]
    pub root: PathBuf,
    /// The device
    #[command(flatten)]
    pub at: DeviceArgs,
}

/// Prints or writes files that bring settings back at each boot.
///
/// # Errors
/// If there is nothing to persist, or a file of somebody else is in the way.
pub fn run(args: &PersistArgs) -> Result<()> {
    ensure!(
        args.at.lab.is_none(),
        "a lab ends with its process: nothing of it can be made to last; give it a --strategy"
    );
    let (store, device) = args.at.open(&args.device)?;
    let settings = settings(args, &store, device.as_ref())?;
    let files =
        files(&subject(args, device.as_ref()), &settings).map_err(|why| anyhow!("{why}"))?;
    if args.remove {
        return files.iter().try_for_each(|file| remove(&args.root, file));
    }
    // All of them can be written, or none is.
    for file in &files {
        ours(&place(&args.root, file))?;
    }
    for file in &files {
        let path = place(&args.root, file);
        if args.write {
            write(&path, &file.text)?;
            say!("written: {}", path.display());
        } else {
            say!("# {}\n{}", path.display(), file.text);
        }
    }
    if args.write {
        say!("in force from the next boot on, or now: udevadm control --reload");
        say!("way back: earmark persist {} {} --remove", args.device, names(&settings));
    } else {
        say!("# to write this: earmark persist {} {} --write", args.device, names(&settings));
    }
    Ok(())
}

fn names(settings: &State) -> String {
    settings.0.keys().map(|setting| setting.name()).collect::<Vec<_>>().join(" ")
}

/// The settings that are meant, with the values that they have now.
fn settings(args: &PersistArgs, store: &Store, device: &dyn Device) -> Result<State> {
    let name = &args.device;
    let now = device.read()?;
    let wanted: Vec<Setting> = if args.settings.is_empty() {
        current(store, device)?.kept.iter().map(|kept| kept.setting).collect()
    } else {
        let parsed = args.settings.iter().map(|name| name.parse());
        parsed.collect::<Result<_, String>>().map_err(|why| anyhow!("{why}"))?
    };
    ensure!(
        !wanted.is_empty(),
        "Earmark has changed nothing of {name}; apply something first, or name settings: \
         `earmark persist {name} rx-usecs`"
    );
    for setting in &wanted {
        ensure!(now.get(*setting).is_some(), "{name} ({}) has no {setting}", device.driver());
    }
    // What adaptive moderation has just chosen is not to be nailed down.
    Ok(now.only(|setting| wanted.contains(&setting) && !now.is_driven(setting)))
}

/// What is known of the device: its own files, and udev's.
fn subject(args: &PersistArgs, device: &dyn Device) -> Subject {
    let root = Root::here();
    let identity = device.identity();
    debug_assert_eq!(identity.kind, Kind::Interface);
    let name = &args.device;
    // 0: the address is its own, not one that a program has given it.
    let is_own = root.number(&format!("sys/class/net/{name}/addr_assign_type")) == Some(0);
    let address = root.word(&format!("sys/class/net/{name}/address")).filter(|_| is_own);
    let known = fs::read_to_string(format!("/run/udev/data/n{}", identity.number));
    let link_file = known.ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("E:ID_NET_LINK_FILE="));
        line.map(str::to_owned)
    });
    let link_text = link_file.as_ref().and_then(|path| fs::read_to_string(path).ok());
    Subject { name: name.clone(), address, link_file, link_text }
}

fn place(root: &Path, file: &File) -> PathBuf {
    root.join(file.path.trim_start_matches('/'))
}

/// Whether there is a file of ours.
fn ours(path: &Path) -> Result<bool> {
    match fs::read_to_string(path) {
        Ok(text) if text.starts_with(MARK) => Ok(true),
        Ok(_) => bail!(
            "{} is not one of Earmark's; move it away, or add to it what `--print` says",
            path.display()
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
    }
}

/// Writes a file beside, then puts it in its place.
fn write(path: &Path, text: &str) -> Result<()> {
    let fail = || format!("write {}; run it as root, or give another --root", path.display());
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(fail)?;
    }
    let beside = path.with_extension("earmark-new");
    fs::write(&beside, text).with_context(fail)?;
    fs::rename(&beside, path).with_context(fail)
}

fn remove(root: &Path, file: &File) -> Result<()> {
    let path = place(root, file);
    if !ours(&path)? {
        say!("{} is not there", path.display());
        return Ok(());
    }
    fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
    say!("removed: {}", path.display());
    Ok(())
}
