//! Devices of a network of our own: read, changed, and read back.
//!
//! These tests need root, or the rights that `become_capable` gives, and /dev/net/tun. What is
//! changed by files and over the `netdev` family, the command's tests change
//! (`crates/earmark/tests/apply.rs`).
#![allow(non_snake_case, reason = "test names are subject__case")]

use lab::host::Host;
use lab::station::Station;
use lab::tap::Tap;
use netdev::ethtool::{Coalesce, Ethtool, Parameter};
use sys::netlink::Netlink;

#[path = "../../../hosts/lab/tests/common/mod.rs"]
mod common;
use common::ok;

/// A host with a pair of devices, `one` and `two`.
fn host_with_veth() -> Host {
    let host = ok(Host::create("a", &[Station::new("a", 1)]));
    ok(ok(host.enter_net(|| {
        let netlink = Netlink::open()?;
        netlink.add_veth("one", "two")?;
        netlink.up("one")?;
        netlink.up("two")
    })));
    host
}

fn host_with_tap() -> (Host, Tap) {
    let host = ok(Host::create("a", &[Station::new("a", 1)]));
    let tap = ok(Tap::create(&host, "tap", 1, 1500));
    (host, tap)
}

#[test]
fn tap__takes_its_only_parameter_and_says_so() {
    let (host, _tap) = host_with_tap();
    let ethtool = ok(ok(host.enter_net(Ethtool::open)));
    let before = ok(ethtool.coalesce("tap"));
    assert_eq!(before, Coalesce::new().with(Parameter::RxFrames, 0));

    let change = Coalesce::new().with(Parameter::RxFrames, 16);
    ok(ethtool.set_coalesce("tap", &change));
    assert_eq!(ok(ethtool.coalesce("tap")), change);
    assert_eq!(ok(ethtool.driver("tap")).name, "tun");

    let refused = ethtool.set_coalesce("tap", &Coalesce::new().with(Parameter::RxUsecs, 9));
    let refused = refused.expect_err("it has no timer");
    assert!(refused.is_unsupported() && !refused.is_denied());
    let text = refused.to_string();
    assert!(text.starts_with("change the coalescing of tap: "), "{text}");
    assert!(text.contains("unsupported parameter"), "the kernel's own sentence is missing: {text}");
    assert!(text.ends_with("what it offers: earmark show tap"), "{text}");
}

#[test]
fn veth__has_no_rules_and_says_so() {
    let host = host_with_veth();
    ok(host.enter_net(|| {
        let ethtool = ok(Ethtool::open());
        let rule = "tcp4,dst-port:7,queue:0".parse().unwrap();
        for refused in [
            ethtool.flow_rules("one").map(drop),
            ethtool.rss("one").map(drop),
            ethtool.set_rss_table("one", &[0, 0]),
            ethtool.insert_flow_rule("one", Some(0), &rule),
            ethtool.delete_flow_rule("one", 0),
            ethtool.set_ntuple("one", true),
        ] {
            let refused = refused.expect_err("it has one queue and no rules");
            let text = refused.to_string();
            assert!(refused.is_unsupported() || text.contains("Invalid"), "{text}");
        }
        assert!(!ok(ethtool.has_ntuple("one")));
        assert!(ethtool.flow_rules("nosuch").expect_err("no device").is_no_device());
    }));
}

#[test]
fn veth__as_its_driver_tells_it() {
    let host = host_with_veth();
    let ethtool = ok(ok(host.enter_net(Ethtool::open)));
    assert_eq!(ok(ethtool.driver("one")).name, "veth");
    let link = ok(ethtool.link("one"));
    assert_eq!((link.speed_mbps, link.is_up), (Some(10_000), Some(true)));
    assert_eq!(ok(ethtool.channels("one")).receiving(), 1);
    let features = ok(ethtool.features("one"));
    assert!(features.is_on("tx-checksum-ip-generic") && features.is_offered("rx-gro"));
    assert!(!features.is_offered("rx-lro"));
    assert!(ok(ethtool.timestamps("one")).capabilities.contains("software-receive"));
    assert!(ok(ethtool.statistics("one")).contains_key("peer_ifindex"));
    assert!(ethtool.coalesce("one").expect_err("it has none").is_unsupported());
    assert!(ethtool.rings("one").expect_err("it has none").is_unsupported());
    assert!(ethtool.queue_coalesce("one", 1).expect_err("it has none").is_unsupported());
}

#[test]
fn no_such_device__every_reader_says_so() {
    let ethtool = ok(Ethtool::open());
    for name in ["no-such", "", "a-name-that-is-far-too-long", "../lo"] {
        assert!(ethtool.coalesce(name).expect_err("there is none").is_no_device(), "{name}");
        assert!(ethtool.driver(name).expect_err("there is none").is_no_device(), "{name}");
        assert!(ethtool.features(name).expect_err("there is none").is_no_device(), "{name}");
    }
    let error = ethtool.rings("no-such").expect_err("there is none").to_string();
    assert!(
        error.starts_with("read the rings of no-such: No such device (os error 19)"),
        "{error}"
    );
    assert!(error.ends_with("; list the devices with: ip link"), "{error}");
}
