//! Whatever ends a run, nothing is left of it: no process, namespace, socket, interface or file;
//! and what is missing or has ended is named.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{
    BROKEN_PIPE, Directory, EARMARK, Ended, Lab, Running, Traced, in_network, into_closed_pipe,
    kill, needs, output, unique,
};

/// Starts a bench and waits until its traffic flows.
#[track_caller]
fn started(experiment: &str) -> (Traced, Running) {
    let mut traced = Traced::new();
    let arguments = ["bench", experiment, "--duration", "5", "--pcap", "bench.pcapng"];
    let run = Running::start(&mut traced.command(&arguments));
    traced.client();
    traced.note();
    (traced, run)
}

#[test]
fn nothing_is_left_of_a_bench_whatever_signal_ends_it() {
    needs!("lab");
    for (signal, code) in
        [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::KILL, 137)]
    {
        let (traced, run) = started("tcp-rr");
        run.signal(signal);
        assert_eq!(run.end().code, code, "{signal:?}");
        traced.gone(&["bench.pcapng"]);
    }
    // From the terminal, and without any.
    let (traced, run) = started("tcp-rr");
    run.signal_group(Signal::INT);
    assert_eq!(run.end().code, 130);
    traced.gone(&["bench.pcapng"]);
    let (traced, run) = started("tcp-rr");
    run.end().output();
    traced.gone(&["bench.pcapng"]);
}

#[test]
fn a_bench_that_is_interrupted_reports_the_rounds_that_it_has() {
    needs!("lab");
    let bench = "bench ping --compare disabled,delay:75 --rounds 100 --warmup 0 --duration 0.5";
    let words: Vec<&str> = bench.split(' ').collect();
    // On a busy machine the first round takes its time.
    for seconds in [2, 8, 32] {
        let run = Running::start(Command::new(EARMARK).args(&words));
        sleep(Duration::from_secs(seconds));
        run.signal_group(Signal::INT);
        let ended = run.end();
        assert_eq!(ended.code, 130, "{ended:?}");
        if ended.stdout.contains("p50 us") {
            assert!(ended.stderr.contains("interrupted; this is what was measured"), "{ended:?}");
            return;
        }
    }
    panic!("half a minute was not enough for a round");
}

#[test]
fn a_killed_lab_leaves_no_program_that_hides() {
    needs!("lab");
    let mut traced = Traced::new();
    let hide = "setsid sleep 1000 & trap '' TERM INT HUP; echo ready; sleep 1000";
    let arguments = ["lab", "run", "--on", "a", hide];
    let mut run = Running::start(&mut traced.command(&arguments));
    run.await_line("ready");
    traced.note();
    run.signal(Signal::KILL);
    // Only now: its output is open as long as one of the programs lives.
    traced.gone(&[]);
    assert_eq!(run.end().code, 137);
}

#[test]
fn a_bench_ends_quietly_at_a_closed_pipe_and_leaves_nothing() {
    needs!("lab");
    let run = Traced::new();
    let bench = |seconds| {
        let arguments = ["bench", "ping", "--duration", seconds, "--warmup", "0"];
        into_closed_pipe(&mut run.command(&arguments))
    };
    let mut ended = bench("0.1");
    // On a busy machine.
    if ended.stderr.contains("measure for longer") {
        ended = bench("10");
    }
    assert_eq!((ended.code, ended.stderr.as_str()), (BROKEN_PIPE, ""));
    run.gone(&[]);
}

/// Starts a long bench, does something to one of its processes, and returns how it ended.
#[track_caller]
fn disturbed(experiment: &str, process: &str, disturb: impl FnOnce(u32)) -> Ended {
    let (traced, run) = started(experiment);
    disturb(if process == "client" { traced.client() } else { traced.process(process) });
    let ended = run.end();
    traced.gone(&["bench.pcapng"]);
    ended
}

#[test]
fn a_part_that_goes_while_a_bench_runs_is_named() {
    needs!("lab", "ip", "nsenter", "memcached");
    for (host, port) in [("a", "a0"), ("b", "b0")] {
        let holder = format!("earmark-{host}");
        disturbed("tcp-rr", &holder, kill).refused(&[&format!("host {host}")]);
        let delete = |pid: u32| {
            let mut command = Command::new("nsenter");
            command.args(["--net", "--target", &pid.to_string(), "ip", "link", "del", port]);
            output(&mut command).output();
        };
        let words = format!("port {port} has vanished");
        disturbed("udp-rr", &holder, delete).refused(&[&words, "deleted"]);
    }
    disturbed("memcached", "memcached", kill).refused(&["memcached"]);
    disturbed("tcp-rr", "client", kill).refused(&["asker on host a", "was it killed?"]);
}

#[test]
fn a_port_that_is_down_for_a_while_is_no_disaster() {
    needs!("lab", "ip", "ping");
    let mut lab = Lab::start(&[]);
    lab.does("ip link set a0 down && ip link set a0 up && ping -q -c 1 b");
    assert!(lab.show()[0]["vanished"].is_null());
    lab.end().output();
}

/// Runs the command as an unprivileged user, with `prepare` done as root before, in private mounts.
fn unprivileged(prepare: &str, arguments: &[&str]) -> Ended {
    // Copied because that user may not reach into the directories of other users.
    let script = format!(
        "set -e; mount -t tmpfs tmpfs /mnt; cp \"$0\" /mnt/earmark; mkdir -m 777 /mnt/here; \
         cd /mnt/here; {prepare}; exec setpriv --reuid 65534 --regid 65534 --clear-groups \
         --bounding-set=-all --inh-caps=-all /mnt/earmark \"$@\""
    );
    output(Command::new("unshare").args(["--mount", "sh", "-c", &script, EARMARK]).args(arguments))
}

