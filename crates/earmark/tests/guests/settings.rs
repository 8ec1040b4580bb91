//! Guests set our NIC queue by queue; inside and outside agree.

use serde_json::Value;

use crate::support::{Lab, needs};

/// A lab of guests whose NICs have two queues, both in use on a.
#[track_caller]
fn lab() -> Lab {
    let mut lab = Lab::start(&["--hosts", "uml", "--queues", "2", "--strategy", "delay:75"]);
    assert_eq!(lab.ask("ethtool -L a0 combined 2").0, 0);
    lab
}

/// `rx_usecs` and `rx_frames` of each queue of `port`, as the NIC has them.
#[track_caller]
fn outside(lab: &Lab, port: &str) -> Vec<(u64, u64)> {
    let ports = lab.show();
    let port = ports.as_array().unwrap().iter().find(|shown| shown["port"] == port).unwrap();
    let number = |queue: &Value, name: &str| queue[name].as_u64().unwrap();
    let queues = port["queues"].as_array().unwrap().iter();
    queues.map(|queue| (number(queue, "rx_usecs"), number(queue, "rx_frames"))).collect()
}

/// The numbers that stand behind `name:` in what a script says on host a.
#[track_caller]
fn inside(lab: &mut Lab, script: &str, name: &str) -> Vec<u64> {
    let (status, text) = lab.ask(script);
    assert_eq!(status, 0, "{text}");
    let values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    values.map(|value| value.trim().parse().unwrap()).collect()
}

#[test]
fn all_queues_are_set_at_once_and_shown_alike() {
    needs!("guests");
    let mut lab = lab();
    for (usecs, frames) in [(125, 1), (393, 32), (0, 1), (50, 1)] {
        let set = format!("ethtool -C a0 rx-usecs {usecs} rx-frames {frames}");
        assert_eq!(lab.ask(&set).0, 0);
        // One frame is what an interrupt takes anyway, and no bound of ours.
        let bound = if frames == 1 || usecs == 0 { 0 } else { frames };
        assert_eq!(outside(&lab, "a0"), [(usecs, bound), (usecs, bound)]);
        assert_eq!(inside(&mut lab, "ethtool -c a0", "rx-usecs"), [usecs]);
        assert_eq!(inside(&mut lab, "ethtool -c a0", "rx-frames"), [frames]);
    }
    lab.end().output();
}
