use netdev::ethtool::{Coalesce, Driver, QueueCoalesce};

use super::*;
use crate::lab::LabPort;
use netdev::ethtool::Parameter::{self, AdaptiveRx, RxFrames, RxUsecs};

fn device(driver: &str, settings: &[(Parameter, u32)]) -> Report {
    let mut coalescing = Coalesce::new();
    settings.iter().for_each(|(name, value)| coalescing.set(*name, *value));
    let driver = Some(Driver { name: driver.into(), ..Driver::default() });
    let name = "eth0".to_owned();
    Report { name, driver, coalescing: Some(coalescing), ..Report::default() }.with_delays()
}

/// What became of one rule of a device.
#[track_caller]
fn ruling(device: Report, rule: &str) -> Ruling {
    let policy = Policy::parse(&format!("[nics]\n{rule}\n")).unwrap();
    let mut checked = check(&policy, &[device]);
    assert_eq!(checked.devices[0].rules.len(), 1, "{checked:?}");
    checked.devices[0].rules.remove(0)
}

#[track_caller]
fn holds(device: Report, rule: &str) {
    let ruling = ruling(device, rule);
    assert_eq!((ruling.outcome, ruling.fix.as_ref()), (Compliance::Holds, None), "{ruling:?}");
}

#[track_caller]
fn broken(device: Report, rule: &str, found: &str, fix: &str) {
    let ruling = ruling(device, rule);
    assert_eq!(ruling.outcome, Compliance::Broken, "{ruling:?}");
    assert_eq!(ruling.found.as_deref(), Some(found), "{ruling:?}");
    assert_eq!(ruling.fix.as_deref(), Some(fix).filter(|fix| !fix.is_empty()), "{ruling:?}");
}

#[track_caller]
fn unknown(device: Report, rule: &str, why: &str) {
    let ruling = ruling(device, rule);
    assert_eq!((ruling.outcome, ruling.value), (Compliance::Unknown, None), "{ruling:?}");
    assert!(ruling.why.as_ref().unwrap().contains(why), "{ruling:?}");
}

#[test]
fn a_setting_is_held_against_its_bounds_and_mended_by_the_nearest_value() {
    let fixed = || device("bcmgenet", &[(RxUsecs, 50), (RxFrames, 16)]);
    holds(fixed(), "rx-usecs = 50");
    holds(fixed(), "rx-usecs = { min = 50, max = 60 }");
    broken(fixed(), "rx-usecs = \"< 50\"", "50us", "earmark apply eth0 rx-usecs 49");
    broken(fixed(), "rx-frames = { min = 32 }", "16", "earmark apply eth0 rx-frames 32");
    unknown(fixed(), "tx-usecs = 50", "driver bcmgenet does not report tx-usecs");
    unknown(fixed(), "adaptive-rx = \"off\"", "does not report adaptive-rx");
    unknown(Report { coalescing: None, ..fixed() }, "rx-usecs = 50", "does not report rx-usecs");
}

#[test]
fn what_the_driver_may_choose_has_to_be_allowed_as_a_whole() {
    let on = |driver| device(driver, &[(AdaptiveRx, 1), (RxUsecs, 8), (RxFrames, 4)]);
    let chosen = "0us to 256us (adaptive-rx is on: the driver chooses)";
    let off = "earmark apply eth0 adaptive-rx off rx-usecs 20";
    broken(on("mlx5_core"), "rx-usecs = { max = 20 }", chosen, off);
    holds(on("mlx5_core"), "rx-usecs = \"<= 256us\"");
    unknown(on("mlx5_core"), "rx-frames = 4", "adaptive-rx is on: the driver chooses");
    unknown(on("unheard_of"), "rx-usecs = 8", "adaptive-rx is on: the driver chooses");
    broken(on("ena"), "adaptive-rx = \"off\"", "on", "earmark apply eth0 adaptive-rx off");
}

#[test]
fn one_queue_breaks_the_rule_of_all() {
    let mut device = device("ice", &[(RxUsecs, 10)]);
    let coalesce = Coalesce::new().with(RxUsecs, 500);
    device.queue_coalescing.push(QueueCoalesce { queue: 3, coalesce });
    broken(
        device.with_delays(),
        "rx-usecs = 10",
        "500us (queue 3)",
        "earmark apply eth0 rx-usecs 10",
    );
}

