//! `earmark probe`: what it finds about hosts of ours in real time, one or many.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lab::host::Host;
use lab::station::Station;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{
    Directory, EARMARK, ENDLESS, Ended, Lab, earmark, in_network, lab_run, needs, on_host,
    once_ready, own_echo, run, run_line, soon, udp_echo,
};

/// 5 ms stand out on any machine.
#[test]
fn any_echo__round_trips_hold_what_the_nic_holds() {
    needs!("lab");
    for kind in ["udp", "tcp", "icmp"] {
        let directory = Directory::new();
        let ready = directory.file("ready");
        let echo = own_echo(&ready);
        // Lone probes and pairs only.
        let probe = format!("{EARMARK} probe --json b --kind {kind} --count 20");
        let probe = once_ready(&ready, &probe);
        let options = ["--ports", "b", "--strategy", "delay:5000", "--wait", "precise"];
        let hosts = ["--on", "b", &echo, "--on", "a", &probe];
        let seen = lab_run(&[&options[..], &hosts].concat()).json();
        assert_eq!((seen["kind"].as_str(), seen["sent"].as_u64()), (Some(kind), Some(20)));
        assert_ne!(seen["answered"], 0, "{seen}");
        // Other packets, of neighbour discovery or TCP, may have started the timer before a probe.
        assert!(seen["round_trip_us"]["p50"].as_f64() >= Some(2_500.0), "{seen}");
    }
}

/// A hold of `usecs` on this side is never moved. A machine that is busy may hide it, or its side,
/// and that is said; it must not be denied. What a probe makes of the lateness of such a machine
/// beside the hold is for the bench to say, and exact answers are for virtual time.
#[track_caller]
fn neither_moved_nor_denied(seen: &Value, side: &str, usecs: f64) {
    let holds = seen["holds"].as_array().unwrap();
    let sides = |least: f64, most: f64| {
        let found = holds.iter().filter(move |hold| {
            let usecs = hold["usecs"].as_f64().unwrap();
            (least..most).contains(&usecs)
        });
        found.map(|hold| hold["side"].as_str().unwrap())
    };
    let mut alike = sides(0.8 * usecs, 1.25 * usecs);
    assert!(alike.all(|found| [side, "unknown"].contains(&found)), "{seen}");
    let unclear = seen["cannot_tell"].as_array().unwrap();
    let is_found = sides(0.5 * usecs, f64::INFINITY).any(|found| found == side);
    assert!(is_found || !unclear.is_empty(), "{seen}");
}

/// Round trips do not show the side; my own NIC does, when it holds nothing for a moment.
#[test]
fn varying__shows_the_side_of_a_hold_and_leaves_the_nic_as_it_was() {
    needs!("lab");
    for (ports, side) in [("a", "mine"), ("b", "theirs")] {
        let directory = Directory::new();
        let ready = directory.file("ready");
        let echo = own_echo(&ready);
        let mut lab =
            Lab::start(&["--ports", ports, "--strategy", "delay:1000", "--on", "b", &echo]);
        let settings = |lab: &Lab| [0, 1].map(|port| lab.show()[port]["queues"].clone());
        let setting = |queues: [Value; 2]| queues.map(|queues| queues[0]["setting"].clone());
        let before = setting(settings(&lab));
        let (errors, lab_name) = (directory.file("errors"), lab.name());
        let probe =
            format!("{EARMARK} probe b --kind tcp --json --vary a0 --lab={lab_name} 2>{errors}");
        let seen = lab.does(&once_ready(&ready, &probe));
        neither_moved_nor_denied(&serde_json::from_str(&seen).unwrap(), side, 1_000.0);
        assert_eq!(setting(settings(&lab)), before);
        lab.end().output();
    }
}

