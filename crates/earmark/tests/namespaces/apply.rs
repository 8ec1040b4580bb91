//! Changing devices: what is changed is undone, whatever becomes of the process that changed it.
//!
//! The device is the port of a lab's NIC, or an interface in a network namespace of its own. None
//! of the machine's is touched.

use std::process::Command;

use serde_json::Value;

use crate::support::{Directory, EARMARK, Ended, Lab, earmark, in_network, needs, output, soon};

/// LabPort b0 of a lab's NIC, and its journals.
struct LabPort {
    lab: Lab,
    state: Directory,
}

impl LabPort {
    fn new(options: &[&str]) -> Self {
        Self { lab: Lab::start(options), state: Directory::new() }
    }

    /// The command `arguments` for the lab.
    fn command(&self, arguments: &[&str]) -> Command {
        let lab = format!("--lab={}", self.lab.name());
        let mut command = earmark(arguments);
        command.arg(lab).env("EARMARK_STATE_DIR", self.state.path());
        command
    }

    fn run(&self, line: &str) -> Ended {
        output(&mut self.command(&line.split(' ').collect::<Vec<_>>()))
    }

    /// Runs [`APPLY`] with these variables in its environment.
    fn apply(&self, variables: &[(&str, u32)]) -> Ended {
        let variables = variables.iter().map(|(name, value)| (name, value.to_string()));
        output(self.command(&APPLY).envs(variables))
    }

    /// The setting of b0.
    fn setting(&self) -> String {
        self.lab.show()[1]["queues"][0]["setting"].as_str().unwrap().to_owned()
    }

    /// The journal, if there is one.
    fn journal(&self) -> Option<(String, Value)> {
        let name = self.state.names().into_iter().find(|name| name.ends_with(".journal"))?;
        let text = std::fs::read_to_string(self.state.file(&name)).unwrap();
        Some((name, serde_json::from_str(&text).unwrap()))
    }

    fn is_being_tried(&self) -> bool {
        self.journal().is_some_and(|(_, journal)| !journal["trying"].is_null())
    }

    /// Requires this setting, and no journal.
    #[track_caller]
    fn is_as_it_was(&self, setting: &str, what: &str) {
        let is = (self.setting(), self.state.has_journal());
        assert_eq!(is, (setting.to_owned(), false), "{what}");
    }

    /// The first step of [`APPLY`] at which b0 is changed already.
    fn step_at_which_it_is_changed(&self) -> u32 {
        let is_changed = |step: &u32| {
            self.apply(&[("EARMARK_KILL_AT", *step), ("EARMARK_KILL_GUARD_TOO", 1)]);
            let is_changed = self.setting() != "delay:75";
            self.run("rollback b0");
            is_changed
        };
        (1..100).find(is_changed).expect("apply changes something")
    }
}

const DELAY: [&str; 2] = ["--strategy", "delay:75"];
const APPLY: [&str; 4] = ["apply", "b0", "rx-usecs", "50"];

/// 128 and SIGKILL.
const KILLED: i32 = 137;

/// Runs `attempt` with the steps from 1 on until it has nothing to kill any more; how many it has
/// killed. What it leaves has to be as it was then.
#[track_caller]
fn each_step(port: &LabPort, attempt: impl Fn(u32) -> bool) -> u32 {
    for step in 1..100 {
        if !attempt(step) {
            return step - 1;
        }
        port.is_as_it_was("delay:75", &format!("killed at step {step}"));
    }
    panic!("there is no end of steps");
}

#[test]
fn apply_and_rollback() {
    needs!("lab");
    let port = LabPort::new(&["--strategy", "throttle:125"]);
    port.run("apply --dry-run b0 rx-usecs 50").says(&["would be: rx-usecs 125 -> 50"]);
    port.is_as_it_was("throttle:125", "a dry run");

    let applied = port.run("apply --json b0 rx-usecs 50 rx-frames 8").json();
    assert_eq!(port.setting(), "throttle:50+frames:8");
    assert_eq!(applied["settings"][0]["verdict"], "taken");
    assert_eq!(applied["settings"][0]["before"], 125);
    assert_eq!(applied["settings"].as_array().map(Vec::len), Some(2), "{applied}");
    assert!(applied["way_back"].as_str().unwrap().starts_with("earmark rollback b0 --lab="));

    port.run("apply b0 adaptive-rx on").output();
    assert_eq!(port.setting(), "adaptive");
    port.run("rollback b0").says(&["b0 is as it was: strategy throttle:125"]);
    port.is_as_it_was("throttle:125", "after the rollback");
    port.run("rollback").says(&["Earmark has changed nothing"]);
    for (line, words) in [
        ("apply b0 tx-usecs 5", "b0 (the NIC of lab"),
        ("apply b0 rx-usecs 5 gro-flush-timeout 5", "has no gro-flush-timeout; it has strategy"),
        ("apply b0 rx-usecs 1000001", "rx-usecs is at most 1000000"),
        ("apply b0 rx-usecs", "`rx-usecs` has no value"),
        ("apply b0 queue:0:rx-usecs=5", "has no queue:0:rx-usecs; it has strategy"),
        ("apply b0 rx-usec 5", "no setting is called rx-usec; is rx-usecs meant?"),
        ("apply z9 rx-usecs 5", "no port z9 in lab"),
        ("confirm b0", "no change waits for a confirmation"),
    ] {
        port.run(line).refused(&[words]);
        port.is_as_it_was("throttle:125", line);
    }
}

