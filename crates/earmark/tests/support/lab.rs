//! Labs, networks and echoes for tests.

use std::io::Write;
use std::process::{Command, Stdio};

use lab::host::Host;
use serde_json::Value;

use super::{Directory, EARMARK, Ended, Running, earmark, output, run, unique};

/// Runs a lab of its own name with `options`; the exit status is that of the commands on a and b.
#[track_caller]
pub(crate) fn lab_run(options: &[&str]) -> Ended {
    let name = unique("run");
    run(&[&["lab", "run", "--name", &name], options].concat())
}

/// Runs a command on a host of ours.
#[track_caller]
pub(crate) fn on_host(host: &Host, command: &mut Command) -> Ended {
    host.output(command).unwrap().into()
}

/// Runs a script in a network namespace of its own, with a pair of devices, `one`, which NAPI
/// polls, and `two`, which it does not, and a TAP device, `tap`. None of the machine's can be
/// reached from there.
#[track_caller]
pub(crate) fn in_network(state: &Directory, script: &str) -> Ended {
    let script = format!(
        "set -e; mount -t sysfs sysfs /sys
         ip link add one type veth peer name two; ip link set one up; ip link set two up
         ethtool -K one gro on; ip tuntap add tap mode tap; ip link set tap up
         earmark() {{ {EARMARK} \"$@\"; }}
         {script}"
    );
    let mut command = Command::new("unshare");
    command.current_dir(state.path());
    command.args(["--net", "--mount", "sh", "-c", &script]);
    output(command.env("EARMARK_STATE_DIR", state.path()))
}

/// A TCP server in Python, at an address and a port, which sends without end to all who connect.
/// The file `endless` is there when it listens.
pub(crate) const ENDLESS: &str = "import socket, sys, threading
door = socket.create_server((sys.argv[1], int(sys.argv[2])))
open('endless', 'w').close()
def send(far):
    try:
        while True: far.sendall(bytes(65536))
    except OSError: pass
while True: threading.Thread(target=send, args=(door.accept()[0],), daemon=True).start()
";

/// A lab with a shell on host a that does what it is sent.
pub(crate) struct Lab {
    name: String,
    run: Running,
}

impl Lab {
    /// Starts a lab with `options`, and waits until its shell answers.
    #[track_caller]
    pub(crate) fn start(options: &[&str]) -> Self {
        let name = unique("lab");
        let mut command = earmark(&["lab", "run", "--name", &name, "--on", "a", "exec sh"]);
        let mut run = Running::start(command.args(options).stdin(Stdio::piped()));
        writeln!(run.input(), "echo ready").unwrap();
        run.await_line("ready");
        Self { name, run }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs a script on host a; its status, and all that it wrote.
    #[track_caller]
    pub(crate) fn ask(&mut self, script: &str) -> (i32, String) {
        writeln!(self.run.input(), "{{ {script}\n}} 2>&1 </dev/null; echo \"= $?\"").unwrap();
        let mut text = String::new();
        loop {
            let line = self.run.line();
            if let Some(status) = line.strip_prefix("= ") {
                return (status.parse().unwrap(), text);
            }
            text = text + &line + "\n";
        }
    }

    /// Runs a script on host a that must succeed; all that it wrote.
    #[track_caller]
    pub(crate) fn does(&mut self, script: &str) -> String {
        let (status, text) = self.ask(script);
        assert_eq!(status, 0, "{script}: {text}");
        text
    }

    /// Runs `earmark nic` outside of the lab.
    #[track_caller]
    pub(crate) fn nic(&self, arguments: &[&str]) -> Ended {
        run(&[&["nic", "--lab", &self.name], arguments].concat())
    }

    /// Changes settings, which must work.
    #[track_caller]
    pub(crate) fn set(&self, arguments: &[&str]) {
        self.nic(&[&["set"], arguments].concat()).output();
    }

    /// The ports that `nic show --json` prints.
    #[track_caller]
    pub(crate) fn show(&self) -> Value {
        self.nic(&["show", "--json"]).json()["ports"].take()
    }

    /// Ends the lab by ending its shell.
    #[track_caller]
    pub(crate) fn end(self) -> Ended {
        self.run.end()
    }
}

/// A command that echoes datagrams, on IPv4 alone, by no code of ours; it makes a file once it
/// listens.
pub(crate) fn udp_echo(port: u16, ready: &str) -> String {
    format!(
        "exec python3 -c 'import socket as s\n\
         u=s.socket(s.AF_INET,s.SOCK_DGRAM)\nu.bind((\"\",{port}))\n\
         open(\"{ready}\",\"w\").write(\"ready\")\n\
         while 1:\n d,a=u.recvfrom(99)\n u.sendto(d,a)'"
    )
}

/// Our own echo; it writes to a file once it listens.
pub(crate) fn own_echo(ready: &str) -> String {
    format!("exec {EARMARK} echo 2>{ready}")
}

/// A command that begins once that file has something in it: a busy machine takes its time to start
/// the far host's command.
pub(crate) fn once_ready(ready: &str, command: &str) -> String {
    format!("until [ -s {ready} ]; do sleep 0.02; done; {command}")
}
