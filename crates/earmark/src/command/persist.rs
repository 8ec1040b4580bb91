//! `earmark persist`: settings that come back at each boot.

mod others;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use netdev::setters::{Matches, Traits, drop_ins, foreign, read_traits};
use netdev::{Root, device_name};

use super::apply::DeviceArgs;
use report::shell::quoted;
use report::{errln, outln, output};
use sys::files::{self, Tree};
use tune::Store;
use tune::device::{DeviceKind, TunedDevice};
use tune::persist::{
    File, Format, Subject, Written, is_ours, link_key, link_section, settings_of, without,
};
use tune::transaction::current;
use tune::{Setting, State};

/// No file that is read has more bytes.
const LARGEST: u64 = 1 << 20;

/// The permissions of a file, and of a program.
const FILE: u32 = 0o644;
const PROGRAM: u32 = 0o755;

#[derive(Args, Debug)]
pub(crate) struct PersistArgs {
    /// The device, such as eth0
    #[arg(value_name = "DEV")]
    pub(crate) device: String,
    /// The settings, by name; without any, those that Earmark has changed
    #[arg(value_name = "SETTING")]
    pub(crate) settings: Vec<String>,
    /// Who shall bring them back; without it, systemd
    #[arg(long = "as", value_name = "FORMAT", value_enum)]
    pub(crate) format: Option<Format>,
    /// Write the files; without it, they are printed
    #[arg(long)]
    pub(crate) write: bool,
    /// Remove what was written: all files of the device, or those of a format, or the settings that
    /// are named
    #[arg(long, conflicts_with = "write")]
    pub(crate) remove: bool,
    /// Write what is for a repository to this file, and not to standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["write", "remove"])]
    pub(crate) output: Option<PathBuf>,
    /// Write below this directory, as for the image of another machine
    #[arg(long, value_name = "DIRECTORY", default_value = "/")]
    pub(crate) root: PathBuf,
    #[command(flatten)]
    pub(crate) at: DeviceArgs,
}

impl PersistArgs {
    fn format(&self) -> Format {
        self.format.unwrap_or(Format::Systemd)
    }

    /// Where the files are. It may be another user's: no link in it leads out of it.
    fn tree(&self) -> Tree {
        Tree::at(&self.root)
    }
}

/// Prints or writes files that bring settings back at each boot.
pub(crate) fn run(args: &PersistArgs) -> Result<()> {
    if args.write || args.remove || args.output.is_some() {
        // All files or none, whatever becomes of what is said of them.
        output::settled();
    }
    if args.remove {
        return remove(args);
    }
    let (store, device) = args.at.open(&args.device)?;
    let device = device.as_ref();
    let name = &device.identity().name;
    let settings = settings(args, &store, device)?;
    let is_port = device.identity().kind == DeviceKind::Port;
    ensure!(
        !is_port || !args.write || args.root != Path::new("/"),
        "{name} ends with its lab, so nothing of it can last; without --write this prints what that \
         would write for a NIC"
    );
    let mut traits = read_traits(&Root::here(), name);
    traits.number = traits.number.filter(|_| args.root == Path::new("/"));
    let subject = subject(args, &traits, &settings)?;
    match args.format().write(&subject, &settings).map_err(|why| anyhow!("{why}"))? {
        Written::Files(files) => {
            in_place(args, name, &settings, &files, is_port)?;
            others::warn(&args.tree(), &traits, args.format(), &settings, &files);
            Ok(())
        }
        Written::Text(text) => for_a_repository(args, &text),
    }
}

/// Prints files that have their places, or writes them.
fn in_place(
    args: &PersistArgs,
    name: &str,
    settings: &State,
    files: &[File],
    is_port: bool,
) -> Result<()> {
    let format = args.format();
    ensure!(
        args.output.is_none(),
        "{0} reads a directory: `--as {0} --write` writes there, below --root if that is given",
        format.name()
    );
    let tree = args.tree();
    // All of them can be written, or none is.
    for file in files {
        ours(&tree, &file.path)?;
    }
    let has_drop_ins = format != Format::Ifupdown || has_drop_ins(&tree)?;
    for file in files {
        let path = tree.shown(&file.path);
        if args.write {
            write(&tree, &file.path, &file.text, file.is_program)?;
            outln!("written: {}", path.display());
        } else {
            outln!("# {}\n{}", path.display(), file.text);
        }
    }
    elsewhere(args, name, settings, files);
    if !has_drop_ins {
        errln!(
            "/etc/network/interfaces reads no /etc/network/interfaces.d; it takes a line: source \
             /etc/network/interfaces.d/*"
        );
    }
    if args.write {
        outln!("{}", in_force(format, name));
        outln!("way back: earmark persist {name}{} --remove", root_flag(args));
    } else if is_port {
        outln!("# {name} ends with its lab; for a NIC of that name, --write would write this");
    } else {
        let names = names(settings);
        let flag = args.format.map(|format| format!(" --as {}", format.name()));
        let flag = flag.unwrap_or_default() + &root_flag(args);
        outln!("# to write this: earmark persist {name} {names}{flag} --write");
    }
    Ok(())
}

