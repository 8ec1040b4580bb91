//! Two examples for each command: the only source of those that help and manual pages show and
//! that tests run.

/// What a test needs to run an example to a good end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: any user, anywhere.
    Nothing,
    /// Hosts of ours, which it makes.
    Hosts,
    /// A shell on host a of a lab; `server` is host b.
    Lab,
    /// A network with the devices `eth0` and `eth1`, and root.
    Devices,
    /// A far host, a real NIC, minutes, or an end by Ctrl-C: such an example is only parsed.
    More,
}

/// A command line, and what it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Example {
    pub(crate) purpose: &'static str,
    pub(crate) line: &'static str,
    #[allow(dead_code, reason = "only tests run examples")]
    pub(crate) needs: Needs,
}

use Needs::{Devices, Hosts, Lab, More, Nothing};

const fn of(needs: Needs, purpose: &'static str, line: &'static str) -> Example {
    Example { purpose, line, needs }
}

/// The examples of a command, by the words that name it.
pub(crate) fn of_command(path: &str) -> &'static [Example] {
    let found = EXAMPLES.iter().find(|(command, _)| *command == path);
    found.map_or(&[], |(_, examples)| examples)
}

/// Of every command that help lists.
pub(crate) const EXAMPLES: &[(&str, [Example; 2])] = &[
    (
        "show",
        [
            of(Devices, "A line for each NIC", "earmark show"),
            of(Devices, "What delays packets on eth0, and for how long", "earmark show eth0"),
        ],
    ),
    (
        "probe",
        [
            of(Lab, "Look for holds on the way to a host and back", "earmark probe server"),
            of(
                More,
                "Ask the NTP server of each host of a list",
                "earmark probe --hosts hosts.txt --kind ntp",
            ),
        ],
    ),
    (
        "explain",
        [
            of(More, "Ask `earmark echo` on a host, and trace that", "sudo earmark explain server"),
            of(
                More,
                "Run a program, and explain its sockets",
                "sudo earmark explain -- memcslap -s server",
            ),
        ],
    ),
    (
        "tune",
        [
            of(
                Nothing,
                "Try it on a NIC of the model: no rights, nothing is changed",
                "earmark tune both --world model --goal 'min interrupts, p99 < 250us'",
            ),
            of(
                More,
                "Tune eth0 for the way to a host that runs `earmark serve`",
                "sudo earmark tune eth0 --peer server --goal 'p99 < 200us'",
            ),
        ],
    ),
    (
        "persist",
        [
            of(
                Devices,
                "The files that would bring a setting back",
                "earmark persist eth0 gro-flush-timeout",
            ),
            of(
                More,
                "Write them, for all that Earmark has changed",
                "sudo earmark persist eth0 --write",
            ),
        ],
    ),
    (
        "rollback",
        [
            of(Devices, "Put one device back", "sudo earmark rollback eth0"),
            of(Devices, "Undo everything that Earmark has changed", "sudo earmark rollback"),
        ],
    ),
    (
        "watch",
        [
            of(More, "A line a second, until Ctrl-C", "earmark watch eth0"),
            of(
                Devices,
                "Two devices, ten times a second",
                "earmark watch eth0 eth1 --interval 0.1 --count 3",
            ),
        ],
    ),
    (
        "apply",
        [
            of(
                Devices,
                "Let NAPI poll for 20 us before interrupts are on again",
                "sudo earmark apply eth0 gro-flush-timeout 20us napi-defer-hard-irqs 2",
            ),
            of(
                More,
                "Over ssh: undone in a minute unless it is confirmed",
                "sudo earmark apply --confirm-within 60s eth0 rx-usecs 50",
            ),
        ],
    ),
    (
        "confirm",
        [
            of(More, "Keep what was changed on eth0", "sudo earmark confirm eth0"),
            of(More, "Keep whatever waits for that", "sudo earmark confirm"),
        ],
    ),
    (
        "lane",
        [
            of(Devices, "The lanes that there are", "earmark lane eth0"),
            of(More, "A queue of its own for memcached", "sudo earmark lane eth0 tcp-port=11211"),
        ],
    ),
    (
        "echo",
        [
            of(More, "Answer all who ask", "earmark echo"),
            of(
                More,
                "Answer one host, at one address",
                "earmark echo --listen 10.0.0.2 --allow 10.0.0.1",
            ),
        ],
    ),
    (
        "serve",
        [
            of(More, "Print a pairing code, and wait for `tune`", "earmark serve"),
            of(
                More,
                "With a code that stays the same",
                "earmark serve --listen 10.0.0.2 --code-file code",
            ),
        ],
    ),
    (
        "demo",
        [
            of(More, "Everything, in about a minute", "earmark demo"),
            of(More, "Longer, and the figures as JSON", "earmark demo --rounds 5 --json demo.json"),
        ],
    ),
    (
        "bench",
        [
            of(
                Nothing,
                "Three strategies in a model: exact, and any user may",
                "earmark bench mixed --world model --compare disabled,delay:75,marked:75",
            ),
            of(
                Hosts,
                "One strategy on two hosts, and its latencies as bars",
                "earmark bench tcp-rr --strategy delay:75 --duration 0.2 --histogram",
            ),
        ],
    ),
    (
        "scenario",
        [
            of(Nothing, "Which there are", "earmark scenario"),
            of(Nothing, "What one of them shows", "earmark scenario mixed"),
        ],
    ),
    (
        "lab",
        [
            of(
                Hosts,
                "Ping from host a over a NIC that waits 75 us",
                "earmark lab run --strategy delay:75 -- ping -c 3 b",
            ),
            of(Hosts, "A shell on host a", "earmark lab shell"),
        ],
    ),
    (
        "lab run",
        [
            of(Hosts, "A program on host a", "earmark lab run --strategy delay:75 -- ping -c 3 b"),
            of(
                More,
                "Programs on both hosts",
                "earmark lab run --on b 'iperf3 -s -1' --on a 'iperf3 -c b'",
            ),
        ],
    ),
    (
        "lab shell",
        [
            of(Hosts, "Host a, under the usual setting", "earmark lab shell"),
            of(
                Hosts,
                "Host b, under a setting of yours",
                "earmark lab shell --on b --strategy marked:75 --queues 2",
            ),
        ],
    ),
    (
        "nic",
        [
            of(Lab, "Settings and counters of both ports", "earmark nic show"),
            of(Lab, "Change a port while traffic flows", "earmark nic set b0 rx-usecs 50"),
        ],
    ),
    (
        "nic show",
        [
            of(Lab, "Both ports", "earmark nic show"),
            of(Lab, "One of them, for a program", "earmark nic show b0 --json"),
        ],
    ),
    (
        "nic set",
        [
            of(
                Lab,
                "How long packets wait, in time and number",
                "earmark nic set b0 rx-usecs 50 rx-frames 16",
            ),
            of(
                Lab,
                "Another strategy, and what it marks",
                "earmark nic set b0 strategy marked:50 mark 'tcp-port=11211 & length<=512'",
            ),
        ],
    ),
    (
        "nic evict",
        [
            of(More, "Disconnect the virtual machine of port a0", "earmark nic evict a0"),
            of(More, "The same, if several NICs are served", "earmark nic --lab switch evict a0"),
        ],
    ),
    (
        "nic watch",
        [
            of(More, "Both ports, a line a second", "earmark nic watch"),
            of(
                Lab,
                "One of them, ten times a second",
                "earmark nic watch b0 --interval 0.1 --count 3",
            ),
        ],
    ),
    (
        "nic labs",
        [
            of(Nothing, "The names that --lab takes", "earmark nic labs"),
            of(Nothing, "How many run", "earmark nic labs | wc -l"),
        ],
    ),
    (
        "nic serve",
        [
            of(
                More,
                "A NIC between two virtual machines",
                "earmark nic serve a.sock b.sock --strategy delay:75",
            ),
            of(
                More,
                "One with a name, for `earmark nic --lab`",
                "earmark nic serve a.sock b.sock --name switch",
            ),
        ],
    ),
    (
        "mpirun",
        [
            of(More, "Two ranks over our NIC", "earmark mpirun -n 2 ./program"),
            of(
                More,
                "The same under three settings, five times each",
                "earmark mpirun -n 2 --compare delay:75,disabled,marked:75 --repeat 5 ./program",
            ),
        ],
    ),
    (
        "reproduce",
        [
            of(Nothing, "What there is", "earmark reproduce --list"),
            of(More, "One table of the Open-MX paper", "earmark reproduce openmx/table1"),
        ],
    ),
    (
        "kernel",
        [
            of(More, "Find the kernel, or build it in about four minutes", "earmark kernel"),
            of(More, "A newer one", "earmark kernel --suite trixie-backports"),
        ],
    ),
    (
        "exporter",
        [
            of(Nothing, "The metrics, once", "earmark exporter --print"),
            of(
                More,
                "For node_exporter, every minute",
                "earmark exporter --textfile earmark.prom --interval 60",
            ),
        ],
    ),
    (
        "mx",
        [
            of(
                Devices,
                "What eth0 offers to MX, and what is missing",
                "earmark mx info --port packet:eth0",
            ),
            of(
                Nothing,
                "Twenty simulated networks that lose and damage frames",
                "earmark mx soak --seeds 20",
            ),
        ],
    ),
    (
        "mx perf",
        [
            of(More, "Answer, on one host ...", "earmark mx perf --port packet:eth0"),
            of(
                More,
                "... and measure, on another one",
                "earmark mx perf --port packet:eth0 --peer server/1",
            ),
        ],
    ),
    (
        "mx stream",
        [
            of(More, "Receive, on one host ...", "earmark mx stream --port packet:eth0"),
            of(
                More,
                "... and send, on another one",
                "earmark mx stream --port packet:eth0 --peer server/1 --size 4096",
            ),
        ],
    ),
    (
        "mx soak",
        [
            of(Nothing, "Twenty networks", "earmark mx soak --seeds 20"),
            of(Nothing, "One of them again", "earmark mx soak --first-seed 4711 --seeds 1"),
        ],
    ),
    (
        "mx info",
        [
            of(Devices, "An Ethernet interface", "earmark mx info --port packet:eth0"),
            of(Nothing, "UDP, which takes no rights", "earmark mx info --port udp:127.0.0.1:0"),
        ],
    ),
    (
        "mx peers",
        [
            of(Devices, "All hosts on the segment", "earmark mx peers --port packet:eth0"),
            of(More, "One of them", "earmark mx peers --port packet:eth0 --host server"),
        ],
    ),
    (
        "mx counters",
        [
            of(More, "All endpoints that run here", "earmark mx counters"),
            of(
                More,
                "One of them, with its state",
                "earmark mx counters 02:00:00:00:00:0b/3 --dump",
            ),
        ],
    ),
    (
        "mx dissector",
        [
            of(Nothing, "Read it", "earmark mx dissector | wc -l"),
            of(
                Nothing,
                "Write it to a file, for `tshark -X lua_script:mx.lua`",
                "earmark mx dissector > mx.lua",
            ),
        ],
    ),
    (
        "merge",
        [
            of(More, "One result of all shards", "earmark merge shard-1.json shard-2.json"),
            of(
                More,
                "Of those that are there so far, and as JSON in a file",
                "earmark merge --partial --output result.json shard-1.json",
            ),
        ],
    ),
    (
        "calibrate",
        [
            of(More, "Options that make virtual time cost what it costs here", "earmark calibrate"),
            of(More, "And a machine for the model", "earmark calibrate --machine this.toml"),
        ],
    ),
    (
        "adaptive",
        [
            of(More, "All kinds of traffic", "earmark adaptive"),
            of(More, "Longer, and for a program", "earmark adaptive --duration 1 --json"),
        ],
    ),
    (
        "schema",
        [
            of(Nothing, "Of `earmark show --json`", "earmark schema show"),
            of(Nothing, "Of a line of `earmark watch --json`", "earmark schema watch"),
        ],
    ),
    (
        "completions",
        [
            of(Nothing, "For bash", "earmark completions bash > earmark.bash"),
            of(Nothing, "For fish", "earmark completions fish > earmark.fish"),
        ],
    ),
    (
        "man",
        [
            of(Nothing, "The page of a command, for `man ./tune.1`", "earmark man tune > tune.1"),
            of(
                Nothing,
                "All pages, where `man` finds them",
                "earmark man --all ~/.local/share/man/man1",
            ),
        ],
    ),
];
