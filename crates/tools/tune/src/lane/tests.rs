//! Plans for devices as their drivers in Linux describe them, and a lane on one that takes some
//! rules.

use netdev::ethtool::{FlowRules, HashFields, Rss};

use super::*;
use crate::testing::{FakeDevice, Scratch, identity, state};
use crate::transaction::{current, put_back};

/// iavf with four queues: everything.
fn whole() -> Capabilities {
    Capabilities {
        device: "eth0".into(),
        driver: "driver iavf".into(),
        queues: 4,
        max_queues: Some(16),
        ntuple: Some(false),
        rules: Some(FlowRules { size: 128, chooses: false, locations: vec![127, 5] }),
        there: Vec::new(),
        rss: Some(Rss {
            table: [0, 1, 2, 3].repeat(16),
            key: nic::rss::DEFAULT_KEY.to_vec(),
            function: 1,
            transform: 0,
        }),
        tcp_hash: Some(HashFields { addresses: true, ports: true }),
        udp_hash: Some(HashFields { addresses: true, ports: false }),
        per_queue: true,
        may_wait: false,
        state: state(
            "adaptive-rx on rx-usecs 50 queue:0:smp-affinity 0-3 queue:3:smp-affinity 0-3 \
             queue:0:xps-cpus none queue:1:xps-cpus 1-2 queue:3:xps-cpus none",
        ),
    }
}

fn wanted(packets: &str) -> Wanted {
    Wanted { packets: packets.into(), ..Wanted::default() }
}

/// A device that differs from [`whole`] by these words.
fn differing(words: &str) -> Capabilities {
    let mut device = whole();
    let rule = |text: &str| text.parse().unwrap();
    for word in words.split(' ') {
        match word.split_once(':').unwrap_or((word, "")) {
            ("whole", _) => {}
            ("state", settings) => device.state = state(&settings.replace(['=', ','], " ")),
            ("may-wait", _) => device.may_wait = true,
            ("one-coalescing", _) => device.per_queue = false,
            ("no-rules", _) => device.rules = None,
            ("no-table", _) => device.rss = None,
            ("queues", number) => device.queues = number.parse().unwrap(),
            ("most", number) => device.max_queues = number.parse().ok(),
            ("full", _) => {
                let locations = vec![0, 1, 2];
                device.rules = Some(FlowRules { size: 4, chooses: false, locations });
            }
            ("chooses", _) => {
                let locations = vec![0, 1, 2];
                device.rules = Some(FlowRules { size: 4, chooses: true, locations });
            }
            ("there", _) => {
                device.there = vec![
                    Placed { location: Some(5), rule: rule("tcp4,src-port:11211,queue:3") },
                    Placed { location: Some(127), rule: rule("tcp4,dst-port:11211,queue:2") },
                ];
            }
            (other, _) => panic!("{other} is no difference"),
        }
    }
    device
}

/// What becomes of `PACKETS; OPTION N ...` on a device.
fn planned(words: &str, lane: &str) -> Result<String, Refusal> {
    let (packets, options) = lane.split_once("; ").unwrap_or((lane, ""));
    let mut wanted = wanted(packets);
    for option in options.split(' ').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap();
        let number: u16 = value.parse().unwrap();
        match name {
            "queue" => wanted.queue = Some(number),
            "rx-usecs" => wanted.rx_usecs = number.into(),
            "rest-usecs" => wanted.rest_usecs = Some(number.into()),
            "cpu" => wanted.cpu = Some(number.into()),
            _ => wanted.by_hash = Some(([10, 0, 0, 1].into(), [10, 0, 0, 2].into())),
        }
    }
    let plan = plan(&wanted, &differing(words))?;
    let places = plan.places.iter().map(|place| place.map_or("any".into(), |it| it.to_string()));
    let ports = plan.ports.as_ref().map(|ports| format!("; {} ports", ports.of_peer.len()));
    Ok(format!(
        "queue {}: {}; at {}; {} settings{}; lost: {}",
        plan.queue,
        plan.change,
        places.collect::<Vec<_>>().join(" "),
        plan.settings().len(),
        ports.unwrap_or_default(),
        plan.lost.join(" | ")
    ))
}

#[test]
fn each_device_has_the_lane_that_it_can_have() {
    let expected = include_str!("plans.txt");
    let line = |line: &str| {
        let (device, lane) = line.split_once(" < ").unwrap();
        let said = planned(device, lane).unwrap_or_else(|why| format!("refused: {why}"));
        format!("{line}\n  {}\n", said.trim_end())
    };
    let now: String = expected.lines().filter(|it| !it.starts_with(' ')).map(line).collect();
    assert_eq!(now, expected, "\n{now}");
}

