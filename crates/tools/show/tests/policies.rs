//! The policies that come with Earmark, on recorded devices.

use netdev::ethtool::{Coalesce, Driver, Parameter};
use netdev::read_device;
use netdev::tlv::parse;
use show::Report;
use show::check::{BUILT_IN, Compliance, Policy, check};

#[path = "../../../linux/netdev/tests/device_samples/recorded.rs"]
mod recorded;
#[path = "../../../linux/netdev/tests/device_samples/tree.rs"]
mod tree;
use tree::Tree;

/// The files of a recorded machine, as they are read on it.
fn of_files(tree: &str, name: &str) -> Report {
    let files = read_device(&Tree::unpack(tree).root(), name).unwrap();
    Report { name: name.into(), files, ..Report::default() }
}

/// The same with what its driver would say of coalescing.
fn with_settings(device: Report, settings: &[(Parameter, u32)]) -> Report {
    let coalescing = settings.iter().fold(Coalesce::new(), |all, (name, it)| all.with(*name, *it));
    Report { coalescing: Some(coalescing), ..device }.with_delays()
}

/// The recorded answers of the kernel about a device; some drivers have no such settings.
fn of_answers(driver: &str) -> Report {
    let first = |request| recorded::all(driver).find(|(name, _)| name == request).map(|it| it.1);
    Report {
        name: "eth0".into(),
        driver: Some(Driver { name: driver.into(), ..Driver::default() }),
        coalescing: first("coalesce").map(|it| parse(&it).unwrap()),
        rings: first("rings").map(|it| parse(&it).unwrap()),
        features: first("features").map(|it| parse(&it).unwrap()),
        timestamps: first("timestamps").map(|it| parse(&it).unwrap()),
        ..Report::default()
    }
    .with_delays()
}

fn devices() -> Vec<(&'static str, Report)> {
    use Parameter::{AdaptiveRx, RxUsecs};
    vec![
        ("igb", with_settings(of_files("igb", "enp1s0f0"), &[(RxUsecs, 3)])),
        ("mlx5", with_settings(of_files("mlx5", "eth2"), &[(AdaptiveRx, 1), (RxUsecs, 8)])),
        ("ena", with_settings(of_files("ena", "eth0"), &[(AdaptiveRx, 0), (RxUsecs, 20)])),
        ("stmmac", of_files("stmmac", "end0").with_delays()),
        ("virtio_net", of_answers("virtio_net")),
        ("veth", of_answers("veth")),
    ]
}

/// What became of each rule, in letters.
fn letters(policy: &str, device: &Report) -> String {
    let (_, text) = BUILT_IN.iter().find(|(name, _)| *name == policy).unwrap();
    let checked = check(&Policy::parse(text).unwrap(), std::slice::from_ref(device));
    let letter = |outcome| match outcome {
        Compliance::Holds => "holds",
        Compliance::Broken => "BROKEN",
        Compliance::Unknown => "unknown",
    };
    let words = checked.devices[0].rules.iter();
    words.map(|it| format!("{}:{}", it.rule, letter(it.outcome))).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_policy_says_of_recorded_devices_what_is_true_of_them() {
    let mut found = String::new();
    for (policy, _) in BUILT_IN {
        for (name, device) in devices() {
            found += &format!("{policy} {name} {}\n", letters(policy, &device));
        }
    }
    assert_eq!(found, include_str!("policies.txt"), "\n{found}");
}
