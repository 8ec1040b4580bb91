//! Command lines of other programs that errors and hints print: each is typed in a network of its
//! own, where `eth0` is one end of a veth pair.

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::remedies::remedies;
use crate::support::{Directory, in_network, needs, output};

/// What such a program says of a line that it does not understand. What the device lacks, or what
/// is not there, is another matter.
const NOT_UNDERSTOOD: [&str; 9] = [
    "Usage",
    "usage",
    "bad command line",
    "is unknown",
    "garbage",
    "invalid option",
    "unrecognized option",
    "Invalid operation",
    "invalid mode",
];

#[test]
fn remedies_of_other_programs_are_understood_by_them() {
    needs!("network");
    let (mut lines, mut typed) = (BTreeSet::new(), Vec::new());
    for remedy in remedies() {
        let line = remedy.line.strip_prefix("sudo ").unwrap_or(&remedy.line);
        let program = line.split(' ').next().unwrap();
        // What would change the machine, install or load something is not typed.
        if ["ip", "ethtool", "chmod"].contains(&program) && !line.starts_with("chmod 666") {
            lines.insert(line.to_owned());
        }
    }
    for line in &lines {
        let state = Directory::new();
        state.write("file", "");
        let network = "ip link add eth0 type veth peer name eth1; ip link set eth0 up";
        let ended = in_network(&state, &format!("{network}; set +e; {line}; true"));
        let is_understood = !NOT_UNDERSTOOD.iter().any(|it| ended.stderr.contains(it));
        assert!(is_understood, "{line}: {ended:?}");
        typed.push(line);
    }
    assert!(typed.len() > 15, "{typed:#?}");
}

/// Settings that only some distributions' kernels have.
const OF_DISTRIBUTIONS: [&str; 3] = [
    "kernel.unprivileged_userns_clone",
    "kernel.apparmor_restrict_unprivileged_userns",
    "kernel.yama.ptrace_scope",
];

#[test]
fn remedies_that_change_the_machine_are_understood_where_they_change_nothing() {
    needs!("sysctl", "udevadm", "apt-get");
    let run = |program: &str, words: &[&str]| {
        let ended = output(Command::new(program).args(words));
        let is_understood = !NOT_UNDERSTOOD.iter().any(|it| ended.stderr.contains(it));
        assert!(is_understood, "{program} {words:?}: {ended:?}");
        ended
    };
    let help = run("udevadm", &["control", "--help"]).stdout;
    let mut counts = [0; 4];
    for remedy in remedies() {
        let line = remedy.line.strip_prefix("sudo ").unwrap_or(&remedy.line);
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["sysctl", ref rest @ ..] => {
                counts[0] += 1;
                for word in rest.iter().filter(|word| **word != "-w") {
                    let key = word.split('=').next().unwrap();
                    // The setting is read, not written.
                    let ended = run("sysctl", &["-n", key]);
                    let is_known = ended.code == 0 || OF_DISTRIBUTIONS.contains(&key);
                    assert!(is_known || key.contains('{'), "{line}: {ended:?}");
                }
            }
            ["apt-get", ref rest @ ..] => {
                counts[1] += 1;
                // Simulated; a package that the lists of this machine lack is another matter.
                run("apt-get", &[&["--simulate"], rest].concat());
            }
            ["modprobe", module] => {
                counts[2] += 1;
                let is_name = |c: char| c.is_ascii_alphanumeric() || "_-{}".contains(c);
                assert!(module.chars().all(is_name), "{line}");
            }
            ["modprobe", ..] => panic!("{line}: more than a module"),
            ["udevadm", "control", option] => {
                counts[3] += 1;
                assert!(help.contains(option), "{line}: {help}");
            }
            _ => {}
        }
    }
    assert!(counts.iter().take(3).all(|count| *count > 0), "{counts:?}");
}
