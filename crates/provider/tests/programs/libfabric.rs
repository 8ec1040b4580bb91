//! libfabric's own programs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

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
    let mut fi_info = hosts.command("ea", "fi_info");
    let output = fi_info.args(["-p", "earmark"]).env("EARMARK_PORT", "tcp:eth0").output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("use packet:IFACE"), "{error}");
}

#[test]
fn fi_pingpong_goes_back_and_forth() {
    let hosts = Hosts::new();
    let arguments = ["-p", "earmark", "-e", "rdm", "-I", "20", "-S", "all", "-c"];
    let mut server = hosts.command("ea", "fi_pingpong");
    let mut server = server.args(arguments).stdout(Stdio::null()).spawn().unwrap();
    // Its port is not there at once, and a client that finds none gives up.
    sleep(Duration::from_secs(1));
    let text = run(hosts.command("eb", "fi_pingpong").args(arguments).arg("ea"));
    assert!(server.wait().unwrap().success());
    assert!(text.contains("1m "), "{text}");
}

#[test]
fn remote_memory_is_written_and_read_and_guarded() {
    let hosts = Hosts::new();
    let program = hosts.path("remote");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/remote.c");
    run(Command::new("cc").arg("-o").arg(&program).arg(source).args(["-Wall", "-lfabric"]));
    for faults in ["", "drop:50"] {
        let mut command = hosts.command("ea", &program);
        if !faults.is_empty() {
            command.env("EARMARK_FAULTS", faults);
        }
        let text = run(&mut command);
        assert!(text.contains("all passed"), "{text}");
    }
}
