//! Who may know whom: `base` <- `nic`, `mx` <- `sys`, `vhost`, `lab`, `mx-io` <- `provider`,
//! `capi`, `earmark`, and cores without an operating system.

use serde_json::Value;

use super::problem::Problem;
use super::source::{Source, lines_with};

/// Each package of the workspace, and the packages of the workspace that it may depend on.
const DIRECTIONS: [(&str, &[&str]); 23] = [
    ("earmark-base", &[]),
    ("earmark-infer", &["earmark-base"]),
    ("earmark-blind", &["earmark-base", "earmark-infer", "earmark-nic"]),
    ("earmark-nic", &["earmark-base"]),
    ("earmark-mx", &["earmark-base"]),
    ("earmark-sim", &["earmark-base", "earmark-nic", "earmark-mx"]),
    ("earmark-sys", &["earmark-base"]),
    ("earmark-tracepoints", &["earmark-base", "earmark-sys"]),
    ("earmark-hostside", &["earmark-base", "earmark-nic"]),
    // In tests alone: netdev, vhost and mx-io on lab, mx-io on hostside and nic.
    ("earmark-netdev", &["earmark-sys", "earmark-lab"]),
    (
        "earmark-vhost",
        &["earmark-base", "earmark-nic", "earmark-hostside", "earmark-sys", "earmark-lab"],
    ),
    (
        "earmark-mx-io",
        &[
            "earmark-base",
            "earmark-mx",
            "earmark-sys",
            "earmark-vhost",
            "earmark-hostside",
            "earmark-nic",
            "earmark-lab",
        ],
    ),
    (
        "earmark-lab",
        &[
            "earmark-base",
            "earmark-nic",
            "earmark-hostside",
            "earmark-sys",
            "earmark-netdev",
            "earmark-vhost",
        ],
    ),
    ("earmark-provider", &["earmark-base", "earmark-mx", "earmark-sys", "earmark-mx-io"]),
    ("earmark-capi", &["earmark-base", "earmark-mx", "earmark-sys", "earmark-mx-io"]),
    ("earmark-report", &["earmark-base"]),
    ("earmark-show", &["earmark-netdev", "earmark-nic", "earmark-report", "earmark-sys"]),
    (
        "earmark-explain",
        &[
            "earmark-base",
            "earmark-lab",
            "earmark-netdev",
            "earmark-probe",
            "earmark-report",
            "earmark-sys",
            "earmark-tracepoints",
        ],
    ),
    ("earmark-probe", &["earmark-infer", "earmark-report", "earmark-sys"]),
    (
        "earmark-bench",
        &[
            "earmark-base",
            "earmark-hostside",
            "earmark-lab",
            "earmark-mx",
            "earmark-mx-io",
            "earmark-nic",
            "earmark-report",
            "earmark-sys",
            "earmark-vhost",
        ],
    ),
    (
        "earmark-tune",
        &[
            "earmark-base",
            "earmark-bench",
            "earmark-lab",
            "earmark-netdev",
            "earmark-nic",
            "earmark-probe",
            "earmark-report",
            "earmark-sys",
        ],
    ),
    (
        "earmark",
        &[
            "earmark-base",
            "earmark-blind",
            "earmark-infer",
            "earmark-nic",
            "earmark-mx",
            "earmark-sim",
            "earmark-sys",
            "earmark-hostside",
            "earmark-netdev",
            "earmark-tracepoints",
            "earmark-vhost",
            "earmark-mx-io",
            "earmark-lab",
            "earmark-report",
            "earmark-show",
            "earmark-explain",
            "earmark-probe",
            "earmark-bench",
            "earmark-tune",
        ],
    ),
    ("xtask", &[]),
];

/// The source of the pure cores.
const CORES: [&str; 4] =
    ["crates/base/src/", "crates/nic/src/", "crates/mx/src/", "crates/sim/src/"];

/// Which of the pure cores a file belongs to.
pub(super) fn core_of(file: &str) -> Option<&'static str> {
    CORES.into_iter().find(|core| file.starts_with(core))
}

/// Checks the dependencies, of every kind, that `cargo metadata` lists.
pub(super) fn check_directions(metadata: &Value) -> Vec<Problem> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<_> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut problems = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = package["manifest_path"].as_str().unwrap_or(name);
        let mut problem = |what| problems.push(Problem { file: manifest.into(), line: 1, what });
        let Some((_, allowed)) = DIRECTIONS.iter().find(|(known, _)| *known == name) else {
            problem(format!("{name} has no place among the layers; give it one in DIRECTIONS"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let on = dependency["name"].as_str().unwrap_or_default();
            if names.contains(&on) && !allowed.contains(&on) {
                problem(format!("{name} must not depend on {on}; move what it needs down a layer"));
            }
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
    use serde_json::json;

    fn metadata(name: &str, on: &str) -> Value {
        let package = |name: &str| json!({"name": name, "manifest_path": "a", "dependencies": []});
        let depending = json!({"name": name, "manifest_path": "a", "dependencies": [{"name": on}]});
        json!({"packages": [depending, package("earmark"), package("earmark-lab")]})
    }

    #[test]
    fn wrong_direction_is_found() {
        assert_eq!(check_directions(&metadata("earmark", "earmark-lab")), []);
        assert_eq!(check_directions(&metadata("earmark-lab", "libc")), []);
        assert_eq!(check_directions(&metadata("earmark-nic", "earmark-lab")).len(), 1);
        assert_eq!(check_directions(&metadata("earmark-lab", "earmark")).len(), 1);
        assert_eq!(check_directions(&metadata("newcomer", "libc")).len(), 1);
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