#[test]
fn queues_with_settings_of_their_own_are_not_levelled() {
    needs!("lab");
    let port = LabPort::new(&[&DELAY[..], &["--queues", "2"]].concat());
    port.lab.set(&["b0", "rx-usecs", "50", "--queue", "1"]);
    let apply = port.run("apply b0 rx-usecs 60");
    apply.refused(&["the queues of b0 have settings of their own", "nothing was changed"]);
    assert_eq!(port.lab.show()[1]["queues"][1]["setting"], "delay:50");
    port.lab.set(&["b0", "rx-usecs", "75", "--queue", "1"]);
    port.run("apply b0 rx-usecs 60").output();
    port.run("rollback b0").output();
    let shown = port.lab.show();
    let settings = [0, 1].map(|queue| shown[1]["queues"][queue]["setting"].clone());
    assert_eq!(settings, ["delay:75", "delay:75"]);
}

#[test]
fn a_change_that_is_killed_at_any_step_is_undone_by_the_guard() {
    needs!("lab");
    let port = LabPort::new(&DELAY);
    let steps = each_step(&port, |step| {
        let ended = port.apply(&[("EARMARK_KILL_AT", step)]);
        if ended.code == 0 {
            return false;
        }
        assert_eq!(ended.code, KILLED, "{ended:?}");
        // A test that has read the guard's standard error to its end has waited for its end. What
        // is on disk says whether the change was done.
        if port.setting() != "delay:75" {
            assert_eq!(port.setting(), "delay:50", "{step}");
            assert!(!port.is_being_tried() && port.state.has_journal(), "{step}");
            port.run("rollback b0").output();
        }
        true
    });
    assert_eq!(port.setting(), "delay:50");
    // Lock, guard, journal, change, journal, each with what is in between.
    assert!(steps >= 14, "only {steps} steps");
}

#[test]
fn when_the_guard_is_killed_while_it_undoes_a_change_the_next_command_goes_on() {
    needs!("lab");
    let port = LabPort::new(&DELAY);
    let changed = port.step_at_which_it_is_changed();
    let steps = each_step(&port, |step| {
        let at = [("EARMARK_KILL_AT", changed), ("EARMARK_KILL_GUARD_AT", step)];
        let ended = port.apply(&at);
        assert_eq!(ended.code, KILLED, "{ended:?}");
        if ended.stderr.contains("b0 is as it was") {
            return false;
        }
        port.run("rollback b0").output();
        true
    });
    assert_eq!(port.setting(), "delay:75");
    assert!(steps >= 4, "only {steps} steps of the guard");
}

#[test]
fn what_is_not_confirmed_is_undone_and_what_is_confirmed_stays() {
    needs!("lab");
    let port = LabPort::new(&DELAY);
    let apply = |within| port.run(&format!("apply b0 rx-usecs 50 --confirm-within {within}"));
    apply("600s").says(&["to keep it: earmark confirm b0"]);
    // The guard waits, and no command takes it for an orphan.
    assert_eq!(port.run("apply --dry-run b0 rx-usecs 1").stderr, "");
    let again = port.run("apply b0 rx-usecs 60");
    again.refused(&["a change of b0 waits for its confirmation; call `earmark confirm b0`"]);
    assert_eq!(port.setting(), "delay:50");
    port.run("confirm b0").says(&["b0: kept"]);
    assert_eq!(port.setting(), "delay:50");
    port.run("confirm b0").refused(&["no change waits"]);
    // One right after another.
    for usecs in 51..58 {
        port.run(&format!("apply b0 rx-usecs {usecs} --confirm-within 600s")).output();
        port.run("confirm b0").output();
        assert_eq!(port.setting(), format!("delay:{usecs}"));
    }
    port.run("rollback b0").output();
    assert_eq!(port.setting(), "delay:75");

    apply("0.1").output();
    soon("b0 is as it was", || port.setting() == "delay:75");
    soon("the journal is gone", || !port.state.has_journal());
    port.run("confirm b0").refused(&["its time was over"]);
    // Rolled back before its time: the guard has nothing to do, and ends.
    apply("600s").output();
    port.run("rollback").output();
    port.is_as_it_was("delay:75", "rolled back before its time");
}

