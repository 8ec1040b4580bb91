//! What hosts and guests have in common for a caller that runs programs on them.

use std::ffi::OsStr;
use std::process::{Child, Command, Output, Stdio};

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

    /// Runs a command that [`Machine::command`] has made, and collects its output.
    fn output(&self, command: &mut Command) -> Result<Output, LabError> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.spawn(command)?;
        child.wait_with_output().map_err(|cause| {
            LabError::start(&command.get_program().to_string_lossy(), self.name(), cause)
        })
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

impl<M: Machine + ?Sized> Machine for Box<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn command(&self, program: &OsStr) -> Command {
        (**self).command(program)
    }

    fn spawn(&self, command: &mut Command) -> Result<Child, LabError> {
        (**self).spawn(command)
    }

    fn end(&self) -> Option<String> {
        (**self).end()
    }

    fn host(&self) -> Option<&Host> {
        (**self).host()
    }
}
