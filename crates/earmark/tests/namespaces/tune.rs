//! Finding settings: what `earmark tune` picks, applies and verifies, and what is left of it
//! whatever becomes of it.
//!
//! The device is the port of a lab's NIC, or an interface in a network namespace of its own. None
//! of the machine's is touched.

use serde_json::Value;

use crate::support::{Directory, EARMARK, Ended, in_network, needs, run, unique};

/// A goal whose measurement is exact: the value of the setting itself.
const EXACT: &str = "--command 'cat /sys/class/net/one/gro_flush_timeout' --higher-is-better";

/// What measures, and stays where it is under a setting of more than 7 us until there is a file
/// `go`: a search that goes on may have ended before a busy machine looks at it.
const STAYS: &str = "until [ $(cat /sys/class/net/one/gro_flush_timeout) -le 7000 ] || [ -e go ]; \
    do sleep 0.01; done; echo 1";

/// A pairing code.
const CODE: &str = "0123-4567-89AB-CDEF-GHJK";

#[test]
fn tune_finds_applies_and_verifies_and_rollback_undoes_it() {
    needs!("network");
    let state = Directory::new();
    let page = state.file("page.html");
    let ended = in_network(
        &state,
        &format!(
            "earmark tune one {EXACT} --max-usecs 96 --json --report {page}
             cat /sys/class/net/one/gro_flush_timeout >&2; earmark rollback >/dev/null
             cat /sys/class/net/one/gro_flush_timeout >&2"
        ),
    );
    let outcome = ended.json();
    let trials = outcome["trials"].as_array().unwrap();
    let pick = &trials[outcome["pick"].as_u64().unwrap() as usize];
    assert_eq!(pick["setting"], "napi-defer-hard-irqs 2 gro-flush-timeout 96000", "{outcome}");
    assert!(trials.len() <= 10 && outcome["present"] == 0, "{outcome}");
    assert_eq!(outcome["applied"], true);
    assert_eq!(pick["figures"]["value"].as_f64().map(f64::round), Some(96_000.0));
    assert_eq!(outcome["verified"]["before"]["value"], 0.0, "{outcome}");
    assert!(ended.stderr.ends_with("96000\n0\n"), "{ended:?}");
    assert!(std::fs::read_to_string(page).unwrap().contains("Settings of one"));
}

#[test]
fn tune_leaves_alone_what_it_cannot_better() {
    needs!("network");
    let state = Directory::new();
    let ended = in_network(
        &state,
        "earmark tune one --command 'echo 5' --trials 4
         earmark tune one --command 'cat /sys/class/net/one/gro_flush_timeout' --trials 4
         earmark tune one --command 'false' 2>&1 || true
         cat /sys/class/net/one/gro_flush_timeout",
    );
    assert_eq!(ended.output().matches("nothing that was tried is better").count(), 2, "{ended:?}");
    assert!(ended.stdout.contains("your command `false` failed"), "{ended:?}");
    // What counts is known before anything is measured, and so is that it says nothing.
    assert!(
        ended.stderr.contains("what counts is 5 (alone on its line; less is better)"),
        "{ended:?}"
    );
    assert_eq!(ended.stdout.matches("warning: the number that counts was the same").count(), 1);
    assert!(ended.stdout.ends_with("\n0\n"), "{ended:?}");
    assert!(!state.has_journal(), "{:?}", state.names());
}

#[test]
fn tune_tries_the_values_of_a_knob_and_picks_the_best() {
    needs!("network");
    let state = Directory::new();
    let file = "/proc/sys/net/core/somaxconn";
    let ended = in_network(
        &state,
        &format!(
            "echo 4000 > {file}
             earmark tune one --command 'cat {file}' --knob sysctl:net.core.somaxconn=9,5000,7 --json
             cat {file}
             earmark rollback; cat {file}
             earmark tune one --command 'cat {file}' --knob sysctl:net.core.nothing=9 || true
             earmark tune one --command 'cat {file}' --knob queue:0:rx-usecs=9 || true
             earmark tune one --command 'cat {file}' --knob threaded=on || true"
        ),
    );
    let (json, rest) = ended.stdout.split_once("\n}\n").unwrap();
    let outcome: Value = serde_json::from_str(&format!("{json}\n}}")).unwrap();
    let took = outcome["took"].as_array().unwrap();
    let took = took.iter().find(|took| took["setting"] == "sysctl:net.core.somaxconn").unwrap();
    assert_eq!((&took["before"], &took["now"]), (&4_000.into(), &7.into()), "{outcome}");
    assert_eq!(took["by"], "sysctl");
    assert!(outcome["trials"].as_array().unwrap().len() <= 13, "{outcome}");
    assert!(rest.starts_with("7\none is as it was: "), "{ended:?}");
    assert!(rest.ends_with("\n4000\n"), "{ended:?}");
    for words in ["No such file", "does not offer this", "--knob: threaded is tried already"] {
        assert!(ended.stderr.contains(words), "no {words} in {ended:?}");
    }
}

