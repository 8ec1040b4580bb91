//! JSON as commands print it: an object with the version of its fields before them.

use std::collections::BTreeMap;

use anyhow::Result;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::outln;

/// The version of the fields that docs/json.md describes: raised when one changes its name, its
/// unit or its meaning, or goes away.
pub const SCHEMA_VERSION: u32 = 2;

/// The fields of a command, behind the version.
#[derive(Serialize, JsonSchema)]
struct Envelope<'a, T> {
    schema_version: u32,
    #[serde(flatten)]
    fields: &'a T,
}

impl<'a, T: Serialize> Envelope<'a, T> {
    fn of(fields: &'a T) -> Self {
        Self { schema_version: SCHEMA_VERSION, fields }
    }
}

/// An object in many lines.
pub fn text(fields: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(&Envelope::of(fields))?)
}

/// Prints an object in many lines.
pub fn print(fields: &impl Serialize) -> Result<()> {
    outln!("{}", text(fields)?);
    Ok(())
}

/// Prints an object of one list in many lines.
pub fn print_list(name: &str, list: &[impl Serialize]) -> Result<()> {
    print(&BTreeMap::from([(name, list)]))
}

/// Prints an object in one line.
pub fn print_line(fields: &impl Serialize) -> Result<()> {
    outln!("{}", serde_json::to_string(&Envelope::of(fields))?);
    Ok(())
}

/// The JSON Schema of an object with the fields of `T`, as [`print()`] prints it.
pub fn schema<T: JsonSchema + 'static>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Envelope<'static, T>>()
}

/// What tests of other crates use.
#[cfg(any(test, feature = "checks"))]
pub mod checks {
    use super::*;
    use serde_json::Value;

    /// An object of these fields is one of their schema: it has all that is required, and nothing
    /// that is not described.
    ///
    /// # Panics
    /// If it is not.
    pub fn conforms<T: Serialize + JsonSchema + 'static>(fields: &T) {
        let schema = schema::<T>().to_value();
        let value = serde_json::to_value(Envelope::of(fields)).unwrap();
        if let Err(why) = is_one(&value, &schema, &schema) {
            panic!("{why}\n{value:#}\n{schema:#}");
        }
    }

    /// Whether a value is one of a schema, as far as those of plain data go.
    fn is_one(value: &Value, schema: &Value, root: &Value) -> Result<(), String> {
        if let Some(name) = schema["$ref"].as_str() {
            return is_one(value, root.pointer(&name[1..]).ok_or(name)?, root);
        }
        for any in ["anyOf", "oneOf"] {
            let all = schema[any].as_array();
            let is_any = |all: &Vec<Value>| all.iter().any(|it| is_one(value, it, root).is_ok());
            if !all.is_none_or(is_any) {
                return Err(format!("{value} is none of {}", schema[any]));
            }
        }
        let is_word = |all: &Vec<Value>| all.contains(value);
        let constant = &schema["const"];
        if !schema["enum"].as_array().is_none_or(is_word)
            || !constant.is_null() && constant != value
        {
            return Err(format!("{value} is none of {}{constant}", schema["enum"]));
        }
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let is_kind = |it: &Value| it == kind || it == "number" && kind == "integer";
        let kinds = &schema["type"];
        if !kinds.is_null()
            && !is_kind(kinds)
            && !kinds.as_array().is_some_and(|all| all.iter().any(is_kind))
        {
            return Err(format!("{value} is not {kinds}"));
        }
        for item in value.as_array().into_iter().flatten() {
            is_one(item, &schema["items"], root)?;
        }
        let Some(fields) = value.as_object().filter(|_| kinds == "object") else { return Ok(()) };
        for name in schema["required"].as_array().into_iter().flatten() {
            fields.get(name.as_str().unwrap_or_default()).ok_or(format!("{name} is missing"))?;
        }
        fields.iter().try_for_each(|(name, field)| {
            let known = &schema["properties"][name];
            let others = &schema["additionalProperties"];
            match (known.is_null(), others.is_null()) {
                (true, true) => Err(format!("{name} is not described")),
                (true, false) => is_one(field, others, root),
                _ => is_one(field, known, root),
            }
        })
    }
}
