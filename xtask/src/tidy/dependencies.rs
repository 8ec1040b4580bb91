//! The crates that `cargo metadata` lists.

use serde_json::Value;

/// Each crate and those of the workspace that it depends on, tests aside, sorted.
pub(super) fn dependencies(metadata: &Value) -> Vec<(String, Vec<String>)> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<_> = packages.iter().map(name).collect();
    let mut all = Vec::new();
    for package in packages {
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let dependencies = dependencies.filter(|dependency| dependency["kind"] != "dev");
        let mut on: Vec<_> = dependencies.map(name).filter(|name| names.contains(name)).collect();
        on.sort();
        on.dedup();
        all.push((name(package), on));
    }
    all.sort();
    all
}

/// The name of a package, or of a dependency on one, as it is said within the project.
fn name(package: &Value) -> String {
    let name = package["name"].as_str().unwrap_or_default();
    name.strip_prefix("earmark-").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dependencies_are_those_of_the_workspace_without_tests() {
        let metadata = json!({"packages": [
            {"name": "earmark-b", "dependencies": []},
            {"name": "a", "dependencies": [
                {"name": "c", "kind": "build"}, {"name": "libc", "kind": null},
                {"name": "earmark-b", "kind": null}, {"name": "earmark-b", "kind": "dev"}]},
            {"name": "c", "dependencies": [{"name": "a", "kind": "dev"}]},
        ]});
        let expected = [("a", vec!["b", "c"]), ("b", vec![]), ("c", vec![])];
        let expected = expected.map(|(name, on)| {
            (name.to_owned(), on.into_iter().map(str::to_owned).collect::<Vec<_>>())
        });
        assert_eq!(dependencies(&metadata), expected);
    }
}
