//! Ways in which guests get at packets, beside moderation by the NIC: in virtual time they are
//! exact. Guests here have Linux 6.12, which cannot suspend interrupts.

use serde_json::Value;

use crate::support::results::results;
use crate::support::{needs, run};

/// What `bench` measures of each of `modes` under `delay:75`: a round trip in microseconds,
/// interrupts, and the part of the packets that busy polling brought in.
fn measured(experiment: &str, modes: &str) -> Vec<(f64, u64, Option<f64>)> {
    let options = "--warmup 0.005 --duration 0.01 --strategy delay:75";
    let results = results(&format!("{experiment} {options} --poll {modes}"));
    let figures = |it: &Value| {
        let packets = it["packets"].as_f64().unwrap();
        let polled = it["busy_polled"].as_f64().map(|polled| polled / packets);
        (it["latency_us"]["p50"].as_f64().unwrap(), it["interrupts"].as_u64().unwrap(), polled)
    };
    results.iter().map(figures).collect()
}

#[test]
fn who_polls_does_not_wait_for_the_nic() {
    needs!("guests");
    for experiment in ["tcp-rr", "udp-rr"] {
        let modes = "epoll,defer:50,busy,so-busy-poll,io-uring,busy:20";
        let [epoll, defer, busy, reads, ring, short] = measured(experiment, modes)[..] else {
            panic!("six modes")
        };
        // The cable takes 41.3 us there and back, each hold 75, the clock's readings up to 2.
        assert!((191.3..=193.3).contains(&epoll.0), "{experiment}: {epoll:?}");
        assert_eq!(epoll.2, None);
        // The kernel's timer has ended long before the packet comes, and interrupts are on again.
        assert!((epoll.0 - defer.0).abs() < 0.6, "{experiment}: {defer:?}");
        assert_eq!((defer.1, defer.2), (epoll.1, Some(0.0)));
        for polls in [busy, reads] {
            assert!((41.3..=46.0).contains(&polls.0), "{experiment}: {polls:?}");
            assert_eq!(polls.1, 0, "the NIC waits for 75 us, and they find the packet");
            assert!(polls.2.unwrap() > 0.99, "{experiment}: {polls:?}");
        }
        // An io_uring polls once the kernel has seen by which NAPI instance packets come.
        assert!((41.3..=46.0).contains(&ring.0), "{experiment}: {ring:?}");
        assert!(ring.1 <= 2 && ring.2.unwrap() > 0.98, "{experiment}: {ring:?}");
        // It sleeps before the answer is there, and nothing has been gained.
        assert!((epoll.0 - short.0).abs() < 0.6, "{experiment}: {short:?}");
        assert_eq!(short.2, Some(0.0));
    }
}

#[test]
fn a_sender_that_waits_for_completions_sends_a_ring_full_of_frames_in_each_interval() {
    needs!("guests");
    let options = ["--world", "virtual", "--warmup", "0.01", "--duration", "0.05", "--json"];
    let apply =
        ["--apply", "tx-usecs 1000 tx-frames 256", "--apply", "tx-usecs 10000 tx-frames 256"];
    let comparison = run(&[&["bench", "pps"], &options[..], &apply].concat()).json();
    let rates = comparison["results"].as_array().unwrap().iter();
    let rates: Vec<f64> = rates.map(|it| it["datagrams_per_s"].as_f64().unwrap()).collect();
    // A frame is 0.67 us of a gigabit; the ring has 256, and is full while the driver waits.
    assert!((218_000.0..=256_000.0).contains(&rates[0]), "{rates:?}");
    assert_eq!(rates[1], 25_600.0);
}
