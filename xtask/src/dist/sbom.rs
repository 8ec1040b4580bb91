//! A bill of materials for each artefact, in the JSON of CycloneDX 1.5.
//!
//! cargo-cyclonedx writes the same, but is compiled for minutes and knows of no artefact made of
//! several crates; what it takes of `cargo metadata` is little.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::licences::{Crate, Linked};
use super::stage::{Build, Flavour, VERSION, write};
use crate::shell;

/// Writes the bill of an artefact that is called `name` and holds `package`.
pub(super) fn make(build: &Build, name: &str, package: &str, flavour: Flavour) -> Result<PathBuf> {
    let linked = Linked::into(build, package, flavour)?;
    let rustc = shell::output(shell::command("rustc").arg("--version"))?;
    let mut bill = bill(&linked.crates, name, package, rustc.trim())?;
    if let (Flavour::Musl, Some(components)) = (flavour, bill["components"].as_array_mut()) {
        components.push(json!({
            "type": "library", "bom-ref": "musl", "name": "musl",
            "description": "as it is in rust-std", "licenses": [{"license": {"id": "MIT"}}],
        }));
    }
    let path = build.out.join(format!("{name}.cdx.json"));
    write(&path, &(serde_json::to_string_pretty(&bill)? + "\n"))?;
    Ok(path)
}

fn bill(crates: &[Crate], name: &str, package: &str, rustc: &str) -> Result<Value> {
    let main = crates.iter().find(|of| of.name == package);
    let main = main.with_context(|| format!("{package} is not among its own crates"))?;
    let others: Vec<_> = crates.iter().filter(|of| of.id != main.id).collect();
    let mut components: Vec<_> = others.iter().map(|of| component(of)).collect();
    // `rustc 1.95.0 (59807616e 2026-04-14)`
    let version = rustc.split(' ').nth(1).unwrap_or(rustc);
    components.push(json!({
        "type": "library", "bom-ref": format!("rust-std@{version}"), "name": "rust-std",
        "version": version, "description": rustc,
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    }));
    let linked: BTreeSet<&str> = crates.iter().map(|of| of.id.as_str()).collect();
    let purl_of = |id: &String| crates.iter().find(|of| of.id == *id).map(purl);
    let dependencies: Vec<_> = crates
        .iter()
        .map(|of| {
            let uses = of.uses.iter().filter(|id| linked.contains(id.as_str()));
            let mut uses: Vec<_> = uses.filter_map(purl_of).collect();
            uses.sort();
            json!({"ref": purl(of), "dependsOn": uses})
        })
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {
            "type": "application", "bom-ref": purl(main), "name": name, "version": VERSION,
            "purl": purl(main), "licenses": [{"expression": main.licence}],
        }},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(of: &Crate) -> Value {
    let mut component = json!({
        "type": "library", "bom-ref": purl(of), "name": of.name, "version": of.version,
        "purl": purl(of), "licenses": [{"expression": of.licence.replace('/', " OR ")}],
    });
    if let Some(checksum) = &of.checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

fn purl(of: &Crate) -> String {
    format!("pkg:cargo/{}@{}", of.name, of.version)
}
