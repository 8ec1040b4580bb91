//! Bad input: each a message that says what is wrong and what to do, and nothing starts.

use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

mod common;
use common::{Directory, EARMARK, Ended, Running, Traced, needs, output, run, unique};

#[test]
fn unknown_words_are_answered_with_the_known_ones() {
    for (arguments, words) in [
        (&["bench", "tcp-r"][..], &["tcp-r", "tcp-rr", "invalid-frames"][..]),
        (&["bench", "ping", "--strategy", "dealy:5"], &["dealy:5", "no such strategy", "delay"]),
        (&["bench", "ping", "--mark", "tcp-push"], &["tcp-push", "tcp-psh", "length"]),
        (&["bench", "ping", "--world", "lab"], &["--world", "live"]),
        (&["bench", "ping", "--wait", "idle"], &["idle", "sleep, precise, spin"]),
        (&["bench", "ping", "--ports", "c"], &["--ports", "both"]),
        (&["bench", "--scenario", "e2000"], &["e2000", "e1000, phase, bge, odroid"]),
        (&["bench", "ping", "--rx-usec", "5"], &["--rx-usec", "--rx-usecs"]),
        (&["scenario", "e2000"], &["e2000", "e1000, phase, bge, odroid"]),
        (&["bench"], &["<EXPERIMENT>"]),
        (&["demmo"], &["demmo", "demo"]),
    ] {
        run(arguments).refused(words);
    }
}

#[test]
fn impossible_settings_say_why() {
    for (arguments, words) in [
        (&["--strategy", "adaptive:5"][..], &["`adaptive` takes no rx-usecs"][..]),
        (&["--strategy", "disabled", "--rx-frames", "5"], &["`disabled` never waits"]),
        (&["--strategy", "marked+disabled"], &["`disabled` never waits"]),
        (&["--strategy", "delay:many"], &["must be a whole number"]),
        (&["--strategy", "delay:75+throttle:5"], &["one timer"]),
        (&["--rx-usecs", "1000001"], &["outside 0 to 1000000 microseconds"]),
        (&["--compare", "delay:75,disabled", "--strategy", "adaptive"], &["drop --strategy"]),
        (&["--compare", "delay:75,dealy:75"], &["no such strategy"]),
        (&["--clients", "0"], &["clients are 1 to 64"]),
        (&["--clients", "8..1"], &["the smaller number first"]),
        (&["--clients", "many"], &["a range such as 1..8"]),
        (&["--queues", "0"], &["--queues", "1..=64"]),
        (&["--queues", "65"], &["--queues", "1..=64"]),
        (&["--ring", "1"], &["--ring", "16..=65536"]),
        (&["--mtu", "500"], &["mtu 500", "1280 to 65521"]),
        (&["--mtu", "500", "--world", "virtual"], &["mtu 500", "1280 to 65521"]),
        (&["--mtu", "65522", "--hosts", "uml"], &["mtu 65522", "1280 to 65521"]),
        (&["--link-loss", "101"], &["outside 0 to 100 percent"]),
        (&["--link-rate", "0"], &["--link-rate", "outside 1 to 4294967295 Mbit/s"]),
        (&["--link-rate", "4294967296"], &["--link-rate", "outside 1 to 4294967295 Mbit/s"]),
        (&["--interrupt-latency", "5"], &["--interrupt-latency", "--world virtual"]),
        (&["--packet-cost", "5"], &["--packet-cost", "--world virtual"]),
        (&["--packet-cost", "5kg"], &["--packet-cost", "nanoseconds", "0,191"]),
        (&["--interrupt-latency", "1000001"], &["--interrupt-latency", "1000000"]),
        (&["--rx-usecs", "99999999999"], &["--rx-usecs", "outside 0 to 1000000 microseconds"]),
        (&["--rate", "5", "--think", "5"], &["--think", "--rate", "drop one"]),
        (&["--duration", "-1"], &["is not a time such as 2s"]),
        (&["--rate", "1e30"], &["--rate", "is not a number a second such as 20000"]),
        (&["--duration", "0"], &["--duration"]),
        (&["--duration", "nan"], &["is not a time such as 2s"]),
        (&["--rounds", "0"], &["--rounds"]),
    ] {
        let ended = run(&[&["bench", "tcp-rr"], arguments].concat());
        assert_ne!(ended.code, 0, "{arguments:?}");
        ended.refused(words);
    }
}

