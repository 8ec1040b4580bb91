//! The algorithms as text, line by line, each with the reasons of the interrupts that it raises.

use super::{Marks, Moderation, Reason, TimerKind};

/// A line of an algorithm, and the reasons that interrupts of it have.
pub type AlgorithmLine = (&'static str, &'static [Reason]);

const TIMER: &[Reason] = &[Reason::Timer];
const COUNT: &[Reason] = &[Reason::Frames];
const MARK: &[Reason] = &[Reason::Mark];
const END: &[Reason] = &[Reason::Mark, Reason::StreamEnd];
const REARM: &[Reason] = &[Reason::Rearm];

/// Algorithm 1 of the Open-MX paper.
const MARKED: &[AlgorithmLine] = &[
    ("if a DMA completes then", &[]),
    ("    Find corresponding packet Descriptor", &[]),
    ("    if Descriptor is Marked then", MARK),
    ("        Raise Interrupt", MARK),
];

/// Algorithm 2 of the Open-MX paper.
const STREAM: &[AlgorithmLine] = &[
    ("if a DMA completes then", &[]),
    ("    Find corresponding packet Descriptor", &[]),
    ("    if no other DMA is pending then", END),
    ("        if Descriptor is Marked or DeferredInterrupt is set then", END),
    ("            Raise Interrupt", END),
    ("    else if Descriptor is Marked then", &[]),
    ("        Set DeferredInterrupt", &[]),
];

const DISABLED: &[AlgorithmLine] =
    &[("if a DMA completes then", COUNT), ("    Raise Interrupt", COUNT)];

const FRAMES: &[AlgorithmLine] =
    &[("if rx-frames packets wait then", COUNT), ("    Raise Interrupt", COUNT)];

const END_OF_TIMER: AlgorithmLine = ("    Raise Interrupt", TIMER);

const AFTER_POLL: &[AlgorithmLine] =
    &[("if the host re-arms and packets are due then", REARM), ("    Raise Interrupt", REARM)];

impl Moderation {
    /// What decides under this setting, line by line; those of the paper are in its words.
    pub fn algorithm(&self) -> impl Iterator<Item = AlgorithmLine> {
        let marks: &[AlgorithmLine] = match self.marks {
            Marks::Immediate => MARKED,
            Marks::Deferred => STREAM,
            Marks::Ignored | Marks::Lane => &[],
        };
        let frames = if self.rx_frames > 0 { FRAMES } else { &[] };
        let timer = match self.timer {
            TimerKind::Disabled => None,
            TimerKind::Delay => Some("if rx-usecs have passed since the first packet then"),
            TimerKind::Quiet => {
                Some("if rx-usecs have passed since the last packet, or the bound, then")
            }
            TimerKind::Throttle => Some("if rx-usecs have passed since the last interrupt then"),
            TimerKind::Periodic => {
                Some("if the tick of every rx-usecs comes and packets wait then")
            }
            TimerKind::Itr(_) => Some("if the gap that the driver chose last has passed then"),
            TimerKind::Adaptive => Some("if the time or count that DIM chose is reached then"),
            TimerKind::Driver | TimerKind::Custom(_) => Some("if the device says so then"),
        };
        let timer = timer.map(|line| [(line, TIMER), END_OF_TIMER]).into_iter().flatten();
        let disabled = if self.timer == TimerKind::Disabled { DISABLED } else { &[] };
        let before = marks.iter().chain(frames).chain(disabled).copied();
        before.chain(timer).chain(AFTER_POLL.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines behind which interrupts of this reason are.
    fn of(setting: &str, reason: Reason) -> alloc::vec::Vec<&'static str> {
        let setting: Moderation = setting.parse().unwrap();
        let lines = setting.algorithm().filter(|(_, reasons)| reasons.contains(&reason));
        lines.map(|(line, _)| line.trim()).collect()
    }

    #[test]
    fn each_reason_of_a_setting_has_its_lines() {
        assert_eq!(of("disabled", Reason::Frames), ["if a DMA completes then", "Raise Interrupt"]);
        assert_eq!(of("delay:75", Reason::Timer).len(), 2);
        assert_eq!(of("delay:75", Reason::Mark), [""; 0]);
        assert_eq!(of("delay:75+frames:8", Reason::Frames)[0], "if rx-frames packets wait then");
        assert_eq!(of("marked:75", Reason::Mark)[0], "if Descriptor is Marked then");
        assert_eq!(of("stream:75", Reason::StreamEnd)[0], "if no other DMA is pending then");
        assert_eq!(of("periodic:128", Reason::Rearm).len(), 2);
    }
}
