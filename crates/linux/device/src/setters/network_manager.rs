//! Profiles of NetworkManager (`nm-settings-keyfile(5)`, `[ethtool]`; `nm-settings-ifcfg-rh(5)`,
//! `ETHTOOL_OPTS`), and its dispatcher scripts.
//! Only root can read profiles. Which one is active on a device is in the state that NetworkManager
//! keeps below `/run`.

use super::command;
use super::files::Files;
use super::ini::{assignment, section, value};
use super::traits::{Matches, Settings, Traits, any, is_like};

const PROFILES: [&str; 3] = [
    "/etc/NetworkManager/system-connections",
    "/run/NetworkManager/system-connections",
    "/usr/lib/NetworkManager/system-connections",
];

/// Scripts of an activation, before and after it.
const SCRIPTS: [&str; 2] = ["/pre-up.d", ""];
const DISPATCHERS: [&str; 2] =
    ["/etc/NetworkManager/dispatcher.d", "/usr/lib/NetworkManager/dispatcher.d"];

pub(super) fn read(files: &mut Files<'_>, device: &Traits) -> Vec<(String, Matches, Settings)> {
    let state = device.number.map(|number| format!("/run/NetworkManager/devices/{number}"));
    let state = state.map(|path| files.text(&path)).unwrap_or_default();
    let active = value(&state, "[device]", "connection-uuid");
    let mut found = Vec::new();
    for path in files.by_name(&PROFILES, "") {
        let (matches, settings) = profile(&files.text(&path), device, active.as_deref());
        found.push((path, matches, settings));
    }
    // Which of several it takes, it decides when it sees the device.
    if found.iter().filter(|(_, matches, _)| *matches != Matches::No).count() > 1 {
        found.iter_mut().for_each(|(_, matches, _)| *matches = (*matches).min(Matches::Perhaps));
    }
    let path = format!("/etc/sysconfig/network-scripts/ifcfg-{}", device.name);
    let (matches, settings) = ifcfg(&files.text(&path), device);
    found.push((path, matches, settings));
    for below in SCRIPTS {
        let directories = DISPATCHERS.map(|directory| format!("{directory}{below}"));
        let directories = directories.each_ref().map(String::as_str);
        for path in files.by_name(&directories, "") {
            // A directory of scripts for other moments is none.
            if path.ends_with(".d") {
                continue;
            }
            let (matches, settings) = command::in_script(&files.text(&path), device);
            found.push((path, matches, settings));
        }
    }
    found
}

/// What the profile of a device sets in the older format, of RHEL up to 8: options of `ethtool`, in
/// which the device is named, or is a variable.
pub(super) fn ifcfg(text: &str, device: &Traits) -> (Matches, Settings) {
    let options = text.lines().filter_map(|line| line.trim().strip_prefix("ETHTOOL_OPTS="));
    let options = options.flat_map(|options| options.split(';'));
    command::together(options.flat_map(|options| {
        command::in_line(
            &format!("ethtool {}", options.trim_matches(['"', '\''])),
            device,
            Matches::Yes,
        )
    }))
}

/// What a profile sets, and whether NetworkManager uses it for the device; `active` is the one that
/// it uses now.
pub(super) fn profile(text: &str, device: &Traits, active: Option<&str>) -> (Matches, Settings) {
    let lines = section(text, "[ethtool]");
    let pairs = lines.iter().filter_map(|line| assignment(line));
    let settings =
        pairs.filter_map(|(name, value)| command::setting(name.strip_prefix("coalesce-")?, value));
    let settings = settings.collect();
    let of_connection = |name| value(text, "[connection]", name);
    if let (Some(active), Some(uuid)) = (active, of_connection("uuid")) {
        return ((active == uuid).into(), settings);
    }
    let mut is_for = Matches::Perhaps;
    if let Some(name) = of_connection("interface-name") {
        is_for = (name == device.name).into();
    } else if of_connection("type").is_some_and(|kind| !kind.ends_with("ethernet")) {
        return (Matches::No, settings);
    }
    let addresses = ["[ethernet]", "[802-3-ethernet]"];
    if let Some(address) = addresses.iter().find_map(|it| value(text, it, "mac-address")) {
        is_for = match device.has_address(&address) {
            Matches::Yes => is_for.max(Matches::Yes),
            other => is_for.min(other),
        };
    }
    if let Some(names) = value(text, "[match]", "interface-name") {
        let names = names.split(';').map(str::trim).filter(|name| !name.is_empty());
        let listed = names.map(|name| match name.strip_prefix('!') {
            Some(name) => !is_like(name, Some(&device.name)),
            None => is_like(name, Some(&device.name)),
        });
        is_for = is_for.min(any(listed));
    }
    if of_connection("autoconnect").as_deref() == Some("false") {
        is_for = is_for.min(Matches::Perhaps);
    }
    (is_for, settings)
}
