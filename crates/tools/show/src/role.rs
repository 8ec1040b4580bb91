//! What an interrupt is for, by the names of its handlers.

use netdev::interrupts::Interrupt;

/// What an interrupt is for, by the names of its handlers.
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
