//! What an interrupt is for, by the names of its handlers; and those of several queues on one
//! processor.

use device::interrupts::{Affinity, Interrupt};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InterruptRole {
    Receive,
    Transmit,
    Both,
    Other,
    Unnamed,
}

impl InterruptRole {
    pub(crate) fn of(handlers: &[String]) -> Self {
        let text = handlers.join(" ").to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let receives = has(&["rx", "input"]);
        let sends = has(&["tx", "output"]);
        match (receives, sends) {
            (true, true) => Self::Both,
            (true, false) => Self::Receive,
            (false, true) => Self::Transmit,
            (false, false) if has(&["config", "mgmnt", "async", "event", "wol", "misc"]) => {
                Self::Other
            }
            (false, false) => Self::Unnamed,
        }
    }

    pub(crate) fn receives(self) -> bool {
        matches!(self, Self::Receive | Self::Both)
    }
}

pub(crate) fn roles_of(interrupts: &[Interrupt]) -> Vec<InterruptRole> {
    let roles: Vec<InterruptRole> =
        interrupts.iter().map(|it| InterruptRole::of(&it.handlers)).collect();
    // Where others are named after what they do, one that is not does something else.
    let unnamed = if roles.iter().any(|role| role.receives()) {
        InterruptRole::Other
    } else {
        InterruptRole::Both
    };
    let known = |role: InterruptRole| if role == InterruptRole::Unnamed { unnamed } else { role };
    roles.into_iter().map(known).collect()
}

/// Whether each interrupt of a device may be for what it has received.
pub fn are_for_receiving(interrupts: &[Interrupt]) -> Vec<bool> {
    roles_of(interrupts).into_iter().map(InterruptRole::receives).collect()
}

/// The processor that has all interrupts for reception though some may go to others; `None`:
/// they are fewer than two, on several processors, or may go nowhere else.
///
/// Where the kernel does not say to which processor an interrupt goes, it is the one that has had
/// all but a hundredth of it.
pub fn crowded_cpu(interrupts: &[(Interrupt, Affinity)]) -> Option<u32> {
    let plain: Vec<Interrupt> = interrupts.iter().map(|(interrupt, _)| interrupt.clone()).collect();
    let receives = are_for_receiving(&plain);
    let receiving: Vec<_> = interrupts
        .iter()
        .zip(receives)
        .filter(|(_, receives)| *receives)
        .map(|(it, _)| it)
        .collect();
    let cpus: Option<Vec<u32>> =
        receiving.iter().map(|(it, affinity)| cpu_of(it, affinity)).collect();
    let cpus = cpus.filter(|cpus| cpus.len() > 1)?;
    let may_leave = |(_, affinity): &(Interrupt, Affinity)| {
        affinity.allowed.as_ref().is_some_and(|allowed| allowed.len() > 1)
    };
    let is_one = cpus.iter().all(|cpu| *cpu == cpus[0]) && receiving.into_iter().any(may_leave);
    is_one.then_some(cpus[0])
}

/// The processor that has an interrupt: the only one that may in fact, or the one that has had all
/// but a hundredth of it; `None`: several have it.
pub fn cpu_of(interrupt: &Interrupt, affinity: &Affinity) -> Option<u32> {
    match affinity.effective.as_deref() {
        Some([cpu]) => Some(*cpu),
        Some([_, _, ..]) => None,
        Some([]) | None => {
            let (cpu, most) = interrupt.counts.iter().max_by_key(|(_, count)| *count)?;
            let others = interrupt.total().saturating_sub(*most);
            (others < most.div_ceil(100)).then_some(*cpu)
        }
    }
}

#[cfg(test)]
mod tests {
    use device::interrupts::parse_interrupts;

    use super::*;

    /// `/proc/interrupts` of a report: a vector for the link and four for queues.
    const PASTED: &str = "           CPU0       CPU1       CPU2       CPU3       
  26:          1          0          0          0   PCI-MSI 1048576-edge      eth9
  27:  356669796          0         17       1852   PCI-MSI 1048577-edge      eth9-TxRx-0
  28:  346669805          0          0          0   PCI-MSI 1048578-edge      eth9-TxRx-1
  29:  336669814          0          0          0   PCI-MSI 1048579-edge      eth9-TxRx-2
  30:  326669823          0          0          0   PCI-MSI 1048580-edge      eth9-TxRx-3
 NMI:          0          0          0          0   Non-maskable interrupts
";

    fn crowded(text: &str, allowed: &[u32], effective: Option<[u32; 4]>) -> Option<u32> {
        let affinity = |at: usize| Affinity {
            allowed: Some(allowed.to_vec()),
            // The vector of the link has no queue.
            effective: effective.map(|cpus| vec![at.checked_sub(1).map_or(3, |at| cpus[at])]),
        };
        let all = parse_interrupts(text).into_iter().enumerate();
        crowded_cpu(&all.map(|(at, interrupt)| (interrupt, affinity(at))).collect::<Vec<_>>())
    }

    #[test]
    fn vectors_that_share_a_processor_and_need_not_are_seen() {
        let four = [0, 1, 2, 3];
        assert_eq!(crowded(PASTED, &four, Some([0; 4])), Some(0));
        assert_eq!(crowded(PASTED, &four, Some([2; 4])), Some(2), "where they go since then");
        assert_eq!(crowded(PASTED, &four, None), Some(0), "by what has come");
        assert_eq!(crowded(PASTED, &four, Some([0, 1, 2, 3])), None);
        assert_eq!(crowded(PASTED, &[0], Some([0; 4])), None, "they may go nowhere else");
        let moved = PASTED.replace("336669814          0", "336669814    3366699");
        assert_eq!(crowded(&moved, &four, None), None, "a hundredth comes elsewhere");
        let one = PASTED.lines().take(3).collect::<Vec<_>>().join("\n");
        assert_eq!(crowded(&one, &four, Some([0; 4])), None, "one queue has one processor");
    }
}
