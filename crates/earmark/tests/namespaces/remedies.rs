//! Command lines of other programs that errors and hints print: each is typed in a network of its
//! own, where `eth0` is one end of a veth pair.

use std::collections::BTreeSet;

use crate::support::remedies::remedies;
use crate::support::{Directory, in_network, needs};

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
