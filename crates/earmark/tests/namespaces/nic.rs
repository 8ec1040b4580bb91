//! `earmark nic`: looking at the NIC of a lab, and changing it while traffic flows.

use serde_json::Value;
use std::process::Command;

use crate::support::{
    AS_TYPED, Directory, EARMARK, Ended, Lab, has, lab_run, needs, output, run, run_line,
};

fn settings(shown: &Value) -> Vec<&str> {
    let ports = shown.as_array().unwrap().iter();
    let queues = ports.flat_map(|port| port["queues"].as_array().unwrap());
    queues.map(|queue| queue["setting"].as_str().unwrap()).collect()
}

#[test]
fn settings_change_while_traffic_flows() {
    needs!("lab", "ping");
    let mut lab = Lab::start(&["--strategy", "disabled"]);
    let pid = lab.does("ping -q -i 0.01 b >/dev/null & echo $!");
    for (change, expected) in [
        (&["strategy", "delay:75"][..], "delay:75"),
        (&["rx-usecs", "50"], "delay:50"),
        (&["rx-frames", "16"], "delay:50+frames:16"),
        (&["rx-usecs", "20", "rx-frames", "0"], "delay:20"),
        (&["adaptive-rx", "on"], "adaptive"),
        (&["rx-usecs", "50"], "delay:50"),
        (&["strategy", "disabled"], "disabled"),
        (&["rx-frames", "16", "rx-usecs", "30"], "delay:30+frames:16"),
        (&["strategy", "marked:60"], "marked:60"),
        (&["strategy", "stream+throttle:90"], "stream+throttle:90"),
        (&["strategy", "quiet:20/75", "rx-usecs", "30"], "quiet:30/75"),
        (&["strategy", "marked+itr+gap:20"], "marked+itr:3+gap:20"),
        (&["rx-usecs", "50"], "marked+throttle:50+gap:20"),
        (&["strategy", "disabled"], "disabled"),
    ] {
        lab.set(&[&["b0"], change].concat());
        assert_eq!(settings(&lab.show()), ["disabled", expected], "{change:?}");
    }
    lab.does(&format!("kill -INT {} && ping -q -c 3 -i 0.01 -w 60 b", pid.trim()));
    lab.end().output();
}

#[test]
fn queues_and_lanes_change_one_by_one() {
    needs!("lab", "ping");
    let mut lab = Lab::start(&["--strategy", "delay:75", "--queues", "2"]);
    lab.set(&["b0", "rx-usecs", "50", "--queue", "1"]);
    assert_eq!(settings(&lab.show()), ["delay:75", "delay:75", "delay:75", "delay:50"]);
    let one = lab.nic(&["show", "b0", "--queue", "1", "--json"]).json()["ports"].take();
    assert_eq!(settings(&one), ["delay:50"]);
    lab.nic(&["show", "b0"]).says(&["queue 1:\nstrategy: delay (delay:50)"]);
    for command in
        [&["show", "b0", "--queue", "2"][..], &["set", "b0", "--queue", "2", "rx-usecs", "1"]]
    {
        lab.nic(command).refused(&["b0 has queues 0 to 1, not 2"]);
    }

    lab.set(&["b0", "lane", "length<=512:1", "strategy", "lane:5000"]);
    let before = lab.show();
    assert_eq!(settings(&before), ["delay:75", "delay:75", "delay:5000", "disabled"]);
    // With a deadline it waits for all answers.
    lab.does("ping -q -c 5 -i 0.1 -w 60 b");
    let shown = lab.show();
    let lane = |shown: &Value| shown[1]["lanes"][0]["packets"].as_u64().unwrap();
    assert!(lane(&shown) - lane(&before) >= 5, "{shown}");
    lab.nic(&["show", "b0"]).says(&["lane: length<=512:1 ("]);
    for (wrong, why) in [
        (&["lane", "length<=512:2"][..], "a lane names queue 2; there are 2 queues"),
        (&["lane", "mx:0, dscp=1:1"], "the lanes take all queues (2)"),
        (&["lane", "mx", "--queue", "1"], "drop --queue"),
        (&["lane", "", "strategy", "lane:75"], "no rule says which packets have a lane"),
    ] {
        lab.nic(&[&["set", "b0"], wrong].concat()).refused(&[why]);
        assert_eq!(lab.show()[1]["lanes"][0]["rule"], "length<=512:1");
    }
    lab.set(&["b0", "lane", "", "strategy", "delay:75"]);
    let after = lab.show();
    assert_eq!((settings(&after)[3], &after[1]["lanes"]), ("delay:75", &serde_json::json!([])));
    lab.end().output();
}

