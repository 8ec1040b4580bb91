//! IRQ suspension in guests whose kernel has it, in virtual time: what `show --suspension` says of
//! a server follows from what its kernel has counted, and what `tune --suspend` measures from what
//! its NIC has raised; both are the same in every run.

use std::path::Path;

use serde_json::Value;

use crate::support::needs::suspending_kernel;
use crate::support::{EARMARK, Ended, earmark, needs, output, shared_library};

/// A server of connections that come, which waits in `epoll_wait`, looks once there (0 us) and
/// prefers that; each request takes it so many seconds.
const SERVER: &str = concat!(
    include_str!("../support/requests.py"),
    r#"
epoll = select.epoll()
busy_poll(epoll, 0, 1)
for connection, request in requests(socket.create_server(("", 7)), epoll):
    if not request: break
    time.sleep(float(sys.argv[1]))
    connection.send(request)
"#
);

/// So many connections, each with a request on its way, for 100 ms.
const CLIENT: &str = concat!(
    include_str!("../support/requests.py"),
    r#"
end = None
for _ in answers("b", int(sys.argv[1])):
    if end is None: end = time.monotonic() + 0.1
    if time.monotonic() > end: break
"#
);

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
    printed(kernel, &server, &format!("python3 -c '{CLIENT}' {connections}")).0
}

/// What a command on guest b prints as a line of JSON, while another one runs on guest a; and all.
#[track_caller]
fn printed(kernel: Option<&Path>, on_b: &str, on_a: &str) -> (Value, Ended) {
    let mut lab = earmark(&["lab", "run", "--time", "virtual", "--strategy", "disabled"]);
    lab.args(["--on", "b", on_b, "--on", "a", on_a]);
    lab.envs(kernel.map(|kernel| (lab::kernel::VARIABLE, kernel)));
    let ended = output(&mut lab);
    let line = ended.output().lines().find(|line| line.starts_with('{')).unwrap_or_default();
    let json = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    (json, ended)
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
/// answers says how many interrupts came since all of them have asked.
const PLAIN: &str = concat!(
    include_str!("../support/requests.py"),
    r#"
def interrupts():
    lines = [line.split() for line in open("/proc/interrupts")]
    return sum(int(words[1]) for words in lines if words[-1] == "virtio-uml")
asked, answered, before = set(), 0, 0
for connection, request in requests(socket.create_server(("", 7)), select.epoll()):
    if connection not in asked:
        asked.add(connection)
        if len(asked) == 4: before = interrupts()
    time.sleep(1e-4)
    connection.send(request)
    answered += 1
    if answered == 200: break
print(interrupts() - before)
"#
);

/// Asks one such server after the other, over four connections, until none is there for long.
const ASKS: &str = concat!(
    include_str!("../support/requests.py"),
    r#"
while True:
    try:
        for _ in answers("b", 4): pass
    except OSError: pass
"#
);

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
    let (outcome, ended) = printed(Some(&kernel), &tune, &asks);
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
