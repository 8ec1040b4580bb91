//! The files of a root, to be compared.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::shell;

/// Where dpkg and systemd keep their own records, and change them whatever comes and goes.
const RECORDS: [&str; 5] =
    ["/run/systemd/", "/var/cache/ldconfig/", "/var/lib/dpkg/", "/var/lib/systemd/", "/var/log/"];

/// All files, by their paths from the root; without what dpkg writes for itself.
pub(super) fn files(root: &Path) -> Result<BTreeSet<String>> {
    let list =
        shell::output(shell::command("find").arg(root).args(["-xdev", "-printf", "/%P\\n"]))?;
    let is_ours = |path: &&str| !RECORDS.iter().any(|record| path.starts_with(record));
    Ok(list.lines().filter(is_ours).map(str::to_owned).collect())
}
