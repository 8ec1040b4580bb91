//! Licences and sources of dependencies, by deny.toml.
//!
//! cargo-deny checks the same, and advisories besides, but is compiled for minutes where it is not
//! at hand: these checks need `cargo metadata` alone.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use spdx::{Expression, LicenseReq, ParseMode};

use crate::{repo, shell};

/// The part of deny.toml that is read here.
#[derive(Deserialize)]
struct File {
    licenses: Allowed,
}

/// Licences that dependencies may have.
#[derive(Deserialize)]
pub(super) struct Allowed {
    allow: Vec<String>,
    exceptions: Vec<Exception>,
}

/// Licences that one crate may have besides.
#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

impl Allowed {
    /// Reads deny.toml of the sources.
    pub(super) fn read(source: &Path) -> Result<Self> {
        let path = source.join("deny.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let file: File = toml::from_str(&text).context("read deny.toml")?;
        Ok(file.licenses)
    }

    /// Under which of its licences a crate is used: all of them have to be kept, and all are
    /// allowed.
    pub(super) fn chosen(&self, name: &str, licence: &str) -> Result<Vec<String>> {
        let expression = Expression::parse_mode(licence, ParseMode::LAX)
            .with_context(|| format!("read the licence of {name}: {licence}"))?;
        let exceptions = self.exceptions.iter().filter(|exception| exception.name == name);
        let besides: Vec<_> = exceptions.flat_map(|exception| &exception.allow).collect();
        let is_allowed = |req: &LicenseReq| {
            let text = req.to_string();
            self.allow.contains(&text) || besides.contains(&&text)
        };
        ensure!(
            expression.evaluate(is_allowed),
            "{name} has the licence {licence}, which deny.toml does not allow"
        );
        // One that can be left out is no condition; the first that is needed stays.
        let mut kept: Vec<String> = Vec::new();
        for part in expression.requirements() {
            let text = part.req.to_string();
            if is_allowed(&part.req) && !kept.contains(&text) {
                kept.push(text);
            }
        }
        for at in (0..kept.len()).rev() {
            let mut without = kept.clone();
            without.remove(at);
            if expression.evaluate(|req| without.contains(&req.to_string())) {
                kept = without;
            }
        }
        Ok(kept)
    }
}

/// Checks all dependencies of the workspace, those of tests and of automation too.
pub(super) fn check() -> Result<()> {
    let allowed = Allowed::read(repo::root())?;
    let metadata = shell::output(&mut shell::cargo(["metadata", "--format-version", "1"]))?;
    let metadata: Value =
        serde_json::from_str(&metadata).context("read the output of cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let problems: Vec<_> =
        packages.iter().flat_map(|package| problems(package, &allowed)).collect();
    if problems.is_empty() {
        println!("{} crates have allowed licences and come from the registry", packages.len());
        return Ok(());
    }
    problems.iter().for_each(|problem| println!("{problem}"));
    bail!("{} dependencies are not as deny.toml wants them", problems.len())
}

fn problems(package: &Value, allowed: &Allowed) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let mut problems = Vec::new();
    match package["license"].as_str() {
        None => problems.push(format!("{name} names no licence")),
        Some(licence) => {
            let error = allowed.chosen(name, licence).err();
            problems.extend(error.map(|error| format!("{error:#}")));
        }
    }
    if let Some(source) = package["source"].as_str().filter(|it| !it.starts_with("registry+")) {
        problems.push(format!("{name} comes from {source}, and not from the registry"));
    }
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let any = dependencies.filter(|on| on["req"] == "*" && on["path"].is_null());
    if package["source"].is_null() {
        let words = |on: &Value| format!("{name} takes any version of {}", on["name"]);
        problems.extend(any.map(words));
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn allowed() -> Allowed {
        let exceptions = vec![Exception { name: "writer".into(), allow: vec!["MPL-2.0".into()] }];
        Allowed { allow: ["Apache-2.0", "MIT", "Zlib"].map(str::to_owned).into(), exceptions }
    }

    #[test]
    fn licences_are_chosen_among_those_that_are_allowed() {
        let chosen = |licence| allowed().chosen("a", licence).map(|kept| kept.join("+")).ok();
        assert_eq!(chosen("MIT").as_deref(), Some("MIT"));
        assert_eq!(chosen("Apache-2.0/MIT").as_deref(), Some("Apache-2.0"));
        assert_eq!(chosen("Unlicense OR MIT").as_deref(), Some("MIT"));
        assert_eq!(chosen("(MIT OR Apache-2.0) AND Zlib").as_deref(), Some("MIT+Zlib"));
        assert_eq!(chosen("GPL-2.0-only"), None);
        assert_eq!(chosen("MIT AND GPL-2.0-only"), None);
    }

    #[test]
    fn an_exception_is_for_its_crate_alone() {
        assert!(allowed().chosen("writer", "MPL-2.0").is_ok());
        let error = allowed().chosen("other", "MPL-2.0").unwrap_err().to_string();
        assert!(error.contains("other") && error.contains("deny.toml"), "{error}");
    }

    #[test]
    fn what_deny_toml_forbids_is_found() {
        let package = json!({"name": "a", "license": "MIT", "source": "git+https://example",
            "dependencies": []});
        assert_eq!(problems(&package, &allowed()).len(), 1);
        let ours = json!({"name": "a", "license": null, "source": null, "dependencies": [
            {"name": "b", "req": "*", "path": null}, {"name": "c", "req": "*", "path": "c"}]});
        assert_eq!(problems(&ours, &allowed()).len(), 2);
        let fine = json!({"name": "a", "license": "MIT", "source": "registry+x",
            "dependencies": [{"name": "b", "req": "*", "path": null}]});
        assert!(problems(&fine, &allowed()).is_empty());
    }
}
