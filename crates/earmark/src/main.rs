//! The `earmark` command: it parses arguments, calls the crate that does the work, and prints.
//!
//! [`cli`] declares the commands and their help, `command` has one module for each, `demo` is the
//! first thing a new user runs. Everything else is in the crates that `ARCHITECTURE.md` lists.
#![forbid(unsafe_code)]
// Standard output may be closed; see `report::output`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod command;
mod command_line;
mod demo;
mod help;
mod probe_blind;
mod table;
mod tour;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use bench::scenario::Scenario;
use cli::{Command, LabCommand};
use report::names::did_you_mean;
use report::{errln, outln, output};
use sys::files::read_text;
use worlds::agent;

fn main() -> ExitCode {
    let code = output::while_read(|| run(command_line::read().command)).unwrap_or_else(|error| {
        output::error_line(format_args!("earmark: {}", output::message(&error)));
        ExitCode::FAILURE
    });
    // What was said until a Ctrl-C is not all.
    sys::ctrl_c::status().map_or(code, ExitCode::from)
}

/// Runs a command; its exit status.
fn run(command: Command) -> Result<ExitCode> {
    if command.reminds() {
        tune::recover::reminders().iter().for_each(|line| errln!("{line}"));
    }
    if command.needs_a_recent_kernel() {
        sys::kernel::check()?;
    }
    match command {
        Command::Demo(args) => demo::run(&args)?,
        Command::Tour(args) => return tour::run(&args),
        Command::Bench(args) => command::bench::run(&args)?,
        Command::Merge(args) => return command::merge::run(&args),
        Command::Lab(LabCommand::Run(args)) => return command::lab::run(&args),
        Command::Lab(LabCommand::Shell { on, nic }) => return command::lab::shell(&on, &nic),
        Command::Mpirun(args) => return command::mpirun::run(&args),
        Command::Explain(args) => return command::explain::run(&args),
        Command::Nic(args) => command::nic::run(&args)?,
        Command::Show(args) => return command::show::run(&args),
        Command::Read(args) => return command::read::run(&args),
        Command::Watch(args) => command::watch::run(&args)?,
        Command::Exporter(args) => command::exporter::run(&args)?,
        Command::Mx(command) => return command::mx::run(&command),
        Command::Tune(args) => return command::tune::run(&args),
        Command::Serve(args) => {
            let server = tune::peer::Server::bind(&args, output::error_line)?;
            server.instructions()?.iter().for_each(|line| outln!("{line}"));
            match server.run()? {}
        }
        Command::At { address, words } => return tune::peer::at(address, &words[1]),
        Command::Apply(args) => command::apply::apply(&args)?,
        Command::Lane(args) => command::lane::run(&args)?,
        Command::Confirm(args) => command::apply::confirm(&args)?,
        Command::Persist(args) => command::persist::run(&args)?,
        Command::Rollback(args) => command::apply::rollback(&args)?,
        Command::Guard { directory, device } => return tune::guard::run(&directory, &device),
        Command::Page(args) => command::page::run(&args)?,
        Command::Predict(args) => return command::predict::run(&args),
        Command::Probe(args) => return command::probe::run(&args),
        Command::Echo(args) => probe::echo::serve(&args, output::error_line)?,
        Command::ProbeBlind(args) => probe_blind::run(&args)?,
        Command::ProbeBulk(args) => probe_blind::bulk::run(&args)?,
        Command::Scenario { name } => scenarios(name.as_deref())?,
        Command::Kernel { suite } => {
            let kernel = lab::kernel::find_or_build(suite.as_ref(), output::error_line)?;
            outln!("{}", kernel.display());
        }
        Command::Reproduce(args) => return command::reproduce::run(&args),
        Command::Schema { command } => command::schema::print(command)?,
        Command::Calibrate(args) => command::calibrate::run(&args)?,
        Command::Adaptive(args) => command::adaptive::run(&args)?,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            let mut command = command_line::documented();
            clap_complete::generate(shell, &mut command, "earmark", &mut script);
            output::bytes(&script);
        }
        Command::Man { of, all } => manual(&of, all.as_deref())?,
        Command::RemoteShell { socket, words } => {
            return command::mpirun::shell::ask(&socket, words);
        }
        Command::GuestInit { .. } => return Ok(command::guest::init()),
        Command::GuestExec { socket, words } => return Ok(command::guest::exec(&socket, words)),
        Command::Agent { spec } => return Ok(agent::run(&spec)),
        Command::Follow { order } => {
            // The other host has the reason.
            let done = explain::far::follow(&order, &mut std::io::stdout().lock());
            return Ok(done.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a manual page, or writes all of them into a directory.
fn manual(of: &[String], directory: Option<&Path>) -> Result<()> {
    let mut command = command_line::documented().disable_help_subcommand(true);
    command.build();
    if let Some(directory) = directory {
        let doing = || format!("write manual pages into {}", directory.display());
        std::fs::create_dir_all(directory).with_context(doing)?;
        return clap_mangen::generate_to(command, directory).with_context(doing);
    }
    for name in of {
        let found = command.get_subcommands().find(|it| it.get_name() == name && !it.is_hide_set());
        command = found.cloned().with_context(|| no_page(name, &command))?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    output::bytes(&page);
    Ok(())
}

/// What is wrong with `name`, which is no command below `within`.
fn no_page(name: &str, within: &clap::Command) -> String {
    let known = within.get_subcommands().filter(|it| !it.is_hide_set());
    let known: Vec<&str> = known.map(clap::Command::get_name).collect();
    match known[..] {
        [] => format!("`{}` has no command {name}; drop it", within.get_name()),
        _ => format!("no command {name}; {}", did_you_mean(name, known.into_iter(), None)),
    }
}

fn scenarios(name: Option<&str>) -> Result<()> {
    if let Some(name) = name {
        let text = Scenario::text(name, read_text)?;
        let scenario = Scenario::parse_named(name, &text)?;
        outln!("{}\n\n{}", scenario.title, scenario.description.trim());
        return Ok(());
    }
    for (name, text) in Scenario::built_in() {
        outln!("{name:<8} {}", Scenario::parse(text)?.title);
    }
    Ok(())
}