#[test]
fn a_journal_of_an_earlier_boot_is_stale_and_an_unreadable_one_is_reported_and_left() {
    needs!("lab");
    let port = LabPort::new(&DELAY);
    let changed = port.step_at_which_it_is_changed();
    let killed = port.apply(&[("EARMARK_KILL_AT", changed), ("EARMARK_KILL_GUARD_TOO", 1)]);
    assert_eq!(killed.code, KILLED);
    let (name, mut journal) = port.journal().unwrap();
    journal["boot"] = "another".into();
    port.state.write(&name, &journal.to_string());
    let next = port.run("apply --dry-run b0 rx-usecs 1");
    assert_eq!((next.code, next.stderr.as_str()), (0, ""));
    port.is_as_it_was("delay:50", "nothing was undone: there is nothing to undo");

    let path = port.state.write("lab+x+b0.journal", "half of a jour");
    port.run("rollback b0").refused(&["by hand", &path]);
    let next = port.run("apply b0 rx-usecs 60");
    assert!(next.stderr.contains(&path) && next.code == 0, "{next:?}");
    assert!(port.state.names().contains("lab+x+b0.journal"));
}

#[test]
fn interfaces_are_changed_and_put_back() {
    needs!("network");
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
    ended.says(&[
        "one: gro-flush-timeout 0ns -> 20000ns\none: napi-defer-hard-irqs 0 -> 2\n",
        "\n20000\n2\n",
        "tap: rx-frames 0 -> 16\n",
        "tap: rx-frames 16 -> 8\n",
        "tap is as it was: rx-frames 0\n",
        "one is as it was: gro-flush-timeout 0 napi-defer-hard-irqs 0\n",
        "\n0\n0\n",
        "tap: would be: rx-frames 0 -> 1\n",
    ]);
    assert!(!state.has_journal(), "{:?}", state.names());
    for (change, words) in [
        ("one rx-usecs 5", "one (driver veth) has no rx-usecs; it has gro-flush"),
        ("tap rx-usecs 5 rx-frames 3", "tap (driver tun) has no rx-usecs; it has"),
        ("three rx-usecs 5", "no network device three here; there are: lo, one, tap, two"),
        ("../one rx-usecs 5", "`../one` is no name of a device"),
        ("one threaded off queue:0:rx-usecs 0", "its driver does not offer this"),
        ("two queue:0:irq-suspend-timeout 0", "two has no NAPI instances now"),
        ("one threaded off sysctl:vm.swappiness 5", "the names begin with net."),
        ("one sysctl:net.core.nothing 5", "No such file or directory"),
        ("one sysctl:net.ipv4.tcp_congestion_control 5", "which is no number"),
        ("one threaded off rx-profile 1,n,n", "one (driver veth) has no rx-profile"),
    ] {
        in_network(&state, &format!("earmark apply {change}")).refused(&[words]);
    }
}

#[test]
fn interfaces_are_put_back_whatever_is_killed_and_whenever() {
    needs!("network");
    let state = Directory::new();
    for guard in ["", "EARMARK_KILL_GUARD_TOO=1"] {
        let ended = in_network(
            &state,
            &format!(
                "change='gro-flush-timeout 20us napi-defer-hard-irqs 2'
                 for step in $(seq 100); do
                     if {guard} EARMARK_KILL_AT=$step {EARMARK} apply one $change 2>/dev/null; then
                         echo end at $step; exit
                     fi
                     earmark rollback one >/dev/null 2>&1
                     cat /sys/class/net/one/gro_flush_timeout \
                         /sys/class/net/one/napi_defer_hard_irqs
                 done"
            ),
        );
        let (values, end) = ended.output().split_once("one: ").unwrap();
        assert!(values.lines().count() >= 28 && values.lines().all(|line| line == "0"), "{values}");
        assert!(end.contains("end at "), "{end}");
    }
}

