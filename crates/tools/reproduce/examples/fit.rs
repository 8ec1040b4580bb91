//! Fits the constants of the paper's machine to the numbers that set them, as JSON, with what each
//! of these is if the others alone set the constants: `fit [DOCUMENT]`.

use anyhow::Result;
use reproduce::fit::Fit;

fn main() -> Result<()> {
    let document = std::env::args().nth(1).unwrap_or_else(|| "openmx".into());
    println!("{}", serde_json::to_string_pretty(&Fit::of(&document)?)?);
    Ok(())
}
