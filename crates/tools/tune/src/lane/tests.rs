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

#[track_caller]
fn refused(wanted: &Wanted, device: &Capabilities) -> String {
    plan(wanted, device).unwrap_err().to_string()
}

#[test]
fn where_no_time_ends_the_wait_a_single_frame_does() {
    let device =
        |may_wait| Capabilities { may_wait, state: state("rx-usecs 50 rx-frames 64"), ..whole() };
    let change =
        |device: &Capabilities| plan(&wanted("tcp-port=11211"), device).unwrap().change.to_string();
    assert!(change(&device(true)).contains("queue:3:rx-usecs 0 queue:3:rx-frames 1"));
    assert!(!change(&device(false)).contains("rx-frames"));
    let single = Capabilities { state: state("rx-usecs 50 rx-frames 1"), ..device(true) };
    assert!(!change(&single).contains("rx-frames"));
}

#[test]
fn a_device_with_everything_has_a_whole_lane() {
    let plan = plan(&wanted("tcp-port=11211"), &whole()).unwrap();
    let expected = "ntuple on rss-table 0,1,2,0:2,1,2,1,0,1,2:2/64 queue:3:adaptive-rx off \
                    queue:3:rx-usecs 0";
    assert_eq!(plan.change.to_string(), expected);
    assert_eq!((plan.queue, &plan.places[..]), (3, &[126, 125, 124, 123].map(Some)[..]));
    assert!(plan.lost.is_empty(), "{:?}", plan.lost);
    // All that may be tried is in the journal first.
    assert_eq!(plan.settings().len(), 4 + 4 + 1);
}

#[test]
fn rules_that_are_there_stay_where_they_are() {
    let rule = |text: &str| text.parse().unwrap();
    let there = vec![
        Placed { location: Some(5), rule: rule("tcp4,src-port:11211,queue:3") },
        Placed { location: Some(127), rule: rule("tcp4,dst-port:11211,queue:2") },
    ];
    let plan = plan(&wanted("tcp-port=11211"), &Capabilities { there, ..whole() }).unwrap();
    assert_eq!(plan.places, [126, 5, 125, 124].map(Some), "only what leads to the same queue");
}

#[test]
fn a_driver_that_chooses_places_is_let() {
    let rules = Some(FlowRules { size: 4, chooses: true, locations: vec![0, 1, 2] });
    let plan = plan(&wanted("tcp-port=11211"), &Capabilities { rules, ..whole() }).unwrap();
    assert_eq!(plan.places, [None; 4]);
    let settings = plan.settings();
    assert!(settings.iter().any(|it| it.name() == "rule:any:tcp4,dst-port:11211,queue:3"));
}

