//! Values in what programs print: paths into JSON, and templates with such paths in braces.
//!
//! A path is a JSON pointer with two more kinds of segments: `name=text` (several joined by `&`) is
//! the first element of a list with these fields, or the object itself if it has them, and
//! `list@index` is the element of `list` whose number is in the field `index` beside it. `~1`
//! in a segment is a slash, as in any JSON pointer.

use std::borrow::Cow;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell;

/// What a path leads to, if there is anything.
pub(crate) fn find<'a>(json: &'a Value, path: &str) -> Option<&'a Value> {
    let segments = path.split('/').skip(1).filter(|segment| !segment.is_empty());
    segments.map(|segment| segment.replace("~1", "/")).try_fold(json, |json, it| step(json, &it))
}

fn step<'a>(json: &'a Value, segment: &str) -> Option<&'a Value> {
    if let Some(value) = json.get(segment) {
        return Some(value);
    }
    if segment.contains('=') {
        let fits = |value: &Value| {
            segment
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .all(|(name, wanted)| value.get(name).is_some_and(|value| text(value) == wanted))
        };
        let elements = json.as_array().map_or(std::slice::from_ref(json), Vec::as_slice);
        return elements.iter().find(|value| fits(value));
    }
    if let Some((list, index)) = segment.split_once('@') {
        return json.get(list)?.get(usize::try_from(json.get(index)?.as_u64()?).ok()?);
    }
    json.get(segment.parse::<usize>().ok()?)
}

/// A value as a template shows it: a string without quotes.
fn text(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| value.to_string().into(), Cow::from)
}

/// The template with values in place of `{/PATH}`, of `{#/PATH}` (how many elements), and of
/// `{?/PATH}` (1 if it leads anywhere, or else 0); inner braces first. Other braces stay: shells
/// have them, too.
pub(crate) fn fill(template: &str, json: &Value) -> Result<String> {
    let mut filled = template.to_owned();
    while let Some(start) = ["{/", "{#/", "{?/"].iter().filter_map(|it| filled.rfind(it)).max() {
        let inside = filled[start..].split_once('}').context("a brace that is not closed")?.0;
        let (kind, path) = inside[1..].split_once('/').unwrap_or_default();
        let found = find(json, &format!("/{path}"));
        let value = || found.with_context(|| format!("nothing at /{path} in {json}"));
        let value = match kind {
            "?" => u8::from(found.is_some()).to_string(),
            "#" => value()?.as_array().map_or(0, Vec::len).to_string(),
            _ => text(value()?).into_owned(),
        };
        let end = start + inside.len() + 1;
        filled.replace_range(start..end, &value);
    }
    Ok(filled)
}

/// The value of a formula of numbers and paths, as awk reads it.
pub(crate) fn formula(formula: &str, json: &Value) -> Result<f64> {
    let filled = fill(formula, json)?;
    let mut awk = shell::command("awk");
    let printed = shell::output(awk.arg(format!("BEGIN {{ printf \"%.17g\", {filled} }}")))?;
    let value = printed.parse::<f64>().ok().filter(|value| value.is_finite());
    value.with_context(|| format!("`{formula}` is no number but `{filled}`, {printed}"))
}

/// All JSON that a program printed: one value, or a list of several, such as lines or words.
/// Anything else is text.
pub(crate) fn printed(output: &str) -> Value {
    let values: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_str(output).into_iter().collect();
    match values {
        Ok(mut values) if values.len() == 1 => values.remove(0),
        Ok(values) => Value::Array(values),
        Err(_) => output.trim_end().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_fields_elements_and_what_has_a_field() {
        let json = json!({ "pick": 1, "trials": [{"set": "a", "n": 1}, {"set": "b/c", "n": 2}],
                           "cause": { "own": "hold" }, "a=b": 7 });
        for (path, expected) in [
            ("/pick", json!(1)),
            ("/trials/0/set", json!("a")),
            ("/trials/set=b~1c&n=2/n", json!(2)),
            ("/trials@pick/set", json!("b/c")),
            ("/cause/own=hold", json!({ "own": "hold" })),
            ("/a=b", json!(7)),
        ] {
            assert_eq!(find(&json, path), Some(&expected), "{path}");
        }
        for path in ["/gone", "/trials/2", "/trials/set=c", "/trials@gone", "/cause/own=way"] {
            assert_eq!(find(&json, path), None, "{path}");
        }
    }

    #[test]
    fn templates_have_values_and_keep_the_braces_of_shells() {
        let json = json!([{ "n": 2.5, "list": [1, 2], "name": "x" }]);
        let filled = fill("a() { b ${c}; } {/0/name} {#/0/list} {?/0/n=3}{?/0/n}", &json);
        assert_eq!(filled.unwrap(), "a() { b ${c}; } x 2 01");
        assert_eq!(fill("{/0/name={/0/name}/list/1}", &json).unwrap(), "2");
        assert_eq!(formula("({/0/n} - 0.5) * 1e3 / {#/0/list}", &json).unwrap(), 1_000.0);
        assert!(formula("{/0/gone}", &json).is_err() && formula("1 +", &json).is_err());
    }

    #[test]
    fn output_is_one_value_or_several_or_text() {
        assert_eq!(printed("{\"a\": 1}\n"), json!({ "a": 1 }));
        assert_eq!(printed("3000 2.5\n[1]\n"), json!([3000, 2.5, [1]]));
        assert_eq!(printed("cost: no such work\n"), json!("cost: no such work"));
    }
}