#[test]
fn a_scenario_is_a_file_of_a_sane_size() {
    let directory = Directory::new();
    let refuse = |path: &str, why: &str| {
        run(&["bench", "--scenario", path]).refused(&["read scenario", path, why]);
        run(&["scenario", path]).refused(&["read scenario", path, why]);
    };
    refuse("/dev/zero", "a device or a pipe");
    refuse(directory.path().to_str().unwrap(), "a directory");
    let large = directory.file("large.toml");
    std::fs::File::create(&large).unwrap().set_len(1 << 30).unwrap();
    refuse(&large, "larger than 1048576 bytes");
    let fifo = directory.file("fifo.toml");
    output(Command::new("mkfifo").arg(&fifo)).output();
    refuse(&fifo, "a device or a pipe");
}

/// Every command that reads a file ends at once with the reason, and keeps nothing of it.
#[test]
fn no_file_is_read_that_never_begins_or_never_ends() {
    let directory = Directory::new();
    let pipe = directory.file("pipe");
    output(Command::new("mkfifo").arg(&pipe)).output();
    let large = directory.file("large");
    // As a code file has to be.
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&large);
    file.unwrap().set_len(1 << 40).unwrap();
    let tune = ["tune", "lo", "--peer", "127.0.0.1", "--goal", "min p99", "--code-file"];
    let mx = ["mx", "perf", "--port", "udp:127.0.0.1:0", "--peer", "no/1", "--peers-file"];
    for (arguments, most) in [
        (&["probe", "--replay"][..], 16 << 20),
        (&["probe", "--hosts"], 1 << 20),
        (&["merge"], 1 << 28),
        (&["show", "lo", "--check"], 1 << 20),
        (&["reproduce", "--npb"], 1 << 20),
        (&mx, 1 << 20),
        (&tune, 1 << 10),
    ] {
        let refuse =
            |path: &str, why: &str| run(&[arguments, &[path]].concat()).refused(&[path, why]);
        refuse("/dev/zero", "it is a device or a pipe");
        refuse(&pipe, "it is a device or a pipe");
        refuse(&large, &format!("larger than {most} bytes"));
    }
    let mut hosts = Command::new("sh");
    hosts.args(["-c", "exec \"$0\" probe --hosts - </dev/zero", EARMARK]);
    output(&mut hosts).refused(&["larger than 1048576 bytes"]);
}

/// The error comes before anything is built: none of these would work any further.
#[test]
fn a_capture_that_cannot_be_written_is_refused_before_the_run() {
    for path in ["/no/such/x.pcapng", "/dev/full", "/tmp"] {
        let words = ["write capture", path, "--pcap"];
        run(&["bench", "ping", "--pcap", path]).refused(&words);
        run(&["bench", "ping", "--world", "virtual", "--pcap", path]).refused(&words);
        run(&["lab", "run", "--time", "virtual", "--pcap", path, "--on", "a", "x"]).refused(&words);
        run(&["mpirun", "--pcap", path, "/no/such/program"]).refused(&words);
        run(&["nic", "serve", "--pcap", path, "/no/such/a", "/no/such/b"]).refused(&words);
    }
    let directory = Directory::new();
    let capture = directory.file("x.pcapng");
    let rounds = ["bench", "ping", "--world", "virtual", "--rounds", "2", "--pcap", &capture];
    run(&rounds).refused(&["one round", "this would be 2"]);
    run(&["bench", "--scenario", "e1000", "--pcap", &capture]).refused(&["would overwrite it"]);
    assert!(!std::path::Path::new(&capture).exists());
}