const TUN: &str = "mknod /mnt/tun c 10 200; mount --bind /mnt/tun /dev/net/tun; chmod";

#[test]
fn what_hosts_need_is_named_where_it_is_missing() {
    needs!("lab", "root", "setpriv");
    let closed = format!("{TUN} 600 /mnt/tun");
    let remedy = "Permission denied (os error 13); run as root, or let this user open it: \
                  sudo chmod 666 /dev/net/tun";
    for arguments in [&["lab", "run", "--on", "a", "true"][..], &["bench", "ping"]] {
        unprivileged(&closed, arguments).refused(&["open /dev/net/tun", remedy]);
    }
    // Who may not change a device hears of it before anything is measured or looked for.
    let refused = "takes root, or CAP_NET_ADMIN; type the same with sudo";
    let changes = ["apply lo gro-flush-timeout 20us", "lane lo udp", "probe 127.0.0.1 --vary lo"];
    for line in changes.into_iter().chain(["tune lo --command true"]) {
        let words: Vec<&str> = line.split(' ').collect();
        unprivileged("true", &words).refused(&["change lo", refused]);
    }
    unprivileged("true", &["rollback"]).refused(&["find the journal", "sudo", "--state-dir"]);
    // The demo has its model, and says the rest.
    unprivileged(&closed, &["demo"]).says(&["In a model", "open /dev/net/tun", remedy, "Report:"]);
    let open = format!("{TUN} 666 /mnt/tun");
    let name = unique("unprivileged");
    let bench = ["bench", "tcp-rr", "--json", "--duration", "0.1", "--name", &name];
    let outcome = unprivileged(&open, &bench).json();
    assert_eq!(outcome["results"][0]["environment"]["privilege"], "user namespace");
    unprivileged("mount -t tmpfs tmpfs /dev/net", &["bench", "ping"]).refused(&[
        "open /dev/net/tun",
        "sudo modprobe tun",
        "--device /dev/net/tun",
    ]);
    // The limit belongs to a user namespace, so the machine keeps its own.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces; \
                  exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" \"$@\"";
    let confined = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", script, EARMARK]).args(arguments);
        output(&mut command)
    };
    confined(&["bench", "ping"]).refused(&["create a user namespace", "run as root"]);
    let directory = Directory::new();
    confined(&["demo", "--report", &directory.file("report.html")])
        .says(&["In a model", "sysctl -w user.max_user_namespaces"]);
    let mut command = Command::new(EARMARK);
    command.args(["bench", "memcached", "--name", &name]).env("PATH", "/nowhere");
    output(&mut command).refused(&["memcached", "apt-get install memcached"]);
}

#[test]
fn a_change_whose_report_cannot_be_written_stays_and_is_reported_on_standard_error() {
    needs!("network");
    let state = Directory::new();
    let gro = "cat /sys/class/net/one/gro_flush_timeout /sys/class/net/tap/gro_flush_timeout";
    let tune = "--command 'cat /sys/class/net/one/gro_flush_timeout' --higher-is-better --trials 3";
    let ended = in_network(
        &state,
        &format!(
            "lost() {{ \"$@\" >/dev/full || echo status $? >&2; {gro} >&2; }}
             piped() {{ (\"$@\" || echo status $? >&2) | true; {gro} >&2; }}
             for device in one tap; do lost earmark apply $device gro-flush-timeout 5us; done
             lost earmark rollback
             for device in one tap; do earmark apply --confirm-within 600s $device \
                 gro-flush-timeout 5us >/dev/null; done
             lost earmark confirm; piped earmark rollback
             lost earmark apply --json --confirm-within 600s one gro-flush-timeout 5us
             earmark rollback >/dev/null
             lost earmark tune one {tune} --report /none/page; earmark rollback >/dev/null
             lost earmark persist tap rx-frames gro-flush-timeout --write --root root
             lost earmark apply --dry-run one gro-flush-timeout 5us
             lost earmark tune one {tune} --dry-run"
        ),
    );
    assert_eq!(ended.code, 0, "{ended:?}");
    let mut rest = ended.stderr.as_str();
    for words in [
        "earmark: write to standard output: No space left on device (os error 28); what was done \
         stays as it is. The report:\none: gro-flush-timeout 0ns -> 5000ns\n\
         way back: earmark rollback one   (that is gro-flush-timeout 0)\nstatus 4\n5000\n0\n",
        "way back: earmark rollback tap   (that is gro-flush-timeout 0)\nstatus 4\n5000\n5000\n",
        // All devices, not only the first.
        "one is as it was: gro-flush-timeout 0\n",
        "status 4\n0\n0\n",
        "one: kept; way back: earmark rollback one\n",
        "tap: kept; way back: earmark rollback tap\n",
        "status 4\n5000\n5000\n",
        "earmark: write to standard output: Broken pipe (os error 32)",
        "one is as it was: gro-flush-timeout 0\n",
        "status 4\n0\n0\n",
        "\"confirm_within_s\": 600.0,",
        "status 4\n5000\n0\n",
        "earmark: write /none/page: No such file",
        "in force; way back: earmark rollback one\n",
        "status 4\n",
        "written: root/etc/systemd/network/70-earmark-tap.link\n\
         written: root/etc/udev/rules.d/90-earmark-tap.rules\n",
        "way back: earmark persist tap --root root --remove\nstatus 4\n",
        // Nothing is changed, and nothing is done.
        "earmark: write to standard output; make room where it goes",
        "status 1\n0\n0\n",
        "earmark: write to standard output; make room where it goes",
        "status 1\n0\n0\n",
    ] {
        let (_, after) = rest.split_once(words).unwrap_or_else(|| panic!("no `{words}` in {rest}"));
        rest = after;
    }
    assert_eq!(rest, "");
}
