//! `earmark show --suspension`: servers that suspend interrupts, could, and cannot.

use serde_json::Value;

use crate::support::{Directory, in_network, needs};

/// A server that answers what it gets, one connection at a time: it waits in `epoll_wait`, which
/// polls for so many microseconds and prefers that or not, or (`never`) in `recv`, with an epoll
/// object that it does not ask.
const SERVER: &str = r#"
import fcntl, select, socket, struct, sys
address, waits, usecs, prefer = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
listening = socket.create_server((address, 7))
print("ready", flush=True)
connection, _ = listening.accept()
epoll = select.epoll()
EPIOCSPARAMS = 0x40088a01
fcntl.ioctl(epoll, EPIOCSPARAMS, struct.pack("IHBB", usecs, 64, prefer, 0))
epoll.register(connection, select.EPOLLIN)
while True:
    if waits == "epoll": epoll.poll()
    request = connection.recv(4096)
    if not request: break
    connection.send(request)
"#;

/// One request after the other, until it is killed.
const CLIENT: &str = r#"
import socket, sys
server = socket.create_connection((sys.argv[1], 7))
server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while True: server.send(b"."), server.recv(64)
"#;

/// `one`, which NAPI polls, with its other end in a network of its own, and what
/// `show --suspension` says of a server there, as JSON.
const SCRIPT: &str = r#"
unshare --net sleep 600 & far=$!
until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link set two netns $far; ip link set lo up
far() { nsenter --net --target $far "$@"; }
far ip address add 10.77.0.2/24 dev two; far ethtool -K two tso off; far ip link set two up
ip address add 10.77.0.1/24 dev one; ethtool -K one tso off
judge() { # network address waits usecs prefer
    mkfifo fifo; python3 -c "$SERVER" "$2" "$3" "$4" "$5" > fifo & server=$!
    read -r _ < fifo; rm fifo
    $1 python3 -c "$CLIENT" "$2" & client=$!
    # Its epoll object is there as soon as it has a connection.
    until ls -l /proc/$server/fd | grep -q eventpoll; do sleep 0.01; done
    sleep 0.2
    earmark show --suspension --sample 0.5 --json $server | tr -d '\n'; echo
    earmark watch one --suspension --interval 0.5 --count 1 --json | sed 's/^/watch /'
    kill $client $server; wait $client $server || true
}
set +e
"#;

/// What `show` says in each case, and `watch` of the device.
fn verdicts(cases: &str) -> (Vec<Value>, Vec<Value>) {
    let state = Directory::new();
    let script = format!("export SERVER='{SERVER}' CLIENT='{CLIENT}'\n{SCRIPT}{cases}\nkill $far");
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
