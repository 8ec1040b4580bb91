use super::*;
use alloc::vec;
use alloc::vec::Vec;
use base::prng::MILLION;
use proptest::prelude::*;

const US: fn(u64) -> Instant = Instant::from_micros;
const NS: fn(u64) -> Instant = Instant::from_nanos;
const FOREVER: Instant = Instant::from_nanos(u64::MAX);

/// A frame of 60 bytes that differs from others.
fn frame(id: u8) -> Vec<u8> {
    vec![id; 60]
}

/// Sends frames 0, 1, 2, ... at once.
fn burst(settings: LinkSettings, count: u8) -> Link<Vec<u8>> {
    let mut link = Link::new(settings, 1_000);
    for id in 0..count {
        // A lost frame is counted.
        let _ = link.send(US(0), frame(id));
    }
    link
}

/// Everything that arrives: when, and which.
fn arrivals(link: &mut Link<Vec<u8>>) -> Vec<(u64, u8)> {
    core::iter::from_fn(|| link.receive(FOREVER))
        .map(|(at, frame)| (at.as_nanos(), frame[0]))
        .collect()
}

#[test]
fn nothing_is_received_before_it_arrives() {
    let latency = Duration::from_micros(10);
    let mut link = Link::new(LinkSettings { latency, ..LinkSettings::default() }, 4);
    link.send(US(1), frame(1)).unwrap();
    assert_eq!(link.next_arrival(), Some(US(11)));
    assert_eq!(link.receive(NS(10_999)), None);
    assert_eq!(link.receive(US(12)), Some((US(11), frame(1))));
}

#[test]
fn smallest_frame_takes_672_ns_at_a_gigabit() {
    let settings = LinkSettings { rate_mbit: Some(1_000), ..LinkSettings::default() };
    let mut link = Link::new(settings, 8);
    link.send(US(0), vec![1; 10]).unwrap(); // padded to 60
    link.send(US(0), vec![2; 60]).unwrap(); // waits for the first
    link.send(US(0), vec![3; 61]).unwrap();
    link.send(US(10), vec![4; 1514]).unwrap(); // the wire is idle again
    let expected = [(672, 1), (1_344, 2), (2_024, 3), (22_304, 4)];
    assert_eq!(arrivals(&mut link), expected);
}

#[test]
fn rate_zero_is_no_limit() {
    let settings = LinkSettings { rate_mbit: Some(0), ..LinkSettings::default() };
    assert_eq!(arrivals(&mut burst(settings, 2)), [(0, 0), (0, 1)]);
}

#[test]
fn full_link_gives_the_frame_back() {
    let mut link = Link::new(LinkSettings::default(), 2);
    link.send(US(0), frame(1)).unwrap();
    link.send(US(0), frame(2)).unwrap();
    let refused = link.send(US(0), frame(3));
    assert_eq!(refused, Err(Dropped::Overflowed(frame(3))));
    assert_eq!(refused.unwrap_err().into_frame(), frame(3));
    assert_eq!((link.counters().overflowed, link.in_flight()), (1, 2));
    link.receive(US(0)).unwrap();
    assert_eq!(link.send(US(0), frame(4)), Ok(()));
}

#[test]
fn lost_frame_takes_its_time_on_the_wire() {
    let settings = LinkSettings {
        rate_mbit: Some(1_000),
        loss_ppm: MILLION / 2,
        seed: 1,
        ..LinkSettings::default()
    };
    let mut link = burst(settings, 100);
    let arrived = arrivals(&mut link);
    assert!(arrived.iter().all(|&(at, id)| at == 672 * (u64::from(id) + 1)));
    assert_eq!(link.counters().lost, 100 - arrived.len() as u64);
    assert!(arrived.len().abs_diff(50) < 25, "{} arrived", arrived.len());
}

#[test]
fn duplicate_follows_on_the_wire() {
    let settings =
        LinkSettings { rate_mbit: Some(1_000), duplicate_ppm: MILLION, ..LinkSettings::default() };
    let mut link = burst(settings, 2);
    assert_eq!(arrivals(&mut link), [(672, 0), (1_344, 0), (2_016, 1), (2_688, 1)]);
    assert_eq!(link.counters().duplicated, 2);
}

#[test]
fn no_duplicate_is_made_without_room() {
    let settings = LinkSettings { duplicate_ppm: MILLION, ..LinkSettings::default() };
    let mut link = Link::new(settings, 1);
    link.send(US(0), frame(1)).unwrap();
    let LinkCounters { duplicated, overflowed, .. } = link.counters();
    assert_eq!((link.in_flight(), duplicated, overflowed), (1, 0, 0));
}

