//! IRQ suspension in guests whose kernel has it, in virtual time: what `show --suspension` says of
//! a server follows from what its kernel has counted, and what `tune --suspend` measures from what
//! its NIC has raised; both are the same in every run.

use std::path::Path;

use serde_json::Value;

use crate::support::needs::suspending_kernel;
use crate::support::{EARMARK, Ended, earmark, needs, output, shared_library};

/// A server of connections that come, which waits in `epoll_wait`, looks once there (0 us) and
/// prefers that; each request takes it so many seconds.
const SERVER: &str = r#"
import fcntl, select, socket, struct, sys, time
listening = socket.create_server(("", 7))
epoll = select.epoll()
EPIOCSPARAMS = 0x40088a01
fcntl.ioctl(epoll, EPIOCSPARAMS, struct.pack("IHBB", 0, 64, 1, 0))
epoll.register(listening, select.EPOLLIN)
connections = {}
while True:
    for number, _ in epoll.poll():
        if number == listening.fileno():
            connection, _ = listening.accept()
            connections[connection.fileno()] = connection
            epoll.register(connection, select.EPOLLIN)
            continue
        request = connections[number].recv(64)
        if not request: sys.exit()
        time.sleep(float(sys.argv[1]))
        connections[number].send(request)
"#;

/// So many connections, each with a request on its way, for 100 ms.
const CLIENT: &str = r#"
import select, socket, sys, time
def connected():
    while True:
        try: return socket.create_connection(("b", 7))
        except OSError: time.sleep(0.01)
servers = [connected() for _ in range(int(sys.argv[1]))]
poll = select.poll()
for server in servers:
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    poll.register(server, select.POLLIN)
    server.send(b"?")
by_number = {server.fileno(): server for server in servers}
end = time.monotonic() + 0.1
while time.monotonic() < end:
    for number, _ in poll.poll(): by_number[number].send(by_number[number].recv(64))
"#;

/// What suspension takes of the device, beside what the server does.
const SETTINGS: &str = "irq-suspend-timeout 20ms gro-flush-timeout 20us napi-defer-hard-irqs 2";

