//! Rates of made-up readings.

use super::*;

fn interrupt(number: u32, handler: &str, count: u64) -> Interrupt {
    Interrupt {
        number,
        counts: vec![(0, count)],
        words: String::new(),
        handlers: vec![handler.to_owned()],
    }
}

fn queue(direction: Direction, id: u32, name: &'static str, value: u64) -> QueueCounters {
    QueueCounters { ifindex: 2, direction, id, counters: BTreeMap::from([(name, value)]) }
}

/// A NIC with two queues, `n` times a thousand packets after the start.
fn reading(start: Duration, n: u64) -> Reading {
    let link = LinkStats {
        rx_packets: 1_000 * n,
        rx_bytes: 64_000 * n,
        tx_dropped: 3 * n,
        ..LinkStats::default()
    };
    Reading {
        at: start + Duration::from_secs(2 * n),
        link,
        interrupts: vec![
            interrupt(30, "eth0", 0),
            interrupt(31, "eth0-TxRx-0", 400 * n),
            interrupt(32, "eth0-TxRx-1", 100 * n),
        ],
        softnet: vec![Softnet {
            squeezed: u32::MAX.wrapping_add(4 * u32::try_from(n).unwrap()),
            ..Softnet::default()
        }],
        queues: vec![
            queue(Direction::Tx, 0, "tx-packets", 10 * n),
            queue(Direction::Rx, 1, "rx-packets", 200 * n),
            queue(Direction::Rx, 0, "rx-packets", 800 * n),
        ],
    }
}

#[test]
fn rates_are_per_second_and_per_interrupt() {
    let start = Duration::ZERO;
    let rates = Rates::between("eth0", &BTreeMap::new(), &reading(start, 0), &reading(start, 1));
    assert_eq!((rates.seconds, rates.rx_packets_per_s, rates.drops_per_s), (2.0, 500.0, 1.5));
    assert_eq!((rates.interrupts_per_s, rates.rx_packets_per_interrupt), (Some(250.0), Some(2.0)));
    assert_eq!(rates.squeezes_per_s, 2.0);
    let queues: Vec<_> = rates
        .queues
        .iter()
        .map(|it| (it.direction, it.id, it.interrupts_per_s, it.packets_per_interrupt))
        .collect();
    let expected = [
        (Direction::Rx, 0, Some(200.0), Some(2.0)),
        (Direction::Rx, 1, Some(50.0), Some(2.0)),
        (Direction::Tx, 0, None, None),
    ];
    assert_eq!(queues, expected);
}

#[test]
fn a_driver_that_tells_its_vectors_is_believed() {
    let start = Duration::ZERO;
    let reported = BTreeMap::from([(0, 32), (1, 31)]);
    let rates = Rates::between("eth0", &reported, &reading(start, 0), &reading(start, 1));
    let interrupts: Vec<_> = rates.queues.iter().map(|it| it.interrupts_per_s).collect();
    assert_eq!(interrupts, [Some(50.0), Some(200.0), None]);
}

#[test]
fn counters_that_go_back_are_no_rate() {
    let start = Duration::ZERO;
    let mut after = reading(start, 0);
    after.at = start + Duration::from_secs(1);
    let rates = Rates::between("eth0", &BTreeMap::new(), &reading(start, 1), &after);
    assert_eq!((rates.rx_packets_per_s, rates.rx_packets_per_interrupt), (0.0, None));
}

#[test]
fn names_tell_what_an_interrupt_is_for() {
    let role = |name: &str| InterruptRole::of(&[name.to_owned()]);
    assert_eq!(role("virtio2-input.0"), InterruptRole::Receive);
    assert_eq!(role("virtio2-output.0"), InterruptRole::Transmit);
    assert_eq!(role("virtio2-config"), InterruptRole::Other);
    assert_eq!(role("eth0-Tx-Rx-7"), InterruptRole::Both);
    assert_eq!(role("mlx5_comp0@pci:0000:17:00.0"), InterruptRole::Unnamed);
    assert_eq!(number_of("mlx5_comp12@pci:0000:17:00.0"), Some(12));
    assert_eq!((number_of("eth0-Tx-Rx-7"), number_of("eth0:wol")), (Some(7), None));
}
