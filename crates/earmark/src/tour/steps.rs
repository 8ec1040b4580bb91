//! The steps of the tour: a table over commands that users type.

/// One command, and what is to be seen in what it prints.
pub(super) struct Step {
    pub(super) why: &'static str,
    /// As it is typed on host a.
    pub(super) line: &'static str,
    /// A regular expression for its output, in which every white space is one blank.
    pub(super) finds: &'static str,
    /// What that says, with the group of the expression for `{}`.
    pub(super) says: &'static str,
    /// Only root of the machine may do it: being root in a user namespace is not enough.
    pub(super) takes_root: bool,
}

/// What the NIC of host a does, and nothing but this: it holds what it receives.
pub(super) const STRATEGY: &str = "delay:500";

/// What runs on host b, by the words of this program.
pub(super) const FAR: [&[&str]; 2] = [&["echo"], &["serve", "--listen", "10.9.0.2"]];

pub(super) const STEPS: [Step; 6] = [
    Step {
        why: "What may delay a packet that this host receives? The settings say it, in half a second.",
        line: "earmark show a0",
        finds: r"Up to ([0-9]+) us: the NIC ",
        says: "This NIC may hold a packet for {} us, waiting for more, before it interrupts.",
        takes_root: false,
    },
    Step {
        why: "Does it? Packets show that, on any way to a host, without a look at its settings.",
        line: "earmark probe b",
        finds: r"a delay of ([0-9]+)[0-9.]* us [^:]*: a lone packet waits all of it, at my receiving",
        says: "It does: each lone packet waits {} us, at this host, and each answer comes that much later.",
        takes_root: false,
    },
    Step {
        why: "How much of a request is that? Followed in the kernel, one divides into stages.",
        line: "earmark explain b",
        finds: r"Typical, [^:]*: [^:(]*\(([0-9]+) %, this host\): this NIC holds",
        says: "{} % of a request is that hold, the largest part of it.",
        takes_root: true,
    },
    Step {
        why: "What should be set instead? Tune measures settings in turns, and puts the best in force.",
        line: "earmark tune a0 --peer b --goal 'min latency' \\\n    \
               --among 'rx-usecs 0' --among 'rx-usecs 250'",
        finds: r"pick: (rx-usecs 0),.* a0: rx-usecs 500 -> 0",
        says: "{} answers soonest, and is in force. Its price, interrupts, is in the table.",
        takes_root: false,
    },
    Step {
        why: "A restart would undo that. Which files would bring it back at each boot?",
        line: "earmark persist a0",
        finds: r"RxCoalesceSec=(0)us",
        says: "These; nothing is written without --write.",
        takes_root: false,
    },
    Step {
        why: "And if it was wrong? Whatever Earmark changes, it can put back, also after a crash.",
        line: "earmark rollback a0",
        finds: r"a0 is as it was: strategy (delay:500)",
        says: "The device has its old setting, {}, again.",
        takes_root: false,
    },
];