#[test]
fn the_longest_hold_is_mended_where_it_comes_from() {
    let nic = || device("stmmac", &[(RxUsecs, 50)]);
    let rule = "longest-hold = \"< 50us\"";
    broken(nic(), rule, "50us (coalescing)", "earmark apply eth0 rx-usecs 49");
    let mut deferring = nic();
    deferring.files.deferral.gro_flush_timeout = Some(200_000);
    let deferring = || {
        let mut deferring = nic();
        deferring.files.deferral.gro_flush_timeout = Some(200_000);
        deferring.with_delays()
    };
    let fix = "earmark apply eth0 gro-flush-timeout 49000";
    broken(deferring(), rule, "200us (napi-deferral)", fix);
    broken(
        deferring(),
        "gro-flush-timeout = 0",
        "200000ns",
        "earmark apply eth0 gro-flush-timeout 0",
    );
    let wait = "longest-hold = \">= 8us\"";
    let none = || device("virtio_net", &[(RxUsecs, 0), (RxFrames, 1)]);
    broken(none(), wait, "0us", "earmark apply eth0 rx-usecs 8");
    holds(none(), rule);
    let mut sleepy = none();
    let state = |name: &str, latency_us| netdev::idle::IdleState {
        name: name.into(),
        latency_us,
        ..Default::default()
    };
    sleepy.files.idle.states = vec![state("C1", 2), state("C6", 133)];
    let delay = "longest-delay = \"<= 50us\"";
    broken(sleepy.with_delays(), delay, "133us (idle-state)", "cpupower idle-set -D 51");
}

#[test]
fn the_port_of_a_lab_is_held_against_rules_of_holds() {
    let port = |setting: &str| Report {
        lab: Some(LabPort { lab: "x".into(), settings: vec![setting.into()] }),
        ..device("tun", &[(RxFrames, 0)])
    };
    let rule = "longest-hold = \"<= 25us\"";
    let slow = port("delay:200").with_delays();
    broken(slow, rule, "200us (coalescing)", "earmark apply eth0 rx-usecs 25");
    holds(port("disabled").with_delays(), rule);
}

#[test]
fn a_hold_that_may_be_longer_is_unknown_unless_it_is_too_long_as_it_is() {
    let rule = "longest-hold = \"< 50us\"";
    let adaptive = || device("unheard_of", &[(AdaptiveRx, 1), (RxUsecs, 8)]);
    unknown(adaptive(), rule, "what unheard_of chooses from is not known here");
    let mut also_deferring = adaptive();
    also_deferring.files.deferral.gro_flush_timeout = Some(90_000);
    broken(
        also_deferring.with_delays(),
        rule,
        "at least 90us (napi-deferral)",
        "earmark apply eth0 gro-flush-timeout 49000",
    );
    unknown(device("r8169", &[]), rule, "driver r8169 does not report rx-usecs");
    holds(device("veth", &[]), rule);
}

#[test]
fn what_no_setting_mends_says_so() {
    let mut slow = device("ice", &[(RxUsecs, 0)]);
    slow.files.speed_mbps = Some(1_000);
    slow.timestamps = Some(netdev::ethtool::Timestamps::default());
    broken(slow, "speed = \">= 10Gbit\"", "1000Mbit", "");
    let mut slow = device("ice", &[]);
    slow.timestamps = Some(netdev::ethtool::Timestamps::default());
    broken(slow, "hardware-timestamps = \"on\"", "off", "");
    unknown(device("ice", &[]), "speed = 1000", "does not report speed");
    unknown(device("ice", &[]), "idle-latency = 0", "no idle states");
}

#[test]
fn groups_without_a_device_and_devices_without_a_group_are_named() {
    let policy =
        "[a]\nmatch = { driver = \"ice\" }\nmtu = 1\n[b]\nmatch = { name = \"x\" }\nmtu = 1";
    let checked = check(&Policy::parse(policy).unwrap(), &[device("igb", &[]), device("ice", &[])]);
    assert_eq!(checked.empty_groups, ["b"]);
    assert_eq!((checked.devices[0].groups.len(), checked.devices[0].rules.len()), (0, 0));
    assert_eq!(checked.devices[1].groups, ["a"]);
    assert_eq!(checked.count(Compliance::Unknown), 1);
}
