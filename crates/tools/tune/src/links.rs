//! Which `.link` file of systemd counts for a device (`systemd.link(5)`), below any root.
//!
//! Files of all directories are read in the order of their names, and the first one that matches a
//! device is the only one that counts. A file in `/etc` hides one of the same name in `/run`, that
//! one the same in `/usr`. What is in `NAME.link.d/*.conf`, in any of the directories, is read
//! after `NAME.link` and wins over it. `udev` decides in the end; where a condition cannot be told
//! from here, this says so.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use sys::files::Tree;

use super::persist::{is_ours, link_section, section};

/// Where such files are, the most important first.
const DIRECTORIES: [&str; 4] = [
    "etc/systemd/network",
    "run/systemd/network",
    "usr/local/lib/systemd/network",
    "usr/lib/systemd/network",
];

/// No such directory has more files, and no file more bytes.
const MOST_FILES: usize = 4_096;
const LARGEST: u64 = 1 << 20;

/// What a `[Match]` section may ask of a device and can be told from here.
#[derive(Clone, Debug, Default)]
pub struct Traits {
    /// Its name, as the kernel or udev has given it.
    pub name: String,
    /// Its Ethernet address.
    pub address: Option<String>,
    /// Its driver.
    pub driver: Option<String>,
}

/// Whether a file matches a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matches {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// It has conditions that cannot be told from here.
    Perhaps,
}

/// A `.link` file of somebody else's, with what is dropped in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFile {
    /// Its path below the root, beginning with a slash.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Whether it matches the device.
    pub matches: Matches,
    /// The lines of its `[Link]` section, and of those that are dropped in.
    pub lines: Vec<String>,
}

/// A line dropped in: the file, and the lines of its `[Link]` section.
pub type DropIn = (String, Vec<String>);

/// The files that may count for a device, in the order in which they are read; those of Earmark are
/// left out.
///
/// # Errors
/// If one cannot be read: it might be the one that counts.
pub fn foreign(tree: &Tree, device: &Traits) -> Result<Vec<LinkFile>> {
    let mut files = Vec::new();
    for (name, path) in by_name(tree, "", ".link")? {
        let text = read(tree, &path)?;
        let matches = matches(&text, device);
        if is_ours(&text) || matches == Matches::No {
            continue;
        }
        let mut lines = link_section(&text);
        lines.extend(drop_ins(tree, &name)?.into_iter().flat_map(|(_, lines)| lines));
        files.push(LinkFile { path, name, matches, lines });
    }
    Ok(files)
}

/// What is dropped into a `.link` file of that name.
///
/// # Errors
/// If a file cannot be read.
pub fn drop_ins(tree: &Tree, name: &str) -> Result<Vec<DropIn>> {
    let files = by_name(tree, &format!("/{name}.d"), ".conf")?.into_values();
    files.map(|path| Ok((path.clone(), section(&read(tree, &path)?, "[Link]")))).collect()
}

fn read(tree: &Tree, path: &str) -> Result<String> {
    let text = tree.read_text(path, LARGEST);
    let text =
        text.with_context(|| format!("read {}; move it away", tree.shown(path).display()))?;
    Ok(text.unwrap_or_default())
}

/// Files with that ending in a directory below each of the usual ones, by name.
fn by_name(tree: &Tree, below: &str, end: &str) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for usual in DIRECTORIES {
        let directory = format!("/{usual}{below}");
        let names = tree.names(&directory, MOST_FILES);
        let names = names.with_context(|| format!("read {}", tree.shown(&directory).display()))?;
        for name in names.into_iter().filter(|name| name.ends_with(end)) {
            let path = format!("{directory}/{name}");
            found.entry(name).or_insert(path);
        }
    }
    Ok(found)
}

/// Whether a file is about a device. One without a condition is about none.
fn matches(text: &str, device: &Traits) -> Matches {
    let mut all = BTreeMap::<String, String>::new();
    for line in section(text, "[Match]") {
        let Some((key, value)) = line.split_once('=') else { continue };
        let values = all.entry(key.trim().to_owned()).or_default();
        // Lines of one key are one list, which an empty one ends.
        if value.trim().is_empty() {
            values.clear();
        } else {
            *values = format!("{values} {}", value.trim());
        }
    }
    all.retain(|_, values| !values.is_empty());
    if all.is_empty() {
        return Matches::No;
    }
    let mut sum = Matches::Yes;
    for (key, values) in &all {
        let one = match key.as_str() {
            "MACAddress" | "PermanentMACAddress" => device.address.as_deref().map(|own| {
                let plain = |text: &str| text.to_lowercase().replace(['-', '.'], ":");
                values.split_whitespace().any(|value| plain(value) == plain(own))
            }),
            "OriginalName" => listed(values, &device.name),
            "Driver" => device.driver.as_deref().and_then(|driver| listed(values, driver)),
            _ => None,
        };
        match one {
            Some(false) => return Matches::No,
            Some(true) => {}
            None => sum = Matches::Perhaps,
        }
    }
    sum
}

