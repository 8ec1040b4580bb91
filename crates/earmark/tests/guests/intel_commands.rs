//! What the commands for real hosts say of Intel's unmodified drivers in guests.

use crate::support::{EARMARK, has, needs, run};

/// What guest b says that plays this script, `$earmark` being the command, while guest a does the
/// other.
#[track_caller]
fn guests(nic: &str, on_a: &str, on_b: &str) -> String {
    let [on_a, on_b] = [on_a, on_b].map(|script| format!("earmark={EARMARK}\n{script}"));
    let words = ["lab", "run", "--time", "virtual", "--nic", nic, "--link-rate", "1000"];
    let ended = run(&[&words[..], &["--on", "a", &on_a, "--on", "b", &on_b]].concat());
    ended.output().replace('\n', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn e1000e_has_a_delay_that_only_its_card_tells_of() {
    needs!("guests", "ethtool", "ping");
    // Its throttle is off, so that the delay is all there is.
    let on_b =
        "exec 2>&1; $earmark show b0; $earmark apply b0 rx-usecs 7; $earmark apply b0 tx-usecs 50
        $earmark apply b0 rx-usecs 125; $earmark rollback b0; ethtool -c b0
        ethtool -C b0 rx-usecs 0; $earmark explain -- ping -c 1 a; sleep 30";
    let on_a = "sleep 3; ethtool -C a0 rx-usecs 0; ping -c 1 b; $earmark probe b --kind icmp";
    has(
        &guests("e1000e", on_a, on_b),
        &[
            "rx-usecs 3 means that the driver chooses the gap between two interrupts",
            "the driver sets a receive delay (RDTR) of 32.768 us on this card",
            "set rx-usecs 7 on b0: change the coalescing of b0: Invalid argument",
            "b0 (driver e1000e) has no tx-usecs; it has rx-usecs,",
            "b0: rx-usecs 3 -> 125 way back: earmark rollback b0",
            "b0 is as it was: rx-usecs 3",
            " rx-usecs: 3 ",
            "this kernel gives no BTF",
            "a delay of 32.",
        ],
    );
}

#[test]
fn e1000_has_a_rate_and_nothing_else() {
    needs!("guests", "ethtool", "ping");
    let on_b = "exec 2>&1; $earmark show b0; $earmark apply b0 adaptive-rx off
        $earmark apply b0 rx-usecs 50; $earmark persist b0 rx-usecs --as systemd
        $earmark rollback b0; ethtool -c b0";
    let said = guests("e1000", "true", on_b);
    has(
        &said,
        &[
            "b0 (driver e1000) has no adaptive-rx; it has rx-usecs,",
            "b0: rx-usecs 3 -> 50",
            "[Link] NamePolicy=",
            "RxCoalesceSec=50us",
            "b0 is as it was: rx-usecs 3",
            " rx-usecs: 3 ",
        ],
    );
    assert!(!said.contains("RDTR"), "{said}");
}

#[test]
fn iavf_rounds_and_takes_no_value_beside_its_own_moderation() {
    needs!("guests", "ethtool", "ping");
    let on_b = "exec 2>&1; $earmark show b0; $earmark apply b0 rx-usecs 60
        $earmark apply b0 adaptive-rx off rx-usecs 51
        $earmark persist b0 rx-usecs --as systemd; $earmark rollback b0; ethtool -c b0
        ethtool -C b0 adaptive-rx off adaptive-tx off tx-usecs 0 rx-usecs 120
        $earmark echo --listen 10.9.0.2 & sleep 40; kill $!";
    let on_a = "ethtool -C a0 adaptive-rx off adaptive-tx off tx-usecs 0 rx-usecs 0
        sleep 6; $earmark probe b --kind udp";
    has(
        &guests("iavf", on_a, on_b),
        &[
            "adaptive-rx is on: the driver chooses rx-usecs by the traffic, between 0 and 126 us",
            "set rx-usecs 60 on b0: adaptive-rx is on, which may be why: add adaptive-rx off",
            "b0: rx-usecs 50 -> 52: the device made 52 of 51",
            "UseAdaptiveRxCoalesce=no RxCoalesceSec=52us",
            "b0 is as it was: adaptive-rx on rx-usecs 50",
            "Adaptive RX: on",
            "a throttle of 12",
            "at the far host's receiving",
        ],
    );
}