#[test]
fn one_wrong_setting_changes_nothing() {
    needs!("lab");
    let lab = Lab::start(&["--strategy", "delay:75"]);
    let before = lab.show();
    for (wrong, message) in [
        (
            &["rx-usecs", "50", "rx-usec", "60"][..],
            "no setting is called rx-usec; is rx-usecs meant?",
        ),
        (&["rx-usecs", "50", "rx-frames", "-1"], "rx-frames: -1 is not a number without a unit"),
        (&["rx-usecs", "50", "rx-frames", "65536"], "outside 0 to 65535"),
        (&["rx-usecs", "4294967296"], "outside 0 to 1000000 microseconds"),
        (&["rx-usecs", "50", "strategy", "dealy"], "no such strategy; there are"),
        (&["mark", "mx", "adaptive-rx", "on", "rx-usecs", "5"], "chooses rx-usecs"),
        (&["strategy", "itr:2"], "`itr` has the modes 1 (dynamic) and 3 (conservative)"),
        (&["strategy", "delay:75+gap:20"], "a gap is one before marks"),
        (&["rx-usecs", "50", "adaptive-rx", "maybe"], "adaptive-rx maybe: on or off"),
        (&["rx-usecs", "50", "rx-frames"], "`rx-frames` has no value"),
    ] {
        let refusal = lab.nic(&[&["set", "b0"], wrong].concat());
        refusal.refused(&[message]);
        assert_eq!(refusal.code, 1, "{refusal:?}");
    }
    for command in [&["set", "c0", "rx-usecs", "5"][..], &["show", "c0"], &["watch", "c0"]] {
        lab.nic(command).refused(&["no port c0; there are a0, b0"]);
    }
    lab.nic(&["evict", "a0"]).refused(&["port a0 belongs to a host of this lab"]);
    lab.nic(&["set", "b0"]).refused(&["NAME VALUE"]);
    let after = lab.show();
    let marks = |shown: &Value| [0, 1].map(|port| shown[port]["mark"].clone());
    assert_eq!((settings(&before), marks(&before)), (settings(&after), marks(&after)));

    lab.nic(&["show"]).says(&[
        "Coalesce parameters for a0 (lab ",
        "Coalesce parameters for b0 (lab ",
        "rx-usecs: 75",
    ]);
    let watched = lab.nic(&["watch", "--interval", "0.02", "--count", "2"]);
    let ports: Vec<_> =
        watched.output().lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(ports, ["port", "a0", "b0", "a0", "b0"]);
    let name = lab.name();
    run(&["lab", "run", "--name", name, "--on", "a", "true"])
        .refused(&["a lab named", "runs already; choose another name with --name"]);
}

#[test]
fn a_host_sees_its_own_nic() {
    needs!("lab");
    let script = format!(
        "{EARMARK} nic labs | grep -c . && {EARMARK} nic set b0 rx-usecs 33 && \
         {EARMARK} nic show b0 | grep ^rx-usecs"
    );
    for host in ["a", "b"] {
        let ended = lab_run(&["--on", host, &script]);
        assert_eq!(ended.output(), "1\nb0 queue 0: delay:33\nrx-usecs: 33\n", "on host {host}");
    }
    // A device of a lab is known as a port of its NIC.
    let directory = Directory::new();
    let state = directory.path().display();
    let script = format!(
        "{EARMARK} show a0 | grep -Ec 'NIC of lab [^ ]* is set to delay:200' && \
         {EARMARK} apply a0 rx-usecs 50 --state-dir {state} | head -1 && \
         {EARMARK} show a0 | grep -oE 'Up to 50 us|set to delay:50'"
    );
    let ended = lab_run(&["--strategy", "delay:200", "--on", "a", &script]);
    let expected = "2\na0: rx-usecs 200 -> 50\nUp to 50 us\nset to delay:50\nset to delay:50\n";
    assert_eq!(ended.output(), expected);
}

/// Runs a script in a network namespace without other labs.
fn alone(script: &str) -> Ended {
    let script = script.replace("earmark", EARMARK);
    output(Command::new("unshare").args(["--net", "sh", "-c", &script]))
}

#[test]
fn labs_are_found_by_name_and_where_none_runs_the_message_says_how_to_start_one() {
    needs!("lab", "root");
    alone("earmark nic show").refused(&["no lab runs here", "earmark lab shell"]);
    alone("earmark nic set b0 rx-usecs 5").refused(&["no lab runs here"]);
    assert_eq!(alone("earmark nic labs").output(), "");
    run_line("nic --lab missing show").refused(&["reach lab missing", "earmark nic labs"]);
    let ended = alone(
        "
        earmark lab run --name first --on a 'exec sleep 300' & first=$!
        earmark lab run --name second --on a 'exec sleep 300' & second=$!
        for try in $(seq 3000); do
            [ $(earmark nic labs | wc -l) = 2 ] && break
            sleep 0.02
        done
        earmark nic labs
        earmark nic show
        for lab in first second; do earmark nic --lab $lab show b0 | head -n 1; done
        kill $first $second",
    );
    let lines: Vec<_> = ended.stdout.lines().collect();
    let shown = ["first", "second"].map(|lab| format!("Coalesce parameters for b0 (lab {lab}):"));
    assert_eq!(lines, ["first", "second", &shown[0], &shown[1]], "{ended:?}");
    assert!(ended.stderr.contains("several labs run: first, second; choose one with --lab"));
}