#[test]
fn no_echo__says_what_was_tried_and_one_address_of_two_is_enough() {
    needs!("lab", "python3");
    run_line("probe 127.0.0.1 --kind tcp --port 9").refused(&["127.0.0.1", "tcp", "earmark echo"]);
    run_line("probe no-such-host.invalid").refused(&["no-such-host.invalid"]);
    // The kernel of this host answers pings, and is not asked.
    for line in ["probe 127.0.0.1 --port 9", "probe 127.0.0.1:9", "probe [::ffff:127.0.0.1]:9"] {
        run_line(line).refused(&["nothing at port 9 of", "earmark echo --port 9"]);
    }
    run_line("probe 127.0.0.1:9 --port 8").refused(&["two ports"]);
    run_line("probe 127.0.0.1:9 --kind icmp").refused(&["icmp has no ports"]);
    // Host b has an address of IPv6, too, which comes first.
    let directory = Directory::new();
    let ready = directory.file("ready");
    let probe =
        once_ready(&ready, &format!("{EARMARK} probe b:7007 --kind udp --count 200 --json"));
    let ended = lab_run(&["--on", "b", &udp_echo(7007, &ready), "--on", "a", &probe]);
    assert_eq!(ended.json()["host"], "10.9.0.2:7007", "{ended:?}");
}

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

    fn command(&self, hosts: &str, options: &str) -> Command {
        let hosts = self.files.write("hosts", hosts);
        let mut command = earmark(&["probe", "--hosts", &hosts, "--kind", "udp"]);
        command.args(options.split(' '));
        command
    }

    fn probe(&self, hosts: &str, options: &str) -> Ended {
        on_host(&self.host, &mut self.command(hosts, options))
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
    needs!("lab");
    let echoing = Echoing::start();
    // In a network of its own nothing leads to the second one.
    let hosts = "# rack 1\n127.0.0.1\n10.255.0.1   # gone\n::1\n";
    let ended = echoing.probe(hosts, "--count 200");
    assert_eq!(ended.code, 1, "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("host "), "{ended:?}");
    assert!(lines[2].starts_with("127.0.0.1 ") && lines[4].starts_with("::1 "), "{ended:?}");
    assert!(lines[3].starts_with("10.255.0.1 ") && lines[3].ends_with(" failed"), "{ended:?}");
    assert!(ended.stdout.contains("\n10.255.0.1: nothing at 10.255.0.1 answers"), "{ended:?}");
    assert!(ended.stderr.contains("\n3 of 3: ::1 probed\n"), "{ended:?}");

    let ended = echoing.probe("::1\n10.255.0.1\n", "--count 200 --json");
    assert_eq!(ended.code, 1, "{ended:?}");
    let json = ended.printed_json();
    assert_eq!(json["schema_version"], 2);
    let [first, second] = &json["hosts"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!((&first["host"], &first["error"]), (&"::1".into(), &Value::Null));
    assert_eq!(first["probe"]["kind"], "udp");
    assert!(first["probe"]["answered"].as_u64() > Some(0), "{first}");
    assert_eq!((&second["host"], &second["probe"]), (&"10.255.0.1".into(), &Value::Null));
    assert!(second["error"].as_str().unwrap().contains("nothing at"), "{second}");
    let path = echoing.files.write("empty", "# none\n");
    run(&["probe", "--hosts", &path]).refused(&["read the hosts of", "it has no host"]);
}

#[test]
fn a_host_that_never_stops_sending_fails_and_the_others_are_probed() {
    needs!("network", "python3");
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
    let printed = ended.stdout.replace('\n', " ");
    assert!(printed.contains(why) && ended.stderr.contains(why), "{ended:?}");
    assert!(ended.stderr.contains("2 of 2: 127.0.0.1 probed"), "{ended:?}");
    assert_eq!(ended.stdout.matches("status 1").count(), 2, "{ended:?}");
}

#[test]
fn all_hosts_together_are_sent_no_more_than_the_total_rate() {
    needs!("lab");
    let echoing = Echoing::start();
    let start = Instant::now();
    let options = "--count 400 --parallel 2 --total-rate 400 --json";
    let json = echoing.probe("127.0.0.1\n::1\n", options).json();
    let took = start.elapsed();
    let sent = |host: &Value| host["probe"]["sent"].as_u64().unwrap();
    let sent: u64 = json["hosts"].as_array().unwrap().iter().map(sent).sum();
    assert!(sent > 600, "{json}");
    // But for the last train of each host, which is not waited for.
    assert!(took > Duration::from_secs(1), "{sent} packets in {took:?}");
}

#[test]
fn sigint_reports_what_was_seen() {
    needs!("lab");
    let echoing = Echoing::start();
    // Each takes some four seconds, so a minute and more is left when the first has ended.
    let list: String = (1..=20).map(|number| format!("127.0.0.{number}\n")).collect();
    let mut command = echoing.command(&list, "--count 200 --total-rate 50 --json");
    let errors = echoing.files.file("errors");
    let errors_file = std::fs::File::create(&errors).unwrap();
    let child = echoing.host.spawn(command.stdout(Stdio::piped()).stderr(errors_file)).unwrap();
    let read = || std::fs::read_to_string(&errors).unwrap();
    soon("one is done", || read().contains("1 of 20"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{}", read());
    let json = ended.printed_json();
    let hosts = json["hosts"].as_array().unwrap();
    let probed = hosts.iter().take_while(|host| host["error"].is_null());
    let probed = probed.map(|host| host["probe"]["answered"].as_u64()).collect::<Vec<_>>();
    assert!(!probed.is_empty() && probed.iter().all(|answered| *answered > Some(0)), "{json}");
    assert!(hosts.len() == 20 && probed.len() < 20, "{json}");
    for host in &hosts[probed.len()..] {
        assert!(host["error"].as_str().unwrap().starts_with("interrupted"), "{json}");
    }
}
