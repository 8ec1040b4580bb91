//! Whether the kernel is new enough.

use std::fmt;

/// The oldest Linux that has what the lab, the bench and MX wait with: `epoll_pwait2` is of 5.11.
const OLDEST: (u32, u32) = (5, 11);

/// The kernel is too old.
#[derive(Debug, PartialEq, Eq)]
pub struct TooOld {
    /// As `uname -r` prints it.
    release: String,
}

impl std::error::Error for TooOld {}

impl fmt::Display for TooOld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((major, minor), release) = (OLDEST, &self.release);
        write!(
            f,
            "this kernel is Linux {release}, and this command needs {major}.{minor} or newer; \
             `earmark show` and `earmark watch` work here"
        )
    }
}

/// Checks the kernel of this machine.
pub fn check() -> Result<(), TooOld> {
    check_release(&rustix::system::uname().release().to_string_lossy())
}

/// A release that does not begin with two numbers is taken for a new one.
fn check_release(release: &str) -> Result<(), TooOld> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < OLDEST => {
            Err(TooOld { release: release.to_owned() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_before_5_11_are_too_old() {
        for old in ["5.10.0-8-amd64", "5.4.17-2136.el8uek.x86_64", "4.19", "2.6.72", "5.9-rc1"] {
            let error = check_release(old).unwrap_err().to_string();
            assert!(error.contains(old) && error.contains("5.11"), "{error}");
        }
        for new in ["5.11.0", "5.15.0-91-generic", "6.1", "10.0-rc1", "strange", ""] {
            assert_eq!(check_release(new), Ok(()), "{new}");
        }
    }
}
