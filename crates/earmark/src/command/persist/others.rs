//! What other programs set at boot of what is persisted, and who wins.

use std::cmp::Ordering;

use netdev::setters::{Program, Setter, Setters, Traits, read_setters};
use report::errln;
use sys::files::Tree;
use tune::persist::{File, Format, link_key};
use tune::{Setting, State};

/// Says which files of others set something that `files` bring back.
pub(super) fn warn(tree: &Tree, traits: &Traits, format: Format, settings: &State, files: &[File]) {
    let ours = Format::files_of(&traits.name);
    let Setters { found, unread } = read_setters(tree, traits);
    for setter in found.iter().filter(|it| ours.iter().all(|(_, path)| *path != it.path)) {
        for setting in settings.0.keys() {
            let Some(value) = setter.settings.get(&*setting.name()) else { continue };
            let own = program_of(format, *setting);
            // Which `.link` file counts has been said.
            if own == Program::Link && setter.by == Program::Link {
                continue;
            }
            errln!("{}", sentence(setter, *setting, value, own, files));
        }
    }
    for file in unread {
        errln!("{file}; it may set the same");
    }
}

/// The program that brings a setting back.
fn program_of(format: Format, setting: Setting) -> Program {
    match format {
        Format::Systemd | Format::Link if link_key(setting).is_some() => Program::Link,
        Format::NetworkManager | Format::Nmstate => Program::NetworkManager,
        Format::Ifupdown => Program::Ifupdown,
        Format::Tuned => Program::Tuned,
        _ => Program::Udev,
    }
}

fn sentence(
    setter: &Setter,
    setting: Setting,
    value: &str,
    own: Program,
    files: &[File],
) -> String {
    let (by, path) = (setter.by.name(), &setter.path);
    if !setter.is_certain {
        return format!(
            "{by} may set {setting} {value}, too ({path}), which cannot be determined here"
        );
    }
    // Rules of udev come in the order of their names; a script comes after a profile.
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let is_after = match own.order(setter.by) {
        Some(Ordering::Equal) => {
            own == Program::Udev && files.iter().all(|file| name(&file.path) < name(path))
        }
        Some(order) => order == Ordering::Less,
        None => {
            return format!(
                "{by} sets {setting} {value} in no order with that: the last one wins ({path})"
            );
        }
    };
    match is_after {
        true => format!("{by} sets {setting} {value} after that, and wins ({path})"),
        false => format!("{by} sets {setting} {value} before that, and is overridden ({path})"),
    }
}