#[test]
fn what_is_given_for_a_lane_counts() {
    let given = Wanted {
        queue: Some(1),
        rx_usecs: 8,
        rest_usecs: Some(100),
        cpu: Some(2),
        ..wanted("udp-port=7")
    };
    let plan = plan(&given, &whole()).unwrap();
    let expected = "ntuple on rss-table 0:2,2,3,0,2:2,3,0,3,2,3/64 adaptive-rx off rx-usecs 100 \
                    queue:1:adaptive-rx off queue:1:rx-usecs 8 queue:1:xps-cpus 2";
    assert_eq!(plan.change.to_string(), expected);
    // Its interrupt is not known.
    assert_eq!(plan.lost, ["which processor its interrupt goes to cannot be chosen on eth0"]);
    let given = Wanted { queue: Some(3), ..given };
    let plan = super::plan(&given, &whole()).unwrap();
    let text = plan.change.to_string();
    for words in [
        "queue:3:smp-affinity 2 queue:0:smp-affinity 0-1,3",
        "queue:3:xps-cpus 2 queue:1:xps-cpus 1",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_missing_part_is_lost_and_said() {
    // igb: one value for all queues, and a hash whose table can be set.
    let igb = Capabilities { per_queue: false, state: state("rx-usecs 3"), ..whole() };
    let made = plan(&wanted("ethertype=0x88f7"), &igb).unwrap();
    assert!(made.lost[0].contains("one coalescing for all queues"), "{:?}", made.lost);
    assert!(made.lost[0].contains("(rx-usecs 3), but not behind them"), "{:?}", made.lost);
    let at_once = Capabilities { state: state("rx-usecs 0"), ..igb };
    assert!(plan(&wanted("mx"), &at_once).unwrap().lost.len() == 1, "only what mx cannot");
    let silent = Capabilities { rss: None, ..whole() };
    let made = plan(&wanted("dscp=46"), &silent).unwrap();
    assert!(made.lost[0].contains("does not show the table of its hash"), "{:?}", made.lost);
    let bare = Capabilities { state: State::default(), ..whole() };
    let made = plan(&wanted("dscp=46"), &bare).unwrap();
    assert!(made.lost[0].contains("no coalescing to set"), "{:?}", made.lost);
}

#[test]
fn without_rules_or_queues_there_is_a_reason_and_what_is_left() {
    let (no_rules, packets) = (Capabilities { rules: None, ..whole() }, wanted("tcp-port=7"));
    let said = refused(&packets, &no_rules);
    let hash = "what is left: a far host that chooses its port numbers by the hash: earmark lane \
                eth0 'tcp-port=7' --by-hash HOST; nothing was changed";
    assert!(said.contains("has no rules that choose a queue") && said.contains(hash), "{said}");
    let said = refused(&wanted("dscp=46"), &no_rules);
    assert!(said.contains("nothing is left that would do the same"), "{said}");
    let virtio = Capabilities { rules: None, rss: None, ..whole() };
    assert!(refused(&packets, &virtio).contains("nothing is left"), "no hash either");

    let single = Capabilities { queues: 1, ..whole() };
    let said = refused(&packets, &single);
    assert!(said.contains("up to 16: ethtool -L eth0 combined 2"), "{said}");
    let said = refused(&packets, &Capabilities { max_queues: Some(1), ..single });
    assert!(said.contains("one receive queue") && said.contains("nothing is left"), "{said}");

    let full = FlowRules { size: 4, chooses: false, locations: vec![0, 1, 2] };
    let said = refused(&packets, &Capabilities { rules: Some(full), ..whole() });
    assert!(said.contains("has 1 places for rules left, and this takes 3 more"), "{said}");
    let said = refused(&Wanted { queue: Some(4), ..packets }, &whole());
    assert!(said.contains("has no queue 4: there are 4, from 0 on"), "{said}");
}

#[test]
fn ports_are_chosen_where_the_hash_is_known() {
    let hosts = Some(("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()));
    let by_hash = Wanted { by_hash: hosts, ..wanted("tcp-port=11211") };
    let plan = plan(&by_hash, &Capabilities { rules: None, ..whole() }).unwrap();
    let expected = "queue:3:adaptive-rx off queue:3:rx-usecs 0";
    let table = plan.change.get(Setting::RssTable).unwrap().to_string();
    let table = parse_table(&table).unwrap();
    assert_eq!(table.iter().filter(|queue| **queue == 3).count(), 1, "{table:?}");
    assert_eq!(plan.change.without(|it| it == Setting::RssTable).to_string(), expected);
    assert!(plan.candidates.is_empty() && plan.lost[0].contains("one in 64"), "{plan:?}");
    assert!(plan.ports.unwrap().of_peer.len() > 800);

    let udp = Wanted { by_hash: hosts, ..wanted("udp-port=7") };
    let said = refused(&udp, &whole());
    assert!(said.contains("ports are not in the hash of udp4") && said.contains("sdfn"), "{said}");
    let said = refused(&Wanted { by_hash: hosts, ..wanted("dscp=46") }, &whole());
    assert!(said.contains("for one port of a service alone"), "{said}");
    let said = refused(&by_hash, &Capabilities { rss: None, ..whole() });
    assert!(said.contains("does not show the table"), "{said}");
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
