//! Devices that are none. What devices of a network of our own say, and how they are changed, is
//! in the command's tests (`crates/earmark/tests/namespaces`, `apply.rs` and `show.rs`).
#![allow(non_snake_case, reason = "test names are subject__case")]

use netdev::ethtool::Ethtool;

#[test]
fn no_such_device__every_reader_says_so() {
    let ethtool = Ethtool::open().unwrap();
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
