//! Files that import each other, so that neither can be read or moved without the other.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use super::problem::Problem;
use crate::crates;
use crate::imports::{self, Cycle};

/// Cycles that are there today: crate, and files from the directory of its root file. The list
/// may only become shorter. `cargo xtask crates --cycles` prints what is there.
const KNOWN: &[(&str, &[&str])] = &[
    ("bench", &["agent/mod.rs", "agent/mx.rs"]),
    ("bench", &["agent/poller.rs", "agent/port.rs"]),
    ("bench", &["experiment.rs", "experiment/mx.rs", "options.rs", "takers.rs", "world/mod.rs"]),
    (
        "bench",
        &[
            "workload/bulk.rs",
            "workload/frame.rs",
            "workload/memcached.rs",
            "workload/ntp.rs",
            "workload/pps.rs",
            "workload/rr_client.rs",
            "workload/rr_open.rs",
            "workload/rr_server.rs",
            "workload/spec.rs",
        ],
    ),
    ("earmark", &["cli.rs", "command/lab.rs", "command/mpirun/mod.rs", "command/mpirun/shell.rs"]),
    (
        "earmark",
        &["command/mpirun/launcher.rs", "command/mpirun/place.rs", "command/mpirun/variables.rs"],
    ),
    ("earmark", &["demo/mod.rs", "demo/preview.rs", "demo/show.rs", "demo/story.rs"]),
    ("earmark", &["probe_blind/mod.rs", "probe_blind/virtual_case.rs"]),
    ("explain", &["tracer.rs", "wishes.rs"]),
    ("lab", &["calendar/client.rs", "calendar/mod.rs"]),
    ("lab", &["guest/init/furnish.rs", "guest/init/mod.rs", "guest/init/program.rs"]),
    ("lab", &["host/holder.rs", "host/mod.rs"]),
    (
        "mx-io",
        &[
            "discovery/asker.rs",
            "discovery/mod.rs",
            "discovery/peers.rs",
            "endpoint/bell.rs",
            "endpoint/core.rs",
            "endpoint/ended.rs",
            "endpoint/mod.rs",
            "endpoint/progress.rs",
        ],
    ),
    ("probe", &["echo/datagrams.rs", "echo/mod.rs"]),
    ("show", &["delays.rs", "report.rs"]),
    ("tune", &["device/interface.rs", "device/mod.rs", "device/port.rs"]),
    ("tune", &["guard.rs", "transaction/mod.rs"]),
    ("vhost", &["driver/mod.rs", "driver/setup.rs"]),
    ("vhost", &["message.rs", "message/payload.rs"]),
];

/// Checks every library and program of the workspace.
pub(super) fn check(metadata: &Value, root: &Path) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let roots = packages.flat_map(|package| {
        imports::roots(package).into_iter().map(move |root| (crates::name(package), root))
    });
    for (package, file) in roots {
        let cycles = imports::cycles(&imports::read(&file)?);
        let directory = file.parent().unwrap_or(root);
        let directory = directory.strip_prefix(root).unwrap_or(directory).to_string_lossy();
        for cycle in &cycles {
            seen.extend(cycle.files.iter().map(|file| (package.clone(), file.clone())));
            problems.extend(unknown(KNOWN, &package, &directory, cycle));
        }
    }
    problems.extend(gone(KNOWN, &seen));
    Ok(problems)
}

/// A problem with a cycle that no entry of the list has all files of.
fn unknown(
    known: &[(&str, &[&str])],
    package: &str,
    directory: &str,
    cycle: &Cycle,
) -> Option<Problem> {
    let has = |files: &[&str], file: &String| files.contains(&file.as_str());
    let of_package = |entry: &&(&str, &[&str])| entry.0 == package;
    let mut entries = known.iter().filter(of_package);
    if entries.any(|(_, files)| cycle.files.iter().all(|file| has(files, file))) {
        return None;
    }
    let step = cycle.steps.first()?;
    let what = format!(
        "{} files import each other; move what one needs into a file of its own, below both:{}",
        cycle.files.len(),
        cycle.steps.iter().map(|step| format!("\n    {step}")).collect::<String>()
    );
    let line = step.names.values().min().copied().unwrap_or(1);
    Some(Problem { file: format!("{directory}/{}", step.from), line, what })
}

/// Problems with entries whose files are in no cycle any more.
fn gone(known: &[(&str, &[&str])], seen: &BTreeSet<(String, String)>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (package, files) in known {
        for file in *files {
            if !seen.contains(&((*package).to_owned(), (*file).to_owned())) {
                let what = format!("{package}: {file} is in no cycle; take it out of KNOWN");
                problems.push(Problem { file: "xtask/src/tidy/cycles.rs".into(), line: 1, what });
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::imports::Step;

    fn cycle(files: &[&str]) -> Cycle {
        let to = files.iter().cycle().skip(1);
        let names = BTreeMap::from([("Name".to_owned(), 7)]);
        let step = |(from, to): (&&str, &&str)| Step {
            from: (*from).into(),
            to: (*to).into(),
            names: names.clone(),
        };
        let steps = files.iter().zip(to).map(step).collect();
        let files = files.iter().map(|&file| file.to_owned()).collect();
        Cycle { files, steps, imports: Vec::new() }
    }

    #[test]
    fn a_new_cycle_and_one_that_grows_are_problems() {
        let known: [(&str, &[&str]); 2] = [("a", &["x.rs", "y.rs", "z.rs"]), ("a", &["v.rs"])];
        let check = |package, files| unknown(&known, package, "crates/a/src", &cycle(files));
        assert_eq!(check("a", &["x.rs", "y.rs", "z.rs"]), None);
        assert_eq!(check("a", &["x.rs", "z.rs"]), None, "it may become smaller");
        assert!(check("a", &["v.rs", "x.rs"]).is_some(), "two that have joined");
        assert!(check("b", &["x.rs", "y.rs"]).is_some(), "of another package");
        let new = check("a", &["w.rs", "x.rs"]).unwrap();
        assert_eq!((&new.file[..], new.line), ("crates/a/src/w.rs", 7));
        for step in ["w.rs:7 imports Name of x.rs", "x.rs:7 imports Name of w.rs"] {
            assert!(new.what.contains(step), "{}", new.what);
        }
    }

    #[test]
    fn a_known_cycle_that_has_gone_is_a_problem() {
        let known: [(&str, &[&str]); 1] = [("a", &["x.rs", "y.rs", "z.rs"])];
        let seen =
            |files: &[&str]| files.iter().map(|&file| ("a".to_owned(), file.to_owned())).collect();
        assert_eq!(gone(&known, &seen(&["x.rs", "y.rs", "z.rs"])), []);
        let problems = gone(&known, &seen(&["x.rs", "y.rs"]));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].what.contains("z.rs is in no cycle"));
    }
}
