//! `earmark tour`: the five jobs on one device, as a user would type them.
//!
//! It has nothing of its own: it makes a lab, starts there the commands of a table ([`steps`]), and
//! looks in what they print for what each is to show.

mod steps;

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use lab::machine::Machine;
use regex_lite::Regex;
use sys::privilege::{Privilege, become_capable};
use tune::peer::Code;

use crate::command::lab::{outlive_sigint, run_shell};
use bench::options::NicOptions;
use report::outln;
use report::terminal::Width;
use steps::{FAR, STEPS, STRATEGY, Step};
use worlds::live::Live;

#[derive(Args, Debug)]
pub(crate) struct TourArgs {
    /// Type the commands yourself: a shell on host a of the same lab, with the far side running
    #[arg(long)]
    pub(crate) shell: bool,
}

/// What became of a step.
enum Played {
    /// It showed what it is to show.
    Shown,
    /// The command worked, and that was not in its output.
    NotShown,
    Failed,
    /// It takes rights that this user has not.
    LeftOut,
}

/// Walks through the steps; the exit status says whether all showed what they are for.
pub(crate) fn run(args: &TourArgs) -> Result<ExitCode> {
    sys::kernel::check()?;
    let privilege = become_capable()?;
    let tour = Tour::start(privilege)?;
    let interrupted = outlive_sigint()?;
    let width = Width::of_output();
    let begin = format!(
        "Two Linux hosts, a and b. The NIC of a holds what it receives for 500 us ({STRATEGY}); b runs \
         `earmark echo` and `earmark serve`. Everything is typed on a, and ends with the tour."
    );
    outln!("{}\n", width.wrap(&begin));
    if args.shell {
        STEPS.iter().for_each(|step| outln!("{}\n$ {}\n", width.wrap(step.why), step.line));
        let status = run_shell(tour.a(), &tour.environment)?;
        tour.live.finish()?;
        return Ok(status);
    }
    let mut outcomes = Vec::new();
    for (number, step) in STEPS.iter().enumerate() {
        if interrupted.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok(ExitCode::from(130));
        }
        outln!("{}", width.wrap(&format!("{}. {}\n", number + 1, step.why)));
        outcomes.push(tour.play(step, width)?);
    }
    tour.live.finish()?;
    outln!("{}", width.wrap(&conclusion(&outcomes)));
    let missed = |it: &Played| matches!(it, Played::NotShown | Played::Failed);
    Ok(if outcomes.iter().any(missed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The lab, and what the commands in it find in their environment.
struct Tour {
    live: Live,
    privilege: Privilege,
    environment: Vec<(&'static str, OsString)>,
    /// The programs of b. They end with their host.
    _far: Vec<(Child, Box<dyn Read>)>,
}

impl Tour {
    fn start(privilege: Privilege) -> Result<Self> {
        let options = NicOptions {
            strategy: Some(STRATEGY.parse().context("the strategy of the tour")?),
            ports: Some(bench::options::Ports::A),
            ..NicOptions::default()
        };
        let setting = options.only_setting(bench::experiment::USUAL_SETTING)?;
        let live = Live::with_setting(2, &options, Some(setting), privilege)?;
        let program = std::env::current_exe().context("find the earmark program itself")?;
        let mut path = program.parent().map(|it| it.as_os_str().to_owned()).unwrap_or_default();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let code = Code::random()?.to_string();
        let environment = vec![("PATH", path), ("EARMARK_CODE", code.into())];
        let far = FAR.iter().map(|words| {
            let b = &*live.machines()[1];
            let mut command = b.command(program.as_os_str());
            command.args(*words).envs(environment.iter().cloned());
            started(b, command.stdin(Stdio::null()))
                .with_context(|| format!("start {} of earmark on host b", words[0]))
        });
        let far = far.collect::<Result<_>>()?;
        Ok(Self { live, privilege, environment, _far: far })
    }

    fn a(&self) -> &dyn Machine {
        &*self.live.machines()[0]
    }

    /// Runs the command of a step and says what its output shows.
    fn play(&self, step: &Step, width: Width) -> Result<Played> {
        outln!("$ {}", step.line);
        if step.takes_root && self.privilege != Privilege::Root {
            outln!("{}\n", width.wrap(LEFT_OUT));
            return Ok(Played::LeftOut);
        }
        let mut shell = self.a().command(OsStr::new("/bin/sh"));
        shell.args(["-c", step.line]).envs(self.environment.iter().cloned());
        if width.table() != usize::MAX {
            shell.env("COLUMNS", width.table().to_string());
        }
        let child = self.a().spawn(shell.stdin(Stdio::null()).stdout(Stdio::piped()));
        let output = child?.wait_with_output().context("wait for a command of the tour")?;
        let text = String::from_utf8_lossy(&output.stdout);
        outln!("{}\n", text.trim_end());
        let found = found(step, &text).filter(|_| output.status.success());
        let (outcome, words) = match found {
            Some(words) => (Played::Shown, words),
            None if output.status.success() => (Played::NotShown, NOT_SHOWN.to_owned()),
            None => (Played::Failed, format!("It failed: {}.", output.status)),
        };
        outln!("{}\n", width.wrap(&format!("=> {words}")));
        Ok(outcome)
    }
}

const LEFT_OUT: &str = "Left out: only root of this machine may trace its kernel; for this step: \
                        `sudo earmark tour`";

const NOT_SHOWN: &str = "That is not what it shows on other machines; this one may be too busy. \
                         To try it again by hand: earmark tour --shell";

/// What the output of a step says, if that is in it.
fn found(step: &Step, output: &str) -> Option<String> {
    let words: Vec<&str> = output.split_whitespace().collect();
    let pattern = Regex::new(step.finds).expect("an expression of the tour");
    let found = pattern.captures(&words.join(" "))?.get(1)?.as_str().to_owned();
    Some(step.says.replace("{}", &found))
}

/// What all steps have shown.
fn conclusion(outcomes: &[Played]) -> String {
    let left_out = outcomes.iter().any(|it| matches!(it, Played::LeftOut));
    let shown = outcomes.iter().filter(|it| matches!(it, Played::Shown)).count();
    let next = "Next, on a machine with a NIC: earmark show";
    if shown + usize::from(left_out) < outcomes.len() {
        return format!(
            "{shown} of {} steps showed what they are for. The figures above are of this machine as it \
             was; try again when it does less.\n{next}",
            outcomes.len()
        );
    }
    let explained = if left_out { "" } else { ", explain found it in a request" };
    format!(
        "All of it agrees: show read the hold of 500 us from the settings, probe measured it from \
         packets alone{explained}, tune removed it, persist would keep that, and rollback undid it.\n{next}"
    )
}

/// Starts a server, and waits until it says that it is there.
fn started(host: &dyn Machine, command: &mut Command) -> Result<(Child, Box<dyn Read>)> {
    let (reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let child = host.spawn(command)?;
    // So that the end of the server is the end of the pipe.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (mut output, mut line) = (BufReader::new(reader), String::new());
    output.read_line(&mut line)?;
    ensure!(!line.starts_with("earmark: ") && !line.is_empty(), "it ended: {}", line.trim());
    Ok((child, Box::new(output)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::{documents::words, parse};

    #[test]
    fn steps_are_commands_that_fit_a_terminal() {
        for step in &STEPS {
            assert!(step.line.lines().all(|line| line.len() <= 78), "{}", step.line);
            let words = words(&step.line.replace("\\\n", " ")).expect("a command");
            parse(words.iter()).unwrap_or_else(|error| panic!("{}: {error}", step.line));
            assert!(Regex::new(step.finds).unwrap().captures_len() == 2, "{}", step.finds);
        }
    }

    #[test]
    fn a_conclusion_says_only_what_was_shown() {
        let all = |last: Played| {
            let mut outcomes: Vec<_> = STEPS.iter().skip(1).map(|_| Played::Shown).collect();
            outcomes.push(last);
            conclusion(&outcomes)
        };
        assert!(all(Played::Shown).contains("explain found it"));
        assert!(!all(Played::LeftOut).contains("explain found it"));
        assert!(all(Played::LeftOut).starts_with("All of it agrees"));
        for missed in [Played::NotShown, Played::Failed] {
            assert!(all(missed).starts_with("5 of 6 steps"), "{}", STEPS.len());
        }
        let step = &STEPS[0];
        assert_eq!(found(step, "Up to 1 us: a processor"), None);
        let says = found(step, "a0:\n  Up to 500 us:   the NIC of lab 7").unwrap();
        assert!(says.contains(" 500 us"), "{says}");
    }
}