fn device(takes_rules: &'static [&'static str]) -> FakeDevice {
    let mut device = FakeDevice::new(
        "eth0",
        "ntuple off rss-table 0,1,2,3/64 adaptive-rx on rx-usecs 50 queue:3:adaptive-rx on \
         queue:3:rx-usecs 50",
    );
    device.takes_rules = takes_rules;
    device
}

/// Makes a lane, without a guard, as `earmark lane` does.
fn make_lane(device: &FakeDevice, store: &Store, packets: &str) -> Result<Made> {
    let capabilities = Capabilities { state: device.read()?, ..whole() };
    let plan = plan(&wanted(packets), &capabilities)?;
    let mut transaction = Transaction::prepare(device, store, "lane", plan.settings(), false)?;
    let made = make(&mut transaction, &plan)?;
    transaction.keep()?;
    Ok(made)
}

#[test]
fn a_driver_takes_what_it_can_and_the_rest_is_said() {
    let (scratch, device) = (Scratch::new(), device(&["tcp4", "ip4,tos:184,"]));
    let (store, before) = (scratch.store(), device.read().unwrap());
    let made = make_lane(&device, &store, "tcp-port=11211, dscp=46").unwrap();
    let rules: Vec<String> = made.rules.iter().map(|(placed, _)| placed.to_string()).collect();
    let expected = [
        "126:tcp4,dst-port:11211,queue:3",
        "125:tcp4,src-port:11211,queue:3",
        "122:ip4,tos:184,queue:3",
    ];
    assert_eq!(rules, expected);
    for words in [
        "takes no rule tcp6,dst-port:11211,queue:3: Operation not supported",
        "takes no rule ip6,tos:184,queue:3",
        "congestion notification",
    ] {
        assert!(made.lost.iter().any(|lost| lost.contains(words)), "{words}: {:?}", made.lost);
    }
    // All of it goes by the journal.
    let journal = current(&store, &device).unwrap();
    assert_eq!(queues_of_lanes(&journal), [3]);
    assert_eq!(of_lanes(&journal).len(), journal.kept.len());
    put_back(&device, &journal.first()).unwrap();
    assert_eq!(device.read().unwrap().only(|it| it.placed().is_none()), before);
}

#[test]
fn without_its_lane_a_queue_is_as_its_device_has_become() {
    let mut journal = Journal::new("boot", identity("eth0"));
    let change = |journal: &mut Journal, before: &str, after: &str| {
        journal.keep(crate::journal::changed(&state(before), &state(after), &[]));
    };
    // By hand, then a lane with `--rest-usecs`, then by hand again.
    change(&mut journal, "rx-usecs 3", "rx-usecs 50");
    let rule = "rule:7:tcp4,dst-port:80,queue:1";
    change(
        &mut journal,
        &format!("rx-usecs 50 queue:1:rx-usecs 50 queue:2:rx-usecs 50 {rule} off"),
        &format!("rx-usecs 100 queue:1:rx-usecs 0 queue:2:rx-usecs 8 {rule} on"),
    );
    change(&mut journal, "rx-usecs 100", "rx-usecs 200");
    let now = state(&format!("rx-usecs 200 queue:1:rx-usecs 0 queue:2:rx-usecs 8 {rule} on"));
    let without = without_lanes(&journal, &now);
    assert_eq!(without.to_string(), format!("queue:1:rx-usecs 200 {rule} off"));
    // The whole way back is to what was first.
    let first = format!("rx-usecs 3 queue:1:rx-usecs 3 queue:2:rx-usecs 3 {rule} off");
    assert_eq!(journal.first().to_string(), first);
    // One that had a value of its own gets that.
    let mut journal = Journal::new("boot", identity("eth0"));
    let both = ["rx-usecs 50 queue:1:rx-usecs 8", "rx-usecs 100 queue:1:rx-usecs 0"];
    change(&mut journal, &format!("{} {rule} off", both[0]), &format!("{} {rule} on", both[1]));
    let without = without_lanes(&journal, &state(both[1]));
    assert_eq!(without.get(Setting::RxUsecs.of_queue(1).unwrap()), Some(&Value::Number(8)));
}

#[test]
fn where_no_rule_is_taken_there_is_a_reason_and_nothing_is_kept() {
    for (takes, left) in [
        (&["ether"][..], "what is left: VLAN priority, for senders that set it: earmark lane eth0"),
        (&[], "nothing is left"),
    ] {
        let (scratch, device) = (Scratch::new(), device(takes));
        let lane = make_lane(&device, &scratch.store(), "tcp-port=11211");
        let said = format!("{:#}", lane.unwrap_err());
        assert!(said.contains("takes none of the rules") && said.contains(left), "{said}");
        assert!(scratch.store().all().is_empty());
    }
}
