//! Answers of netlink that were recorded.

use netdev::ethtool::{
    Channels, Coalesce, Eee, Features, Link, LinkState, Parameter, Rings, Strings, Timestamps,
    parse_flow_rule, parse_rss,
};
use netdev::netdev::{Direction, Napi, Threaded, parse_napi, parse_queue, parse_queue_counters};
use netdev::tlv::parse;

use crate::recorded::{answer, answers};

#[test]
fn virtio_net__settings() {
    let coalesce = parse::<Coalesce>(&answer("virtio_net", "coalesce")).unwrap();
    let expected = [
        (Parameter::RxUsecs, 0),
        (Parameter::RxFrames, 1),
        (Parameter::TxUsecs, 0),
        (Parameter::TxFrames, 1),
        (Parameter::AdaptiveRx, 0),
    ];
    assert_eq!(coalesce.iter().collect::<Vec<_>>(), expected);
    assert_eq!(coalesce.is_on(Parameter::AdaptiveRx), Some(false));
    assert_eq!(coalesce.is_on(Parameter::AdaptiveTx), None);

    let rings = parse::<Rings>(&answer("virtio_net", "rings")).unwrap();
    assert_eq!((rings.rx, rings.rx_max, rings.rx_mini), (Some(256), Some(256), None));
    let channels = parse::<Channels>(&answer("virtio_net", "channels")).unwrap();
    assert_eq!((channels.combined, channels.receiving(), channels.rx), (Some(1), 1, None));
    let link = parse::<Link>(&answer("virtio_net", "link_modes")).unwrap();
    assert_eq!((link.speed_mbps, link.is_full_duplex), (None, None));
    assert_eq!(parse(&answer("virtio_net", "link_state")), Ok(LinkState(Some(true))));
}

#[test]
fn virtio_net__names() {
    let features = parse::<Features>(&answer("virtio_net", "features")).unwrap();
    assert!(features.is_on("rx-gro") && !features.is_on("rx-lro"), "{features:?}");
    let timestamps = parse::<Timestamps>(&answer("virtio_net", "timestamps")).unwrap();
    let names: Vec<_> = timestamps.capabilities.iter().map(String::as_str).collect();
    assert_eq!(names, ["software-receive", "software-system-clock", "software-transmit"]);
    assert_eq!(timestamps.phc_index, None);
    assert!(!timestamps.has_hardware_receive());
    let Strings(strings) = parse(&answer("virtio_net", "strings")).unwrap();
    assert_eq!((strings.len(), &*strings[0], &*strings[19]), (20, "rx_drops", "tx0_tx_timeouts"));
}

#[test]
fn virtio_net__queues() {
    let napis: Vec<Napi> =
        answers("virtio_net", "napi").iter().map(|napi| parse_napi(napi).unwrap()).collect();
    let first = napis[0];
    assert_eq!((first.defer_hard_irqs, first.gro_flush_timeout), (Some(0), Some(0)));
    assert_eq!((first.irq_suspend_timeout, first.threaded), (Some(0), Some(Threaded::Disabled)));
    assert_eq!((first.irq, first.pid), (None, None));
    let queues = answers("virtio_net", "queues");
    let queues: Vec<_> = queues.iter().map(|queue| parse_queue(queue).unwrap()).collect();
    assert_eq!(queues[0].direction, Direction::Rx);
    assert_eq!(queues[0].napi, Some(first.id));
    let counters = answers("virtio_net", "queue_counters");
    let counters: Vec<_> = counters.iter().map(|one| parse_queue_counters(one).unwrap()).collect();
    assert_eq!((counters[0].direction, counters[1].direction), (Direction::Rx, Direction::Tx));
    assert!(counters[0].counters["rx-packets"] > 0 && counters[1].counters["tx-bytes"] > 0);
    assert!(!counters[0].counters.contains_key("tx-packets"));
}

#[test]
fn veth__all() {
    assert!(answers("veth", "coalesce").is_empty(), "it has none");
    let link = parse::<Link>(&answer("veth", "link_modes")).unwrap();
    assert_eq!((link.speed_mbps, link.is_full_duplex), (Some(10_000), Some(true)));
    let features = parse::<Features>(&answer("veth", "features")).unwrap();
    assert!(features.is_on("rx-gro") && !features.is_offered("rx-lro"));
    let channels = parse::<Channels>(&answer("veth", "channels")).unwrap();
    assert_eq!((channels.rx, channels.combined, channels.receiving()), (Some(1), None, 1));
    assert_eq!(parse_napi(&answer("veth", "napi")).unwrap().threaded, Some(Threaded::Disabled));
}

/// The rules that a driver answered, as text; those that cannot be said as nothing.
fn rules(driver: &str) -> Vec<String> {
    let rules = answers(driver, "rule");
    let text = |bytes: &Vec<u8>| parse_flow_rule(bytes).map(|rule| rule.to_string());
    rules.iter().map(|bytes| text(bytes).unwrap_or_default()).collect()
}

#[test]
fn iavf__rules_and_hash() {
    let expected = [
        "tcp4,dst-port:11211,queue:1",
        // It sets the version, whose mask the user did not name.
        "ip4,tos:184,queue:1",
        "udp6,src-ip:fe80::1,dst-port:7,queue:0",
        "ether,ethertype:0x86df,drop",
    ];
    assert_eq!(rules("iavf"), expected);
    let rss = parse_rss(&words(&answer("iavf", "rss")));
    assert_eq!((rss.table.len(), rss.key.len()), (64, 52));
    assert_eq!((&rss.table[..3], &rss.key[..2]), (&[0, 1, 0][..], &[0x28, 0x92][..]));
    assert!(rss.is_toeplitz());
}

#[test]
fn igb_and_ixgbe__rules_as_their_sources_have_them() {
    let expected = ["ether,vlan:40960/0xe000,queue:2", "ether,ethertype:0x88f7,queue:1", ""];
    assert_eq!(rules("igb"), expected, "the last is by a MAC address");
    let expected = ["tcp4,dst-port:11211,queue:3", "", "udp4,src-port:123,drop"];
    assert_eq!(rules("ixgbe"), expected, "the second is of a pool");
}

#[test]
fn igb__a_link_that_sleeps_and_a_thread_that_does_not() {
    let eee = parse::<Eee>(&answer("igb", "eee")).unwrap();
    let (active, enabled, tx_lpi_enabled) = (true, true, true);
    assert_eq!(eee, Eee { active, enabled, tx_lpi_enabled, tx_lpi_timer_us: 0 });
    let napi = parse_napi(&answer("igb", "napi")).unwrap();
    assert_eq!((napi.threaded, napi.pid), (Some(Threaded::BusyPoll), Some(733)));
    assert_eq!(napi.irq_suspend_timeout, Some(20_000_000));
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |four: &[u8]| u32::from_ne_bytes([four[0], four[1], four[2], four[3]]);
    bytes.chunks_exact(4).map(word).collect()
}