#[test]
fn a_stranger_at_the_name_of_a_lab_is_named_and_not_read() {
    needs!("lab", "root", "python3");
    let listen = "import os, socket, sys
os.setgid(65534)
os.setuid(65534)
listeners = [socket.socket(socket.AF_UNIX) for name in sys.argv[1:]]
for listener, name in zip(listeners, sys.argv[1:]):
    listener.bind(chr(0) + name)
    listener.listen()
    if os.fork() == 0:
        while True:
            connection, _ = listener.accept()
            try: connection.sendall(b'{\"refused\":\"\\u001b[2Jrun this\"}\\n')
            except OSError: pass";
    let script = "
        python3 -c \"$1\" earmark/lab/theirs earmark-mx/report/02:00:00:00:00:01/3 \\
            > /dev/null 2>&1 & stranger=$!
        for try in $(seq 3000); do
            [ $(grep -c @earmark /proc/net/unix) = 2 ] && break
            sleep 0.02
        done
        wait $stranger
        $0 nic labs
        for words in 'nic show' 'nic --lab theirs show' 'nic --lab theirs set b0 rx-usecs 5' \\
            'lab run --name theirs --on a true' 'mx counters' \\
            'mx counters 02:00:00:00:00:01/3 --dump'
        do
            $0 $words && echo \"$words worked\"
        done
        exit 1";
    let mut apart = Command::new("unshare");
    apart.args(["--net", "--pid", "--fork", "--kill-child", "sh", "-c", script, EARMARK, listen]);
    let ended = output(&mut apart);
    assert_eq!(ended.stdout, "", "{ended:?}");
    let words = [
        "lab theirs is that of user OWNER\n",
        "no lab of yours runs here; lab theirs belongs to user OWNER",
        "sudo -u OWNER earmark nic --lab theirs",
        "a lab named theirs of user OWNER runs already",
        "endpoint 02:00:00:00:00:01/3 is left out: it belongs to user OWNER",
        "look at MX endpoint 02:00:00:00:00:01/3: it belongs to user OWNER",
    ];
    let words = words.map(|words| words.replace("OWNER", "nobody"));
    ended.refused(&words.each_ref().map(String::as_str));
    assert!(!ended.stderr.contains("run this"), "{ended:?}");
}

#[test]
fn a_port_is_a_device_of_its_host_by_its_name() {
    needs!("lab");
    let state = Directory::new();
    let mut lab = Lab::start(&["--strategy", "delay:500", "--ports", "a"]);
    lab.does(&format!("export EARMARK_STATE_DIR={}; {AS_TYPED}", state.path().display()));
    has(&lab.does("earmark show a0"), &["Up to 500 us:   the NIC of lab "]);
    // What the port has, and what the host's kernel has, in one command.
    let applied = lab.does("earmark apply a0 rx-usecs 0 gro-flush-timeout 0");
    has(&applied, &["a0: rx-usecs 500 -> 0\n", "gro-flush-timeout 0ns, as it was\n"]);
    assert!(applied.contains("way back: earmark rollback a0 "), "{applied}");
    assert_eq!(settings(&lab.show()), ["delay:0", "disabled"]);
    let files = lab.does("earmark persist a0");
    has(&files, &["70-earmark-a0.link", "\nRxCoalesceSec=0us\n", "# a0 ends with its lab"]);
    assert!(!files.contains("to write this"), "{files}");
    for (line, words) in [
        ("earmark persist a0 --write", "a0 ends with its lab"),
        ("earmark persist a0 strategy", "strategy is of a lab's NIC alone"),
        ("earmark lane a0", "earmark nic set a0 lane"),
        ("earmark show b0", "has a port b0: `earmark nic --lab "),
        ("earmark apply b0 rx-usecs 5", "has a port b0: `earmark nic --lab "),
    ] {
        let (status, text) = lab.ask(line);
        assert!(status == 1 && text.contains(words), "{line}: {text}");
    }
    assert!(lab.does("earmark rollback a0").contains("a0 is as it was: strategy delay:500"));
    assert_eq!(settings(&lab.show()), ["delay:500", "disabled"]);
    assert!(!state.has_journal());
    lab.end().output();
}
