//! `earmark lane` in guests: Linux's own drivers on NICs of ours, in virtual time. iavf has all
//! that a lane takes; virtio_net has coalescing for each queue, a hash if the device offers it, and
//! no rules.

use std::collections::BTreeMap;
use std::process::Command;

use crate::support::results::holds;
use crate::support::{Directory, EARMARK, needs, output, run};

/// What a guest says that plays this script on b, beside one on a, which ends the run. `look`
/// prints all that a lane may change; the journals are in a directory of their own.
#[track_caller]
fn guests(options: &[&str], on_a: &str, on_b: &str) -> String {
    let state = Directory::new();
    let always = ["lab", "run", "--time", "virtual"];
    let on_b = format!(
        "export EARMARK_STATE_DIR={} earmark={EARMARK}
        look() {{
            ethtool -n b0; ethtool -x b0; ethtool -k b0 | grep ntuple
            ethtool --per-queue b0 --show-coalesce
        }}
        {on_b}",
        state.file("state")
    );
    let ended = run(&[&always[..], options, &["--on", "a", on_a, "--on", "b", &on_b]].concat());
    ended.output().to_owned()
}

const IAVF: [&str; 4] = ["--nic", "iavf", "--queues", "4"];

/// Two queues, a key of the hash that is the same each time (drivers choose one at random), and no
/// adaptive moderation, so that a queue's interval is known.
const TWO: &str = "ethtool -L b0 combined 2; sleep 0.5
    ethtool -X b0 hkey $(printf '6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43%.0s:' 1 2 3 4 | sed s/:$//)
    ethtool -C b0 adaptive-rx off adaptive-tx off rx-usecs 50 tx-usecs 0; sleep 0.1";

#[test]
fn urgent_packets_interrupt_at_once_and_others_wait() {
    needs!("guests", "ethtool", "ping");
    let directory = Directory::new();
    let path = directory.file("lab.pcapng");
    let ping = "ping -4 -q -c 10 -A";
    let on_a = format!(
        "ethtool -C a0 adaptive-rx off rx-usecs 0; sleep 2; ping -c 1 b > /dev/null
        {ping} -Q 184 b; sleep 3; {ping} -Q 184 b; {ping} b; sleep 9"
    );
    let on_b = format!(
        "{TWO}; ethtool -C b0 rx-usecs 0; sleep 3; ethtool -C b0 rx-usecs 50
        $earmark lane b0 dscp=46 --rest-usecs 100; $earmark show b0
        $earmark lane b0 dscp=46 --rest-usecs 200; sleep 5
        $earmark lane b0; $earmark persist b0 --as networkmanager
        $earmark lane b0 --remove; $earmark lane b0"
    );
    let said = guests(&[&IAVF[..], &["--pcap", &path]].concat(), &on_a, &on_b);
    for words in [
        "b0: queue 1 by the rule 127:ip4,tos:184,queue:1\n",
        "b0: rss-table 0,1/64 -> 0/64\n",
        "b0: rx-usecs 50 -> 100\n",
        // Again, for another time of the rest.
        "b0: rx-usecs 100 -> 200\n",
        "b0: queue:1:rx-usecs 0, as it was\n",
        "b0: queue:1:rx-usecs 50 -> 0\n",
        "lost: the device compares whole bytes",
        "way back: earmark lane b0 --remove\n",
        // `show`, before and after.
        "packets: 126:ip6,tos:184,queue:1; 127:ip4,tos:184,queue:1\n",
        "    earmark apply b0 rss-table 0/64 rule:126:ip6,tos:184,queue:1 on \
         rule:127:ip4,tos:184,queue:1 on\n",
        "b0: rule:127:ip4,tos:184,queue:1 on -> off\n",
        // As the others are by now.
        "b0: queue:1:rx-usecs 0 -> 200\n",
        "b0: rss-table 0/64 -> 0,1/64\n",
        "b0 has no lane of Earmark's any more\n",
    ] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    let packets = |head: &str| -> u64 {
        let head = format!("{head}queue 1, interrupts at once, for its rules alone, ");
        let (_, rest) = said.split_once(&head).unwrap_or_else(|| panic!("no `{head}` in {said}"));
        rest.split_once(' ').unwrap().0.parse().unwrap()
    };
    let (first, both) = (packets("lanes        "), packets("b0: "));
    assert_eq!(both, first + 10, "{said}");
    // Without any hold, over the lane, and as the rest: in ms, by ping. Drivers write an interval
    // when they next poll, so the first pings may still wait.
    let times = said.lines().filter_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
    let times: Vec<Vec<f64>> = times
        .map(|line| line.split(['/', ' ']).take(3).map(|time| time.parse().unwrap()).collect())
        .collect();
    let [free, urgent, rest] = &times[..] else { panic!("three times in {said}") };
    let (least, most) = (free[0], urgent[2]);
    // Each is cut to a microsecond by ping. The first of the rest may come after a silence, and
    // does not wait then: their mean.
    assert!((most - least).abs() < 0.002 && rest[1] > least + 0.1, "{times:?}");
    let mut of_queue: BTreeMap<u16, Vec<(u64, usize)>> = BTreeMap::new();
    for ((queue, hold), times) in holds(&path) {
        of_queue.entry(queue).or_default().push((hold, times));
    }
    // The urgent ones, to the nanosecond; of the others, those that came within the interval.
    assert!(of_queue[&1].iter().all(|(hold, _)| *hold == 0), "{of_queue:?}");
    let waited = of_queue[&0].iter().filter(|(hold, _)| (100_000..=200_000).contains(hold));
    assert!(waited.map(|(_, times)| times).sum::<usize>() >= 8, "{of_queue:?}");
}

/// The same of a virtio device that lets its driver set key and table.
const VIRTIO: [&str; 3] = ["--queues", "2", "--rss"];
const VIRTIOS_KEY: &str = "ethtool -X b0 hkey \
    $(printf '6d:5a:56:da:25:5b:0e:c2:%.0s' 1 2 3 4 5 | sed s/:$//); ethtool -C b0 rx-usecs 50";

#[test]
fn ports_that_hash_to_a_queue_lead_there() {
    needs!("guests", "python3", "tshark", "ethtool", "ping");
    let count = "import json,sys
ports = json.load(sys.stdin)['ports']['of_peer']
print('expected', sum(port in range(2000, 3000) for port in ports))";
    let send = "import socket
for port in range(2000, 3000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(('0.0.0.0', port))
    s.sendto(b'x', ('10.9.0.2', 7))";
    let of_virtio = "ethtool -X a0 equal 1;";
    for (nic, two, on_a, entries) in
        [(&IAVF[..], TWO, "", 64), (&VIRTIO, VIRTIOS_KEY, of_virtio, 128)]
    {
        let directory = Directory::new();
        let path = directory.file("lab.pcapng");
        // The end of it is the lane's.
        let row = format!("{}:  ", entries - 8);
        let table = format!("ethtool -x b0 | grep '{row}'");
        let on_b = format!(
            "{two}; {table}; $earmark lane b0 udp-port=7 --by-hash 10.9.0.1 --json | \
             python3 -c \"{count}\"; $earmark lane b0; {table}; sleep 6; \
             $earmark rollback b0; {table}"
        );
        let on_a = format!("{on_a} sleep 3; python3 -c \"{send}\"; sleep 9");
        let said = guests(&[nic, &["--pcap", &path]].concat(), &on_a, &on_b);
        let expected = said.split_once("expected ").and_then(|(_, rest)| rest.split_once('\n'));
        let expected: usize = expected.map_or(0, |(number, _)| number.parse().unwrap());
        // One in so many, more or less: those that were named, and no others.
        let mut tshark = Command::new("tshark");
        tshark.args(["-r", &path, "-Y", "udp.dstport == 7", "-T", "fields", "-e", "frame.comment"]);
        let came = output(&mut tshark);
        let came = came.output().lines().filter(|comment| comment.contains("queue=1"));
        let (at_once, late): (Vec<_>, Vec<_>) = came.partition(|it| it.contains("hold=0.000us"));
        assert_eq!((at_once.len(), late.len()), (expected, 0), "{said}");
        assert!(expected > 5, "{said}");
        assert!(said.contains("b0: queue 1, by the choice of ports\n"), "{said}");
        let undone = format!("b0 is as it was: rss-table 0,1/{entries} queue:1:rx-usecs 50");
        assert!(said.contains(&undone), "{said}");
        let tables: Vec<&str> = said.lines().filter(|line| line.contains(&row)).collect();
        assert!(tables.len() == 3 && tables[0] == tables[2] && tables[0] != tables[1], "{said}");
    }
}

#[test]
fn rules_that_do_not_count_are_switched_on_and_off_again() {
    needs!("guests", "ethtool", "ping");
    let show = "sleep 0.2; ethtool -k b0 | grep ntuple; ethtool -n b0 2>&1 | grep 'Filter:\\|not'";
    let on_b = format!(
        "{TWO}; ethtool -K b0 ntuple off; {show}
        $earmark lane b0 tcp-port=80 --dry-run; $earmark lane b0 'length<=60' 2>&1; {show}
        $earmark lane b0 tcp-port=80 > /dev/null; {show}; $earmark rollback b0 > /dev/null; {show}
        $earmark lane b0 tcp-port=80 > /dev/null
        ethtool -N b0 flow-type udp4 dst-port 319 action 0 loc 3
        $earmark rollback b0 2>&1 | grep -v 'b0 is as it was: rss-table'; {show}
        ls $EARMARK_STATE_DIR"
    );
    let said = guests(&IAVF, "sleep 30", &on_b);
    let dry = "lost: rules do not count now; where there is room is known once they do";
    assert!(said.contains(dry) && said.contains("all packets would go to the lane"), "{said}");
    let is_shown = |line: &&str| {
        ["ntuple-", "ntuple stays", "Filter", "rxclass"].iter().any(|it| line.contains(it))
    };
    let shown: Vec<&str> = said.lines().filter(is_shown).collect();
    let (off, none) =
        ("ntuple-filters: off", "rxclass: Cannot get RX class rule count: Operation not supported");
    let on = "ntuple-filters: on";
    let expected = [
        &[off, none, off, none, on, "Filter: 124", "Filter: 125", "Filter: 126", "Filter: 127"][..],
        &[off, none],
        &["b0: ntuple stays on, for the rules that others have added since", on, "Filter: 3"],
    ];
    assert_eq!(shown, expected.concat(), "{said}");
    assert!(!said.contains(".journal"), "{said}");
}

#[test]
fn a_lane_that_is_killed_at_any_step_is_undone() {
    needs!("guests", "ethtool", "ping");
    // A rule of another program, and one of ours that the driver takes in another way.
    let on_b = "ethtool -L b0 combined 3; sleep 0.5
        ethtool -N b0 flow-type udp4 dst-port 319 action 2 loc 127; sleep 0.2
        $ntuple; sleep 0.2; look > /tmp/before
        for step in $(seq 200); do
            said=$(eval $guard EARMARK_KILL_AT=$step $earmark lane b0 \\
                \"'tcp-port=11211, vlan-priority=5'\" 2>&1) && break
            $earmark rollback b0 > /dev/null 2>&1
            sleep 0.1; look > /tmp/after
            cmp /tmp/before /tmp/after || { echo killed at $step; diff /tmp/before /tmp/after; }
        done
        echo $guard end at $step; look > /tmp/after; cmp -s /tmp/before /tmp/after && echo no lane
        $earmark lane b0 --remove > /dev/null
        sleep 0.1; look > /tmp/after; cmp /tmp/before /tmp/after; ls $EARMARK_STATE_DIR";
    // The second time rules do not count yet.
    let first = format!("guard= ntuple=true\n{on_b}\n");
    let second =
        format!("guard=EARMARK_KILL_GUARD_TOO=1 ntuple='ethtool -K b0 ntuple off'\n{on_b}\n");
    let on_b = (first + &second).replace("/tmp/", "$EARMARK_STATE_DIR.");
    let said = guests(&IAVF, "sleep 300", &format!("mkdir -p $EARMARK_STATE_DIR\n{on_b}"));
    let mut ends = 0;
    for line in said.lines() {
        match line.split_once("end at ") {
            Some((_, step)) => {
                // The journal twice, the hash's table, two settings, four rules and a fifth.
                assert!(step.parse::<u32>().unwrap() > 25, "{said}");
                ends += 1;
            }
            None => assert!(line.ends_with(".lock") || line.ends_with(".guard"), "{said}"),
        }
    }
    assert_eq!(ends, 2, "{said}");
}

#[test]
fn a_driver_without_rules_ends_with_the_reason() {
    needs!("guests", "ethtool", "ping");
    let lane = "$earmark lane b0 tcp-port=11211";
    let on_b = format!(
        "ethtool -L b0 combined 1; {lane} 2>&1; ethtool -L b0 combined 2
        {lane} 2>&1; {lane} --by-hash 10.9.0.1 2>&1
        {lane} --queue 2 2>&1; $earmark lane b0 2>&1; $earmark lane b0 --remove 2>&1
        ls $EARMARK_STATE_DIR
        for step in $(seq 100); do
            EARMARK_KILL_AT=$step $earmark apply b0 queue:1:rx-usecs 7 > /dev/null 2>&1 && break
            $earmark rollback b0 > /dev/null 2>&1
            ethtool --per-queue b0 queue_mask 2 --show-coalesce | grep rx-usecs:
        done; echo end at $step"
    );
    let said = guests(&["--queues", "2"], "sleep 100", &on_b);
    for words in [
        "has one receive queue, and a lane takes one beside it; what is left: more queues, up to \
         2: ethtool -L b0 combined 2, and this again; nothing was changed",
        "b0 (driver virtio_net) has no rules that choose a queue (ntuple); nothing is left that \
         would do the same; nothing was changed",
        "the driver does not show the table of its hash",
        "b0 has no queue 2: there are 2, from 0 on",
        "b0 has no lane; for one: earmark lane b0 tcp-port=11211",
        "Earmark has made no lane on b0",
    ] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    assert!(!said.contains(".journal"), "{said}");
    // What the driver has of a lane is put back, too.
    let (before, end) = said.rsplit_once("end at ").unwrap();
    let values: Vec<&str> = before.lines().filter(|line| line.starts_with("rx-usecs:")).collect();
    assert!(values.len() >= 14 && values.iter().all(|line| *line == "rx-usecs: 75"), "{said}");
    assert_eq!(end.trim(), (values.len() + 1).to_string());
}
