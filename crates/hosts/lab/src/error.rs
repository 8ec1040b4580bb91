//! Why a host, an interface or a guest cannot be had.

use std::fmt::Display;
use std::io;

use sys::netlink::NetlinkError;

/// What failed, on which object, why, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct LabError {
    message: String,
    #[source]
    cause: Option<io::Error>,
}

impl LabError {
    /// `what` failed because of `cause`; `remedy` is the next step.
    pub fn new(what: impl Display, cause: impl Into<io::Error>, remedy: &str) -> Self {
        let cause = cause.into();
        Self { message: format!("{what}: {cause}; {remedy}"), cause: Some(cause) }
    }

    /// A refusal that is no system call's, as a whole sentence.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: None }
    }

    /// Whether what was looked for is not there, such as a program.
    pub fn is_not_found(&self) -> bool {
        self.cause.as_ref().is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
    }

    /// `program` could not be started on the host or guest `host`.
    pub fn start(program: &str, host: &str, cause: io::Error) -> Self {
        let remedy = match cause.raw_os_error() {
            Some(libc::ENOENT) => "check that it is installed and in PATH",
            Some(libc::EACCES) => "check that it may be executed: ls -l",
            Some(libc::ESRCH | libc::ENOMEM) => "create the host anew if its holder was killed",
            _ => "check the limits on processes and open files: ulimit -u -n",
        };
        Self::new(format!("start {program} in host {host}"), cause, remedy)
    }
}

impl From<NetlinkError> for LabError {
    fn from(error: NetlinkError) -> Self {
        Self::refused(error.to_string())
    }
}
