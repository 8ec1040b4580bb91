//! Each strategy on timelines, in microseconds: what happens when, and which interrupts follow.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Interrupt, Phase, Unseen};
use crate::descriptor::Descriptor;
use crate::time::Instant;
use crate::vector::Vector;

/// The interrupts of a vector under `setting`, as `reason@time`, in their order; `-` stands for a
/// wait without a deadline. The setting is in force from 0 on, or from `sN`. Events are:
///
/// | event | meaning |
/// |---|---|
/// | `p10`, `m10` | the DMA of an ordinary, of a marked packet completes; `/2`: two are pending |
/// | `a10` | a packet arrives whose DMA takes longer than the test |
/// | `t10` | a transmission completes |
/// | `!` | time passes until the deadline |
/// | `-` | the host takes everything |
/// | `r10` | the host re-arms, and hands over what has completed since it took everything |
/// | `h10` | both in the same moment, as a host that is fast enough does it |
fn interrupts(setting: &str, events: &str) -> String {
    let (start, events) = match events.strip_prefix('s') {
        Some(rest) => rest.split_once(' ').unwrap(),
        None => ("0", events),
    };
    let at = |micros: &str| Instant::from_micros(micros.parse().unwrap());
    let mut vector = Vector::in_phase(setting.parse().unwrap(), Phase::default(), at(start));
    let (mut used, mut pending, mut transmitted) = (Vec::new(), 0, None);
    let mut raised = Vec::new();
    for event in events.split(' ') {
        let (kind, rest) = event.split_at(1);
        let (time, behind) = rest.split_once('/').unwrap_or((rest, "0"));
        let now = match kind {
            "!" => vector.deadline().unwrap_or(Instant::ZERO),
            "-" => Instant::ZERO,
            _ => at(time),
        };
        let mut rearm = |used: &[Descriptor], pending, transmitted| -> Interrupt {
            let unseen = Unseen::of(used, pending);
            let oldest = [unseen.oldest, transmitted].into_iter().flatten().min();
            vector.rearm(now, &Unseen { oldest, ..unseen })
        };
        let interrupt = match kind {
            "a" | "p" | "m" => {
                let marked = kind == "m";
                let packet = Descriptor { length: 64, marked, arrived_at: now, completed_at: now };
                vector.packet_arrived(now, &packet);
                if kind == "a" {
                    pending += 1;
                    continue;
                }
                used.push(packet);
                pending = behind.parse().unwrap();
                vector.dma_completed(now, &packet, pending)
            }
            "t" => {
                transmitted.get_or_insert(now);
                vector.transmit_completed(now)
            }
            "!" => {
                if vector.deadline().is_none() {
                    raised.push("-".into());
                    continue;
                }
                vector.advance(now)
            }
            "r" => rearm(&used, pending, transmitted),
            "-" | "h" => {
                (used, transmitted) = (Vec::new(), None);
                if kind == "h" { rearm(&used, pending, transmitted) } else { None }
            }
            event => panic!("no such event: {event}"),
        };
        raised.extend(interrupt.map(|reason| format!("{reason}@{}", now.as_nanos() / 1_000)));
    }
    raised.join(" ")
}