/// Dropped in silence, an option makes people believe that they have measured something else.
#[test]
fn options_that_nothing_uses_are_refused() {
    let directory = Directory::new();
    let scenario = |nic: &str, entry: &str| {
        let text = format!("title = ''\nstory = ''\nnic = {{ {nic} }}\n[[experiment]]\n{entry}\n");
        directory.write("unused.toml", &text)
    };
    for (arguments, words) in [
        (&["bench", "tcp-rr", "--bulk-rate", "5"][..], &["--bulk-rate", "tcp-rr", "mixed"][..]),
        (&["bench", "bulk", "--clients", "3"], &["--clients", "bulk", "tcp-rr"]),
        (&["bench", "ping", "--compute", "5"], &["--compute", "ping", "loaded-server"]),
        (&["bench", "mixed", "--think", "5"], &["--think", "mixed", "memcached"]),
        (&["bench", "bulk", "--change-to", "delay:5"], &["--change-to", "bulk", "ntp"]),
        (
            &["bench", "ping", "--link-reorder-delay", "5"],
            &["--link-reorder-delay", "--link-reorder;"],
        ),
        (&["bench", "mx-pingpong", "--mx-misorder", "3"], &["--mx-misorder", "--size 129"]),
        (&["bench", "ping", "--world", "virtual", "--wait", "spin"], &["--wait", "virtual time"]),
        (&["bench", "ping", "--world", "virtual", "--hosts", "uml"], &["--hosts", "virtual time"]),
        (&["bench", "ping", "--world", "virtual", "--client-spin"], &["--client-spin"]),
        (&["bench", "ping", "--hosts", "uml", "--ring", "64"], &["--ring", "--hosts uml"]),
        (&["bench", "--scenario", "e1000", "--size", "64"], &["--size", "mx-pingpong"]),
        (&["lab", "run", "--time", "virtual", "--wait", "spin", "--on", "a", "true"], &["--wait"]),
        (&["lab", "shell", "--interrupt-latency", "5"], &["--interrupt-latency"]),
        (&["mpirun", "--interrupt-latency", "5", "true"], &["--interrupt-latency"]),
        (&["nic", "serve", "--lab", "x", "/a", "/b"], &["--lab x", "--name"]),
        (&["nic", "serve", "--hosts", "namespaces", "/a", "/b"], &["--hosts", "nic serve"]),
        (&["nic", "labs", "--lab", "x"], &["--lab x"]),
    ] {
        run(arguments).refused(words);
    }
    for (nic, entry, words) in [
        ("", "run = 'bulk'\noptions = { clients = 3 }", ["--clients", "bulk"]),
        ("wait = 'spin'", "run = 'bulk'\nworld = 'virtual'", ["--wait", "virtual time"]),
    ] {
        let path = scenario(nic, entry);
        run(&["bench", "--scenario", &path]).refused(&[&words[..], &["unused.toml"]].concat());
    }
}

#[test]
fn impossible_durations_say_why() {
    for (duration, why) in [
        ("--duration=-1", "is not a time such as 2s"),
        ("--duration=nan", "is not a time such as 2s"),
        ("--duration=inf", "is not a time such as 2s"),
        ("--duration=86401", "outside 0.01 to 86400 seconds"),
        ("--duration=25h", "outside 0.01 to 86400 seconds"),
        ("--duration=9ms", "outside 0.01 to 86400 seconds"),
    ] {
        run(&["demo", duration]).refused(&[why]);
        run(&["bench", "ping", duration]).refused(&[why]);
    }
    run(&["nic", "watch", "--interval", "nan"]).refused(&["--interval"]);
}

#[test]
fn files_that_cannot_be_written_are_named_early() {
    let directory = Directory::new();
    for path in ["/dev/full", &directory.file("no/report.html"), directory.path().to_str().unwrap()]
    {
        // Found after the measurements, each of an hour, this would hang.
        let demo = ["demo", "--duration", "3600"];
        let report = [&demo[..], &["--report", path]].concat();
        run(&report).refused(&["write ", path, "choose another place"]);
        let file = directory.file("r.html");
        let json = [&demo[..], &["--report", &file, "--json", path]].concat();
        run(&json).refused(&["write ", path, "choose another place"]);
        let name = unique("full");
        run(&["lab", "run", "--name", &name, "--pcap", path, "--on", "a", "true"]).refused(&[
            "write capture",
            path,
            "--pcap",
        ]);
    }
}

/// Runs the command as nobody, with `prepare` done as root before, in private mounts.
fn as_nobody(prepare: &str, arguments: &[&str]) -> Ended {
    // Copied because nobody may not reach into the directories of whoever runs tests.
    let script = format!(
        "set -e; mount -t tmpfs tmpfs /mnt; cp \"$0\" /mnt/earmark; mkdir -m 777 /mnt/here; \
         cd /mnt/here; {prepare}; exec setpriv --reuid 65534 --regid 65534 --clear-groups \
         --bounding-set=-all --inh-caps=-all /mnt/earmark \"$@\""
    );
    output(Command::new("unshare").args(["--mount", "sh", "-c", &script, EARMARK]).args(arguments))
}

const TUN: &str = "mknod /mnt/tun c 10 200; mount --bind /mnt/tun /dev/net/tun; chmod";

