//! Other programs: the steps of a build.

use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a step silently; its standard error is part of the error.
pub(super) fn run(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

/// Runs a command; what it wrote to its standard output.
pub(super) fn text(command: &mut Command) -> Result<String> {
    let output = output(command)?;
    String::from_utf8(output.stdout).with_context(|| format!("read the output of {command:?}"))
}

fn output(command: &mut Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("start {name}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<_> = stderr.trim_end().lines().collect();
        let last = lines[lines.len().saturating_sub(12)..].join("\n");
        bail!("run {command:?}: {}\n{last}", output.status);
    }
    Ok(output)
}

/// Starts a command whose output is read by the next one.
pub(super) fn piped(command: &mut Command) -> Result<Child> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdout(Stdio::piped()).spawn().with_context(|| format!("start {name}"))
}

pub(super) fn output_of(child: &mut Child) -> Stdio {
    child.stdout.take().expect("it is piped").into()
}
