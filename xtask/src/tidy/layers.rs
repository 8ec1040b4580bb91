//! Which crate depends on which, and cores without an operating system.

use serde_json::Value;

use super::dependencies::dependencies;
use super::problem::Problem;
use super::source::{Source, lines_with};

/// Each crate of the workspace, and the crates of the workspace that it depends on: these and no
/// others. What only tests use is left out.
const DIRECTIONS: &[(&str, &[&str])] = &[
    ("base", &[]),
    (
        "bench",
        &["base", "hostside", "intel", "lab", "mx", "mx-io", "nic", "report", "sys", "vhost"],
    ),
    ("blind", &["base", "infer", "nic"]),
    ("capi", &["base", "mx", "mx-io"]),
    (
        "earmark",
        &[
            "base",
            "bench",
            "blind",
            "explain",
            "exporter",
            "hostside",
            "infer",
            "lab",
            "mx",
            "mx-io",
            "netdev",
            "nic",
            "probe",
            "report",
            "reproduce",
            "show",
            "sim",
            "sys",
            "tune",
        ],
    ),
    ("explain", &["base", "lab", "netdev", "probe", "report", "sys", "tracepoints"]),
    ("exporter", &["netdev", "show", "sys"]),
    ("hostside", &["base", "nic"]),
    ("infer", &["base"]),
    ("intel", &["base", "hostside", "nic", "vhost"]),
    ("lab", &["base", "hostside", "netdev", "nic", "sys", "vhost"]),
    ("mx", &["base"]),
    ("mx-io", &["base", "mx", "sys", "vhost"]),
    ("netdev", &["sys"]),
    ("nic", &["base"]),
    ("probe", &["infer", "report", "sys"]),
    ("provider", &["base", "mx", "mx-io", "sys"]),
    ("report", &["base"]),
    ("reproduce", &["bench", "report", "sys"]),
    ("show", &["base", "netdev", "nic", "report", "sys"]),
    ("sim", &["base", "mx", "nic"]),
    ("sys", &["base"]),
    ("tracepoints", &[]),
    ("tune", &["base", "bench", "lab", "netdev", "nic", "report", "sys"]),
    ("vhost", &["base", "hostside", "nic", "sys"]),
    ("xtask", &[]),
];

/// The source of the pure cores.
const CORES: [&str; 4] =
    ["crates/base/src/", "crates/nic/src/", "crates/mx/src/", "crates/sim/src/"];

/// Which of the pure cores a file belongs to.
pub(super) fn core_of(file: &str) -> Option<&'static str> {
    CORES.into_iter().find(|core| file.starts_with(core))
}

/// Checks the dependencies that `cargo metadata` lists; what tests use is theirs.
pub(super) fn check_directions(metadata: &Value) -> Vec<Problem> {
    compare(DIRECTIONS, &dependencies(metadata))
}

/// Problems with `actual` dependencies, where they are not those of the table.
fn compare(table: &[(&str, &[&str])], actual: &[(String, Vec<String>)]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut problem =
        |what| problems.push(Problem { file: "xtask/src/tidy/layers.rs".into(), line: 1, what });
    for (name, on) in actual {
        let Some((_, allowed)) = table.iter().find(|(known, _)| known == name) else {
            problem(format!("{name} has no place among the layers; give it one in DIRECTIONS"));
            continue;
        };
        for on in on.iter().filter(|on| !allowed.contains(&on.as_str())) {
            problem(format!("{name} must not depend on {on}; move what it needs down a layer"));
        }
        for gone in allowed.iter().filter(|&&name| !on.iter().any(|on| on == name)) {
            problem(format!("{name} does not depend on {gone}; take that out of DIRECTIONS"));
        }
    }
    for (name, _) in table {
        if !actual.iter().any(|(package, _)| package == name) {
            problem(format!("there is no crate {name}; take it out of DIRECTIONS"));
        }
    }
    problems
}

/// Checks what a file names.
pub(super) fn check(source: &Source) -> Vec<Problem> {
    let Some(core) = core_of(&source.name) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    let mut problem = |line, what| problems.push(Problem { file: source.name.clone(), line, what });
    if source.name == format!("{core}lib.rs") && !source.code.contains("#![no_std]") {
        problem(1, "the core must work without an operating system; begin with #![no_std]".into());
    }
    for name in ["std", "sys", "lab", "earmark", "libc", "rustix"] {
        for path in [format!("{name}::"), format!("extern crate {name}")] {
            for line in lines_with(&source.code, &path) {
                problem(line, format!("the core must not know {name}; use core, alloc, arguments"));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_those_of_the_table() {
        let table: [(&str, &[&str]); 3] = [("a", &["b", "c"]), ("b", &["c"]), ("c", &[])];
        let check = |changed: &str, on: &[&str]| {
            let on = |name: &str, is: &[&str]| {
                let now = if name == changed { on } else { is };
                (name.to_owned(), now.iter().map(|&on| on.to_owned()).collect())
            };
            let actual: Vec<_> = table.iter().map(|(name, is)| on(name, is)).collect();
            let problems = compare(&table, &actual).into_iter();
            problems.map(|problem| problem.what).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(check("", &[]), "");
        assert!(check("c", &["a"]).starts_with("c must not depend on a;"));
        assert!(check("b", &[]).starts_with("b does not depend on c;"));
        let unknown = [("d".to_owned(), Vec::new())];
        let problems = compare(&table, &unknown);
        assert_eq!(problems.len(), 4, "d has no place, and a, b and c do not exist: {problems:?}");
    }

    #[test]
    fn operating_system_in_the_core_is_found() {
        let check = |name, text| check(&Source::new(name, text)).len();
        assert_eq!(check("crates/nic/src/lib.rs", "#![no_std]\nuse core::fmt; // not std::fmt"), 0);
        assert_eq!(check("crates/nic/src/lib.rs", "use core::fmt;"), 1);
        assert_eq!(check("crates/nic/src/a.rs", "use std::fmt;\nextern crate std;"), 2);
        assert_eq!(check("crates/nic/src/a.rs", "fn a() { lab::tap() }"), 1);
        assert_eq!(check("crates/lab/src/a.rs", "use std::fmt;"), 0);
    }
}
