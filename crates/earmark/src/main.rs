//! The `earmark` command.

pub mod agent;
mod bench;
mod cli;
mod command;
mod control;
mod environment;
mod experiment;
mod halves;
mod measurement;
mod options;
mod progress;
mod records;
mod report;
mod scenario;
mod table;
mod workload;
mod world;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};

use cli::{Cli, Command, LabCommand};

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("earmark: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Demo(args) => command::demo::run(&args)?,
        Command::Bench(args) => command::bench::run(&args)?,
        Command::Lab(LabCommand::Run(args)) => return command::lab::run(&args),
        Command::Lab(LabCommand::Shell { on, nic }) => return command::lab::shell(&on, &nic),
        Command::Nic(args) => command::nic::run(&args)?,
        Command::Scenario { name } => scenarios(name.as_deref())?,
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "earmark", &mut std::io::stdout());
        }
        Command::Man => clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout())?,
        Command::Agent { spec } => return Ok(agent::run(&spec)),
    }
    Ok(ExitCode::SUCCESS)
}

fn scenarios(name: Option<&str>) -> Result<()> {
    if let Some(name) = name {
        let scenario = scenario::Scenario::find(name)?;
        println!("{}\n\n{}", scenario.title, scenario.story.trim());
        return Ok(());
    }
    for (name, text) in scenario::Scenario::built_in() {
        println!("{name:<8} {}", scenario::Scenario::parse(text)?.title);
    }
    Ok(())
}