#[test]
fn reordered_frame_is_passed() {
    let settings = LinkSettings {
        rate_mbit: Some(1_000),
        reorder_ppm: 100_000,
        reorder_delay: Duration::from_nanos(2 * 672),
        seed: 4,
        ..LinkSettings::default()
    };
    let mut link = burst(settings, 100);
    let arrived = arrivals(&mut link);
    let late = arrived.iter().filter(|&&(at, id)| at == 672 * (u64::from(id) + 3)).count();
    let in_time = arrived.iter().filter(|&&(at, id)| at == 672 * (u64::from(id) + 1)).count();
    assert_eq!((late + in_time, late as u64), (100, link.counters().reordered));
    assert!(arrived.is_sorted_by_key(|&(at, _)| at));
    assert!(!arrived.is_sorted_by_key(|&(_, id)| id));
}

#[test]
fn one_kind_of_fault_does_not_change_another() {
    let lossy = LinkSettings { loss_ppm: 200_000, seed: 8, ..LinkSettings::default() };
    let both = LinkSettings { duplicate_ppm: 300_000, reorder_ppm: 100_000, ..lossy.clone() };
    let mut survivors = arrivals(&mut burst(both, 200));
    survivors.dedup();
    assert_eq!(arrivals(&mut burst(lossy, 200)), survivors);
}

prop_compose! {
    fn any_settings()(
        rate_mbit in prop::option::of(0..100_000_u32),
        (latency, reorder_delay) in (0..50_u64, 0..50_u64),
        (loss_ppm, duplicate_ppm, reorder_ppm) in (0..MILLION, 0..MILLION, 0..MILLION),
        seed: u64,
    ) -> LinkSettings {
        let latency = Duration::from_micros(latency);
        let reorder_delay = Duration::from_micros(reorder_delay);
        LinkSettings {
            rate_mbit, latency, loss_ppm, duplicate_ppm, reorder_ppm, reorder_delay, seed,
        }
    }
}

/// Steps of a run: nanoseconds to wait, then a frame of that size to send, or else one to take.
fn any_steps() -> impl Strategy<Value = Vec<(u64, Option<usize>)>> {
    prop::collection::vec((0..5_000_u64, prop::option::of(0..2_000_usize)), 0..100)
}

proptest! {
    #[test]
    fn every_frame_is_accounted_for(
        settings in any_settings(),
        capacity in 0..20_usize,
        steps in any_steps(),
    ) {
        let mut link = Link::new(settings, capacity);
        let (mut now, mut given_back) = (US(0), 0);
        let room = link.in_flight.capacity();
        for (wait, size) in steps {
            now += Duration::from_nanos(wait);
            if let Some(size) = size {
                given_back += u64::from(link.send(now, vec![0; size]).is_err());
            } else if let Some((at, _)) = link.receive(now) {
                prop_assert!(at <= now);
            }
            let LinkCounters { sent, delivered, lost, duplicated, overflowed, .. } =
                link.counters();
            let in_flight = link.in_flight();
            prop_assert!(in_flight <= capacity);
            prop_assert_eq!(
                sent + duplicated,
                delivered + lost + overflowed + in_flight as u64
            );
            prop_assert_eq!(given_back, lost + overflowed);
        }
        prop_assert_eq!(link.in_flight.capacity(), room, "allocated on the way");
    }

    #[test]
    fn without_reordering_frames_arrive_in_order(settings in any_settings(), count in 0..100_u8) {
        let mut link = burst(LinkSettings { reorder_ppm: 0, ..settings }, count);
        let arrived = arrivals(&mut link);
        prop_assert!(arrived.is_sorted());
    }

    #[test]
    fn rate_is_exact_to_the_nanosecond(
        rate in 1..200_000_u32,
        sizes in prop::collection::vec(0..2_000_usize, 1..100),
    ) {
        let settings = LinkSettings { rate_mbit: Some(rate), ..LinkSettings::default() };
        let mut link = Link::new(settings, sizes.len());
        let mut bits = 0;
        for size in sizes {
            link.send(US(0), vec![0; size]).unwrap();
            bits += (size.max(60) + 24) as u64 * 8;
        }
        let last = core::iter::from_fn(|| link.receive(FOREVER)).last().unwrap().0;
        prop_assert_eq!(last.as_nanos(), (bits * 1_000).div_ceil(rate.into()));
    }

    #[test]
    fn same_seed_gives_the_same_run(settings in any_settings()) {
        let (mut one, mut other) = (burst(settings.clone(), 50), burst(settings, 50));
        prop_assert_eq!(arrivals(&mut one), arrivals(&mut other));
        prop_assert_eq!(one.counters(), other.counters());
    }
}
