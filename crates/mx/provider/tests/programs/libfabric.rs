//! libfabric's own programs.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::hosts::{Hosts, run};

#[test]
fn fi_info_lists_the_interface() {
    let hosts = Hosts::new();
    let text = run(hosts.command("ea", "fi_info").args(["-p", "earmark"]));
    for line in ["provider: earmark", "domain: eth0", "type: FI_EP_RDM"] {
        assert!(text.contains(line), "no `{line}` in: {text}");
    }
    // What is not there must not be offered, or other providers layer themselves on this one.
    for wish in [["-t", "FI_EP_MSG"], ["-t", "FI_EP_DGRAM"], ["-c", "FI_ATOMIC"]] {
        let output = hosts.command("ea", "fi_info").args(["-p", "earmark"]).args(wish).output();
        assert!(!output.unwrap().status.success(), "{wish:?} is offered");
    }
}

#[test]
fn wrong_port_is_an_error_that_says_what_to_write() {
    let hosts = Hosts::new();
    let down = "link add down0 type veth peer name down1";
    run(hosts.command("ea", "ip").args(down.split(' ')));
    for (port, says) in [
        ("", "use packet:IFACE"),
        ("eth0", "use packet:IFACE"),
        ("tcp:eth0", "use packet:IFACE"),
        ("packet:", "does not say where"),
        ("packet:none0", "ip address show dev none0"),
        ("packet:lo", "not an Ethernet interface"),
        ("packet:down0", "ip link set down0 up"),
        ("udp:", "does not say where"),
        ("udp:none0", "ip address show dev none0"),
        ("udp:down0", "ip address add ADDR/24 dev down0"),
        ("udp:eth0:99999", "use packet:IFACE"),
        ("udp:10.77.0", "use packet:IFACE"),
    ] {
        let mut fi_info = hosts.command("ea", "fi_info");
        let output = fi_info.args(["-p", "earmark"]).env("EARMARK_PORT", port).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        let text = format!("EARMARK_PORT={port}: ");
        assert!(!output.status.success(), "{port} is taken");
        assert!(error.contains(&text) && error.contains(says), "{port}: {error}");
        assert_eq!(error.matches(&text).count(), 1, "one report: {error}");
    }
}

#[test]
fn only_interface_is_found_where_sys_is_of_another_network() {
    let hosts = Hosts::new();
    // As in containers: what is left is the machine's.
    let script = "umount /sys && exec fi_info -p earmark";
    let mut fi_info = hosts.command("ea", "unshare");
    fi_info.args(["--mount", "sh", "-c", script]).env_remove("EARMARK_PORT");
    let text = run(fi_info.env("EARMARK_VERBOSE", "1"));
    assert!(text.contains("domain: eth0"), "{text}");
}

#[test]
fn lines_for_people_come_whole_and_end_no_program() {
    let hosts = Hosts::new();
    let fi_info = || {
        let mut fi_info = hosts.command("ea", "fi_info");
        fi_info.args(["-p", "earmark"]).env("EARMARK_PORT", "eth0");
        fi_info
    };
    // Each write is a datagram of its own.
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let refused = fi_info().stderr(OwnedFd::from(theirs)).status().unwrap();
    let mut line = [0; 1000];
    let length = ours.recv(&mut line).unwrap();
    let line = String::from_utf8_lossy(&line[..length]);
    assert!(line.starts_with("earmark[") && line.ends_with('\n'), "{line:?}");
    let full = File::options().write(true).open("/dev/full").unwrap();
    assert_eq!(fi_info().stderr(full).status().unwrap(), refused);
}

#[test]
fn ports_that_cannot_be_opened_say_why() {
    let hosts = Hosts::new();
    let program = remote(&hosts);
    // These are there as far as can be seen, and more is only found out when they are opened.
    for (port, says) in [
        ("udp:10.99.0.1", "use an address of this host"),
        ("udp:0.0.0.0", "one of this host's"),
        ("virtio:/no/such", "/no/such"),
    ] {
        let output = hosts.command("ea", &program).env("EARMARK_PORT", port).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(says), "{port}: {error}");
    }
}

#[test]
fn datagrams_need_no_root() {
    let hosts = Hosts::new();
    let program = remote(&hosts);
    // User 65534 may not reach into the directories of the user that runs tests.
    let script = format!(
        "mount -t tmpfs -o mode=755 tmpfs /mnt && cp '{}' '{}' /mnt && FI_PROVIDER_PATH=/mnt exec \
         setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all \
         /mnt/remote",
        program.display(),
        hosts.path("provider/libearmark-fi.so").display(),
    );
    let unprivileged = |port| {
        let mut command = hosts.command("ea", "unshare");
        command.args(["--mount", "sh", "-c", &script]).env("EARMARK_PORT", port);
        command
    };
    let text = run(&mut unprivileged("udp:eth0"));
    assert!(text.contains("all passed"), "{text}");
    let output = unprivileged("packet:eth0").output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    let says = "run as root or with CAP_NET_RAW, or use udp:eth0";
    assert!(!output.status.success() && error.contains(says), "{error}");
}

#[test]
fn fi_pingpong_goes_back_and_forth() {
    let hosts = Hosts::new();
    let arguments = ["-p", "earmark", "-e", "rdm", "-I", "20", "-S", "all", "-c"];
    let mut server = hosts.command("ea", "fi_pingpong");
    let mut server = server.args(arguments).stdout(Stdio::null()).spawn().unwrap();
    // A client that does not find its control port, 47592, gives up.
    let mut listens = hosts.command("ea", "sh");
    let look = "until grep -q ':B9E8 .* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.02; done";
    run(listens.args(["-c", look]));
    let text = run(hosts.command("eb", "fi_pingpong").args(arguments).arg("ea"));
    assert!(server.wait().unwrap().success());
    assert!(text.contains("1m "), "{text}");
}

#[test]
fn remote_memory_is_written_and_read_and_guarded() {
    let hosts = Hosts::new();
    let program = remote(&hosts);
    for faults in ["", "drop:50"] {
        let mut command = hosts.command("ea", &program);
        if !faults.is_empty() {
            command.env("EARMARK_FAULTS", faults);
        }
        let text = run(&mut command);
        assert!(text.contains("all passed"), "{text}");
    }
}

#[test]
fn programs_may_sleep_until_something_has_ended() {
    let hosts = Hosts::new();
    let program = compiled(&hosts, "wait");
    for port in ["packet:eth0", "udp:eth0"] {
        let text = run(hosts.command("ea", &program).env("EARMARK_PORT", port));
        assert!(text.contains("all passed"), "{text}");
    }
}

fn remote(hosts: &Hosts) -> PathBuf {
    compiled(hosts, "remote")
}

fn compiled(hosts: &Hosts, name: &str) -> PathBuf {
    let program = hosts.path(name);
    let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("cc");
    compiler.arg("-Wall").arg("-o").arg(&program).args([&source, "-lfabric", "-pthread"]);
    run(&mut compiler);
    program
}
