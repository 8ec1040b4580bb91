//! What hosts and guests have in common for a caller that runs programs on them.

use std::ffi::OsStr;
use std::process::{Child, Command};

use crate::error::LabError;
use crate::host::Host;

/// A computer that programs can be started on: a [`Host`], or a [`Guest`](crate::guest::Guest).
///
/// ```no_run
/// # fn example(machine: &dyn lab::machine::Machine) -> Result<(), Box<dyn std::error::Error>> {
/// let mut ping = machine.command("ping".as_ref());
/// let status = machine.spawn(ping.args(["-c", "3", "b"]))?.wait()?;
/// # Ok(())
/// # }
/// ```
pub trait Machine {
    /// The name of the host.
    fn name(&self) -> &str;

    /// A command for [`Machine::spawn`]. Arguments, environment, working directory, input and
    /// outputs are set as for any other command.
    fn command(&self, program: &OsStr) -> Command;

    /// Starts a command that [`Machine::command`] has made. The child ends as the program ends, and
    /// takes signals for it; killing it kills the program.
    fn spawn(&self, command: &mut Command) -> Result<Child, LabError>;

    /// How it has ended, if it has.
    fn end(&self) -> Option<String>;

    /// The host that it is, if it is one: not a guest, which shares no files or sockets with hosts.
    fn host(&self) -> Option<&Host> {
        None
    }
}

impl Machine for Host {
    fn name(&self) -> &str {
        Self::name(self)
    }

    fn command(&self, program: &OsStr) -> Command {
        Command::new(program)
    }

    fn spawn(&self, command: &mut Command) -> Result<Child, LabError> {
        Self::spawn(self, command)
    }

    fn end(&self) -> Option<String> {
        let killed = || format!("its holder, process {}, was killed", self.pid());
        (!self.is_alive()).then(killed)
    }

    fn host(&self) -> Option<&Host> {
        Some(self)
    }
}
