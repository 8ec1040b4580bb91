//! Bad input: each a message that says what is wrong and what to do, and nothing starts.

use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

use crate::support::{Directory, EARMARK, output, refuses, run, run_line};

#[test]
fn unknown_words_are_answered_with_the_known_ones() {
    refuses(&[
        ("bench tcp-r", &["tcp-r", "tcp-rr", "invalid-frames"]),
        ("bench ping --strategy dealy:5", &["dealy:5", "no such strategy", "is delay meant?"]),
        ("bench ping --compare delay:5,marked+trottle:5", &["is throttle meant?"]),
        ("show lo --check low-latncy", &["low-latncy", "is low-latency meant?"]),
        ("scenario mxed", &["is mixed meant?"]),
        ("nic set b0 rx-usec 5", &["no setting is called rx-usec", "is rx-usecs meant?"]),
        ("apply lo rx-usec 5", &["is rx-usecs meant?"]),
        ("man tun", &["no command tun", "is tune meant?"]),
        ("man nic sett", &["is set meant?"]),
        ("bench ping --mark tcp-push", &["tcp-push", "tcp-psh", "length"]),
        ("bench ping --world lab", &["--world", "live"]),
        ("bench ping --wait idle", &["idle", "sleep, precise, spin"]),
        ("bench ping --ports c", &["--ports", "both"]),
        ("bench --scenario e2000", &["e2000", "e1000, phase, bge, odroid"]),
        ("bench ping --rx-usec 5", &["--rx-usec", "--rx-usecs"]),
        ("scenario e2000", &["e2000", "e1000, phase, bge, odroid"]),
        ("bench", &["<EXPERIMENT>"]),
        ("demmo", &["demmo", "demo"]),
        ("reproduce bge/latency", &["`bge/latency`", "e1000, bge, odroid, openmx"]),
        ("lab run --on 7 true", &["no host 7", "hosts are named a, b, c"]),
        ("lab run --until a --on b true", &["--until", "--on"]),
        ("lab run", &["--on"]),
        ("lab run --name 'two words' --on a true", &["lab name"]),
    ]);
}

