//! `earmark schema`: the shape of what a command prints as JSON.

use anyhow::Result;
use report::{json, outln};

/// A command whose JSON has a schema.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum SchemaOf {
    /// `earmark bench --json`; with `--scenario`, one of `outcomes`
    Bench,
    /// `earmark explain --json`
    Explain,
    /// A line of `earmark explain --each`
    ExplainEach,
    /// `earmark predict --json`
    Predict,
    /// `earmark probe --json`
    Probe,
    /// `earmark read --json`
    Read,
    /// `earmark show --json`
    Show,
    /// `earmark show --suspension --json`
    Suspension,
    /// `earmark tune --json`
    Tune,
    /// A line of `earmark watch --json`
    Watch,
}

/// Prints the JSON Schema of a command.
pub(crate) fn print(of: SchemaOf) -> Result<()> {
    let schema = match of {
        SchemaOf::Bench => json::schema::<bench::compare::Comparison>(),
        SchemaOf::Explain => json::schema::<explain::report::Explanation>(),
        SchemaOf::ExplainEach => json::schema::<flows::record::TracedRequest>(),
        SchemaOf::Predict => json::schema::<predict::Prediction>(),
        SchemaOf::Probe => json::schema::<probe::report::Report>(),
        SchemaOf::Read => json::schema::<read::ReadResult>(),
        SchemaOf::Show => json::schema::<super::show::Shown>(),
        SchemaOf::Suspension => json::schema::<super::show::ShownSuspension>(),
        SchemaOf::Tune => json::schema::<tune::Recommendation>(),
        SchemaOf::Watch => json::schema::<show::Rates>(),
    };
    outln!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(())
}
