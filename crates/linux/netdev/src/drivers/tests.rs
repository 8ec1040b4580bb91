use std::collections::BTreeSet;

use super::*;
use crate::ethtool::Coalesce;
use Parameter::{AdaptiveRx, CqeModeRx, RxFrames, RxUsecs, RxUsecsHigh, RxUsecsLow};

fn settings(values: &[(Parameter, u32)]) -> Coalesce {
    values.iter().fold(Coalesce::new(), |all, (name, value)| all.with(*name, *value))
}

/// The bound of a lone packet's wait, and a part of what is said of it.
#[track_caller]
fn waits(driver: &str, values: &[(Parameter, u32)], bound: Bound, words: &str) {
    let wait = wait(driver, &settings(values)).unwrap_or_else(|| panic!("{driver}: no wait"));
    assert_eq!(wait.bound, bound, "{driver}: {}", wait.what);
    assert!(wait.what.contains(words), "{driver}: {}", wait.what);
}

#[track_caller]
fn no_wait(driver: &str, values: &[(Parameter, u32)]) {
    assert_eq!(wait(driver, &settings(values)), None, "{driver}");
}

#[test]
fn each_row_is_read_and_has_a_source() {
    let (table, _) = table();
    let mut known = BTreeSet::new();
    let mut source = |name: &str, field: &str, row: &toml::Value| {
        let sources = row.get("source").and_then(|sources| sources.as_array());
        let sources = sources.filter(|sources| !sources.is_empty());
        for source in sources.unwrap_or_else(|| panic!("{name}.{field} has no source")) {
            let mut words = source.as_str().unwrap().split_whitespace();
            let file = words.next().unwrap().to_owned();
            assert!(words.next().is_some(), "{name}.{field}: {source} names no symbol");
            known.insert(file);
        }
    };
    for (name, value) in &table.drivers {
        let Some(fields) = value.as_table() else { continue };
        if name == "unknown" {
            continue;
        }
        fields.iter().for_each(|(field, row)| source(name, field, row));
        if let Err(why) = read(value) {
            panic!("{name}: {why}");
        }
    }
    let unknown = table.drivers["unknown"]["files"].as_array().unwrap();
    for file in unknown.iter().map(|file| file.as_str().unwrap()) {
        let half = file == "drivers/net/ethernet/emulex/benet/be_ethtool.c";
        assert!(half || !known.contains(file), "{file} is known and unknown");
    }
    let other = table.names.keys().find(|name| !table.drivers.contains_key(*name));
    assert_eq!(other, None, "other names of a driver without rows");
}

#[test]
fn a_time_of_zero_is_off_only_where_it_is() {
    use Bound::{Endless, Unknown, Us};
    for driver in ["igb", "ixgbe", "ice", "i40e", "sfc", "ena", "mlx4_en", "fec", "enetc"] {
        no_wait(driver, &[(RxUsecs, 0), (RxFrames, 64)]);
    }
    for driver in ["bcmgenet", "bcmsysport", "cxgb4", "cxgb4vf"] {
        waits(driver, &[(RxUsecs, 0), (RxFrames, 12)], Endless, "until 12 packets have come");
    }
    waits("cxgb4", &[(RxFrames, 23)], Endless, "however long");
    waits("virtio_net", &[(RxFrames, 23)], Unknown, "not known here");
    let words = "what bnx2 does then is not known here";
    waits("bnx2", &[(RxUsecs, 0), (RxFrames, 12)], Unknown, words);
    waits("mlx5_core", &[(RxUsecs, 0), (RxFrames, 64)], Unknown, "not known here");
    // Limits that ethtool does not show.
    waits("vmxnet3", &[(RxUsecs, 0), (RxFrames, 64)], Us(4_000.0), "no longer than 4000 us");
    waits("bnxt_en", &[(RxUsecs, 0), (RxFrames, 30)], Us(1.0), "the shortest time");
    // Off by the header; and what nothing else can be.
    for driver in ["bcmgenet", "virtio_net", "bnx2", "mlx5_core", "vmxnet3", "unheard_of"] {
        no_wait(driver, &[(RxUsecs, 0), (RxFrames, 1)]);
        no_wait(driver, &[(RxUsecs, 0), (RxFrames, 0)]);
        no_wait(driver, &[(RxUsecs, 0)]);
    }
    assert!(lacks_timer("bnx2", &settings(&[(RxUsecs, 0), (RxFrames, 12)])).is_some());
    let adaptive = settings(&[(AdaptiveRx, 1), (RxUsecs, 0), (RxFrames, 12)]);
    assert_eq!(lacks_timer("bnx2", &adaptive), None);
    assert_eq!(lacks_timer("bnx2", &settings(&[(RxUsecs, 9), (RxFrames, 12)])), None);
}

