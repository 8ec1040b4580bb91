//! What registries and docs.rs show of the crates that are published.

use serde_json::Value;

use super::problem::Problem;
use crate::dist;

/// Fields of a manifest.
const FIELDS: [&str; 6] =
    ["description", "license", "repository", "readme", "keywords", "categories"];

/// Checks what `cargo metadata` lists: who may be published, and what those say of themselves.
pub(super) fn check(metadata: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let file = package["manifest_path"].as_str().unwrap_or_default().to_owned();
        let mut problem = |what| problems.push(Problem { file: file.clone(), line: 1, what });
        let name = package["name"].as_str().unwrap_or_default();
        let is_published = dist::CRATES.contains(&name);
        // Without `publish` a crate goes to every registry; `publish = false` names none.
        if package["publish"].is_null() != is_published {
            let list = dist::CRATES.join(", ");
            problem(format!("{list} are published; others have `publish.workspace = true`"));
        }
        let is_empty = |field: &&str| {
            let value = &package[*field];
            value.as_str().unwrap_or_default().is_empty()
                && value.as_array().is_none_or(Vec::is_empty)
        };
        if is_published {
            FIELDS.into_iter().filter(is_empty).for_each(|field| problem(format!("no `{field}`")));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn published_crates_say_what_they_are_and_no_others_are() {
        let whole = json!({ "name": dist::CRATES[0], "publish": null, "description": "a",
            "license": "b", "repository": "c", "readme": "d", "keywords": ["e"],
            "categories": ["f"] });
        let count = |field: &str, value: Value| {
            let mut package = whole.clone();
            package[field] = value;
            check(&json!({ "packages": [package] })).len()
        };
        assert_eq!(count("name", dist::CRATES[1].into()), 0);
        assert_eq!(count("readme", Value::Null) + count("keywords", json!([])), 2);
        assert_eq!(count("name", "other".into()), 1);
        assert_eq!(count("publish", json!([])), 1);
    }
}