/// Whether a list of patterns has a text. Of patterns beyond `*` at the end it is not known.
fn listed(patterns: &str, text: &str) -> Option<bool> {
    let (patterns, negated) = match patterns.trim().strip_prefix('!') {
        Some(rest) => (rest, true),
        None => (patterns, false),
    };
    let mut any = Some(false);
    for pattern in patterns.split_whitespace() {
        let plain = pattern.trim_end_matches('*');
        let one = match plain {
            _ if plain.contains(['*', '?', '[']) => None,
            _ if plain.len() < pattern.len() => Some(text.starts_with(plain)),
            _ => Some(text == pattern),
        };
        any = match (any, one) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (None, _) | (_, None) => None,
            _ => Some(false),
        };
    }
    any.map(|any| any != negated)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn device() -> Traits {
        let (address, driver) = (Some("02:00:00:00:00:0A".into()), Some("igb".into()));
        Traits { name: "enp1s0".into(), address, driver }
    }

    #[test]
    fn conditions_are_told_or_left_open() {
        let of = |text: &str| matches(&format!("[Match]\n{text}\n[Link]\nX=1\n"), &device());
        assert_eq!(of("OriginalName=*"), Matches::Yes);
        assert_eq!(of("OriginalName=eth* enp*"), Matches::Yes);
        assert_eq!(of("OriginalName=!enp*"), Matches::No);
        assert_eq!(of("MACAddress=02-00-00-00-00-0a"), Matches::Yes);
        assert_eq!(of("PermanentMACAddress=02:00:00:00:00:0b"), Matches::No);
        assert_eq!(
            of("PermanentMACAddress=02:00:00:00:00:0b\nPermanentMACAddress=02:00:00:00:00:0a"),
            Matches::Yes
        );
        assert_eq!(of("Driver=igb\nType=ether"), Matches::Perhaps);
        assert_eq!(of("Driver=ixgbe\nType=ether"), Matches::No);
        assert_eq!(of("OriginalName=e?p1s0"), Matches::Perhaps);
        assert_eq!(of("# OriginalName=*"), Matches::No);
        assert_eq!(matches("", &device()), Matches::No);
    }

    #[test]
    fn files_are_read_by_name_and_etc_hides_the_rest() {
        let root = std::env::temp_dir().join(format!("earmark-links-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let text = |line: &str| format!("[Match]\nOriginalName=*\n[Link]\n{line}\n");
        write("usr/lib/systemd/network/99-default.link", &text("NamePolicy=keep"));
        write("usr/lib/systemd/network/10-lan.link", &text("MTUBytes=9000"));
        write("run/systemd/network/50-other.link", "[Match]\nOriginalName=wl*\n[Link]\nX=1\n");
        write("etc/systemd/network/70-earmark-enp1s0.link", super::super::persist::MARK);
        write("run/systemd/network/99-default.link.d/1.conf", "[Link]\nNamePolicy=path\n");
        let tree = Tree::at(&root);
        let found = foreign(&tree, &device()).unwrap();
        let names: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
        let lib = "/usr/lib/systemd/network";
        assert_eq!(names, [format!("{lib}/10-lan.link"), format!("{lib}/99-default.link")]);
        assert_eq!(found[1].lines, ["NamePolicy=keep", "NamePolicy=path"]);
        // Hidden by an empty file of the same name.
        write("etc/systemd/network/10-lan.link", "");
        assert_eq!(foreign(&tree, &device()).unwrap().len(), 1);
        // By one that leads nowhere it may be hidden or not.
        let link = |target: &str| {
            let hidden = root.join("etc/systemd/network/10-lan.link");
            fs::remove_file(&hidden).unwrap();
            std::os::unix::fs::symlink(target, hidden).unwrap();
        };
        link("/dev/zero");
        let refusal = format!("{:#}", foreign(&tree, &device()).unwrap_err());
        assert!(refusal.contains("10-lan.link` is a link that leads nowhere in this tree"));
        link("/dev/null");
        assert_eq!(foreign(&tree, &device()).unwrap().len(), 1);
        fs::remove_dir_all(&root).unwrap();
    }
}