/// When what was written counts.
fn in_force(format: Format, name: &str) -> String {
    match format {
        Format::NetworkManager => format!("in force when NetworkManager next brings {name} up"),
        Format::Ifupdown => format!("in force when ifup next brings {name} up"),
        Format::Tuned => format!(
            "in force with: tuned-adm profile $(cat /etc/tuned/active_profile) earmark-{name}"
        ),
        _ => "in force from the next boot on".into(),
    }
}

/// Whether ifupdown reads the directory of our stanza; where there is no ifupdown yet, it will.
fn has_drop_ins(tree: &Tree) -> Result<bool> {
    let Some(text) = read(tree, "/etc/network/interfaces")? else { return Ok(true) };
    let mut lines = text.lines().map(str::trim);
    Ok(lines.any(|line| line.starts_with("source") && line.contains("interfaces.d")))
}

/// Says which other files of ours bring back the same settings.
fn elsewhere(args: &PersistArgs, name: &str, settings: &State, files: &[File]) {
    for (format, path) in Format::files_of(name) {
        let text = ours(&args.tree(), &path).ok().flatten();
        let Some(text) = text.filter(|_| files.iter().all(|file| file.path != path)) else {
            continue;
        };
        let same = settings_of(&text).only(|setting| settings.get(setting).is_some());
        if !same.0.is_empty() {
            let (names, format, flag) = (names(&same), format.name(), root_flag(args));
            errln!(
                "{path} brings back {same}, too; to end that: \
                 earmark persist {name} {names} --as {format}{flag} --remove"
            );
        }
    }
}

/// Prints a text for a repository, or writes it to a file that is ours or new.
fn for_a_repository(args: &PersistArgs, text: &str) -> Result<()> {
    let format = args.format().name();
    ensure!(!args.write, "{format} is for a repository: --output FILE writes it to a file there");
    match &args.output {
        Some(path) => {
            ours_at(path)?;
            files::write(path, text.as_bytes())
                .with_context(|| format!("write {}; name another file", path.display()))?;
            outln!("written: {}", path.display());
        }
        None => outln!("{}", text.trim_end()),
    }
    Ok(())
}

fn root_flag(args: &PersistArgs) -> String {
    match args.root.to_str() {
        Some("/") => String::new(),
        _ => format!(" --root {}", quoted(&args.root.to_string_lossy())),
    }
}

fn parsed(names: &[String]) -> Result<Vec<Setting>> {
    let setting = |name: &String| {
        name.parse().map_err(|why: String| match name.split_once('=') {
            Some((known, _)) if known.parse::<Setting>().is_ok() => anyhow!(
                "{name}: name the setting alone, as `{known}`; its value is the one in force, which \
                 `earmark apply` sets"
            ),
            _ => anyhow!("{why}"),
        })
    };
    names.iter().map(setting).collect()
}

fn names(settings: &State) -> String {
    settings.0.keys().map(|setting| setting.name()).collect::<Vec<_>>().join(" ")
}

/// The settings that are meant, with the values that they have now; and those that are in files of
/// ours already, with the values that they have there.
fn settings(args: &PersistArgs, store: &Store, device: &dyn TunedDevice) -> Result<State> {
    let name = &device.identity().name;
    let wanted: Vec<Setting> = if args.settings.is_empty() {
        let kept = current(store, device)?.kept.into_iter().map(|kept| kept.setting);
        // That of a lab's port is in its other settings, too, which a NIC has.
        kept.filter(|setting| *setting != Setting::Strategy).collect()
    } else {
        parsed(&args.settings)?
    };
    ensure!(
        !wanted.contains(&Setting::Strategy),
        "strategy is of a lab's NIC alone; name what a NIC has: rx-usecs, rx-frames, adaptive-rx"
    );
    let now = device.read_with(&wanted)?;
    ensure!(
        !wanted.is_empty(),
        "Earmark has changed nothing of {name}; apply something first, or name settings: \
         `earmark persist {name} rx-usecs`"
    );
    for setting in &wanted {
        ensure!(now.get(*setting).is_some(), "{name} ({}) has no {setting}", device.driver());
    }
    // What adaptive moderation has just chosen is not to be nailed down.
    let new = now.only(|setting| wanted.contains(&setting) && !now.is_driven(setting));
    let mut all = persisted(args, name)?;
    let kept = all.only(|setting| new.get(setting).is_none());
    if !kept.0.is_empty() {
        errln!("persisted before, and kept: {kept}");
    }
    // A fixed value says nothing beside a switch that overrides it, and drivers that start with
    // that switch on, such as iavf, refuse it then.
    let overrides = |adaptive| new.0.keys().any(|setting| setting.follows(adaptive));
    all.0.extend(now.only(overrides).0);
    all.0.extend(new.0);
    Ok(all)
}

/// What files of ours bring back already.
fn persisted(args: &PersistArgs, name: &str) -> Result<State> {
    let mut all = State::default();
    let tree = args.tree();
    let files = args.format().paths(name).into_iter().map(|path| ours(&tree, &path));
    // One that is not ours is refused where it would be written.
    for text in files.chain(args.output.as_ref().map(|path| ours_at(path))).flatten().flatten() {
        all.0.extend(settings_of(&text).0);
    }
    Ok(all)
}

