//! What else sets the coalescing of a device: files of the programs that set up devices at boot,
//! below any root, and which of them counts in the end.
//!
//! They come one after the other, and the last one to set a parameter wins:
//!
//! ```text
//! modprobe.d       the driver is loaded, before there is a device         modprobe.d(5)
//! .link            udev sees the device (80-net-setup-link.rules)         systemd.link(5)
//! udev rules       RUN: after all rules of that event                     udev(7)
//! ifupdown         `ifup` brings it up                                    interfaces(5)
//! NetworkManager   it activates a profile, at each activation again       nm-settings-keyfile(5)
//! TuneD            its service starts after network.target                tuned.conf(5)
//! ```
//!
//! The last two do not wait for each other: `network.target` says that NetworkManager has started,
//! and not that it has activated anything (systemd.io/NETWORK_ONLINE). netplan has no key for
//! coalescing; what it writes for systemd and NetworkManager is below `/run`, and read there.
//! systemd-networkd sets none.
//!
//! Each program has a file here with a pure parser, [`settings_in`], and a thin reader. The files
//! are those of others: bounded, regular, and none leads out of the tree ([`FileTree`]).

mod command;
mod files;
mod ifupdown;
mod ini;
mod link;
mod modprobe;
mod network_manager;
mod traits;
mod tuned;
mod udev;

use std::cmp::Ordering;

use serde::Serialize;

use files::Files;
pub use files::{FileTree, Unread};
pub use ini::section;
pub use link::{DropIn, LinkFile, drop_ins, foreign, link_key};
pub use traits::{Matches, Settings, Traits};

/// A program that sets up devices, in the order in which they do at boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// The loader of modules, by options of drivers.
    Modprobe,
    /// udev, by a `.link` file of systemd.
    Link,
    /// udev, by a rule that runs `ethtool`.
    Udev,
    /// `ifup`, by its stanzas and scripts.
    Ifupdown,
    /// NetworkManager, by its profiles and dispatcher scripts.
    NetworkManager,
    /// TuneD, by its active profile.
    Tuned,
}

impl Program {
    /// All of them, in that order.
    pub const ALL: [Self; 6] =
        [Self::Modprobe, Self::Link, Self::Udev, Self::Ifupdown, Self::NetworkManager, Self::Tuned];

    /// Which of two comes first at boot; `None`: they do not wait for each other.
    pub fn order(self, other: Self) -> Option<Ordering> {
        let are = |one, another| (self, other) == (one, another) || (other, self) == (one, another);
        (!are(Self::NetworkManager, Self::Tuned)).then(|| self.cmp(&other))
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Modprobe => "modprobe.d",
            Self::Link => "a .link file",
            Self::Udev => "udev",
            Self::Ifupdown => "ifupdown",
            Self::NetworkManager => "NetworkManager",
            Self::Tuned => "TuneD",
        }
    }
}

/// A file that sets coalescing of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setter {
    /// The program that reads it.
    pub by: Program,
    /// Its path below the root, beginning with a slash.
    pub path: String,
    /// What it sets.
    pub settings: Settings,
    /// Whether it is for this device for sure; else some of its conditions are unknown.
    pub is_certain: bool,
    /// Those of its settings that a later one sets again for sure.
    pub overridden: Vec<String>,
    /// Those that another one sets for sure, and nothing says which is last.
    pub contested: Vec<String>,
}

impl Setter {
    fn surely_sets(&self, name: &str) -> bool {
        self.is_certain && self.settings.keys().any(|other| same(other) == same(name))
    }
}

/// All such files of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setters {
    /// Those that were found, in the order in which they are applied at boot.
    pub found: Vec<Setter>,
    /// Files that could not be read, and might be more of them.
    pub unread: Vec<Unread>,
}

/// Reads them. What cannot be read is listed as well.
pub fn read_setters(tree: &dyn FileTree, device: &Traits) -> Setters {
    let mut files = Files::new(tree);
    let mut found = Vec::new();
    for by in Program::ALL {
        let of_program = match by {
            Program::Modprobe => modprobe::read(&mut files, device),
            Program::Link => link::read(&mut files, device),
            Program::Udev => udev::read(&mut files, device),
            Program::Ifupdown => ifupdown::read(&mut files, device),
            Program::NetworkManager => network_manager::read(&mut files, device),
            Program::Tuned => tuned::read(&mut files, device),
        };
        for (path, matches, settings) in of_program {
            let is_certain = matches == Matches::Yes;
            if matches != Matches::No && !settings.is_empty() {
                let (overridden, contested) = (Vec::new(), Vec::new());
                found.push(Setter { by, path, settings, is_certain, overridden, contested });
            }
        }
    }
    for at in 0..found.len() {
        let own = &found[at];
        let set_by = |others: &dyn Fn(usize, &Setter) -> bool| {
            let is_set = |name: &&String| {
                let mut all = found.iter().enumerate();
                all.any(|(place, it)| others(place, it) && it.surely_sets(name))
            };
            own.settings.keys().filter(is_set).cloned().collect()
        };
        let overridden = set_by(&|place, it| place > at && own.by.order(it.by).is_some());
        let contested = set_by(&|_, it| own.by.order(it.by).is_none());
        (found[at].overridden, found[at].contested) = (overridden, contested);
    }
    Setters { found, unread: files.unread }
}

/// The parameter of `ethtool -C` for which an option of a driver is another name; any other name as
/// it is.
pub fn same(name: &str) -> &str {
    if name == "InterruptThrottleRate" { "rx-usecs" } else { name }
}

/// What a file of a program says of a device: each part that sets something, and whether it is
/// about the device.
pub fn settings_in(by: Program, text: &str, device: &Traits) -> Vec<(Matches, Settings)> {
    match by {
        Program::Modprobe => vec![(Matches::Yes, modprobe::options(text, device))],
        Program::Link => {
            vec![(link::matches(text, device), link::settings(&section(text, "[Link]")))]
        }
        Program::Udev => udev::rules(text, device),
        Program::Ifupdown => vec![(Matches::Yes, ifupdown::stanzas(text, device).settings)],
        Program::NetworkManager => {
            vec![
                network_manager::profile(text, device, None),
                network_manager::ifcfg(text, device),
                command::in_script(text, device),
            ]
        }
        Program::Tuned => vec![(Matches::Yes, tuned::settings(&tuned::units(text), device))],
    }
}
