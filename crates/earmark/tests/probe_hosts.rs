//! `earmark probe --hosts`: several hosts, all of which are the loopback of a host of ours.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lab::host::Host;
use lab::station::Station;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

mod common;
use common::{Directory, EARMARK, ENDLESS, Ended, earmark, in_network, needs, run, soon};

/// A host on which our echo runs, and a place for files.
struct Echoing {
    host: Host,
    echo: Child,
    files: Directory,
}

impl Echoing {
    fn start() -> Self {
        let host = Host::create("a", &[Station::new("a", 1)]).unwrap_or_else(|why| panic!("{why}"));
        let files = Directory::new();
        let ready = std::fs::File::create(files.file("ready")).unwrap();
        let mut echo = earmark(&["echo"]);
        let echo = host.spawn(echo.stderr(ready)).unwrap();
        let echoing = Self { host, echo, files };
        soon("the echo listens", || {
            std::fs::metadata(echoing.files.file("ready")).unwrap().len() > 0
        });
        echoing
    }

    fn command(&self, hosts: &str, arguments: &[&str]) -> Command {
        let hosts = self.files.write("hosts", hosts);
        let mut command = earmark(&["probe", "--hosts", &hosts, "--kind", "udp"]);
        command.args(arguments);
        command
    }

    fn probe(&self, hosts: &str, arguments: &[&str]) -> Ended {
        let output = self.host.output(&mut self.command(hosts, arguments)).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ended {
            code: output.status.code().unwrap(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Drop for Echoing {
    fn drop(&mut self) {
        let _ = self.echo.kill();
        let _ = self.echo.wait();
    }
}

#[test]
fn a_host_that_fails_is_a_row_and_the_others_are_probed() {
    let echoing = Echoing::start();
    // In a network of its own nothing leads to the second one.
    let hosts = "# rack 1\n127.0.0.1\n10.255.0.1   # gone\n::1\n";
    let ended = echoing.probe(hosts, &["--count", "200"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("host "), "{ended:?}");
    assert!(lines[2].starts_with("127.0.0.1 ") && lines[4].starts_with("::1 "), "{ended:?}");
    assert!(lines[3].starts_with("10.255.0.1 ") && lines[3].ends_with(" failed"), "{ended:?}");
    assert!(ended.stdout.contains("\n10.255.0.1: nothing at 10.255.0.1 answers"), "{ended:?}");
    assert!(ended.stderr.contains("\n3 of 3: ::1 probed\n"), "{ended:?}");

    let ended = echoing.probe("127.0.0.1\n::1\n", &["--count", "200", "--parallel", "2"]);
    assert_eq!(ended.output().lines().count(), 4, "{ended:?}");
}

#[test]
fn a_host_that_never_stops_talking_fails_and_the_others_are_probed() {
    needs("python3", "python3");
    let state = Directory::new();
    state.write("endless.py", ENDLESS);
    state.write("hosts", "127.0.0.2\n127.0.0.1\n");
    let ended = in_network(
        &state,
        &format!(
            "ip link set lo up
         {EARMARK} echo --listen 127.0.0.1 2>ready & echo=$!
         python3 endless.py 127.0.0.2 7007 & endless=$!
         trap 'kill $echo $endless' EXIT
         until test -s ready && test -e endless; do sleep 0.02; kill -0 $endless; done
         earmark probe --hosts hosts --kind tcp --count 200 || echo status $?
         earmark probe 127.0.0.2 --kind tcp || echo status $?"
        ),
    );
    ended.output();
    let why = "it sends more than it is asked for; it is no echo";
    // Lines are as wide as a terminal.
    let said = ended.stdout.replace('\n', " ");
    assert!(said.contains(why) && ended.stderr.contains(why), "{ended:?}");
    assert!(ended.stderr.contains("2 of 2: 127.0.0.1 probed"), "{ended:?}");
    assert_eq!(ended.stdout.matches("status 1").count(), 2, "{ended:?}");
}

#[test]
fn the_json_has_what_a_probe_of_each_host_has() {
    let echoing = Echoing::start();
    let ended = echoing.probe("::1\n10.255.0.1\n", &["--count", "200", "--json"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["schema_version"], 2);
    let [first, second] = &json["hosts"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!((&first["host"], &first["error"]), (&"::1".into(), &Value::Null));
    assert_eq!(first["probe"]["kind"], "udp");
    assert!(first["probe"]["answered"].as_u64() > Some(0), "{first}");
    assert_eq!((&second["host"], &second["probe"]), (&"10.255.0.1".into(), &Value::Null));
    assert!(second["error"].as_str().unwrap().contains("nothing at"), "{second}");
}

#[test]
fn all_hosts_together_are_sent_no_more_than_the_total_rate() {
    let echoing = Echoing::start();
    let start = Instant::now();
    let arguments = ["--count", "400", "--parallel", "2", "--total-rate", "400", "--json"];
    let json = echoing.probe("127.0.0.1\n::1\n", &arguments).json();
    let took = start.elapsed();
    let sent = |host: &Value| host["probe"]["sent"].as_u64().unwrap();
    let sent: u64 = json["hosts"].as_array().unwrap().iter().map(sent).sum();
    assert!(sent > 600, "{json}");
    // But for the last train of each host, which nobody waits for.
    assert!(took > Duration::from_secs(1), "{sent} packets in {took:?}");
}

#[test]
fn an_interrupt_reports_what_was_seen() {
    let echoing = Echoing::start();
    // Each takes some four seconds, so a minute and more is left when the first has ended.
    let arguments = ["--count", "200", "--total-rate", "50", "--json"];
    let list: String = (1..=20).map(|number| format!("127.0.0.{number}\n")).collect();
    let mut command = echoing.command(&list, &arguments);
    let errors = echoing.files.file("errors");
    let errors_file = std::fs::File::create(&errors).unwrap();
    let child = echoing.host.spawn(command.stdout(Stdio::piped()).stderr(errors_file)).unwrap();
    let said = || std::fs::read_to_string(&errors).unwrap();
    soon("one is done", || said().contains("1 of 20"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said());
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let hosts = json["hosts"].as_array().unwrap();
    let probed = hosts.iter().take_while(|host| host["error"].is_null());
    let probed = probed.map(|host| host["probe"]["answered"].as_u64()).collect::<Vec<_>>();
    assert!(!probed.is_empty() && probed.iter().all(|answered| *answered > Some(0)), "{json}");
    assert!(hosts.len() == 20 && probed.len() < 20, "{json}");
    for host in &hosts[probed.len()..] {
        assert!(host["error"].as_str().unwrap().starts_with("interrupted"), "{json}");
    }
}

#[test]
fn lists_that_are_none_are_refused() {
    let directory = Directory::new();
    let list = |text: &str| {
        let path = directory.write("hosts", text);
        run(&["probe", "--hosts", &path])
    };
    list("").refused(&["read the hosts of", "it has no host"]);
    list("a\nb c\n").refused(&["line 2 has several words"]);
    run(&["probe", "--hosts", "no-such"]).refused(&["read the hosts of no-such"]);
    run(&["probe", "--hosts", "/dev/zero"]).refused(&["a device or a pipe"]);
    run(&["probe", "--hosts", "x", "--parallel", "65"]).refused(&["1..=64"]);
    run(&["probe", "--hosts", "x", "host"]).refused(&["cannot be used with"]);
    run(&["probe", "host", "--total-rate", "5"]).refused(&["cannot be used with"]);

    let mut command = earmark(&["probe", "--hosts", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"# nobody\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("it has no host"), "{output:?}");
}
