//! `ethtool -C` of a guest in virtual time: what is left of tolerance is how fine figures are, as
//! reading the clock takes a guest 256 ns.

use crate::support::results::assert_near;
use crate::support::{needs, run};

/// Round trips, each sent as soon as the last one is back, under one `ethtool -C` after the other:
/// microseconds set, and the median in nanoseconds.
const ASK: &str = r#"exec python3 -c '
import socket, statistics, subprocess, time
asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asker.connect(("10.9.0.2", 7))
def ask():
    begin = time.monotonic_ns()
    asker.send(b"."), asker.recv(64)
    return time.monotonic_ns() - begin
for usecs in 0, 50, 125, 393, 1000:
    subprocess.run(["ethtool", "-C", "a0", "rx-usecs", str(usecs)], check=True)
    warm_up = [ask() for _ in range(5)]
    print(usecs, statistics.median(ask() for _ in range(21)))
'"#;

const ECHO: &str = r#"exec python3 -c '
import socket
echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
echo.bind(("10.9.0.2", 7))
while True: echo.sendto(*echo.recvfrom(64))
'"#;

/// What a guest sets, and the round trip in microseconds that it then has.
#[track_caller]
fn round_trips(setting: &str) -> Vec<(f64, f64)> {
    let lab = ["lab", "run", "--time", "virtual", "--ports", "a", "--strategy", setting];
    let ended = run(&[&lab[..], &["--on", "b", ECHO, "--on", "a", ASK]].concat());
    let numbers = |line: &str| -> Option<(f64, f64)> {
        let (usecs, nanos) = line.split_once(' ')?;
        Some((usecs.parse().ok()?, nanos.parse::<f64>().ok()? / 1e3))
    };
    let times: Option<Vec<_>> = ended.output().lines().map(numbers).collect();
    let times = times.unwrap_or_else(|| panic!("{ended:?}"));
    assert_eq!(times.len(), 5, "{ended:?}");
    times
}

#[test]
fn guests_ethtool_moves_the_round_trip_by_what_it_says() {
    needs!("guests", "ethtool", "python3");
    let delayed = round_trips("delay:75");
    let (_, base) = delayed[0];
    assert_near(base, 41.6, 0.3, "two ways over the cable");
    for (usecs, time) in delayed {
        assert_near(time, base + usecs, 0.3, "a delay is added");
    }
    for (usecs, time) in round_trips("throttle:75") {
        // The period, without the looks at the clock between two round trips.
        assert_near(time, usecs.max(base), 0.6, "a throttle is a least period");
    }
}