#[test]
fn a_time_is_a_hold_a_gap_a_code_or_not_known() {
    use Bound::Us;
    let one = |usecs, frames| [(RxUsecs, usecs), (RxFrames, frames)];
    waits("bcmgenet", &one(57, 16), Us(57.0), "57 have passed or 16 packets have come");
    no_wait("bcmgenet", &one(57, 1));
    waits("tg3", &one(20, 5), Us(20.0), "after a longer silence does not wait");
    waits("ice", &[(RxUsecs, 50)], Us(50.0), "between two interrupts");
    waits("igb", &[(RxUsecs, 3)], Us(375.0), "the driver chooses");
    waits("igb", &[(RxUsecs, 2)], Us(2.0), "between two interrupts");
    waits("igbvf", &[(RxUsecs, 2)], Us(250.0), "the driver chooses");
    waits("ixgbevf", &[(RxUsecs, 1)], Us(84.0), "the driver chooses");
    waits("bnx2", &one(18, 12), Us(18.0), "what bnx2 does is not known here");
    waits("unheard_of", &[(RxUsecs, 9)], Us(9.0), "usually the first packet waits");
    // Taken by the driver, and not what the hardware does.
    no_wait("st_gmac", &one(300, 16));
    waits("stmmac", &one(60, 0), Us(60.0), "rx-usecs 60 have passed");
    no_wait("fec", &one(1_000, 0));
    no_wait("enetc", &one(0, 256));
    no_wait("tun", &[(RxFrames, 64)]);
    waits("mlx5_core", &[(RxUsecs, 16), (CqeModeRx, 1)], Us(16.0), "starts the time anew");
}

#[test]
fn the_highest_value_is_a_gap_a_ceiling_or_a_range() {
    use Bound::{Unknown, Us};
    let off = |driver, bound: f64, words| {
        waits(driver, &[(RxUsecs, 0), (RxUsecsHigh, 40)], Us(bound), words);
        waits(driver, &[(RxUsecs, 50), (RxUsecsHigh, 40)], Us(50.0), "at least rx-usecs 50");
    };
    for driver in ["ice", "i40e", "hns3"] {
        off(driver, 40.0, "at least rx-usecs-high 40 between two interrupts");
    }
    let on = |high| [(AdaptiveRx, 1), (RxUsecs, 50), (RxUsecsHigh, high)];
    waits("ice", &on(200), Us(126.0), "between 0 and 126 us");
    waits("i40e", &on(200), Us(200.0), "between 0 and 200 us");
    waits("be2net", &on(96), Us(96.0), "between 0 and 96 us, now 50");
    waits("unheard_of", &on(40), Unknown, "what unheard_of chooses from is not known here");
    no_wait("hns", &[(RxUsecs, 0), (RxUsecsHigh, 1_023)]);
    let low = [(AdaptiveRx, 1), (RxUsecsLow, 4), (RxUsecsHigh, 128)];
    waits("mlx4_en", &low, Us(128.0), "between 4 and 128 us");
}

#[test]
fn under_adaptive_moderation_rx_usecs_is_what_the_driver_makes_of_it() {
    use Bound::Us;
    let on = [(AdaptiveRx, 1), (RxUsecs, 49)];
    waits("sfc", &on, Us(49.0), "between 0 and 49 us");
    waits("bcmgenet", &on, Us(256.0), "between 0 and 256 us, now 49");
    let all = settings(&on);
    let says = |driver| meaning(driver, &all, RxUsecs, 49).unwrap();
    assert_eq!(says("sfc"), "the longest that the driver chooses");
    assert_eq!(says("mlx5_core"), "what it is without adaptive-rx, not what is in force");
    assert_eq!(says("bcmgenet"), "what the driver has chosen last");
    assert!(says("bnx2").contains("not known here"));
    // mlx5_core reports what was configured, so nothing is said of now.
    assert!(wait("mlx5_core", &all).unwrap().what.ends_with("between 0 and 256 us"));
}

#[test]
fn words_say_what_a_packet_feels() {
    let says = |driver, values: &[(Parameter, u32)], name: Parameter| {
        let all = settings(values);
        meaning(driver, &all, name, all.get(name).unwrap())
    };
    let pair = [(RxUsecs, 0), (RxFrames, 12)];
    let at_once = "it interrupts for a packet at once";
    assert_eq!(says("igb", &pair, RxUsecs).unwrap(), at_once);
    assert_eq!(says("bnx2", &[(RxUsecs, 0), (RxFrames, 1)], RxUsecs).unwrap(), at_once);
    for driver in ["bnx2", "cxgb4"] {
        let words = "no time ends the wait; off is rx-usecs 0 and rx-frames 1";
        assert_eq!(says(driver, &pair, RxUsecs).unwrap(), words);
    }
    let high = [(RxUsecs, 0), (RxUsecsHigh, 40)];
    assert!(says("ice", &high, RxUsecsHigh).unwrap().contains("a limit of the interrupts' rate"));
    assert!(says("ice", &high, RxUsecs).unwrap().contains("another limit"));
    assert_eq!(says("unheard_of", &high, RxUsecsHigh), None);
    assert!(says("fec", &[(RxUsecs, 9), (RxFrames, 0)], RxFrames).unwrap().contains("off"));
}

#[test]
fn a_delay_that_no_command_shows_is_of_some_cards() {
    assert_eq!(receive_delay("e1000e", "8086:10d3"), Some(32.768));
    assert_eq!(receive_delay("e1000e", "8086:153a"), None);
    assert_eq!(receive_delay("igb", "8086:10d3"), None);
    assert!(is_software("veth") && !is_software("igb"));
}
