//! What the first process of a host does, one after the other.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SetupStep {
    Session = 1,
    Mounts = 2,
    Run = 3,
    HostsFile = 4,
    BindHosts = 5,
    HostName = 6,
}

impl SetupStep {
    pub(super) const ALL: [Self; 6] =
        [Self::Session, Self::Mounts, Self::Run, Self::HostsFile, Self::BindHosts, Self::HostName];

    pub(super) fn remedy(self) -> &'static str {
        match self {
            Self::Mounts => {
                "run as root, and in no chroot, where hosts would find the files outside; in a \
                 container, give it --cap-add SYS_ADMIN --security-opt apparmor=unconfined"
            }
            Self::Run => "create the directory if it is missing: sudo mkdir /run",
            Self::BindHosts => "create the file if it is missing: sudo touch /etc/hosts",
            _ => {
                "run as root; in a container, give it --cap-add SYS_ADMIN \
                 --security-opt apparmor=unconfined"
            }
        }
    }
}

impl fmt::Display for SetupStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "start a session",
            Self::Mounts => "make the mounts of / private",
            Self::Run => "mount a tmpfs on /run",
            Self::HostsFile => "write /run/hosts",
            Self::BindHosts => "bind /run/hosts over /etc/hosts",
            Self::HostName => "set the host name",
        })
    }
}
