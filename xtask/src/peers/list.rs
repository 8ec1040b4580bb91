//! Which programs, and which packages have them: `xtask/peers.toml`.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

const FILE: &str = include_str!("../../peers.toml");

/// A program, or a file with its whole path.
#[derive(Clone)]
pub(super) struct HostProgram {
    pub name: String,
    /// Its packages of apt, dnf and pacman.
    pub packages: [String; 3],
    /// Whether it is never installed: it would change the machine.
    pub is_only_unpacked: bool,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Packages {
    Same(String),
    Each([String; 3]),
}

/// The programs of these groups.
pub(super) fn programs(groups: &[&str]) -> Result<Vec<HostProgram>> {
    let all: BTreeMap<String, BTreeMap<String, Packages>> =
        toml::from_str(FILE).context("read xtask/peers.toml")?;
    let mut programs = Vec::new();
    for &group in groups {
        let members = all.get(group).with_context(|| format!("no group {group}"))?;
        programs.extend(members.iter().map(|(name, packages)| HostProgram {
            name: name.clone(),
            packages: match packages.clone() {
                Packages::Same(name) => [name.clone(), name.clone(), name],
                Packages::Each(names) => names,
            },
            is_only_unpacked: group == "unpacked",
        }));
    }
    Ok(programs)
}