#[test]
fn without_permission_the_message_names_the_device() {
    let closed = format!("{TUN} 600 /mnt/tun");
    let remedy = "Permission denied (os error 13); run as root, or let this user open it: \
                  sudo chmod 666 /dev/net/tun";
    for arguments in [&["lab", "run", "--on", "a", "true"][..], &["bench", "ping"]] {
        let ended = as_nobody(&closed, arguments);
        ended.refused(&["open /dev/net/tun"]);
        assert!(ended.stderr.ends_with(&format!("{remedy}\n")), "{ended:?}");
    }
    let demo = as_nobody(&closed, &["demo"]);
    for words in ["No hosts can be built here", &format!("{remedy}.\n"), "marked:75"] {
        assert!(demo.output().contains(words), "no `{words}` in {demo:?}");
    }
    let open = format!("{TUN} 666 /mnt/tun");
    let name = unique("nobody");
    let bench = ["bench", "tcp-rr", "--json", "--duration", "0.1", "--name", &name];
    let outcome = as_nobody(&open, &bench).json();
    assert_eq!(outcome["results"][0]["environment"]["privilege"], "user namespace");
}

#[test]
fn without_the_device_the_message_says_how_to_get_it() {
    let run = as_nobody("mount -t tmpfs tmpfs /dev/net", &["bench", "ping"]);
    run.refused(&["open /dev/net/tun", "sudo modprobe tun", "--device /dev/net/tun"]);
}

#[test]
fn without_user_namespaces_demo_shows_the_nic_alone() {
    // The limit belongs to a user namespace, so the machine keeps its own.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces; \
                  exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" \"$@\"";
    let confined = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", script, EARMARK]).args(arguments);
        output(&mut command)
    };
    let demo = confined(&["demo"]);
    for words in ["No hosts can be built here", "sysctl -w user.max_user_namespaces", "marked:75"] {
        assert!(demo.output().contains(words), "no `{words}` in {demo:?}");
    }
    confined(&["bench", "ping"]).refused(&["create a user namespace", "run as root"]);
}

/// Starts a long bench, does something to one of its processes, and returns how it ended.
#[track_caller]
fn disturbed(experiment: &str, process: &str, disturb: impl FnOnce(u32)) -> Ended {
    let mut traced = Traced::new();
    let arguments = ["bench", experiment, "--duration", "3", "--warmup", "0"];
    let run = Running::start(&mut traced.command(&arguments));
    // The bench has begun when its client, the last to be started, has.
    traced.client();
    let victim = traced.process(process);
    traced.note();
    disturb(victim);
    let ended = run.end();
    traced.gone(&[]);
    ended
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
}

/// Runs a program in the network of a process.
#[track_caller]
fn inside(pid: u32, words: &[&str]) {
    needs("nsenter", "util-linux");
    let mut command = Command::new("nsenter");
    command.args(["--net", "--target", &pid.to_string()]).args(words);
    output(&mut command).output();
}

#[test]
fn a_port_that_vanishes_is_named() {
    needs("ip", "iproute2");
    for port in ["a0", "b0"] {
        let holder = format!("earmark-{}", &port[..1]);
        let ended = disturbed("udp-rr", &holder, |pid| inside(pid, &["ip", "link", "del", port]));
        ended.refused(&[&format!("port {port} has vanished"), "deleted"]);
    }
}

#[test]
fn a_port_that_is_down_for_a_while_is_no_disaster() {
    needs("ip", "iproute2");
    let mut lab = common::Lab::start(&[]);
    let (status, text) = lab.ask("ip link set a0 down && ip link set a0 up && ping -q -c 1 b");
    assert_eq!(status, 0, "{text}");
    assert!(lab.show()[0]["vanished"].is_null());
    lab.end().output();
}

#[test]
fn a_killed_host_is_named() {
    for host in ["a", "b"] {
        let ended = disturbed("tcp-rr", &format!("earmark-{host}"), kill);
        ended.refused(&[&format!("host {host}")]);
    }
}

#[test]
fn a_killed_server_is_an_error() {
    needs("memcached", "memcached");
    disturbed("memcached", "memcached", kill).refused(&["memcached"]);
}

#[test]
fn killed_agents_are_named() {
    let mut traced = Traced::new();
    let arguments = ["bench", "tcp-rr", "--duration", "3", "--warmup", "0"];
    let run = Running::start(&mut traced.command(&arguments));
    let client = traced.client();
    traced.note();
    kill(client);
    run.end().refused(&["asker on host a", "was it killed?"]);
    traced.gone(&[]);
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let name = unique("path");
    let mut command = Command::new(EARMARK);
    command.args(["bench", "memcached", "--name", &name]).env("PATH", "/nowhere");
    output(&mut command).refused(&["memcached", "apt-get install memcached"]);
}

#[test]
fn agents_refuse_what_they_cannot_read() {
    let ended =
        Running::start(Command::new(EARMARK).args(["agent", "{}"]).stdin(Stdio::null())).end();
    assert_ne!(ended.code, 0, "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
}