/// Setting, events, interrupts. Quotations are from the algorithms of the Open-MX paper.
#[rustfmt::skip]
const TIMELINES: &[(&str, &str, &str)] = &[
    // Each packet interrupts, but a host that polls.
    ("disabled", "p0 h0 p1 h1 p50 h50 t60", "frames@0 frames@1 frames@50 frames@60"),
    ("disabled", "p0 - p2 r3", "frames@0 rearm@3"),
    // The timer starts at the first packet that was not signalled; silence has no deadline.
    ("delay:75", "p10 p60 ! h90 p100 !", "timer@85 timer@175"),
    ("delay:75", "! p0 ! h80 !", "- timer@75 -"),
    ("delay:75", "t10 p30 !", "timer@85"),
    // A packet that the last poll missed has waited since its DMA, however late the host re-arms.
    ("delay:75", "p0 ! - p80 r100 !", "timer@75 timer@155"),
    ("delay:75", "p0 ! - p80 r155", "timer@75 rearm@155"),
    ("delay:0", "p5 - p6 r6", "timer@5 rearm@6"),
    // After a silence at once, within the gap exactly the gap, counted between interrupts.
    ("throttle:125", "p0 h0 p125 h126 p1000", "timer@0 timer@125 timer@1000"),
    ("throttle:125", "p0 h1 p20 p124 ! h126 p130 !", "timer@0 timer@125 timer@250"),
    ("throttle:125", "p0 - p100 r110 ! - p200 r250", "timer@0 timer@125 rearm@250"),
    // 8000 round trips a second, or sometimes 4000: the e1000 of the seed article. "This causes two
    // interrupt timer periods to elapse between message receptions: one for the transmit interrupt,
    // and another for the receive interrupt."
    ("throttle:125", "p1000 h1000 t1005 p1060 !", "timer@1000 timer@1125"),
    ("throttle:125", "p1000 h1000 p1130", "timer@1000 timer@1130"),
    ("throttle:125", "p1000 h1000 t1005 ! h1125 p1130 !", "timer@1000 timer@1125 timer@1250"),
    // Silence begins anew with each packet, up to the bound, which counts from the first.
    ("quiet:20/75", "p10 !", "timer@30"),
    ("quiet:20/75", "p0 p19 p38 !", "timer@58"),
    ("quiet:20/75", "p100 p115 p130 p145 p160 ! h176 p180 p195 p210 p225 p240 !", "timer@175 timer@255"),
    ("quiet:20/75", "p0 ! - p25 p40 r50 ! - p61 r81", "timer@20 timer@60 rearm@81"),
    ("quiet:20/75", "p0 p20", "timer@20"),
    ("quiet:20/75", "p0 p25", "timer@25"),
    ("quiet:20/75", "t0 t10 ! h20 t30 p45 !", "timer@20 timer@65"),
    // The next tick, whenever the packet came; ticks count from the start, not from interrupts.
    ("periodic:128", "p0 !", "timer@128"),
    ("periodic:128", "p127 !", "timer@128"),
    ("periodic:128", "p128 !", "timer@256"),
    ("periodic:128", "p1000 !", "timer@1024"),
    ("periodic:100", "s30 p40 p90 ! h150 p160 !", "timer@130 timer@230"),
    ("periodic:100", "! p10 ! h110 !", "- timer@100 -"),
    ("periodic:100", "p10 ! - p150 r200 - p250 r299 !", "timer@100 rearm@200 timer@300"),
    // A clock that is ahead has ticked before; a packet from before its start waits for no more.
    ("periodic:100", "s340 p10 ! h41 p340 !", "timer@40 timer@440"),
    ("periodic:128", "s127 p1 r127", "rearm@127"),
    ("adaptive", "p0 !", "timer@8"),
    // The nth packet interrupts before the timer does; packets that the last poll missed count.
    ("delay:75+frames:3", "p0 p1 p2 h5 p10 !", "frames@2 timer@85"),
    ("delay:75+frames:2", "p0 ! h80 p90 p91", "timer@75 frames@91"),
    ("delay:75+frames:2", "p0 p1 - p2 r3 p4 - p5 p6 r7", "frames@1 frames@4 rearm@7"),
    ("throttle:125+frames:2", "p0 h0 p10 p11", "timer@0 frames@11"),
    // Algorithm 1: "if Descriptor is Marked then Raise Interrupt"
    ("marked:75", "p0 m10/5", "mark@10"),
    // "if Interrupt coalescing timeout expires then Raise Interrupt"
    ("marked:75", "p0 p30 !", "timer@75"),
    // "Reset coalescing timeout": the host that a mark called finds the packets before it, too.
    ("marked:75", "p0 m10 h12 ! p20 !", "mark@10 - timer@95"),
    ("marked:75", "m0 - m1 p2 r3", "mark@0 rearm@3"),
    ("marked+throttle:125", "p0 h0 m50 h50 p60 !", "timer@0 mark@50 timer@175"),
    // The marks of a burst wait for the gap together; the timer may be due before it is over.
    ("marked:75+gap:20", "m0 h1 m3 p5 m8 ! h21 m40", "mark@0 mark@20 mark@40"),
    ("marked:10+gap:20", "m0 h1 p2 m3 ! h12 m25 !", "mark@0 timer@12 mark@32"),
    ("marked:75+gap:20", "m0 - m4 r5 ! - m38 r40 h41 m45 h50 !", "mark@0 mark@20 rearm@40 -"),
    // Algorithm 2: "if no other DMA is pending then if Descriptor is Marked [...] Raise Interrupt"
    ("stream:75", "p0 m10", "mark@10"),
    // "else if Descriptor is Marked then Set DeferredInterrupt", "or DeferredInterrupt is set"
    ("stream:75", "m0/2 m1/1 p2", "stream-end@2"),
    // "Raise Interrupt, Clear DeferredInterrupt"
    ("stream:75", "m0/1 p1 h2 p3 !", "stream-end@1 timer@78"),
    // "if Interrupt coalescing timeout expires then Raise Interrupt, Clear DeferredInterrupt"
    ("stream:75", "m0/9 p1/9 p74/9 ! h76 p77 !", "timer@75 timer@152"),
    ("stream:75", "p0/1 p1 !", "timer@75"),
    ("stream:75", "m0 - m1/1 r2 p3 - m4 r5", "mark@0 stream-end@3 rearm@5"),
    // A frame on its way when the gap is over: both are signalled when its DMA completes.
    ("stream:75+gap:20", "m0 h1 m5 ! h20 m25/1 p41 h41 m50 a55 !", "mark@0 mark@20 stream-end@41 timer@125"),
];

#[test]
fn strategies_interrupt_when_they_say() {
    for (setting, events, expected) in TIMELINES {
        assert_eq!(interrupts(setting, events), *expected, "{setting}: {events}");
    }
}

/// A measurement begins at the first poll after a decision, so each takes one interrupt more. The
/// first step is to the profile that is in force anyway. It brings nothing, so DIM turns round.
#[test]
fn two_times_sixty_four_interrupts_later_adaptive_has_another_profile() {
    let polls = (1..=130).map(|n| format!("p{} ! h{} ", n * 100, n * 100 + 10));
    let events = format!("h0 {}p20000 !", polls.collect::<String>());
    assert!(interrupts("adaptive", &events).ends_with(" timer@20001"));
}
