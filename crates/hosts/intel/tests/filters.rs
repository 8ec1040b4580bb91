//! Frames that a driver has not asked for, at the port of a card.

mod support;

use intel::{Adapter, Model};
use support::bus::Rig;

#[test]
fn a_filtered_frame_neither_starts_a_timer_nor_takes_a_place() {
    // In the order of the settings: the registers decide, everything interrupts, a delay, marks.
    for setting in [0, 2, 3, 4] {
        for model in [Model::E82574, Model::E82545] {
            let mut rig = Rig::new(Adapter::Card(model), 1, 0, setting);
            support::device::start(&mut rig, 0);
            // It receives, and is not promiscuous.
            rig.set(0x0100, 0x0400_8022);
            let before = rig.bench.port.deadline();
            for to in [[2, 0, 0, 0, 0, 99], [0x33, 0x33, 0, 0, 0, 9]] {
                rig.bench.arrive(&[&to[..], &[2, 0, 0, 0, 0, 11, 8, 0]].concat(), 60);
            }
            rig.bench.round();
            let counters = |rig: &Rig| {
                let counters = rig.bench.port.port.counters();
                (counters.packets, counters.ring_full, counters.interrupts_total())
            };
            assert_eq!(counters(&rig), (0, 0, 0), "{model:?}, setting {setting}");
            assert_eq!(rig.bench.port.deadline(), before, "{model:?}, setting {setting}");
            rig.bench.arrive(&[2, 0, 0, 0, 0, 10, 2, 0, 0, 0, 0, 11, 8, 0], 60);
            rig.bench.round();
            assert_eq!(counters(&rig).0, 1, "{model:?}, setting {setting}");
        }
    }
}
