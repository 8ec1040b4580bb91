//! Examples of help that need hosts, a running lab, or devices.

use crate::support::examples::Needs;
use crate::support::{AS_TYPED, Directory, Lab, example_lines, in_network, needs, typed};

#[test]
fn examples_that_make_hosts_work() {
    needs!("lab", "ping");
    let lines = example_lines(Needs::Hosts);
    assert!(lines.len() > 4, "{lines:?}");
    lines.into_iter().for_each(typed);
}

#[test]
fn examples_on_a_host_of_a_lab_work() {
    needs!("lab");
    let mut lab = Lab::start(&[]);
    lab.does(AS_TYPED);
    let lines = example_lines(Needs::Lab);
    assert!(lines.len() > 5, "{lines:?}");
    for line in lines {
        lab.does(&line.replace("server", "b"));
    }
    lab.end().output();
}

#[test]
fn examples_with_devices_work() {
    needs!("network");
    let lines = example_lines(Needs::Devices);
    assert!(lines.len() > 7, "{lines:?}");
    for line in lines {
        let devices = "ip link add eth0 type veth peer name eth1; ip link set eth0 up; \
                       ip link set eth1 up";
        in_network(&Directory::new(), &format!("{devices}; {AS_TYPED}\n{line}")).output();
    }
}
