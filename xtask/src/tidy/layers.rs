//! Which crate may depend on which, and cores without an operating system.

use serde_json::Value;

use super::problem::Problem;
use super::source::{Source, lines_with};

/// The folders below `crates/`. A crate depends on crates of its own folder and of those before it.
const FLOORS: [&str; 6] = ["core", "linux", "hosts", "mx", "tools", "earmark"];

/// The source of the pure cores.
const CORES: [&str; 7] = [
    "crates/core/base/src/",
    "crates/core/capture/src/",
    "crates/core/network/src/",
    "crates/core/nic/src/",
    "crates/core/mx/src/",
    "crates/core/sim/src/",
    "crates/core/workload/src/",
];

/// Pure as well, with floats: `core` has no roots and logarithms of these.
const WITH_FLOATS: [&str; 3] =
    ["crates/core/infer/src/", "crates/core/model/src/", "crates/core/predict/src/"];

/// Records and what follows from them: no I/O, no clock, but all else of std.
const RECORDS: [&str; 5] = [
    "crates/linux/device/src/",
    "crates/tools/show/src/",
    "crates/tools/read/src/",
    "crates/tools/forecast/src/",
    "crates/tools/page/src/",
];

/// What those may not name.
const OUTSIDE: [&str; 7] = [
    "std::fs",
    "std::env",
    "std::net::",
    "std::os::",
    "std::process",
    "std::thread",
    "std::time::",
];

/// Which of the pure cores a file belongs to.
pub(super) fn core_of(file: &str) -> Option<&'static str> {
    CORES.into_iter().find(|core| file.starts_with(core))
}

/// Checks the dependencies that `cargo metadata` lists; what tests use is theirs.
pub(super) fn check_directions(metadata: &Value) -> Vec<Problem> {
    let array = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let packages = array(&metadata["packages"]);
    let floor = |name: &Value| {
        let package = packages.iter().find(|package| package["name"] == *name)?;
        let (_, below) = package["manifest_path"].as_str()?.rsplit_once("/crates/")?;
        FLOORS.iter().position(|floor| below.starts_with(&format!("{floor}/")))
    };
    let mut problems = Vec::new();
    for package in &packages {
        for on in array(&package["dependencies"]).iter().filter(|on| on["kind"] != "dev") {
            if let (Some(own), Some(other)) = (floor(&package["name"]), floor(&on["name"]))
                && other > own
            {
                let (name, on) = (&package["name"], &on["name"]);
                let (own, other) = (FLOORS[own], FLOORS[other]);
                let what = format!("{name} of {own} must not depend on {on} of {other}");
                let file = package["manifest_path"].as_str().unwrap_or_default().into();
                problems.push(Problem { file, line: 1, what });
            }
        }
    }
    problems
}

/// Checks what a file names.
pub(super) fn check(source: &Source) -> Vec<Problem> {
    let core = core_of(&source.name);
    if RECORDS.iter().any(|records| source.name.starts_with(records)) {
        let problem = |line| Problem {
            file: source.name.clone(),
            line,
            what: "it has to work anywhere: bytes in, records out; no I/O, no clock".into(),
        };
        let found = OUTSIDE.iter().flat_map(|path| lines_with(&source.code, path));
        return found.map(problem).collect();
    }
    if core.is_none() && !WITH_FLOATS.iter().any(|core| source.name.starts_with(core)) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut problem = |line, what| problems.push(Problem { file: source.name.clone(), line, what });
    let is_front = core.is_some_and(|core| source.name == format!("{core}lib.rs"));
    if is_front && !source.code.contains("#![no_std]") {
        problem(1, "the core must work without an operating system; begin with #![no_std]".into());
    }
    for path in ["std::", "extern crate std"] {
        for line in lines_with(&source.code, path) {
            problem(line, "the core must not know std; use core, alloc, arguments".into());
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dependencies_point_down() {
        let package = |name: &str, floor: &str, on: &str, kind: Value| {
            let path = format!("/w/crates/{floor}/{name}/Cargo.toml");
            json!({"name": name, "manifest_path": path, "dependencies": [{"name": on, "kind": kind}]})
        };
        let check = |on: &str, kind: Value| {
            let packages = [
                package("a", "core", on, kind),
                package("b", "core", "libc", Value::Null),
                package("c", "tools", "a", Value::Null),
            ];
            check_directions(&json!({ "packages": packages })).len()
        };
        assert_eq!(check("b", Value::Null), 0);
        assert_eq!(check("c", "dev".into()), 0);
        assert_eq!(check("c", Value::Null), 1);
        assert_eq!(check("c", "build".into()), 1);
    }

    #[test]
    fn operating_system_in_the_core_is_found() {
        let check = |name, text| check(&Source::new(name, text)).len();
        assert_eq!(
            check("crates/core/nic/src/lib.rs", "#![no_std]\nuse core::fmt; // not std::fmt"),
            0
        );
        assert_eq!(check("crates/core/nic/src/lib.rs", "use core::fmt;"), 1);
        assert_eq!(check("crates/core/nic/src/a.rs", "use std::fmt;\nextern crate std;"), 2);
        assert_eq!(check("crates/hosts/lab/src/a.rs", "use std::fmt;"), 0);
        assert_eq!(check("crates/core/infer/src/lib.rs", "use std::fmt;"), 1);
        let records = "crates/linux/device/src/a.rs";
        assert_eq!(check(records, "use std::collections::BTreeMap;\nuse std::fs::read;"), 1);
    }
}
