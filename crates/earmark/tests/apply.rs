//! Changing devices: what is changed is undone, whatever becomes of the process that changed it.
//!
//! The device is the port of a lab's NIC, or an interface in a network namespace of its own. None
//! of the machine's is touched.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

mod common;
use common::{Directory, EARMARK, Ended, Lab, earmark, in_network, output};

/// How a device of a test is reached, and its journals.
struct Place {
    lab: Lab,
    state: Directory,
}

impl Place {
    fn new(strategy: &str) -> Self {
        Self { lab: Lab::start(&["--strategy", strategy]), state: Directory::new() }
    }

    /// The command `arguments` for port b0 of the lab.
    fn command(&self, arguments: &[&str]) -> Command {
        let lab = format!("--lab={}", self.lab.name());
        let mut command = earmark(arguments);
        command.arg(lab).env("EARMARK_STATE_DIR", self.state.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        output(&mut self.command(arguments))
    }

    /// The setting of b0.
    fn setting(&self) -> String {
        self.lab.show()[1]["queues"][0]["setting"].as_str().unwrap().to_owned()
    }

    /// Whether there is a journal.
    fn has_journal(&self) -> bool {
        self.state.names().iter().any(|name| name.ends_with(".journal"))
    }

    /// Waits until b0 has a setting; there is no time by which it must.
    #[track_caller]
    fn await_setting(&self, setting: &str) {
        let patience = Instant::now() + Duration::from_secs(300);
        while self.setting() != setting {
            assert!(Instant::now() < patience, "still {}, not {setting}", self.setting());
            sleep(Duration::from_millis(5));
        }
    }
}

const APPLY: [&str; 4] = ["apply", "b0", "rx-usecs", "50"];

/// 128 and SIGKILL.
const KILLED: i32 = 137;

#[test]
fn apply_and_rollback() {
    let place = Place::new("throttle:125");
    let dry = place.run(&["apply", "--dry-run", "b0", "rx-usecs", "50"]);
    assert!(dry.output().contains("would be: rx-usecs 125 -> 50"), "{dry:?}");
    assert_eq!((place.setting().as_str(), place.has_journal()), ("throttle:125", false));

    let applied = place.run(&["apply", "--json", "b0", "rx-usecs", "50", "rx-frames", "8"]).json();
    assert_eq!(place.setting(), "throttle:50+frames:8");
    assert_eq!(applied["settings"][0]["verdict"], "taken");
    assert_eq!(applied["settings"][0]["before"], 125);
    assert_eq!(applied["settings"].as_array().map(Vec::len), Some(2), "{applied}");
    assert!(applied["way_back"].as_str().unwrap().starts_with("earmark rollback b0 --lab="));

    place.run(&["apply", "b0", "adaptive-rx", "on"]).output();
    assert_eq!(place.setting(), "adaptive");
    let back = place.run(&["rollback", "b0"]);
    assert!(back.output().contains("b0 is as it was: strategy throttle:125"), "{back:?}");
    assert_eq!((place.setting().as_str(), place.has_journal()), ("throttle:125", false));
    assert!(place.run(&["rollback"]).output().contains("Earmark has changed nothing"));
}

#[test]
fn what_a_device_cannot_do_is_refused_and_changes_nothing() {
    let place = Place::new("delay:75");
    for (settings, words) in [
        (&["tx-usecs", "5"][..], "b0 (the NIC of lab"),
        (&["rx-usecs", "5", "gro-flush-timeout", "5"], "has no gro-flush-timeout; it has strategy"),
        (&["rx-usecs", "1000001"], "rx-usecs is at most 1000000"),
        (&["rx-usecs"], "`rx-usecs` has no value"),
        (&["queue:0:rx-usecs=5"], "has no queue:0:rx-usecs; it has strategy"),
        (&["rx-usec", "5"], "no setting is called rx-usec; is rx-usecs meant?"),
    ] {
        place.run(&[&["apply", "b0"], settings].concat()).refused(&[words]);
        assert_eq!((place.setting().as_str(), place.has_journal()), ("delay:75", false));
    }
    place.run(&["apply", "z9", "rx-usecs", "5"]).refused(&["no port z9 in lab"]);
    place.run(&["confirm", "b0"]).refused(&["no change waits for a confirmation"]);
}

#[test]
fn queues_with_settings_of_their_own_are_not_levelled() {
    let lab = Lab::start(&["--strategy", "delay:75", "--queues", "2"]);
    let place = Place { lab, state: Directory::new() };
    place.lab.set(&["b0", "rx-usecs", "50", "--queue", "1"]);
    let apply = place.run(&["apply", "b0", "rx-usecs", "60"]);
    apply.refused(&["the queues of b0 have settings of their own", "nothing was changed"]);
    let shown = place.lab.show();
    assert_eq!(shown[1]["queues"][1]["setting"], "delay:50");
    place.lab.set(&["b0", "rx-usecs", "75", "--queue", "1"]);
    place.run(&["apply", "b0", "rx-usecs", "60"]).output();
    place.run(&["rollback", "b0"]).output();
    let shown = place.lab.show();
    let settings = [0, 1].map(|queue| shown[1]["queues"][queue]["setting"].clone());
    assert_eq!(settings, ["delay:75", "delay:75"]);
}

#[test]
fn a_change_that_is_killed_at_any_step_is_undone_by_the_guard() {
    let place = Place::new("delay:75");
    let mut steps = 0;
    loop {
        let mut command = place.command(&APPLY);
        let ended = output(command.env("EARMARK_KILL_AT", (steps + 1).to_string()));
        if ended.code == 0 {
            break;
        }
        assert_eq!(ended.code, KILLED, "{ended:?}");
        steps += 1;
        assert!(steps < 100, "there is no end of steps");
        // Whoever kept the guard's standard error has waited for its end. What is on disk says
        // whether the change was done.
        if place.setting() != "delay:75" {
            assert_eq!(place.setting(), "delay:50", "{steps}");
            assert!(journal(&place).is_some_and(|journal| journal["trying"].is_null()), "{steps}");
            place.run(&["rollback", "b0"]).output();
        }
        assert_eq!(place.setting(), "delay:75", "killed at step {steps}");
        assert!(!place.has_journal(), "killed at step {steps}");
    }
    assert_eq!(place.setting(), "delay:50");
    // Lock, guard, journal, change, journal, each with what is in between.
    assert!(steps >= 14, "only {steps} steps");
}

#[test]
fn when_the_guard_is_killed_too_the_next_command_undoes_it() {
    let place = Place::new("delay:75");
    let mut steps = 0;
    loop {
        let mut command = place.command(&APPLY);
        command.env("EARMARK_KILL_GUARD_TOO", "1");
        let ended = output(command.env("EARMARK_KILL_AT", (steps + 1).to_string()));
        if ended.code == 0 {
            break;
        }
        assert_eq!(ended.code, KILLED, "{ended:?}");
        steps += 1;
        // A command that has nothing to do with devices says so, and one that has mends.
        if place.has_journal()
            && journal(&place).is_some_and(|journal| !journal["trying"].is_null())
        {
            let said = place.run(&["apply", "--dry-run", "b0", "rx-usecs", "1"]);
            assert!(said.stderr.contains("was killed while it changed it"), "{steps}: {said:?}");
            assert_eq!(place.setting(), "delay:75", "killed at step {steps}");
        } else {
            place.run(&["rollback", "b0"]).output();
        }
        assert_eq!(place.setting(), "delay:75", "killed at step {steps}");
        assert!(!place.has_journal(), "killed at step {steps}");
    }
    assert!(steps >= 14, "only {steps} steps");
}

#[test]
fn when_the_guard_is_killed_while_it_mends_the_next_command_goes_on() {
    let place = Place::new("delay:75");
    let changed = step_at_which_it_is_changed(&place);
    let mut steps = 0;
    loop {
        let mut command = place.command(&APPLY);
        command.env("EARMARK_KILL_AT", changed.to_string());
        let ended = output(command.env("EARMARK_KILL_GUARD_AT", (steps + 1).to_string()));
        assert_eq!(ended.code, KILLED, "{ended:?}");
        if ended.stderr.contains("b0 is as it was") {
            break;
        }
        steps += 1;
        place.run(&["rollback", "b0"]).output();
        assert_eq!(place.setting(), "delay:75", "guard killed at step {steps}");
        assert!(!place.has_journal(), "guard killed at step {steps}");
    }
    assert_eq!(place.setting(), "delay:75");
    assert!(steps >= 4, "only {steps} steps of the guard");
}

/// The first step of `apply` at which b0 is changed already.
fn step_at_which_it_is_changed(place: &Place) -> u32 {
    for step in 1..100 {
        let mut command = place.command(&APPLY);
        command.env("EARMARK_KILL_GUARD_TOO", "1");
        output(command.env("EARMARK_KILL_AT", step.to_string()));
        let is_changed = place.setting() != "delay:75";
        place.run(&["rollback", "b0"]).output();
        if is_changed {
            return step;
        }
    }
    panic!("apply never changes anything");
}

/// The journal of b0, if there is one.
fn journal(place: &Place) -> Option<Value> {
    let name = place.state.names().into_iter().find(|name| name.ends_with(".journal"))?;
    let text = std::fs::read_to_string(place.state.file(&name)).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn what_nobody_confirms_is_undone_and_what_somebody_confirms_stays() {
    let place = Place::new("delay:75");
    let apply = |seconds| place.run(&[&APPLY[..], &["--confirm-within", seconds]].concat());
    let said = apply("600s");
    assert!(said.output().contains("to keep it: earmark confirm b0"), "{said:?}");
    // The guard waits; nobody takes it for an orphan.
    assert_eq!(place.run(&["apply", "--dry-run", "b0", "rx-usecs", "1"]).stderr, "");
    assert_eq!(place.setting(), "delay:50");
    let again = place.run(&["apply", "b0", "rx-usecs", "60"]);
    again.refused(&["a change of b0 waits for its confirmation; call `earmark confirm b0`"]);
    assert_eq!(place.setting(), "delay:50");
    assert!(place.run(&["confirm", "b0"]).output().contains("b0: kept"));
    assert_eq!(place.setting(), "delay:50");
    place.run(&["confirm", "b0"]).refused(&["no change waits"]);
    place.run(&["rollback", "b0"]).output();
    assert_eq!(place.setting(), "delay:75");

    apply("0.1").output();
    place.await_setting("delay:75");
    let patience = Instant::now() + Duration::from_secs(300);
    while place.has_journal() {
        assert!(Instant::now() < patience, "the journal is still there");
        sleep(Duration::from_millis(5));
    }
    place.run(&["confirm", "b0"]).refused(&["its time was over"]);
    // Rolled back before its time: the guard has nothing to do, and ends.
    apply("600s").output();
    place.run(&["rollback"]).output();
    assert_eq!((place.setting().as_str(), place.has_journal()), ("delay:75", false));
}

#[test]
fn changes_may_be_confirmed_one_right_after_another() {
    let place = Place::new("delay:75");
    for round in 0..8 {
        let usecs = (50 + round).to_string();
        let apply = ["apply", "b0", "rx-usecs", &usecs, "--confirm-within", "600s"];
        place.run(&apply).output();
        place.run(&["confirm", "b0"]).output();
        assert_eq!(place.setting(), format!("delay:{usecs}"));
    }
}

#[test]
fn a_journal_of_an_earlier_boot_is_stale() {
    let place = Place::new("delay:75");
    let mut command = place.command(&APPLY);
    command.env("EARMARK_KILL_GUARD_TOO", "1");
    let changed = step_at_which_it_is_changed(&place).to_string();
    assert_eq!(output(command.env("EARMARK_KILL_AT", changed)).code, KILLED);
    let name = place.state.names().into_iter().find(|name| name.ends_with(".journal")).unwrap();
    let mut journal = journal(&place).unwrap();
    journal["boot"] = "another".into();
    std::fs::write(place.state.file(&name), journal.to_string()).unwrap();
    let said = place.run(&["apply", "--dry-run", "b0", "rx-usecs", "1"]);
    assert_eq!((said.code, said.stderr.as_str(), place.has_journal()), (0, "", false));
    assert_eq!(place.setting(), "delay:50", "nothing was undone: there is nothing to undo");
}

#[test]
fn an_unreadable_journal_is_told_and_left() {
    let place = Place::new("delay:75");
    let path = place.state.write("lab+x+b0.journal", "half of a jour");
    let said = place.run(&["rollback", "b0"]);
    said.refused(&["by hand", &path]);
    let said = place.run(&["apply", "b0", "rx-usecs", "60"]);
    assert!(said.stderr.contains(&path) && said.code == 0, "{said:?}");
    assert!(place.state.names().contains("lab+x+b0.journal"));
}

#[test]
fn interfaces_are_changed_and_put_back() {
    let state = Directory::new();
    let ended = in_network(
        &state,
        "earmark apply one gro-flush-timeout 20us napi-defer-hard-irqs 2
         cat /sys/class/net/one/gro_flush_timeout /sys/class/net/one/napi_defer_hard_irqs
         earmark apply tap rx-frames 16
         earmark apply tap rx-frames 8
         earmark rollback
         cat /sys/class/net/one/gro_flush_timeout /sys/class/net/one/napi_defer_hard_irqs
         earmark apply --dry-run tap rx-frames 1",
    );
    for words in [
        "one: gro-flush-timeout 0ns -> 20000ns\none: napi-defer-hard-irqs 0 -> 2\n",
        "\n20000\n2\n",
        "tap: rx-frames 0 -> 16\n",
        "tap: rx-frames 16 -> 8\n",
        "tap is as it was: rx-frames 0\n",
        "one is as it was: gro-flush-timeout 0 napi-defer-hard-irqs 0\n",
        "\n0\n0\n",
        "tap: would be: rx-frames 0 -> 1\n",
    ] {
        assert!(ended.output().contains(words), "no {words} in {ended:?}");
    }
    assert!(!state.names().iter().any(|name| name.ends_with(".journal")), "{:?}", state.names());
}

#[test]
fn what_an_interface_cannot_do_is_refused_with_the_reason() {
    let state = Directory::new();
    let refused = |change: &str| in_network(&state, &format!("earmark apply {change}"));
    refused("one rx-usecs 5").refused(&["one (driver veth) has no rx-usecs; it has gro-flush"]);
    refused("tap rx-usecs 5 rx-frames 3").refused(&["tap (driver tun) has no rx-usecs; it has"]);
    refused("three rx-usecs 5").refused(&["no device three here; look at: ip link"]);
    refused("../one rx-usecs 5").refused(&["`../one` is no name of a device"]);
}

#[test]
fn interfaces_are_put_back_whatever_is_killed_and_whenever() {
    let state = Directory::new();
    let script = |guard: &str| {
        format!(
            "change='gro-flush-timeout 20us napi-defer-hard-irqs 2'
             for step in $(seq 100); do
                 if {guard} EARMARK_KILL_AT=$step {EARMARK} apply one $change 2>/dev/null; then
                     echo end at $step; exit
                 fi
                 earmark rollback one >/dev/null 2>&1
                 cat /sys/class/net/one/gro_flush_timeout /sys/class/net/one/napi_defer_hard_irqs
             done"
        )
    };
    for guard in ["", "EARMARK_KILL_GUARD_TOO=1"] {
        let ended = in_network(&state, &script(guard));
        let (values, end) = ended.output().split_once("one: ").unwrap();
        assert!(values.lines().count() >= 28 && values.lines().all(|line| line == "0"), "{values}");
        assert!(end.contains("end at "), "{end}");
    }
}

#[test]
fn transmit_queues_are_given_processors_and_put_back() {
    let state = Directory::new();
    let ended = in_network(
        &state,
        "ip link delete one
         ip link add one numtxqueues 2 numrxqueues 2 type veth peer name two
         cat /sys/class/net/one/queues/tx-1/xps_cpus
         earmark apply one queue:1:xps-cpus 0 queue:0:xps-cpus=none
         earmark rollback one >/dev/null
         for step in $(seq 100); do
             EARMARK_KILL_AT=$step earmark apply one queue:1:xps-cpus 0 2>/dev/null && break
             earmark rollback one >/dev/null 2>&1
             cat /sys/class/net/one/queues/tx-1/xps_cpus
         done
         cat /sys/class/net/one/queues/tx-1/xps_cpus
         earmark apply one rule:1:tcp4,dst-port:7,queue:1 on || true
         earmark apply one queue:1:smp-affinity 0 || true
         earmark apply one rss-table 0,1/128 || true",
    );
    let said = ended.output();
    let parts: Vec<&str> = said.split("one: queue:1:xps-cpus none -> 0\n").collect();
    assert!(parts.len() == 3 && parts[2].ends_with("\n1\n"), "{said}");
    let masks: Vec<&str> = parts[1].lines().filter(|line| line.starts_with('0')).collect();
    let is_none = |mask: &&str| mask.trim_matches(['0', ',']).is_empty();
    assert!(masks.len() >= 14 && masks.iter().all(is_none), "{said}");
    assert!(parts[1].contains("one: queue:0:xps-cpus none, as it was\n"), "{said}");
    for part in ["rule:1:tcp4,dst-port:7,queue:1", "queue:1:smp-affinity", "rss-table"] {
        assert!(ended.stderr.contains(&format!("has no {part}; it has")), "{ended:?}");
    }
}

/// A veth with two queues, whose driver has a NAPI instance for each while GRO is on.
const TWO_QUEUES: &str = "ip link delete one
     ip link add one numrxqueues 2 numtxqueues 2 type veth peer name two numrxqueues 2 numtxqueues 2
     ip link set one up; ip link set two up
     ethtool -K one gro on
     state() {
         cat /sys/class/net/one/threaded /proc/sys/net/core/somaxconn
         earmark apply --dry-run one queue:0:irq-suspend-timeout 1 queue:1:irq-suspend-timeout 1 \\
             queue:1:gro-flush-timeout 1 queue:0:defer-hard-irqs 1 | sed 's/.*would be: //'
     }
     echo 4000 > /proc/sys/net/core/somaxconn";

/// What `state` prints before anything is changed.
const AS_IT_WAS: &str = "0\n4000\nqueue:0:irq-suspend-timeout 0ns -> 1ns (napi-set)\n\
                         queue:1:irq-suspend-timeout 0ns -> 1ns (napi-set)\n\
                         queue:1:gro-flush-timeout 0ns -> 1ns (napi-set)\n\
                         queue:0:napi-defer-hard-irqs 0 -> 1 (napi-set)\n";

/// Whether NAPI instances have settings of their own here, as from Linux 6.13 on. Where they have
/// none, says what `apply` says.
fn has_napi_settings() -> bool {
    let state = Directory::new();
    let script =
        format!("{TWO_QUEUES}; earmark apply --dry-run one queue:1:irq-suspend-timeout 5us");
    let ended = in_network(&state, &script);
    if ended.code != 0 {
        ended.refused(&["Linux 6.13"]);
    }
    ended.code == 0
}

#[test]
fn napi_instances_threads_and_sysctls_are_changed_and_put_back() {
    common::needs("ethtool", "ethtool");
    if !has_napi_settings() {
        return;
    }
    let state = Directory::new();
    let ended = in_network(
        &state,
        &format!(
            "{TWO_QUEUES}
             earmark apply one queue:1:irq-suspend-timeout 20us queue:0:defer-hard-irqs=3 \
                 threaded on sysctl:net.core.somaxconn 77
             state
             earmark rollback one
             state
             earmark apply one irq-suspend-timeout 5us >/dev/null
             earmark apply one queue:1:irq-suspend-timeout 6us >/dev/null
             earmark rollback one
             earmark apply one gro-flush-timeout 5us queue:1:gro-flush-timeout 0 >/dev/null
             state | tail -2
             earmark rollback one
             state"
        ),
    );
    let expected = format!(
        "one: queue:1:irq-suspend-timeout 0ns -> 20000ns (napi-set)\n\
         one: queue:0:napi-defer-hard-irqs 0 -> 3 (napi-set)\n\
         one: threaded off -> on\none: sysctl:net.core.somaxconn 4000 -> 77\n\
         way back: earmark rollback one   (that is threaded off queue:0:napi-defer-hard-irqs 0 \
         queue:1:irq-suspend-timeout 0 sysctl:net.core.somaxconn 4000)\n\
         1\n77\nqueue:0:irq-suspend-timeout 0ns -> 1ns (napi-set)\n\
         queue:1:irq-suspend-timeout 20000ns -> 1ns (napi-set)\n\
         queue:1:gro-flush-timeout 0ns -> 1ns (napi-set)\n\
         queue:0:napi-defer-hard-irqs 3 -> 1 (napi-set)\n\
         one is as it was: threaded off queue:0:napi-defer-hard-irqs 0 \
         queue:1:irq-suspend-timeout 0 sysctl:net.core.somaxconn 4000\n\
         {AS_IT_WAS}\
         one is as it was: irq-suspend-timeout 0 queue:1:irq-suspend-timeout 0\n\
         queue:1:gro-flush-timeout 0ns -> 1ns (napi-set)\n\
         queue:0:napi-defer-hard-irqs 0 -> 1 (napi-set)\n\
         one is as it was: gro-flush-timeout 0 queue:1:gro-flush-timeout 0\n\
         {AS_IT_WAS}"
    );
    assert_eq!(ended.output(), expected, "{ended:?}");
    assert!(!state.names().iter().any(|name| name.ends_with(".journal")), "{:?}", state.names());
}

#[test]
fn napi_instances_threads_and_sysctls_are_put_back_whatever_is_killed_and_whenever() {
    common::needs("ethtool", "ethtool");
    if !has_napi_settings() {
        return;
    }
    let state = Directory::new();
    for guard in ["", "EARMARK_KILL_GUARD_TOO=1"] {
        let script = format!(
            "{TWO_QUEUES}
             change='queue:1:irq-suspend-timeout 20us threaded on sysctl:net.core.somaxconn 77'
             for step in $(seq 100); do
                 if {guard} EARMARK_KILL_AT=$step {EARMARK} apply one $change >/dev/null 2>&1; then
                     echo end at $step; exit
                 fi
                 earmark rollback one >/dev/null 2>&1
                 state
             done"
        );
        let ended = in_network(&state, &script);
        let (states, end) = ended.output().split_once("end at ").unwrap();
        let steps: usize = end.trim().parse().unwrap();
        assert!(steps > 14, "only {steps} steps");
        assert_eq!(states, AS_IT_WAS.repeat(steps - 1), "{ended:?}");
    }
}

#[test]
fn what_a_queue_or_a_sysctl_cannot_be_is_refused_and_changes_nothing() {
    let state = Directory::new();
    for (change, words) in [
        ("queue:0:rx-usecs 0", "its driver does not offer this"),
        ("queue:0:irq-suspend-timeout 0", "one has no NAPI instances now"),
        ("sysctl:vm.swappiness 5", "the names begin with net."),
        ("sysctl:net.core.nothing 5", "No such file or directory"),
        ("sysctl:net.ipv4.tcp_congestion_control 5", "which is no number"),
        ("rx-profile 1,n,n", "one (driver veth) has no rx-profile"),
    ] {
        let ended = in_network(&state, &format!("earmark apply one threaded off {change}"));
        ended.refused(&[words]);
    }
    let ended = in_network(
        &state,
        "earmark apply one sysctl:net.core.somaxconn 77 >/dev/null
         earmark apply two sysctl:net.core.somaxconn 78 || cat /proc/sys/net/core/somaxconn
         earmark rollback >/dev/null",
    );
    assert_eq!(ended.output(), "77\n", "{ended:?}");
    let words = "sysctl:net.core.somaxconn is not two's alone, and was changed with one";
    assert!(ended.stderr.contains(words), "{ended:?}");
}

#[test]
fn rollback_waits_for_a_device_that_is_down() {
    common::needs("ethtool", "ethtool");
    if !has_napi_settings() {
        return;
    }
    let state = Directory::new();
    let ended = in_network(
        &state,
        &format!(
            "{TWO_QUEUES}
             earmark apply one queue:1:irq-suspend-timeout 5us >/dev/null
             ip link set one down
             earmark rollback one || echo not yet
             ip link set one up
             earmark rollback one
             state"
        ),
    );
    let expected = format!("not yet\none is as it was: queue:1:irq-suspend-timeout 0\n{AS_IT_WAS}");
    assert_eq!(ended.output(), expected, "{ended:?}");
    assert!(ended.stderr.contains("one cannot be put back now"), "{ended:?}");
}

#[test]
fn an_interface_that_was_renamed_is_put_back_under_its_new_name() {
    let state = Directory::new();
    let ended = in_network(
        &state,
        "earmark apply one gro-flush-timeout 20us >/dev/null
         ip link set one down; ip link set one name uno
         earmark apply uno napi-defer-hard-irqs 2 >/dev/null
         earmark rollback uno
         cat /sys/class/net/uno/gro_flush_timeout /sys/class/net/uno/napi_defer_hard_irqs",
    );
    let said = "uno is as it was: gro-flush-timeout 0 napi-defer-hard-irqs 0\n0\n0\n";
    assert_eq!(ended.output(), said, "{ended:?}");
    let state = Directory::new();
    let ended = in_network(
        &state,
        "earmark apply one gro-flush-timeout 20us >/dev/null
         ip link set one down; ip link set one name uno
         earmark rollback one; cat /sys/class/net/uno/gro_flush_timeout",
    );
    assert_eq!(ended.output(), "uno is as it was: gro-flush-timeout 0\n0\n", "{ended:?}");
    assert!(ended.stderr.contains("one is now called uno"), "{ended:?}");
    assert!(!state.names().iter().any(|name| name.ends_with(".journal")), "{:?}", state.names());
}

#[test]
fn an_interface_is_known_by_its_other_names() {
    let state = Directory::new();
    let ended = in_network(
        &state,
        "ip link property add dev one altname the-first-of-them-all
         earmark apply the-first-of-them-all gro-flush-timeout 20us >/dev/null
         earmark rollback the-first-of-them-all
         earmark show the-first-of-them-all --sample 0 | head -1
         earmark watch the-first-of-them-all --interval 0.01 --count 1 | tail -1 | cut -c 1-4",
    );
    let lines: Vec<&str> = ended.output().lines().collect();
    assert_eq!(lines[0], "one is as it was: gro-flush-timeout 0", "{ended:?}");
    assert!(lines[1].starts_with("one: what delays a packet"), "{ended:?}");
    assert_eq!(lines[2].trim(), "one", "{ended:?}");
}

#[test]
fn a_journal_that_is_a_device_a_pipe_or_a_link_is_refused_and_left() {
    let state = Directory::new();
    let outside = Directory::new();
    let target = outside.write("target", "not yours");
    for (name, make) in [
        ("zero", "ln -s /dev/zero".to_owned()),
        ("file", format!("ln -s {target}")),
        ("pipe", "mkfifo".to_owned()),
    ] {
        let path = state.file(&format!("net+1+{name}.journal"));
        let ended = in_network(
            &state,
            &format!("{make} {path}; earmark apply --dry-run one gro-flush-timeout 5us; rm {path}"),
        );
        assert!(ended.output().contains("would be"), "{ended:?}");
        assert!(ended.stderr.contains(&format!("read the journal {path}")), "{ended:?}");
    }
    // The file beside a journal is not written through a link either.
    let ended = in_network(
        &state,
        &format!(
            "earmark apply one gro-flush-timeout 5us >/dev/null
             journal=$(ls *.journal); ln -s {target} ${{journal%.journal}}.new
             earmark apply one gro-flush-timeout 6us >/dev/null; earmark rollback >/dev/null
             cat {target}"
        ),
    );
    assert_eq!(ended.output(), "not yours");
}

#[test]
fn a_journal_that_cannot_be_read_keeps_no_other_device_from_its_way_back() {
    let state = Directory::new();
    let ended = in_network(
        &state,
        "earmark apply one gro-flush-timeout 5us >/dev/null
         earmark apply --confirm-within 300 two gro-flush-timeout 6us >/dev/null
         echo half of a journ >net+1+zero.journal
         earmark confirm two
         earmark rollback two || echo but
         earmark rollback || echo but
         cat /sys/class/net/one/gro_flush_timeout /sys/class/net/two/gro_flush_timeout",
    );
    assert_eq!(
        ended.output(),
        "two: kept; way back: earmark rollback two
two is as it was: gro-flush-timeout 0
but
one is as it was: gro-flush-timeout 0
but
0
0
",
        "{ended:?}"
    );
    let said = ended.stderr.matches("net+1+zero.journal; put the device right by hand").count();
    assert_eq!(said, 3, "{ended:?}");
}

#[test]
fn queues_and_profiles_of_a_guests_own_driver_are_changed_and_put_back() {
    // Linux's virtio-net again, with two queues.
    let script = format!(
        "export EARMARK_STATE_DIR=/run/tune
         ethtool -L a0 combined 2
         usecs() {{ ethtool --per-queue a0 queue_mask 3 --show-coalesce | sed -n 's/^rx-usecs:.//p'; }}
         {EARMARK} apply a0 queue:1:rx-usecs 0 rx-profile 1,n,n_2,n,n_3,n,n_4,n,n_5,n,n | head -2
         usecs
         {EARMARK} apply a0 rx-usecs 40 2>&1 | tail -1
         {EARMARK} apply a0 rx-usecs 40 queue:1:rx-usecs 9 >/dev/null; usecs
         {EARMARK} apply a0 rx-profile 1,n,n 2>&1 | tail -1
         {EARMARK} apply a0 queue:2:rx-usecs 5 2>&1 | tail -1
         {EARMARK} rollback; usecs
         for step in $(seq 1 4 60); do
             if EARMARK_KILL_AT=$step {EARMARK} apply a0 queue:1:rx-usecs 0 >/dev/null 2>&1; then
                 echo end at $step; exit
             fi
             {EARMARK} rollback >/dev/null 2>&1; usecs
         done"
    );
    common::needs("ethtool", "ethtool");
    let options = ["--hosts", "uml", "--queues", "2", "--strategy", "delay:75", "--on", "a"];
    let ended = common::lab_run(&[&options[..], &[&script]].concat());
    let profile = "rx-profile 1,256,n_8,256,n_64,256,n_128,256,n_256,256,n";
    let changed = [
        "a0: queue:1:rx-usecs 75 -> 0".to_owned(),
        format!("a0: {profile} -> 1,256,n_2,256,n_3,256,n_4,256,n_5,256,n"),
        "75\n0".into(),
    ];
    let said = ended.output();
    assert!(said.starts_with(&changed.join("\n")), "{ended:?}");
    for words in [
        "the queues of a0 have rx-usecs of their own (ethtool -Q)",
        "nothing was changed\n40\n9\n",
        "the rx-profile of a0 has 5 steps, not 1; nothing was changed",
        "a0 has no queue 2: there are 2, from 0 on",
        &format!("a0 is as it was: rx-usecs 75 {profile} queue:1:rx-usecs 75\n75\n75\n"),
    ] {
        assert!(said.contains(words), "no {words} in {ended:?}");
    }
    let (_, killed) = said.rsplit_once("queue:1:rx-usecs 75\n").unwrap();
    let (values, _) = killed.split_once("end at ").unwrap();
    assert!(values.lines().count() >= 8 && values.lines().all(|it| it == "75"), "{ended:?}");
}

#[test]
fn a_guests_own_driver_is_put_back_whenever_it_is_killed() {
    // Linux's virtio-net, over the kernel's netlink interface.
    let script = format!(
        "export EARMARK_STATE_DIR=/run/tune
         usecs() {{ ethtool -c a0 | sed -n 's/^rx-usecs:[^0-9]*//p'; }}
         {EARMARK} apply a0 tx-usecs 9 rx-usecs 33 && usecs && {EARMARK} rollback && usecs
         {EARMARK} apply a0 rx-usecs 33 stats-block-usecs 7
         for step in $(seq 1 4 60); do
             if EARMARK_KILL_AT=$step {EARMARK} apply a0 rx-usecs 50 >/dev/null 2>&1; then
                 echo end at $step; exit
             fi
             {EARMARK} rollback >/dev/null 2>&1; usecs
         done"
    );
    common::needs("ethtool", "ethtool");
    let ended =
        common::lab_run(&["--hosts", "uml", "--strategy", "delay:75", "--on", "a", &script]);
    let (first, rest) = ended.output().split_once("way back: ").unwrap();
    assert!(first.contains("a0: tx-usecs 0 -> 9\na0: rx-usecs 75 -> 33\n"), "{ended:?}");
    let mut lines = rest.lines().skip(1);
    assert_eq!(lines.next(), Some("33"), "{ended:?}");
    assert_eq!(lines.next(), Some("a0 is as it was: rx-usecs 75 tx-usecs 0"), "{ended:?}");
    assert!(ended.stderr.contains("has no stats-block-usecs; it has"), "{ended:?}");
    let values: Vec<&str> = lines.collect();
    let (end, values) = values.split_last().unwrap();
    assert!(end.starts_with("end at ") && values.len() >= 4, "{ended:?}");
    assert!(values.iter().all(|value| *value == "75"), "{ended:?}");
}
