//! Whose files count.
//!
//! What another user has written may be planted: settings that root would restore, a link to a file
//! that root would replace. So where an owner matters, it is this user or root. For root it is root
//! alone, also where `sudo` knows another user.

use std::fs;
use std::io::{self, Error, ErrorKind};
use std::path::Path;

use rustix::fs::Stat;
use rustix::process::geteuid;

/// The user that the kernel shows for one without a number in this user namespace.
const UNMAPPED: u32 = 65_534;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    MayRead,
    MayNothing,
}

pub(super) fn check(path: &Path, status: &Stat, others: Others) -> io::Result<()> {
    check_as(geteuid().as_raw(), path, (status.st_uid, status.st_mode), others)
}

fn check_as(user: u32, path: &Path, (owner, mode): (u32, u32), others: Others) -> io::Result<()> {
    let refuse = |why: String| Err(Error::new(ErrorKind::PermissionDenied, why));
    let path = path.display();
    if owner != 0 && owner != user {
        let own = if user == 0 { "root" } else { "you or root" };
        return refuse(format!("it belongs to user {owner}, not to {own}"));
    }
    if others == Others::MayNothing && mode & 0o077 != 0 {
        return refuse(format!("others may read it; type: chmod 600 {path}"));
    }
    if mode & 0o022 != 0 {
        return refuse(format!("others may write to it; type: chmod go-w {path}"));
    }
    Ok(())
}

/// Whether links of `owner` are followed on the way to a file that is written.
///
/// In a user namespace without root, as a plain user makes one, root's links look like those of all
/// others. They are followed there: this process has no rights but its user's.
pub(super) fn may_lead(owner: u32) -> bool {
    let has_root = || {
        // Each line: the first number here, the first one outside, how many.
        let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        map.lines().any(|line| line.split_whitespace().nth(1) == Some("0"))
    };
    owner == 0 || owner == geteuid().as_raw() || owner == UNMAPPED && !has_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_root_and_of_this_user_count_unless_others_may_write() {
        let refused = |user, owner, mode| {
            let checked = check_as(user, Path::new("x"), (owner, mode), Others::MayRead);
            checked.err().map(|error| error.to_string()).unwrap_or_default()
        };
        for (user, owner) in [(0, 0), (1000, 0), (1000, 1000)] {
            assert_eq!(refused(user, owner, 0o100_755), "");
            for mode in [0o100_664, 0o100_606, 0o041_777] {
                assert!(refused(user, owner, mode).ends_with("type: chmod go-w x"));
            }
        }
        let secret = check_as(0, Path::new("x"), (0, 0o100_640), Others::MayNothing).unwrap_err();
        assert_eq!(secret.to_string(), "others may read it; type: chmod 600 x");
        assert_eq!(refused(0, 1000, 0o100_600), "it belongs to user 1000, not to root");
        assert_eq!(refused(1000, 1001, 0o100_600), "it belongs to user 1001, not to you or root");
    }

    #[test]
    fn links_of_root_and_of_this_user_lead() {
        assert!(may_lead(0) && may_lead(geteuid().as_raw()) && !may_lead(4_000_000_000));
    }
}
