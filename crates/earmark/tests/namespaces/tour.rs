//! `earmark tour`: every step is played, and says only what its command has printed.

use crate::support::{has, needs, run};

#[test]
fn the_tour_plays_all_steps_on_one_device() {
    needs!("lab");
    let ended = run(&["tour"]);
    // What is measured depends on what the machine does besides.
    assert!(ended.code == 0 || ended.stdout.contains(" of 6 steps showed"), "{ended:?}");
    for command in ["show a0", "probe b", "explain b", "tune a0 --peer b", "persist a0", "rollback"]
    {
        has(&ended.stdout, &[&format!("\n$ earmark {command}")]);
    }
    has(
        &ended.stdout,
        &[
            "Up to 500 us:   the NIC of lab ",
            "=> This NIC may hold a packet for 500 us",
            "[fd09::2]:7007 by udp: ",
            "(the NIC of lab ",
            "earmark show",
        ],
    );
    // What explain has found, the tour sees in its words.
    let flat = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let cause = flat.split("Typical, ").nth(1).and_then(|typical| typical.split("): ").nth(1));
    if cause.is_some_and(|cause| cause.starts_with("this NIC holds")) {
        has(&flat, &["% of a request is that hold"]);
    }
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
}
