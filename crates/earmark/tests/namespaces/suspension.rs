//! `earmark show --suspension`: servers that suspend interrupts, could, and cannot; and
//! `earmark tune --suspend`, which switches a server's polls along with the device.

use serde_json::Value;

use crate::support::{Directory, EARMARK, Ended, in_network, needs, shared_library};

/// A server that answers what it gets: it waits in `epoll_wait`, which polls for so many
/// microseconds and prefers that or not, or (`never`), for its one connection, in `recv`, with an
/// epoll object that it does not ask.
const SERVER: &str = concat!(
    include_str!("../support/requests.py"),
    r#"
address, waits, usecs, prefer = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
listening, epoll = socket.create_server((address, 7)), select.epoll()
busy_poll(epoll, usecs, prefer)
print("ready", flush=True)
if waits == "epoll":
    for connection, request in requests(listening, epoll): connection.send(request)
connection, _ = listening.accept()
epoll.register(connection, select.EPOLLIN)
while request := connection.recv(64): connection.send(request)
"#
);

/// One request after the other, until it is killed.
const CLIENT: &str =
    concat!(include_str!("../support/requests.py"), "for _ in answers(sys.argv[1], 1): pass\n");

/// `one`, which NAPI polls, with its other end in a network of its own, where `far` runs a command.
const FAR: &str = r#"
unshare --net sleep 600 & far=$!
until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link set two netns $far; ip link set lo up
far() { nsenter --net --target $far "$@"; }
far ip address add 10.77.0.2/24 dev two; far ethtool -K two tso off; far ip link set two up
ip address add 10.77.0.1/24 dev one; ethtool -K one tso off
set +e
"#;

/// What `show --suspension` says of servers there, as JSON, and `watch` of the device.
const JUDGE: &str = r#"
serve() { # network address waits usecs prefer: a server that is asked
    mkfifo fifo; python3 -c "$SERVER" "$2" "$3" "$4" "$5" > fifo & server=$!
    read -r _ < fifo; rm fifo
    $1 python3 -c "$CLIENT" "$2" & client=$!
    # One listens, the other one is a connection.
    until [ "$(ls -l /proc/$server/fd | grep -c socket:)" = 2 ]; do sleep 0.01; done
    sleep 0.2
}
look() { # servers
    earmark show --suspension --sample 0.5 --json "$@" | tr -d '\n'; echo
    earmark watch one --suspension --interval 0.5 --count 1 --json | sed 's/^/watch /'
}
judge() { # as serve
    serve "$@"; look $server
    kill $client $server; wait $client $server || true
}
"#;

/// What `show` says in each case, and `watch` of the device.
fn verdicts(cases: &str) -> (Vec<Value>, Vec<Value>) {
    let state = Directory::new();
    let script =
        format!("export SERVER='{SERVER}' CLIENT='{CLIENT}'\n{FAR}{JUDGE}{cases}\nkill $far");
    let ended = in_network(&state, &script);
    let objects = |start: &str| {
        let lines = ended.output().lines().filter_map(|line| line.strip_prefix(start));
        lines
            .filter(|rest| rest.starts_with('{'))
            .map(|it| serde_json::from_str(it).unwrap())
            .collect()
    };
    (objects(""), objects("watch "))
}

/// The state of the one poller.
#[track_caller]
fn state<'a>(shown: &'a Value, place: &str) -> &'a str {
    let pollers = match place {
        "elsewhere" => &shown["elsewhere"],
        _ => &shown["suspension"][0]["pollers"],
    };
    assert_eq!(pollers.as_array().map(Vec::len), Some(1), "{shown}");
    pollers[0]["state"].as_str().unwrap()
}

/// Whether this kernel suspends interrupts (Linux 6.13).
fn kernel_suspends() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|word| word.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 13)
}

