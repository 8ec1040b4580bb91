//! A profile for TuneD (`tuned.conf(5)`), to be active beside another one: `tuned-adm profile
//! OTHER earmark-DEV`. Units have names of their own, so they replace none of the other profile.
//!
//! A script sets coalescing. The option `coalesce` of TuneD's own plugin sets nothing wherever
//! `ethtool -c` prints a line that TuneD does not know, as it does from ethtool 5.15 to TuneD 2.25
//! (TuneD's issue 726), and again for newer lines (819).

use super::file::{File, Subject, head};
use super::words::{ethtool_runs, sysctl, sysfs};
use crate::setting::State;

/// Where profiles are: TuneD 2.23 has moved them to the second one.
const DIRECTORIES: [&str; 2] = ["/etc/tuned", "/etc/tuned/profiles"];

pub(super) fn paths(device: &str) -> Vec<String> {
    DIRECTORIES.iter().flat_map(|directory| both(directory, device)).collect()
}

fn both(directory: &str, device: &str) -> [String; 2] {
    ["tuned.conf", "coalescing.sh"].map(|name| format!("{directory}/earmark-{device}/{name}"))
}

pub(super) fn files(subject: &Subject, settings: &State) -> Vec<File> {
    let name = &subject.name;
    let [profile, script] = both(DIRECTORIES[usize::from(subject.has_tuned_profiles)], name);
    let mut text = head(settings);
    text += &format!("[main]\nsummary=Interrupt coalescing of {name}\n");
    let mut files = Vec::new();
    let runs = ethtool_runs(name, settings);
    if !runs.is_empty() {
        text += &unit(
            &format!("earmark-{name}"),
            "script",
            std::iter::once("script=${i:PROFILE_DIR}/coalescing.sh\n".into()),
        );
        let runs: String = runs.iter().map(|run| format!("ethtool {run}\n")).collect();
        let program = format!(
            "#!/bin/sh\n{}PATH=/usr/sbin:/usr/bin:/sbin:/bin\n[ \"$1\" = start ] || exit 0\n{runs}",
            head(settings)
        );
        files.push(File { path: script, text: program, is_program: true });
    }
    let lines = sysfs(settings).map(|(file, it)| format!("/sys/class/net/{name}/{file}={it}\n"));
    text += &unit(&format!("earmark-{name}-sysfs"), "sysfs", lines);
    let lines = sysctl(settings).map(|(name, value)| format!("{name}={value}\n"));
    text += &unit("earmark-sysctl", "sysctl", lines);
    files.push(File { path: profile, text, is_program: false });
    files
}

/// A unit with its lines; nothing if it has none.
fn unit(name: &str, kind: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\n[{name}]\ntype={kind}\n{lines}") }
}
