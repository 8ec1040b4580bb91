//! Lines of commands, as one reads them who has no command line; that of `earmark bench` above all.

use clap::{Args, Command};

use crate::experiment::Experiment;
use crate::options::{ExperimentOptions, NicOptions};
use crate::scenario::Run;
use crate::suggestions::legible;
use crate::world::WorldKind;

/// What `earmark bench` runs.
#[derive(clap::Args)]
struct BenchLine {
    /// What hosts do
    #[arg(value_enum)]
    experiment: Experiment,
    /// Where they are
    #[arg(long, value_enum)]
    world: Option<WorldKind>,
    #[command(flatten)]
    nic: NicOptions,
    #[command(flatten)]
    options: ExperimentOptions,
}

/// The run that the words behind `earmark bench` ask for.
///
/// # Errors
/// What the command would say.
pub fn run(words: &[String]) -> Result<Run, String> {
    let BenchLine { experiment, world, nic, options } = parsed(words)?;
    let run = Run { experiment, world, nic, options };
    let uses = [run.uses(None)];
    let checked = run.nic.check_taken(&uses).and(run.options.check_taken(&uses));
    checked.map_err(|error| format!("{error:#}"))?;
    Ok(run)
}

/// What the words behind a command say.
///
/// # Errors
/// What the command would say.
pub fn parsed<T: Args>(words: &[String]) -> Result<T, String> {
    let command = T::augment_args(Command::new("earmark").no_binary_name(true));
    let read = command.try_get_matches_from(words);
    read.and_then(|matches| T::from_arg_matches(&matches)).map_err(|error| {
        let text = legible(error).to_string();
        let first = text.split("\n\n").next().unwrap_or_default();
        first.trim_start_matches("error: ").to_owned()
    })
}

/// What the command's help says of a flag; nothing if there is none of this name.
pub fn help(name: &str) -> String {
    let command = BenchLine::augment_args(Command::new("bench"));
    let found = command.get_arguments().find(|arg| {
        arg.get_long() == Some(name) || arg.get_long().is_none() && arg.get_id() == name
    });
    found.and_then(clap::Arg::get_help).map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Run, String> {
        run(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_line_is_read_as_the_command_reads_it() {
        let read = of("mixed --world model --strategy delay:75 --rx-usecs 20 --bulk-rate 100");
        let Run { experiment, world, nic, options } = read.unwrap();
        assert_eq!((experiment, world), (Experiment::Mixed, Some(WorldKind::Model)));
        assert_eq!((nic.rx_usecs, options.bulk_rate), (Some(20), Some(100)));
        for (line, says) in [
            ("mixed --strategy dealy", "no such strategy"),
            ("ping --bulk-rate 3 --world model", "--bulk-rate: ping makes no use of it"),
            ("mixed --rate 1e99", "--rate"),
        ] {
            let error = of(line).unwrap_err();
            assert!(error.contains(says) && !error.contains("--help"), "{line}: {error}");
        }
    }
}