#[test]
fn show_suspension__of_a_server__follows_from_settings_and_counts() {
    needs!("network", "nsenter", "python3");
    let (shown, watched) = verdicts(
        "judge far 10.77.0.1 epoll 1000000 1
         earmark apply one irq-suspend-timeout 20ms gro-flush-timeout 20us napi-defer-hard-irqs 2
         judge far 10.77.0.1 epoll 1000000 1
         judge far 10.77.0.1 never 1000000 1
         judge far 10.77.0.1 epoll 1000000 0
         judge '' 127.0.0.1 epoll 1000000 1",
    );
    let [unset, active, unused, unarmed, loopback] = &shown[..] else { panic!("{shown:?}") };
    assert_eq!(state(loopback, "elsewhere"), "impossible");
    // What `show` looks at, `watch` finds by itself; over the loopback none is of the device.
    for (shown, watched) in [unset, active, unused, unarmed].into_iter().zip(&watched) {
        let seen = &watched["pollers"];
        assert_eq!(seen.as_array().map(Vec::len), Some(1), "{watched}");
        assert_eq!(seen[0]["state"], state(shown, "device"), "{watched}");
    }
    assert_eq!(watched[4]["pollers"].as_array().map(Vec::len), Some(0), "{}", watched[4]);
    if !kernel_suspends() {
        for shown in [unset, active, unused, unarmed] {
            assert_eq!(state(shown, "device"), "impossible", "{shown}");
        }
        return;
    }
    assert_eq!(state(unset, "device"), "unarmed");
    let fix = &unset["suspension"][0]["instances"][0]["missing"][0]["fix"];
    assert_eq!(fix, "earmark apply one irq-suspend-timeout 20ms");
    // A second of looking is longer than the other side takes for a request, whatever else runs.
    assert_eq!(state(active, "device"), "active", "{active}");
    assert_eq!(state(unused, "device"), "unused", "{unused}");
    assert_eq!(state(unarmed, "device"), "unarmed", "{unarmed}");
}

#[test]
fn show_suspension__of_two_servers_of_one_device__is_of_the_polls_of_each() {
    needs!("network", "nsenter", "python3");
    if !kernel_suspends() {
        return;
    }
    let (shown, watched) = verdicts(
        "earmark apply one irq-suspend-timeout 20ms gro-flush-timeout 20us napi-defer-hard-irqs 2
         ip address add 10.77.0.3/24 dev one
         serve far 10.77.0.1 epoll 1000000 1; polls=$server; asks=$client
         serve far 10.77.0.3 never 1000000 1
         look $polls $server
         kill $asks $polls $client $server; wait $asks $polls $client $server || true",
    );
    let [shown] = &shown[..] else { panic!("{shown:?}") };
    let [watched] = &watched[..] else { panic!("{watched:?}") };
    // By the count of the network, both are alike.
    let by_network = !std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    let counted_by = if by_network { "network" } else { "process" };
    let states = if by_network { ["active", "active"] } else { ["active", "unused"] };
    for pollers in [&shown["suspension"][0]["pollers"], &watched["pollers"]] {
        let pollers = pollers.as_array().unwrap();
        assert_eq!(pollers.iter().map(|it| &it["state"]).collect::<Vec<_>>(), states, "{shown}");
        assert!(pollers.iter().all(|it| it["counted_by"] == counted_by), "{shown} {watched}");
    }
}

/// An unmodified server: it does not ask for polls.
const PLAIN: &str = concat!(
    include_str!("../support/requests.py"),
    r#"
listening = socket.create_server(("10.77.0.1", 7))
print("ready", flush=True)
for connection, request in requests(listening, select.epoll()): connection.send(request)
"#
);

/// Asks it so many times, one after the other.
const ASKS: &str = concat!(
    include_str!("../support/requests.py"),
    "for _ in zip(range(100), answers(\"10.77.0.1\", 1)): pass\n"
);

/// Starts the server with the library, asks it, and writes a line into `log`: what the command
/// found in its environment, whether the server's epoll object prefers busy polling, and
/// irq-suspend-timeout of the device. What it prints is less where the server prefers it.
const MEASURE: &str = r#"#!/bin/sh
rm -f fifo; mkfifo fifo; LD_PRELOAD=$LIBRARY python3 -c "$PLAIN" > fifo & server=$!
read -r _ < fifo
nsenter --net --target $far python3 -c "$ASKS" || exit
shown=$($EARMARK show one --suspension --sample 0 --json $server | tr -d ' ,')
kill $server
prefers=$(echo "$shown" | sed -n 's/"prefer"://p')
echo $EARMARK_PREFER_BUSY_POLL $prefers \
    $(echo "$shown" | sed -n 's/"irq_suspend_timeout_us"://p') >> log
if [ $prefers = true ]; then echo 1; else echo 5; fi
"#;

/// Runs `script` where `./measure` is that, and `suspended` prints irq-suspend-timeout of `one`.
fn with_measure(state: &Directory, script: &str) -> Ended {
    state.script("measure", MEASURE);
    let library = shared_library("libearmark_poll.so", "earmark-preload");
    let script = format!(
        "export PLAIN='{PLAIN}' ASKS='{ASKS}' EARMARK={EARMARK} LIBRARY={}
         {FAR}
         export far
         suspended() {{
             earmark show one --suspension --json | tr -d ' ,' |
                 sed -n 's/\"irq_suspend_timeout_us\"://p'
         }}
         {script}
         kill $far",
        library.display()
    );
    in_network(state, &script)
}