/// What is said of the server on guest b: with `kernel`, and of the settings there.
#[track_caller]
fn judged(kernel: Option<&Path>, settings: &str, connections: u32, work_s: f64) -> Value {
    let apply = if settings.is_empty() {
        String::new()
    } else {
        format!("{EARMARK} apply b0 {settings} > /dev/null; ")
    };
    let server = format!(
        "{apply}python3 -c '{SERVER}' {work_s} & \
         until ls -l /proc/$!/fd | grep -c socket: | grep -q -x {}; do sleep 0.01; done; \
         {EARMARK} show --suspension --sample 0.02 --json $! | tr -d '\\n'; wait $!",
        connections + 1
    );
    let client = format!("python3 -c '{CLIENT}' {connections}");
    let mut lab = earmark(&["lab", "run", "--time", "virtual", "--strategy", "disabled"]);
    lab.args(["--on", "b", &server, "--on", "a", &client]);
    lab.envs(kernel.map(|kernel| (lab::kernel::VARIABLE, kernel)));
    let ended: Ended = output(&mut lab);
    let line = ended.output().lines().find(|line| line.starts_with('{')).unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// The verdict on the one poller there is, what it follows from, and the whole.
#[track_caller]
fn verdict(shown: &Value) -> (&str, &str) {
    let pollers = shown["suspension"][0]["pollers"].as_array().expect("a device with pollers");
    assert_eq!(pollers.len(), 1, "{shown}");
    (pollers[0]["state"].as_str().unwrap(), pollers[0]["why"].as_str().unwrap())
}

#[test]
fn suspension__in_exact_time__is_active_unused_or_impossible() {
    needs!("guests", "python3");
    let Some(kernel) = suspending_kernel() else { return };
    let window = |shown: &Value, name: &str| shown["suspension"][0]["window"][name].as_u64();
    // While it works on one request, those of the others come: each wait finds one.
    let busy = judged(Some(&kernel), SETTINGS, 4, 1e-4);
    assert_eq!(verdict(&busy).0, "active", "{busy}");
    assert_eq!(window(&busy, "packets"), window(&busy, "busy_polled"), "{busy}");
    // It answers at once and waits: no packet is there when it looks, and an interrupt brings it.
    let idle = judged(Some(&kernel), SETTINGS, 1, 0.0);
    assert_eq!(verdict(&idle).0, "unused", "{idle}");
    assert_eq!(window(&idle, "busy_polled"), Some(0), "{idle}");
    let each = |shown: &Value| {
        window(shown, "interrupts").unwrap() as f64 / window(shown, "packets").unwrap() as f64
    };
    assert!(each(&busy) < each(&idle), "{} of {busy}, {} of {idle}", each(&busy), each(&idle));
    let unset = judged(Some(&kernel), "", 4, 1e-4);
    assert_eq!(verdict(&unset).0, "unarmed", "{unset}");
}

#[test]
fn suspension__by_a_kernel_without_it__is_impossible() {
    needs!("guests", "python3");
    // The kernel of guests is Linux 6.12, unless a variable names another one.
    let shown = judged(None, "", 4, 1e-4);
    if std::env::var_os(lab::kernel::VARIABLE).is_none() {
        let (state, why) = verdict(&shown);
        assert_eq!((state, why.contains("Linux 6.13 has")), ("impossible", true), "{shown}");
    }
}

/// An unmodified server of four connections, which takes 100 us for each request, and after so many
/// answers says how many interrupts came meanwhile.
const PLAIN: &str = r#"
import select, socket, time
def interrupts():
    lines = [line.split() for line in open("/proc/interrupts")]
    return sum(int(words[1]) for words in lines if words[-1] == "virtio-uml")
listening = socket.create_server(("", 7))
epoll = select.epoll()
epoll.register(listening, select.EPOLLIN)
connections, answered, before = {}, 0, 0
while answered < 200:
    for number, _ in epoll.poll():
        if number == listening.fileno():
            connection, _ = listening.accept()
            connections[connection.fileno()] = connection
            epoll.register(connection, select.EPOLLIN)
            if len(connections) == 4: before = interrupts()
            continue
        request = connections[number].recv(64)
        time.sleep(1e-4)
        connections[number].send(request)
        answered += 1
print(interrupts() - before)
"#;

/// Asks one such server after the other, over four connections, until none is there for long.
const ASKS: &str = r#"
import select, socket, sys, time
def connected():
    for _ in range(500):
        try: return socket.create_connection(("b", 7))
        except OSError: time.sleep(0.01)
    sys.exit()
while True:
    servers = [connected() for _ in range(4)]
    poll = select.poll()
    for server in servers:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(server, select.POLLIN)
        server.send(b"?")
    by_number = {server.fileno(): server for server in servers}
    try:
        while True:
            for number, _ in poll.poll():
                answer = by_number[number].recv(64)
                if not answer: raise OSError
                by_number[number].send(answer)
    except OSError:
        for server in servers: server.close()
"#;

#[test]
fn tune_suspend__in_exact_time__finds_that_interrupts_are_saved() {
    needs!("guests", "python3");
    let Some(kernel) = suspending_kernel() else { return };
    let library = shared_library("libearmark_poll.so", "earmark-preload");
    let tune = format!(
        "export PLAIN='{PLAIN}'
         suspended() {{
             {EARMARK} show b0 --suspension --json | tr -d ' ,' | grep irq_suspend_timeout_us
         }}
         {EARMARK} tune b0 --suspend --trials 3 --max-usecs 1 --json \
             --command 'LD_PRELOAD={} python3 -c \"$PLAIN\"' | tr -d '\n'; echo
         suspended; {EARMARK} rollback b0; suspended",
        library.display()
    );
    let asks = format!("python3 -c '{ASKS}'");
    let mut lab = earmark(&["lab", "run", "--time", "virtual", "--strategy", "disabled"]);
    lab.args(["--on", "b", &tune, "--on", "a", &asks]).env(lab::kernel::VARIABLE, kernel);
    let ended = output(&mut lab);
    let line = ended.output().lines().find(|line| line.starts_with('{')).unwrap_or_default();
    let outcome: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    let trials = outcome["trials"].as_array().unwrap();
    let figure = |trial: &Value, name: &str| trial["figures"][name].as_f64();
    let suspends = |trial: &Value| trial["setting"].as_str().unwrap().contains("irq-suspend");
    let (suspended, others): (Vec<&Value>, Vec<&Value>) =
        trials.iter().partition(|trial| suspends(trial));
    assert_eq!(suspended.len(), 2, "{outcome}");
    for trial in &suspended {
        // While it works on one request, those of the others come: each wait finds one. Before
        // all connections are there, none does.
        assert!(figure(trial, "polled").unwrap() > 0.8, "{trial}");
        for other in &others {
            assert!(figure(trial, "value") < figure(other, "value"), "{trial}, {other}");
        }
    }
    assert!(others.iter().all(|trial| figure(trial, "polled").is_none()), "{outcome}");
    assert_eq!(
        (&outcome["applied"], suspends(&trials[outcome["pick"].as_u64().unwrap() as usize])),
        (&true.into(), true),
        "{outcome}"
    );
    let timeouts = ended.stdout.lines().filter_map(|line| line.split_once("timeout_us\":"));
    assert_eq!(timeouts.map(|(_, it)| it).collect::<Vec<_>>(), ["20000.0", "0.0"], "{ended:?}");
}