#[test]
fn impossible_settings_say_why() {
    let run = |options: &str| run_line(&format!("bench tcp-rr {options}"));
    let cases: &[(&str, &[&str])] = &[
        ("--strategy adaptive:5", &["`adaptive` takes no rx-usecs"]),
        ("--strategy disabled --rx-frames 5", &["`disabled` never waits"]),
        ("--strategy marked+disabled", &["`disabled` never waits"]),
        ("--strategy delay:many", &["must be a whole number"]),
        ("--strategy delay:75+throttle:5", &["one timer"]),
        ("--strategy driver", &["no registers"]),
        ("--strategy lane:75", &["which packets have a lane?"]),
        ("--strategy lane:75 --lane tcp-port=7000", &["the lanes take all queues (1)"]),
        ("--strategy lane:75 --lane tcp-port=7000:2 --queues 2", &["a lane names queue 2"]),
        ("--strategy lane:75 --lane tcp-port=7000:x", &["`x` is no queue"]),
        ("--compare delay:75,marked:75 --lane mx --queues 2", &["no setting has lanes"]),
        ("--rx-usecs 1000001", &["outside 0 to 1000000 microseconds"]),
        ("--compare delay:75,disabled --strategy adaptive", &["drop --strategy"]),
        ("--compare delay:75,dealy:75", &["no such strategy"]),
        ("--clients 0", &["clients are 1 to 64"]),
        ("--clients 8..1", &["the smaller number first"]),
        ("--queues 65", &["--queues", "1..=64"]),
        ("--ring 1", &["--ring", "16..=65536"]),
        ("--mtu 500", &["mtu 500", "1280 to 65521"]),
        ("--mtu 500 --world virtual", &["mtu 500", "1280 to 65521"]),
        ("--mtu 65522 --hosts uml", &["mtu 65522", "1280 to 65521"]),
        ("--nic iavf --world virtual --queues 17", &["at most 16"]),
        ("--nic iavf --world virtual --mtu 9800", &["at most 9702 bytes"]),
        ("--nic iavf --world virtual --driver-options debug=1", &["no parameters"]),
        ("--nic e1000 --world virtual --driver-options RxIntDelay", &["NAME=VALUE"]),
        ("--nic e1000e --world virtual --queues 2", &["--queues"]),
        ("--link-loss 101", &["outside 0 to 100 percent"]),
        ("--link-rate 0", &["--link-rate", "outside 1 to 4294967295 Mbit/s"]),
        ("--interrupt-latency 5", &["--interrupt-latency", "--world virtual"]),
        ("--packet-cost 5", &["--packet-cost", "--world virtual"]),
        ("--packet-cost 5kg", &["--packet-cost", "nanoseconds", "0,191"]),
        ("--interrupt-latency 1000001", &["--interrupt-latency", "1000000"]),
        ("--rate 5 --think 5", &["--think", "--rate", "drop one"]),
        ("--poll busy", &["--hosts uml"]),
        ("--world virtual --poll suspend", &["earmark kernel --suite"]),
        ("--world virtual --poll busy --costs paper", &["--costs", "give --world model"]),
        ("--world virtual --poll threaded", &["a guest has one", "give --world model"]),
        ("--world virtual --poll spin", &["epoll, defer, busy, suspend"]),
        ("--duration 0", &["--duration"]),
        ("--duration nan", &["is not a time such as 2s"]),
        ("--duration 25h", &["outside 0.01 to 86400 seconds"]),
        ("--rounds 0", &["--rounds"]),
        ("--ratios --json", &["--ratios", "--json"]),
        ("--shard 1/2", &["--json"]),
        ("--json --shard 3/2", &["counted from 1 to N"]),
        ("--json --shard 1/2 --svg a.svg", &["a shard writes neither"]),
    ];
    for (options, words) in cases {
        run(options).refused(words);
    }
    refuses(&[
        ("demo --duration=-1", &["is not a time such as 2s"]),
        ("nic watch --interval nan", &["--interval"]),
        ("show lo --sample 61", &["--sample", "outside 0 to 60 seconds"]),
        ("watch lo --interval 0", &["--interval", "outside 0.01 to 3600 seconds"]),
        ("explain lo --duration 0", &["--duration"]),
        ("explain", &["HOST"]),
        ("probe --hosts x --parallel 65", &["1..=64"]),
        ("probe --hosts x host", &["cannot be used with"]),
        ("probe host --total-rate 5", &["cannot be used with"]),
        ("bench mx-pingpong --size 4194305", &["--size", "4194304"]),
        ("bench mx-stream --in-flight 0", &["--in-flight", "1..=4096"]),
        ("bench mx-misorder --size 128", &["--size 128", "129 to 32768"]),
        ("bench mx-large-anatomy --size 32768", &["--size 32768", "32769 bytes or more"]),
        ("bench mx-pingpong --mx-marks all-medium", &["`all-medium`", "medium-last"]),
        ("reproduce --json --shard 1/2 --report a", &["--report"]),
    ]);
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
    for (command, most) in [
        ("bench --scenario", 1 << 20),
        ("scenario", 1 << 20),
        ("probe --replay", 16 << 20),
        ("probe --hosts", 1 << 20),
        ("merge", 1 << 28),
        ("show lo --check", 1 << 20),
        ("reproduce --npb", 1 << 20),
        ("mx perf --port udp:127.0.0.1:0 --peer no/1 --peers-file", 1 << 20),
        ("tune lo --peer 127.0.0.1 --goal 'min p99' --code-file", 1 << 10),
    ] {
        let refuse = |path: &str, why: &str| {
            run_line(&format!("{command} {path}")).refused(&[path, why]);
        };
        refuse("/dev/zero", "a device or a pipe");
        refuse(&pipe, "a device or a pipe");
        refuse(&large, &format!("larger than {most} bytes"));
    }
    let mut hosts = Command::new("sh");
    hosts.args(["-c", "exec \"$0\" probe --hosts - </dev/zero", EARMARK]);
    output(&mut hosts).refused(&["larger than 1048576 bytes"]);
}

