//! JSON as commands print it: an object with the version of its fields before them.

use anyhow::Result;
use serde::Serialize;

use crate::outln;

/// The version of the fields that docs/json.md describes: raised when one changes its name, its
/// unit or its meaning, or goes away.
pub const SCHEMA_VERSION: u32 = 2;

/// The fields of a command, behind the version.
#[derive(Serialize)]
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
///
/// # Errors
/// If `fields` are those of no object.
pub fn text(fields: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(&Envelope::of(fields))?)
}

/// Prints an object in many lines.
///
/// # Errors
/// If `fields` are those of no object.
pub fn print(fields: &impl Serialize) -> Result<()> {
    outln!("{}", text(fields)?);
    Ok(())
}

/// Prints an object in one line.
///
/// # Errors
/// If `fields` are those of no object.
pub fn print_line(fields: &impl Serialize) -> Result<()> {
    outln!("{}", serde_json::to_string(&Envelope::of(fields))?);
    Ok(())
}