/// What is known of the device, and of `.link` files that match it, too.
fn subject(args: &PersistArgs, traits: &Traits, settings: &State) -> Result<Subject> {
    let tree = args.tree();
    let name = &traits.name;
    let has_tuned_profiles = ["etc/tuned/profiles", "usr/lib/tuned/profiles"]
        .iter()
        .any(|directory| tree.has_directory(directory));
    let address = traits.address.clone();
    let mut subject =
        Subject { name: name.clone(), address, has_tuned_profiles, ..Subject::default() };
    let keys: Vec<&str> = settings.0.keys().filter_map(|setting| link_key(*setting)).collect();
    if keys.is_empty() || !matches!(args.format(), Format::Systemd | Format::Link) {
        return Ok(subject);
    }
    let own_path = &Format::Link.paths(name)[0];
    let own_name = own_path.rsplit('/').next().unwrap_or_default();
    let foreign = foreign(&tree, traits)?;
    for file in foreign.into_iter().filter(|file| !is_ours(&file.text)) {
        let counts = file.matches == Matches::Yes;
        let is_first = file.name.as_str() < own_name;
        match (counts, is_first) {
            (true, true) => subject.first = Some(file.path.clone()),
            (true, false) => errln!(
                "{} is for {name}, too: {own_name} counts before it, and repeats what it says",
                file.path
            ),
            (false, true) => errln!(
                "{} may be for {name}, which cannot be determined here; if it is, it counts \
                 instead of {own_name}",
                file.path
            ),
            (false, false) => errln!(
                "{} may be for {name}, which cannot be determined here; {own_name} counts \
                 before it",
                file.path
            ),
        }
        if counts {
            subject.lines = Some(file.lines);
            break;
        }
    }
    if subject.lines.is_none() {
        // What it has taken over from one that is gone, it takes over again.
        let text = ours(&tree, own_path).ok().flatten();
        subject.lines = text.map(|text| link_section(&text));
    }
    for (path, lines) in drop_ins(&tree, own_name)? {
        for line in lines {
            if line.split_once('=').is_some_and(|(key, _)| keys.contains(&key.trim())) {
                errln!("{path} says {line}: that wins over {own_name}");
            }
        }
    }
    Ok(subject)
}

fn read(tree: &Tree, path: &str) -> Result<Option<String>> {
    let text = tree.read_text(path, LARGEST);
    text.with_context(|| format!("read {}; move it away", tree.shown(path).display()))
}

/// The text of a file of ours, if there is one.
fn ours(tree: &Tree, path: &str) -> Result<Option<String>> {
    check_ours(&tree.shown(path), read(tree, path)?)
}

/// The same at a path that is in no tree.
fn ours_at(path: &Path) -> Result<Option<String>> {
    match files::read_text(path, LARGEST) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        text => check_ours(path, Some(text.with_context(|| format!("read {}", path.display()))?)),
    }
}

fn check_ours(path: &Path, text: Option<String>) -> Result<Option<String>> {
    ensure!(
        text.as_ref().is_none_or(|text| is_ours(text)),
        "{} is not one of Earmark's; move it away, or add to it what this prints without --write",
        path.display()
    );
    Ok(text)
}

fn write(tree: &Tree, path: &str, text: &str, is_program: bool) -> Result<()> {
    tree.write(path, text, if is_program { PROGRAM } else { FILE }).with_context(|| {
        let path = tree.shown(path);
        format!("write {}; run it as root, or give another --root", path.display())
    })
}

/// Removes the files of a device, which need not be here, nor have a journal; or settings from
/// them.
fn remove(args: &PersistArgs) -> Result<()> {
    let name = device_name(&Root::here(), &args.device);
    let gone: Vec<Setting> = parsed(&args.settings)?;
    let tree = args.tree();
    let mut found = false;
    for (format, path) in Format::files_of(&name) {
        if args.format.is_some_and(|only| !only.paths(&name).contains(&path)) {
            continue;
        }
        let shown = tree.shown(&path);
        let Some(text) = ours(&tree, &path)? else { continue };
        let left = if gone.is_empty() { None } else { without(format, &name, &text, &gone) };
        match left {
            Some(left) if left == text => continue,
            Some(left) => {
                write(&tree, &path, &left, format == Format::NetworkManager)?;
                outln!("written: {}", shown.display());
            }
            None => {
                tree.remove(&path).with_context(|| format!("remove {}", shown.display()))?;
                outln!("removed: {}", shown.display());
                if format == Format::Tuned {
                    // A profile is a directory; one that holds more than ours stays.
                    let _ =
                        path.rsplit_once('/').map(|(profile, _)| tree.remove_directory(profile));
                }
            }
        }
        found = true;
    }
    if !found {
        let what = if gone.is_empty() { "nothing" } else { "none of these settings" };
        outln!("{what} of {name} is persisted below {}", args.root.display());
    }
    Ok(())
}