#[test]
fn transmit_queues_are_given_processors_and_put_back() {
    needs!("network");
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
    let printed = ended.output();
    let parts: Vec<&str> = printed.split("one: queue:1:xps-cpus none -> 0\n").collect();
    assert!(parts.len() == 3 && parts[2].ends_with("\n1\n"), "{printed}");
    let masks: Vec<&str> = parts[1].lines().filter(|line| line.starts_with('0')).collect();
    let is_none = |mask: &&str| mask.trim_matches(['0', ',']).is_empty();
    assert!(masks.len() >= 14 && masks.iter().all(is_none), "{printed}");
    assert!(parts[1].contains("one: queue:0:xps-cpus none, as it was\n"), "{printed}");
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
/// none, `apply` says so.
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
    needs!("network", "ethtool");
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
             earmark apply one queue:1:irq-suspend-timeout 5us >/dev/null
             ip link set one down
             earmark rollback one || echo not yet
             ip link set one up
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
         not yet\none is as it was: queue:1:irq-suspend-timeout 0\n\
         {AS_IT_WAS}"
    );
    assert_eq!(ended.output(), expected, "{ended:?}");
    assert!(ended.stderr.contains("one cannot be put back now"), "{ended:?}");
    assert!(!state.has_journal(), "{:?}", state.names());
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
fn napi_instances_threads_and_sysctls_are_put_back_whatever_is_killed_and_whenever() {
    needs!("network", "ethtool");
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
fn an_interface_is_known_by_its_new_name_and_by_its_other_names() {
    needs!("network");
    let state = Directory::new();
    let ended = in_network(
        &state,
        "earmark apply one gro-flush-timeout 20us >/dev/null
         ip link set one down; ip link set one name uno
         earmark apply uno napi-defer-hard-irqs 2 >/dev/null
         earmark rollback uno
         cat /sys/class/net/uno/gro_flush_timeout /sys/class/net/uno/napi_defer_hard_irqs
         earmark apply uno gro-flush-timeout 20us >/dev/null
         ip link set uno name one
         earmark rollback uno; cat /sys/class/net/one/gro_flush_timeout
         ip link property add dev one altname the-first-of-them-all
         earmark apply the-first-of-them-all gro-flush-timeout 20us >/dev/null
         earmark rollback the-first-of-them-all
         earmark show the-first-of-them-all --sample 0 | head -1 | cut -c 1-25
         earmark watch the-first-of-them-all --interval 0.01 --count 1 | tail -1 | cut -c 1-4",
    );
    let printed = "uno is as it was: gro-flush-timeout 0 napi-defer-hard-irqs 0\n0\n0\n\
                   one is as it was: gro-flush-timeout 0\n0\n\
                   one is as it was: gro-flush-timeout 0\n\
                   one: what delays a packet\none \n";
    assert_eq!(ended.output(), printed, "{ended:?}");
    assert!(ended.stderr.contains("uno is now called one"), "{ended:?}");
    assert!(!state.has_journal(), "{:?}", state.names());
}

#[test]
fn a_journal_that_is_a_device_a_pipe_or_a_link_is_refused_and_left() {
    needs!("network");
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
        ended.says(&["would be"]);
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
    needs!("network");
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
    let printed = "two: kept; way back: earmark rollback two\n\
                   two is as it was: gro-flush-timeout 0\nbut\n\
                   one is as it was: gro-flush-timeout 0\nbut\n0\n0\n";
    assert_eq!(ended.output(), printed, "{ended:?}");
    let words = "net+1+zero.journal; put the device right by hand";
    assert_eq!(ended.stderr.matches(words).count(), 3, "{ended:?}");
}

#[test]
fn rollback__that_undoes_nothing__is_an_error_where_that_is_not_what_was_meant() {
    needs!("network");
    let directory = Directory::new();
    let run = |script: &str| in_network(&directory, script);
    run("earmark rollback eth9").refused(&["no network device eth9"]);
    run("earmark rollback oen").refused(&["no network device oen", "is one meant?"]);
    run("earmark rollback one").says(&["changed nothing of one"]);
    let elsewhere = "mkdir -m 700 run run/earmark; export XDG_RUNTIME_DIR=$PWD/run
         earmark apply one gro-flush-timeout 20us --state-dir run/earmark";
    let ended = run(&format!("{elsewhere}; earmark rollback one"));
    assert!(ended.stdout.contains("earmark rollback one --state-dir run/earmark"), "{ended:?}");
    assert!(ended.stderr.contains("one was changed by another Earmark; call"), "{ended:?}");
    assert_eq!(ended.code, 1);
}
