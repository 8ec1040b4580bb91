//! `earmark read`: what pasted text, logs and reports of other machines say.

use std::fs::{self, File};
use std::io::{self, Read, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use base::quantity::Unit;
use clap::Args;

use bench::options::number;
use read::archive::{self, MOST_KEPT};
use read::{Input, LARGEST, Options, ReadSession, is_looked_at, screen};
use report::terminal::Width;
use report::{json, outln};

use super::show::{check, policies};

#[derive(Args, Debug)]
pub(crate) struct ReadArgs {
    /// Files, directories or archives of reports; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The driver, where no text names it, as ethtool -i would print it
    #[arg(long)]
    driver: Option<String>,
    /// Only this device; the name of that which no text names
    #[arg(long)]
    device: Option<String>,
    /// Seconds between the first and the last reading of counters
    #[arg(long, value_name = "SECONDS", value_parser = number(Unit::Seconds, 0.001..=1e6))]
    seconds: Option<f64>,
    /// Hold devices against a policy, as `earmark show --check` does
    #[arg(long, value_name = "POLICY")]
    #[arg(value_parser = policies(), hide_possible_values = true)]
    check: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Does what `args` say. It changes nothing.
pub(crate) fn run(args: &ReadArgs) -> Result<ExitCode> {
    let policy = match args.check.as_deref().map(|name| (name, check::policy(name))) {
        Some((_, Err(status))) => return Ok(status),
        Some((name, Ok(policy))) => Some((name, policy)),
        None => None,
    };
    let options =
        Options { driver: args.driver.clone(), device: args.device.clone(), seconds: args.seconds };
    let mut session = ReadSession::new(options);
    for path in &args.files {
        open(path, &mut session)?;
    }
    let answer = session.finish();
    let width = Width::of_output();
    if let Some((name, policy)) = &policy {
        if answer.devices.is_empty() {
            bail!("no device is in what was read; {}", answer.expected());
        }
        return check::run(name, policy, &answer.devices, (!args.json).then_some(width));
    }
    if answer.is_nothing() {
        bail!("nothing in it is recognised; {}", answer.expected());
    }
    if args.json {
        json::print(&answer)?;
    } else {
        outln!("{}", screen(&answer, width));
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a file, a directory, an archive, or standard input.
fn open(path: &Path, session: &mut ReadSession) -> Result<()> {
    let name = path.display().to_string();
    if path == Path::new("-") {
        return archive::read_into(session, &name, stdin().lock())
            .context("read standard input; paste, then type Ctrl-D");
    }
    let doing = || format!("read {name}; list what is there with: ls -l {name}");
    if fs::metadata(path).with_context(doing)?.is_dir() {
        return directory(path, session).with_context(doing);
    }
    let file = File::open(path).with_context(doing)?;
    archive::read_into(session, &name, file).with_context(doing)
}

/// Reads the files of a report in a directory, or all that are in it.
fn directory(path: &Path, session: &mut ReadSession) -> Result<()> {
    let mut files = Vec::new();
    list(path, 0, &mut files)?;
    let above = path.parent().unwrap_or(path);
    let relative = |file: &Path| file.strip_prefix(above).unwrap_or(file).display().to_string();
    let of_report: Vec<&PathBuf> = files.iter().filter(|it| is_looked_at(&relative(it))).collect();
    if of_report.is_empty() {
        let mut direct = files.iter().filter(|file| file.parent() == Some(path));
        return direct.try_for_each(|file| open(file, session));
    }
    for file in of_report {
        // Reports of root have files that others may not read.
        let Ok(opened) = File::open(file) else { continue };
        let mut bytes = Vec::new();
        opened.take(LARGEST).read_to_end(&mut bytes)?;
        let size = fs::metadata(file)?.len();
        let left_off = size.saturating_sub(LARGEST);
        session.input(&Input { name: relative(file), bytes, is_of_report: true, left_off });
    }
    Ok(())
}

/// Regular files below a directory; links lead nowhere.
fn list(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    const DEEPEST: usize = 12;
    let mut entries: Vec<_> = fs::read_dir(path)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type()?;
        if files.len() >= 4 * MOST_KEPT {
            bail!("it has more files than any report");
        }
        if kind.is_dir() && depth < DEEPEST {
            // What this user may not list is left out.
            let _ = list(&entry.path(), depth + 1, files);
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}
