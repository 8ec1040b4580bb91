use std::collections::BTreeSet;

use super::*;
use crate::ethtool::Coalesce;
use Parameter::{AdaptiveRx, RxFrames, RxUsecs, RxUsecsHigh};

fn settings(values: &[(Parameter, u32)]) -> Coalesce {
    values.iter().fold(Coalesce::new(), |all, (name, value)| all.with(*name, *value))
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
    let on = [(AdaptiveRx, 1), (RxUsecs, 49)];
    for (driver, words) in [
        ("sfc", "the longest that the driver chooses"),
        ("mlx5_core", "what it is without adaptive-rx, not what is in force"),
        ("bcmgenet", "what the driver has chosen last"),
        ("bnx2", "under adaptive-rx; what it is for bnx2 is not known here"),
    ] {
        assert_eq!(says(driver, &on, RxUsecs).unwrap(), words);
    }
}
