//! Round trips of a datagram over the range of `rx-usecs`, against what the registers mean.
//!
//! ```text
//!   round trip = max(wire, what the intervals of both hosts leave)
//! ```
//!
//! Both hosts have the same interval, so a round trip that would be shorter takes exactly one: each
//! interrupt comes one interval after the last. Under `e1000` it takes two, one for what was sent
//! and one for what came, since both share a vector. Under `iavf` they share one as well, but have
//! intervals of their own, and that for what was sent is 0 here.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// A byte in a datagram, so a frame of least length, there and back over the usual cable: 20 us and
/// 84 bytes at 1 Gbit/s, each way.
const WIRE_NS: u64 = 2 * (20_000 + 84 * 8);

/// What a guest's reading of a clock takes (docs/virtual-time.md).
const CLOCK_NS: u64 = 256;

/// The least, the most that e1000e takes, and what is between; 43 is just above the wire's time.
const RX_USECS: [u32; 18] =
    [0, 10, 15, 20, 25, 30, 40, 43, 50, 60, 75, 80, 100, 125, 200, 250, 500, 1_000];

/// Round trips of a batch, and batches at each value, of which the median counts: every 2 seconds a
/// driver's watchdog interrupts, too.
const ROUND_TRIPS: u32 = 100;
const BATCHES: usize = 5;

/// How far the mean may be from theory: the readings of the clock at either end, shared out.
const TOLERANCE_NS: f64 = 2.0 * CLOCK_NS as f64 / ROUND_TRIPS as f64;

/// What programs write in a lab in virtual time with a case's NIC and these options.
pub(super) type Lab<'a> = dyn Fn(&[&str]) -> Result<String> + 'a;

/// A driver, and what is known of it.
pub(super) struct Case {
    pub(super) nic: &'static str,
    pub(super) what: &'static str,
    driver_options: Option<&'static str>,
    /// Further settings of `ethtool -C`.
    settings: &'static str,
    /// The round trip in ns at this `rx-usecs`.
    round_trip: fn(u32) -> u64,
}

pub(super) const CASES: [Case; 4] = [
    Case {
        nic: "e1000e",
        what: "round trips over rx-usecs, no receive delay",
        driver_options: Some("RxIntDelay=0,RxAbsIntDelay=0"),
        settings: "",
        round_trip: |usecs| WIRE_NS.max(itr_ns(usecs)),
    },
    Case {
        nic: "e1000e",
        what: "round trips over rx-usecs, receive delay as the driver has it",
        driver_options: None,
        settings: "",
        // RDTR and RADV: 32 ticks of 1.024 us on either host.
        round_trip: |usecs| (WIRE_NS + 2 * 32 * 1_024).max(itr_ns(usecs)),
    },
    Case {
        nic: "e1000",
        what: "round trips over rx-usecs",
        driver_options: None,
        settings: "",
        round_trip: |usecs| WIRE_NS.max(2 * itr_ns(usecs)),
    },
    Case {
        nic: "iavf",
        what: "round trips over rx-usecs, not adaptive",
        driver_options: None,
        settings: "adaptive-rx off adaptive-tx off tx-usecs 0",
        // Steps of 2 us, rounded up.
        round_trip: |usecs| WIRE_NS.max(u64::from(usecs.next_multiple_of(2)) * 1_000),
    },
];

/// `ITR` in ns: `e1000_set_coalesce` makes a rate of `rx-usecs`, `e1000_write_itr` makes ticks of
/// 256 ns of that, both in whole numbers.
fn itr_ns(usecs: u32) -> u64 {
    let rate = 1_000_000_u64.checked_div(usecs.into());
    rate.map_or(0, |rate| 1_000_000_000 / (rate * 256) * 256)
}

/// The name of the largest difference in a report.
pub(super) const LARGEST: &str = "largest_difference_ns";

fn rounded(ns: f64) -> f64 {
    (ns * 100.0).round() / 100.0
}

const SERVER: &str = "import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 7))
while True: s.sendto(*s.recvfrom(64))";

/// A lost datagram ends it with an error, not with waiting. The kernel's timeout costs nothing;
/// Python's own reads the clock.
const CLIENT: &str = "import socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('10.9.0.2', 7))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', 1, 0))
def play(count):
    start = time.monotonic_ns()
    for _ in range(count): s.send(b'x'), s.recv(64)
    return time.monotonic_ns() - start
play(20)
count, batches = map(int, sys.argv[1:])
print('ns', sorted(play(count) for _ in range(batches))[batches // 2])";

impl Case {
    /// Plays all values twice in a lab with these options; means, theory, and how far they are
    /// apart.
    ///
    /// # Errors
    /// If the two runs differ, or a mean is not what theory says.
    pub(super) fn play(&self, lab: &Lab<'_>) -> Result<Value> {
        let seen = self.run(lab)?;
        ensure!(seen == self.run(lab)?, "two runs differ");
        let (mut rows, mut largest) = (Vec::new(), 0.0_f64);
        for (usecs, total) in RX_USECS.into_iter().zip(seen) {
            let mean = total as f64 / f64::from(ROUND_TRIPS);
            let expected = (self.round_trip)(usecs);
            let difference = mean - expected as f64;
            largest = largest.max(difference.abs());
            rows.push(json!({
                "rx_usecs": usecs,
                "expected_ns": expected,
                "mean_ns": mean,
                "difference_ns": rounded(difference),
            }));
            let told = format!("rx-usecs {usecs}: {mean} ns, theory {expected}");
            ensure!(difference.abs() <= TOLERANCE_NS, "{told}");
        }
        Ok(json!({ LARGEST: rounded(largest), "values": rows }))
    }

    /// What the round trips of a batch took together at each value, in ns.
    fn run(&self, lab: &Lab<'_>) -> Result<Vec<u64>> {
        let values = RX_USECS.map(|usecs| usecs.to_string()).join(" ");
        // Four seconds for each value, of which the client has the last two; the first round trips
        // are for drivers that write an interval when they next poll.
        let on = |host: char, then: &str| {
            let set = format!("ethtool -C {host}0 {} rx-usecs $usecs", self.settings);
            format!("sleep 1\nfor usecs in {values}; do {set}; {then}; done")
        };
        let on_b = format!("python3 -c \"{SERVER}\" & {}", on('b', "sleep 4"));
        let client = format!("python3 -c \"{CLIENT}\" {ROUND_TRIPS} {BATCHES}");
        let on_a = on('a', &format!("sleep 2; {client} & sleep 2; wait"));
        let mut options: Vec<&str> = vec!["--link-rate", "1000"];
        options.extend(self.driver_options.iter().flat_map(|told| ["--driver-options", told]));
        options.extend(["--on", "b", &on_b, "--on", "a", &on_a]);
        let text = lab(&options)?;
        let seen = text.lines().filter_map(|line| line.strip_prefix("ns ")?.parse().ok());
        let seen: Vec<u64> = seen.collect();
        ensure!(seen.len() == RX_USECS.len(), "{} results in {text}", seen.len());
        Ok(seen)
    }
}
