//! Devices of a network of our own: read, changed, and read back.
//!
//! These tests need root, or the rights that `become_capable` gives, /dev/net/tun, and
//! ethtool.
#![allow(non_snake_case, reason = "test names are subject__case")]

use std::process::Command;

use lab::host::Host;
use lab::station::Station;
use lab::tap::Tap;
use netdev::deferral::{Deferral, read_deferral, write_deferral};
use netdev::ethtool::{Coalesce, Ethtool, Parameter};
use netdev::netdev::{NapiChange, Netdev};
use netdev::{Root, list_devices, read_device};
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
fn veth__defers_interrupts_as_it_is_told() {
    let host = host_with_veth();
    ok(host.enter_net(|| {
        let root = Root::here();
        assert!(root.is_of_network(), "the files of this network cannot be read");
        assert_eq!(ok(list_devices(&root)), ["lo", "one", "two"]);
        let none = Deferral {
            gro_flush_timeout: Some(0),
            napi_defer_hard_irqs: Some(0),
            threaded: Some(0),
        };
        assert_eq!(ok(read_deferral(&root, "one")), none);
        let wanted = Deferral {
            gro_flush_timeout: Some(200_000),
            napi_defer_hard_irqs: Some(2),
            threaded: None,
        };
        ok(write_deferral(&root, "one", &wanted));
        assert_eq!(ok(read_deferral(&root, "one")), Deferral { threaded: Some(0), ..wanted });
        assert_eq!(ok(read_deferral(&root, "two")), none);

        let refused = Deferral { napi_defer_hard_irqs: Some(u64::MAX), ..Deferral::default() };
        let refused = write_deferral(&root, "one", &refused).expect_err("no such number");
        assert!(refused.to_string().contains("/class/net/one/napi_defer_hard_irqs"), "{refused}");
        let missing = read_deferral(&root, "three").expect_err("there is none");
        assert!(missing.to_string().contains("No such file"), "{missing}");
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

#[test]
fn napi__of_a_veth_that_has_gro__is_read_and_changed() {
    let netdev = match Netdev::open() {
        Ok(netdev) => netdev,
        // Before Linux 6.3.
        Err(error) => return assert!(error.is_unsupported(), "{error}"),
    };
    drop(netdev);
    let host = host_with_veth();
    let netdev = ok(ok(host.enter_net(Netdev::open)));
    let before = netdev.napis("one");
    if let Err(error) = &before {
        // Before Linux 6.8.
        return assert!(error.is_unsupported(), "{error}");
    }
    assert_eq!(ok(before), [], "without GRO a veth has no NAPI instance");
    let error = netdev.set_napi(1, &NapiChange::default()).expect_err("there is none");
    assert!(error.to_string().starts_with("change NAPI instance 1: "), "{error}");

    let gro = ok(host.output(Command::new("ethtool").args(["-K", "one", "gro", "on"])));
    assert!(gro.status.success(), "{gro:?}");
    let [napi] = ok(netdev.napis("one"))[..] else { panic!("not one") };
    assert_eq!(ok(netdev.queues("one")).len(), 2, "one for each direction");
    if napi.irq_suspend_timeout.is_none() {
        // Before Linux 6.13 an instance has no settings of its own.
        return;
    }
    let change = NapiChange {
        defer_hard_irqs: Some(7),
        gro_flush_timeout: Some(30_000),
        irq_suspend_timeout: Some(1_000_000),
        threaded: None,
    };
    ok(netdev.set_napi(napi.id, &change));
    let [after] = ok(netdev.napis("one"))[..] else { panic!("not one") };
    assert_eq!((after.defer_hard_irqs, after.gro_flush_timeout), (Some(7), Some(30_000)));
    assert_eq!((after.id, after.irq_suspend_timeout), (napi.id, Some(1_000_000)));
}

#[test]
fn files__of_the_loopback_of_another_network() {
    let host = host_with_veth();
    ok(host.enter_net(|| {
        let root = Root::here();
        let device = ok(read_device(&root, "one"));
        assert_eq!((device.driver, device.bus), (None, None));
        assert!(device.interrupts.is_empty() && !device.softnet.is_empty());
        assert_eq!(device.statistics.get("rx_dropped"), Some(&0));
        assert_eq!(device.steering.len(), 2);
        assert!(read_device(&root, "eth0").is_err());
    }));
}
