//! What a test needs, and what is said where it is missing.

use std::io::Write;
use std::path::{Path, PathBuf};

use lab::kernel::{self, Needs};

use super::repository;

/// Ends a test that needs something which is not here: a program, or one of [`missing`]'s words.
macro_rules! needs {
    ($($what:literal),+) => {
        if !$crate::support::needs::all_are_here(&[$($what),+]) {
            return;
        }
    };
}
pub(crate) use needs;

/// Debian's packages of programs that are called otherwise.
const PACKAGES: [(&str, &str); 19] = [
    ("NetworkManager", "network-manager"),
    ("ansible-playbook", "ansible-core"),
    ("chronyd", "chrony"),
    ("ifup", "ifupdown"),
    ("ip", "iproute2"),
    ("linux.uml", "user-mode-linux"),
    ("mpicc", "libopenmpi-dev"),
    ("mpirun", "openmpi-bin"),
    ("munged", "munge"),
    ("nix-instantiate", "nix-bin"),
    ("nsenter", "util-linux"),
    ("pgrep", "procps"),
    ("ping", "iputils-ping"),
    ("promtool", "prometheus"),
    ("setpriv", "util-linux"),
    ("srun", "slurm-client"),
    ("sysctl", "procps"),
    ("udevadm", "udev"),
    ("unshare", "util-linux"),
];

/// Whether all of it is here. What is not is named in a line on standard error, with the command
/// that brings it; in continuous integration, that fails the test.
#[track_caller]
pub(crate) fn all_are_here(what: &[&str]) -> bool {
    let missing: Vec<String> = what.iter().filter_map(|what| missing(what)).collect();
    if missing.is_empty() {
        return true;
    }
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("skipped: {test}: {}", missing.join("; "));
    assert!(std::env::var_os("CI").is_none(), "{line}");
    // Past the harness, which keeps to itself what a test that passes prints.
    let _ = writeln!(std::io::stderr(), "{line}");
    false
}

/// A kernel for guests that suspends interrupts: Linux 6.13, which is newer than that of the
/// machine's own release. Where there is none, a line on standard error says so, and how to build
/// one; continuous integration need not have it.
pub(crate) fn suspending_kernel() -> Option<PathBuf> {
    let kernel = kernel::newest_of_suites().filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut numbers = name.split(['-', '.']).filter_map(|word| word.parse().ok());
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 13)
    });
    if kernel.is_none() {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let _ = writeln!(
            std::io::stderr(),
            "skipped: {test}: no kernel of Linux 6.13 or newer for guests: cargo run -- kernel \
             --suite trixie-backports"
        );
    }
    kernel
}

/// What is missing and how to get it: of `root`, `lab` (hosts of ours), `network` (a network
/// namespace with devices), `guests` (a kernel with virtual time), `page`, or of a program.
fn missing(what: &str) -> Option<String> {
    let is_root = rustix::process::geteuid().is_root();
    match what {
        "root" => (!is_root).then(|| "no root: sudo -E cargo test".to_owned()),
        "page" => {
            let made = ["earmark.html", "axe.min.js"].map(|it| repository("target/page").join(it));
            let is_there = made.iter().all(|it| it.exists());
            (!is_there).then(|| "no page, or nothing to check it: cargo xtask page --check".into())
        }
        "network" => ["root", "ip", "unshare", "ethtool"].into_iter().find_map(missing),
        "lab" => {
            let is_there = Path::new("/dev/net/tun").exists();
            (!is_there).then(|| "no /dev/net/tun: sudo modprobe tun".to_owned())
        }
        "guests" => {
            let found = kernel::find(Needs::VirtualTime);
            found.err().map(|_| "no kernel for guests: cargo run -- kernel".to_owned())
        }
        program => {
            let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
            let is_there = path.split(':').any(|it| Path::new(it).join(program).exists());
            let package = PACKAGES.iter().find(|(name, _)| *name == program);
            let package = package.map_or(program, |(_, package)| package);
            (!is_there).then(|| format!("no {program}: sudo apt-get install {package}"))
        }
    }
}