#[test]
fn tune_among_tries_what_is_named_and_no_more() {
    needs!("network");
    let state = Directory::new();
    let among =
        |usecs: u32| format!("--among 'napi-defer-hard-irqs 2 gro-flush-timeout {usecs}us'");
    let ended = in_network(
        &state,
        &format!(
            "earmark tune one {EXACT} {} {} --json
             earmark tune one {EXACT} --among 'rx-usecs 5' 2>&1 || true
             earmark tune one {EXACT} --among 'rx-usec 5' 2>&1 || true",
            among(7),
            among(9)
        ),
    );
    let (json, refused) = ended.output().split_once("\n}\n").unwrap();
    let outcome: Value = serde_json::from_str(&format!("{json}\n}}")).unwrap();
    let settings = outcome["trials"].as_array().unwrap().iter().map(|trial| &trial["setting"]);
    let expected =
        [7_000, 9_000].map(|ns| format!("napi-defer-hard-irqs 2 gro-flush-timeout {ns}"));
    assert_eq!(settings.skip(1).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
    assert_eq!((&outcome["pick"], &outcome["applied"]), (&2.into(), &true.into()), "{outcome}");
    for words in ["has no rx-usecs; it has", "no setting is called rx-usec"] {
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn tune_that_is_interrupted_puts_the_device_back_and_says_so() {
    needs!("network");
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let state = Directory::new();
        let ended = in_network(
            &state,
            &format!(
                "earmark apply one gro-flush-timeout 7us >/dev/null
                 env --default-signal={signal} {EARMARK} tune one --command '{STAYS}' &
                 tune=$!
                 until [ $(cat /sys/class/net/one/gro_flush_timeout) -gt 7000 ]; do sleep 0.01; done
                 kill -{signal} $tune; touch go; wait $tune || echo status $?
                 cat /sys/class/net/one/gro_flush_timeout"
            ),
        );
        assert_eq!(ended.output(), format!("status {status}\n7000\n"), "{signal}: {ended:?}");
        assert!(ended.stderr.contains("interrupted; what was changed is undone"), "{ended:?}");
        assert!(ended.stderr.contains("one is as it was"), "{ended:?}");
    }
}

/// A function of the shell: runs a command again while it fails with the words `$again`: the far
/// host does not serve yet, or the machine was too busy for a single round trip.
const PATIENTLY: &str = "patiently() {
    for try in $(seq 200); do
        said=$(\"$@\" 2>$errors) && { echo \"$said\"; return 0; }
        grep -q \"$again\" $errors || break
        sleep 0.05
    done
    cat $errors >&2; return 1
}";

/// Runs `script` on host a of a lab while host b serves. In it, `tune` has host b for its peer, and
/// `quick` measures two settings once.
fn with_far_host(name: &str, script: &str) -> Ended {
    let serve = format!("EARMARK_CODE={CODE} exec {EARMARK} serve --listen 10.9.0.2");
    let script = format!(
        "export EARMARK_CODE={CODE} errors=/run/errors
         again='no request was answered\\|does `earmark serve` run'
         {PATIENTLY}
         tune() {{ {EARMARK} tune a0 --lab={name} --peer b --goal 'p99 < 900ms' --warmup 0 \
                       --state-dir /run/tune --duration $1 $2 $3 $4 $5; }}
         quick() {{ tune $1 --exhaustive=1 --max-usecs=1 --dry-run; }}
         {script}"
    );
    let arguments = ["lab", "run", "--name", name, "--strategy", "delay:300"];
    run(&[&arguments[..], &["--on", "b", &serve, "--on", "a", &script]].concat())
}

#[test]
fn tune_measures_with_a_far_host() {
    needs!("lab");
    let name = unique("tune");
    let ended = with_far_host(&name, "patiently tune 0.1 --trials=3 --json");
    let json = &ended.output()[ended.output().find('{').unwrap()..];
    let outcome: Value = serde_json::from_str(json).unwrap();
    for trial in outcome["trials"].as_array().unwrap() {
        for figure in ["p50", "p99", "cpu", "interrupts", "transactions"] {
            assert!(trial["figures"][figure].as_f64().is_some(), "no {figure} in {trial}");
        }
    }
    assert_eq!(outcome["driver"], format!("the NIC of lab {name}"));
}

#[test]
fn tune_notices_that_the_way_to_the_far_host_is_another_one() {
    needs!("network");
    let state = Directory::new();
    let ended = in_network(
        &state,
        &format!(
            "ip link set lo up; {EARMARK} serve --code-file code >served & serve=$!
             until grep -q 'this host alone' served; do sleep 0.02; done
             {PATIENTLY}
             errors=errors again='no request was answered'
             patiently earmark tune one --peer 127.0.0.1 --code-file code --goal 'min latency' \
                 --duration 0.1 --warmup 0 2>&1 || true
             earmark tune one --peer 127.0.0.1 --code {CODE} --goal 'min latency' 2>&1 || true
             kill $serve; cat served; rm served code"
        ),
    );
    assert!(ended.output().contains("no packet of the workload came through one"), "{ended:?}");
    assert!(ended.stdout.contains("its pairing code is another one"), "{ended:?}");
    assert!(ended.stdout.contains("--peer 127.0.0.1 --code-file FILE"), "{ended:?}");
    assert!(!state.has_journal(), "{:?}", state.names());
}

#[test]
fn a_missed_goal_changes_nothing_unless_best_effort_says_so() {
    needs!("lab");
    let name = unique("tune");
    let state = Directory::new();
    // The present one is the worst by far: the nearest is another.
    let tune = format!(
        "tune() {{ {EARMARK} tune a0 --lab={name} --peer b --goal 'p50 < 1us' --trials 3 \
             --duration 0.05 --warmup 0 --state-dir {state} --json \"$@\"; }}
         patiently() {{
             for try in $(seq 200); do
                 \"$@\"; status=$?; [ $status = 3 ] && break; sleep 0.02
             done
             echo $status >> {state}/statuses
         }}
         patiently tune > {state}/plain
         {EARMARK} nic --lab {name} show a0 --json > {state}/nic
         patiently tune --best-effort > {state}/best",
        state = state.path().display()
    );
    let tune = format!("export EARMARK_CODE={CODE}; {tune}");
    let serve = format!("EARMARK_CODE={CODE} exec {EARMARK} serve --listen 10.9.0.2");
    let arguments = ["lab", "run", "--name", &name, "--strategy", "delay:5000", "--ports", "a"];
    let ended = run(&[&arguments[..], &["--on", "b", &serve, "--on", "a", &tune]].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    let read = |name: &str| std::fs::read_to_string(state.file(name)).unwrap();
    assert_eq!(read("statuses"), "3\n3\n", "{ended:?}");
    let json = |name: &str| serde_json::from_str::<Value>(&read(name)).unwrap();
    assert_eq!(json("plain")["applied"], false);
    assert!(json("plain")["pick"] != json("plain")["present"], "{}", json("plain"));
    assert!(read("nic").contains("delay:5000"), "{}", read("nic"));
    assert_eq!(json("best")["applied"], true, "{}", json("best"));
}

#[test]
fn tune_refuses_what_makes_no_sense_before_anything_is_changed() {
    needs!("network");
    let state = Directory::new();
    let refused = |arguments: &str| in_network(&state, &format!("earmark tune {arguments}"));
    refused("one --peer 127.0.0.1:1 --goal 'p98 < 5us'").refused(&["--goal: `p98` is nothing"]);
    refused("one --peer 127.0.0.1:1 --goal 'max throughput'").refused(&["not measured by tcp-rr"]);
    refused("one --peer 127.0.0.1:1 --goal 'min cpu'").refused(&["--code", "EARMARK_CODE"]);
    refused("one --peer 127.0.0.1:1 --goal 'min cpu' --code x").refused(&["no pairing code"]);
    let here = format!("one --peer 127.0.0.1:1 --goal 'min cpu' --code {CODE}");
    refused(&here).refused(&["does `earmark serve` run there"]);
    refused("lo2 --command true").refused(&["no network device lo2 here"]);
    refused("one --goal 'min cpu'").refused(&["--peer"]);
    assert!(!state.has_journal(), "{:?}", state.names());
}