#[test]
fn tune_suspend__switches_the_server_along_and_rollback_undoes_the_pick() {
    needs!("network", "nsenter", "python3");
    let state = Directory::new();
    let ended = with_measure(
        &state,
        "earmark tune one --suspend --command ./measure --trials 5 --max-usecs 2 --json \
             --report page.html
         suspended >&2; earmark rollback one > /dev/null; suspended >&2",
    );
    if !kernel_suspends() {
        let refusal = "--suspend: the device has no irq-suspend-timeout";
        return assert!(ended.stderr.contains(refusal), "{ended:?}");
    }
    let outcome = ended.json();
    let trials = outcome["trials"].as_array().unwrap();
    let suspends = |trial: &Value| trial["setting"].as_str().unwrap().contains("irq-suspend");
    for usecs in [20, 100] {
        let setting = format!(
            "napi-defer-hard-irqs 2 gro-flush-timeout {usecs}000 irq-suspend-timeout 20000000"
        );
        assert!(trials.iter().any(|it| it["setting"] == setting.as_str()), "{setting}: {outcome}");
    }
    for trial in trials {
        let value = if suspends(trial) { 1.0 } else { 5.0 };
        assert_eq!(trial["figures"]["value"].as_f64().map(f64::round), Some(value), "{trial}");
        let polled = trial["figures"]["polled"].as_f64();
        assert_eq!(polled.is_some(), suspends(trial), "{trial}");
    }
    let log = std::fs::read_to_string(state.file("log")).unwrap();
    let lines: std::collections::BTreeSet<&str> = log.lines().collect();
    assert_eq!(lines, ["0 false 0.0", "1 true 20000.0"].into(), "the server goes with the device");
    // Measured in turns, beside how the device was; both are in the log.
    assert!(outcome["verified"]["before"]["value"].as_f64().is_some(), "{outcome}");
    assert!(suspends(&trials[outcome["pick"].as_u64().unwrap() as usize]), "{outcome}");
    assert_eq!(outcome["applied"], true, "{outcome}");
    assert!(ended.stderr.ends_with("\n20000.0\n0.0\n"), "{ended:?}");
    let page = std::fs::read_to_string(state.file("page.html")).unwrap();
    assert!(page.contains("start the server with EARMARK_PREFER_BUSY_POLL=1"), "{page}");
}

#[test]
fn tune_suspend__of_a_command_without_such_a_server__says_so() {
    needs!("network", "nsenter", "ping");
    if !kernel_suspends() {
        return;
    }
    let state = Directory::new();
    let ended = with_measure(
        &state,
        "earmark tune one --suspend --trials 3 --max-usecs 1 --dry-run \
             --command 'ping -q -c 3 -i 0.01 10.77.0.2 > /dev/null; echo 1'",
    );
    let flat = ended.output().split_whitespace().collect::<Vec<_>>().join(" ");
    let says = "no program polled for its packets, so no interrupt was suspended";
    assert_eq!(flat.matches(says).count(), 2, "{ended:?}");
}

#[test]
fn tune_suspend__that_ends_early__leaves_no_interrupt_suspended() {
    needs!("network", "nsenter", "python3");
    if !kernel_suspends() {
        return;
    }
    // Under a setting that suspends, the command stays until there is a file `go`.
    let stays = "echo $EARMARK_PREFER_BUSY_POLL > now
        until [ $EARMARK_PREFER_BUSY_POLL = 0 ] || [ -e go ]; do sleep 0.01; done; echo 1";
    for signal in ["INT", "TERM", "KILL"] {
        let state = Directory::new();
        let ended = with_measure(
            &state,
            &format!(
                "env --default-signal=INT {EARMARK} tune one --suspend --command '{stays}' &
                 tune=$!
                 until [ \"$(cat now)\" = 1 ]; do sleep 0.01; done 2> /dev/null
                 suspended
                 kill -{signal} $tune; touch go; wait $tune
                 until [ \"$(suspended)\" = 0.0 ]; do sleep 0.01; done
                 cat /sys/class/net/one/gro_flush_timeout"
            ),
        );
        assert_eq!(ended.output(), "20000.0\n0\n", "{signal}: {ended:?}");
        assert!(!state.has_journal(), "{signal}: {:?}", state.names());
    }
}
