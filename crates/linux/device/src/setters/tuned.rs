//! TuneD's active profile, with those that it includes (`tuned.conf(5)`): the plugin `net` with its
//! option `coalesce`, and scripts.
//!
//! Units of one name are one, and the later one's options count. A device has one unit of a plugin:
//! the first that takes it (`tuned/profiles/merger.py`, `tuned/units/manager.py`).

use super::command;
use super::files::Files;
use super::ini::assignment;
use super::traits::{Matches, Settings, Traits, any, is_like};

const ACTIVE: &str = "/etc/tuned/active_profile";

/// TuneD 2.23 has moved them to directories of their own.
const DIRECTORIES: [&str; 4] =
    ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];

const MOST_FILES: usize = 64;

type Options = Vec<(String, String)>;

/// A section, in the order in which they first come.
pub(super) type Unit = (String, Options);

pub(super) fn read(files: &mut Files<'_>, device: &Traits) -> Vec<(String, Matches, Settings)> {
    let mut profiles = Profiles::default();
    for name in files.text(ACTIVE).split_whitespace() {
        profiles.load(files, name);
    }
    let Profiles { units, origin, scripts, .. } = profiles;
    let mut found = vec![(origin, Matches::Yes, settings(&units, device))];
    for path in scripts {
        let (matches, settings) = command::in_script(&files.text(&path), device);
        found.push((path, matches, settings));
    }
    found
}

#[derive(Default)]
struct Profiles {
    units: Vec<Unit>,
    /// The last file that says something about coalescing.
    origin: String,
    read: Vec<String>,
    scripts: Vec<String>,
}

impl Profiles {
    fn load(&mut self, files: &mut Files<'_>, name: &str) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if !name.chars().all(is_plain) || self.read.len() >= MOST_FILES {
            return;
        }
        let paths = DIRECTORIES.map(|directory| format!("{directory}/{name}/tuned.conf"));
        // One that includes its own name includes the next of that name.
        let mut others = paths.into_iter().filter(|path| !self.read.contains(path));
        let found = others.find_map(|path| {
            let text = files.text(&path);
            (!text.is_empty()).then_some((path, text))
        });
        let Some((path, text)) = found else { return };
        self.read.push(path.clone());
        let units = units(&text);
        let main = units.iter().find(|(title, _)| title == "main");
        let included = main.and_then(|(_, options)| option(options, "include"));
        for included in included.unwrap_or_default().split([',', ';']).map(str::trim) {
            self.load(files, included);
        }
        for (title, options) in units {
            self.add(&path, title, options);
        }
    }

    fn add(&mut self, path: &str, title: String, options: Options) {
        if let Some(script) = option(&options, "script").filter(|it| !it.is_empty()) {
            let (directory, _) = path.rsplit_once('/').unwrap_or_default();
            let name = script.rsplit('/').next().unwrap_or_default();
            self.scripts.push(format!("{directory}/{name}"));
        }
        if option(&options, "coalesce").is_some() {
            path.clone_into(&mut self.origin);
        }
        match self.units.iter_mut().find(|(known, _)| *known == title) {
            Some((_, known)) => known.extend(options),
            None => self.units.push((title, options)),
        }
    }
}

pub(super) fn units(text: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            units.push((title.to_owned(), Vec::new()));
        } else if let (Some((name, value)), Some((_, options))) =
            (assignment(line), units.last_mut())
        {
            let value = value.split(" #").next().unwrap_or_default().trim();
            options.push((name.to_owned(), value.to_owned()));
        }
    }
    units
}

fn option<'a>(options: &'a Options, name: &str) -> Option<&'a str> {
    options.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn kind_of<'a>(title: &'a str, options: &'a Options) -> &'a str {
    option(options, "type").unwrap_or(title)
}

pub(super) fn settings(units: &[Unit], device: &Traits) -> Settings {
    let takes = |options: &Options| {
        let (others, names): (Vec<&str>, Vec<&str>) = option(options, "devices")
            .unwrap_or("*")
            .split([',', ';', ' '])
            .filter(|name| !name.is_empty())
            .partition(|name| name.starts_with('!'));
        let names = if names.is_empty() { vec!["*"] } else { names };
        let is = |name: &str| is_like(name, Some(&device.name));
        any(names.into_iter().map(is)) == Matches::Yes
            && any(others.into_iter().map(|name| is(&name[1..]))) == Matches::No
    };
    let is_net = |(title, options): &&Unit| kind_of(title, options) == "net";
    let unit = units.iter().filter(is_net).find(|(_, options)| takes(options));
    let text = unit.and_then(|(_, options)| option(options, "coalesce")).unwrap_or_default();
    let words: Vec<&str> =
        text.split([' ', '\t', ':', ';', ',']).filter(|it| !it.is_empty()).collect();
    words.chunks_exact(2).filter_map(|pair| command::setting(pair[0], pair[1])).collect()
}