/// The error comes before anything is built or measured: none of these would work any further.
#[test]
fn files_that_cannot_be_written_are_named_early() {
    let directory = Directory::new();
    for path in ["/no/such/x.pcapng", "/dev/full", directory.path().to_str().unwrap()] {
        for command in [
            "bench ping",
            "bench ping --world virtual",
            "lab run --time virtual --on a x",
            "lab run --on a true",
            "nic serve /no/such/a /no/such/b",
        ] {
            let words = ["write capture", path, "--pcap"];
            run_line(&format!("{command} --pcap {path}")).refused(&words);
        }
        let report = directory.file("r.html");
        // Found after the measurements, each of an hour, this would hang.
        for files in [format!("--report {path}"), format!("--report {report} --json {path}")] {
            let words = ["write ", path, "choose another place"];
            run_line(&format!("demo --duration 3600 {files}")).refused(&words);
        }
    }
    let capture = directory.file("x.pcapng");
    let rounds = format!("bench ping --world virtual --rounds 2 --pcap {capture}");
    run_line(&rounds).refused(&["one round", "this would be 2"]);
    let scenario = format!("bench --scenario e1000 --pcap {capture}");
    run_line(&scenario).refused(&["would overwrite it"]);
    assert!(!std::path::Path::new(&capture).exists());
}

/// Dropped in silence, an option makes people believe that they have measured something else.
#[test]
fn options_that_nothing_uses_are_refused() {
    refuses(&[
        ("bench tcp-rr --bulk-rate 5", &["--bulk-rate", "tcp-rr", "mixed"]),
        ("bench bulk --clients 3", &["--clients", "bulk", "tcp-rr"]),
        ("bench ping --compute 5", &["--compute", "ping", "loaded-server"]),
        ("bench mixed --think 5", &["--think", "mixed", "memcached"]),
        ("bench bulk --change-to delay:5", &["--change-to", "bulk", "ntp"]),
        ("bench ping --link-reorder-delay 5", &["--link-reorder-delay", "--link-reorder;"]),
        ("bench mx-pingpong --mx-misorder 3", &["--mx-misorder", "--size 129"]),
        ("bench ping --world virtual --wait spin", &["--wait", "virtual time"]),
        ("bench ping --world virtual --hosts uml", &["--hosts", "virtual time"]),
        ("bench ping --world virtual --client-spin", &["--client-spin"]),
        ("bench ping --hosts uml --ring 64", &["--ring", "--hosts uml"]),
        ("bench --scenario e1000 --size 64", &["--size", "mx-pingpong"]),
        ("lab run --time virtual --wait spin --on a true", &["--wait"]),
        ("lab shell --interrupt-latency 5", &["--interrupt-latency"]),
        ("mpirun --interrupt-latency 5 true", &["--interrupt-latency"]),
        ("nic serve --lab x /a /b", &["--lab x", "--name"]),
        ("nic serve --hosts namespaces /a /b", &["--hosts", "nic serve"]),
        ("nic labs --lab x", &["--lab x"]),
        ("exporter --interval 5", &["--textfile"]),
        ("exporter --print --explain h", &["--print"]),
        ("exporter --textfile x.prom --probe h", &["add --interval"]),
        ("exporter --textfile x.prom --listen [::1]:1", &["--listen"]),
        ("exporter --listen 192.0.2.1:7013", &["listen on 192.0.2.1:7013", "--listen"]),
        ("exporter --textfile /no/such/x.prom", &["write /no/such/x.prom"]),
        ("exporter --textfile /tmp", &["write /tmp;", "it is a directory"]),
    ]);
    let directory = Directory::new();
    for (nic, entry, words) in [
        ("", "run = 'bulk'\noptions = { clients = 3 }", ["--clients", "bulk"]),
        ("wait = 'spin'", "run = 'bulk'\nworld = 'virtual'", ["--wait", "virtual time"]),
        ("queue = 2", "run = 'bulk'", ["unknown key `queue`", "queues"]),
    ] {
        let text = format!("title = ''\nstory = ''\nnic = {{ {nic} }}\n[[experiment]]\n{entry}\n");
        let path = directory.write("unused.toml", &text);
        run(&["bench", "--scenario", &path]).refused(&[&words[..], &["unused.toml"]].concat());
    }
}

#[test]
fn a_kernel_that_is_too_old_is_named_before_anything_is_tried() {
    // Linux says that it is 2.6 to programs that want to hear that (personality(2), UNAME26).
    let old =
        |words: &[&str]| output(Command::new("setarch").args(["--uname-2.6", EARMARK]).args(words));
    old(&["lab", "run", "--on", "a", "true"]).refused(&["needs 5.11 or newer"]);
    old(&["show", "lo"]).output();
}
