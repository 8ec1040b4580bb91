//! What to make of it, in words: the largest cause, whose it is, what it would take, what that
//! would cost, and what it is not. Pure.

use schemars::JsonSchema;
use serde::Serialize;

use super::evidence::{Far, OwnHold};
use super::stages::Stage;
use super::summary::Summary;

/// Whose a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// That of this host.
    Mine,
    /// The far side.
    Theirs,
    /// What is between the two.
    Between,
    /// The data does not tell.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cause {
    /// A stage of this host, or the hold of its NIC.
    Own(Stage),
    Far(Far),
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Verdict {
    pub cause: Cause,
    pub side: Side,
    /// How much of a typical request it is, in microseconds.
    pub us: f64,
    pub what: String,
    pub takes: String,
    pub costs: String,
    pub ruled_out: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct VerdictInput<'a> {
    pub summary: &'a Summary,
    pub far: Far,
    pub own_hold: &'a OwnHold,
    /// Our device, if there is one.
    pub device: Option<&'a str>,
    pub handshakes: bool,
    /// Packets that the device receives a second.
    pub packets_per_s: f64,
}

/// Below this share of the whole, a stage is ruled_out.
const RULED_OUT: f64 = 0.1;

impl VerdictInput<'_> {
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let row = self.summary.largest()?;
        let cause = match row.stage {
            Stage::Far => Cause::Far(self.far),
            stage => Cause::Own(stage),
        };
        let (side, what) = match cause {
            Cause::Own(stage) => (Side::Mine, own(stage).to_owned()),
            Cause::Far(far) => far_side(far),
        };
        Some(Verdict {
            cause,
            side,
            us: row.times.typical_us,
            what,
            takes: self.takes(cause),
            costs: self.costs(cause),
            ruled_out: self.ruled_out(row.stage),
        })
    }

    fn device(&self) -> &str {
        self.device.unwrap_or("DEV")
    }

    fn change(&self) -> String {
        match self.own_hold {
            OwnHold::Counted { lab, .. } => {
                format!("earmark nic --lab {lab} set {} rx-usecs 0", self.device())
            }
            OwnHold::Set { single_frame: true, .. } => {
                format!("ethtool -C {} adaptive-rx off rx-usecs 0 rx-frames 1", self.device())
            }
            _ => format!("ethtool -C {} adaptive-rx off rx-usecs 0", self.device()),
        }
    }

    fn takes(&self, cause: Cause) -> String {
        let device = self.device();
        match cause {
            Cause::Own(Stage::Hold) => format!("let it interrupt earlier: {}", self.change()),
            Cause::Own(Stage::Softirq) => format!(
                "find what keeps the processor of {device}'s interrupt: cat /proc/interrupts; \
                 then move one of the two (/proc/irq/N/smp_affinity_list)"
            ),
            Cause::Own(Stage::StackOut) => {
                format!(
                    "look at the queueing discipline and its limits: tc -s qdisc show dev {device}"
                )
            }
            Cause::Own(Stage::NicOut) => {
                format!("look at the driver and its transmit queue: ethtool -S {device}")
            }
            Cause::Own(Stage::StackIn) => {
                format!("look at rules and offloads: nft list ruleset; ethtool -k {device}")
            }
            Cause::Own(Stage::WakeUp) => "keep the processor out of deep sleep and the program \
                ahead of others: cpupower idle-set -D 10; chrt -f 10 PROGRAM; or poll instead of \
                sleeping: sysctl net.core.busy_read=50"
                .into(),
            Cause::Own(Stage::Busy | Stage::Take | Stage::Work) => {
                "make the program come for its data earlier: a thread of its own for the socket, \
                 or less work between two calls (perf record -g -p PID)"
                    .into()
            }
            Cause::Own(Stage::Far | Stage::Unaccounted) => "trace for longer: --duration 30".into(),
            Cause::Far(Far::RemoteHold) => {
                "on the far side: ethtool -C DEV adaptive-rx off rx-usecs 0, with rx-frames 1 if it \
                 has that (earmark tune finds a value in between)"
                    .into()
            }
            Cause::Far(Far::SomeHold) => format!(
                "find out whose it is: {}, or the same on the far side, and run this again; or \
                 earmark probe",
                self.change()
            ),
            Cause::Far(Far::SlowProgram) => {
                "look at the far program: run earmark explain -- PROGRAM, or perf record, there"
                    .into()
            }
            Cause::Far(Far::ProgramOrHold) => {
                "find out which: earmark probe HOST sends short packets and full segments; start earmark \
                 echo there for it; or run earmark explain -- PROGRAM there"
                    .into()
            }
            Cause::Far(Far::SleepyProgram | Far::SleepyMachine) => {
                "on the far side: cpupower idle-set -D 10, and see that nothing puts the program \
                 to sleep between requests"
                    .into()
            }
            Cause::Far(Far::Way) => "shorten the way: traceroute to the host shows its hops".into(),
            Cause::Far(Far::WayOrHold) => {
                "find out which: earmark probe HOST sends at many distances, so that holds of any \
                 length show; start earmark echo there for it"
                    .into()
            }
            Cause::Far(Far::Unknown) => {
                "see the same from the far side: run earmark explain there; or ask its kernel \
                 alone: earmark explain HOST"
                    .into()
            }
        }
    }

    fn costs(&self, cause: Cause) -> String {
        match cause {
            Cause::Own(Stage::Hold) => format!(
                "up to one interrupt for each packet: {:.0} a second with this traffic, and as \
                 many as packets come when there are more",
                self.packets_per_s
            ),
            Cause::Far(Far::RemoteHold | Far::SomeHold) => {
                "there, up to one interrupt for each packet that it receives".into()
            }
            Cause::Own(Stage::WakeUp) | Cause::Far(Far::SleepyProgram | Far::SleepyMachine) => {
                "power: processors that do not sleep draw several watts each; a program that polls \
                 takes a whole one"
                    .into()
            }
            Cause::Own(_) | Cause::Far(Far::SlowProgram) => {
                "work on the program or the host".into()
            }
            Cause::Far(Far::Way | Far::WayOrHold | Far::ProgramOrHold | Far::Unknown) => {
                "nothing on this host".into()
            }
        }
    }

    /// What it is not: stages that are there and short, and what the references rule out.
    fn ruled_out(&self, largest: Stage) -> Vec<String> {
        let total = self.summary.total.typical_us;
        let mut ruled_out: Vec<String> = self
            .summary
            .stages
            .iter()
            .filter(|row| row.stage != largest && row.stage != Stage::Unaccounted)
            .filter(|row| row.times.typical_us < RULED_OUT * total)
            .map(|row| format!("{} ({:.1} us)", row.stage.name(), row.times.typical_us))
            .collect();
        let shown = self.summary.stages.iter().any(|row| row.stage == Stage::Hold);
        match self.own_hold {
            OwnHold::Counted { .. } if !shown => {
                ruled_out.push("NIC hold (it counts none)".into());
            }
            OwnHold::Stamped { .. } if !shown => {
                ruled_out.push("NIC hold (its time stamps show none)".into());
            }
            OwnHold::Set { up_to_us: Some(0.0), .. } if largest == Stage::Far => {
                ruled_out.push("NIC hold (its driver says that there is none)".into());
            }
            _ => {}
        }
        match self.far {
            Far::SlowProgram | Far::SleepyProgram => {
                ruled_out.push("wire and NICs (the far kernel alone answers quickly)".into());
            }
            Far::RemoteHold | Far::SomeHold | Far::Way | Far::WayOrHold if self.handshakes => {
                ruled_out.push("the far program (its kernel alone takes as long)".into());
            }
            _ => {}
        }
        ruled_out
    }
}

fn own(stage: Stage) -> &'static str {
    match stage {
        Stage::Hold => {
            "this NIC holds what it has received, waiting for more, before it interrupts"
        }
        Stage::Softirq => "the interrupt is served, but receiving starts late",
        Stage::StackOut => "sending takes long in this host's stack",
        Stage::NicOut => "the driver of this host takes long to send",
        Stage::StackIn => "receiving takes long in this host's stack",
        Stage::WakeUp => "the data is there and the program is woken, but runs late",
        Stage::Busy => "the data is there and waits until the program reads it",
        Stage::Take => "the program runs, but takes long to take the data",
        Stage::Work => "the program works",
        Stage::Far | Stage::Unaccounted => "time that no stage accounts for",
    }
}

fn far_side(far: Far) -> (Side, String) {
    let (side, what) = match far {
        Far::SlowProgram => (
            Side::Theirs,
            "the far program takes long for each request: its kernel alone answers much sooner",
        ),
        Far::ProgramOrHold => (
            Side::Unknown,
            "the far program, or a NIC that holds packets as long as these requests: the far kernel \
             answers a handshake much sooner, but that is short, and the pairs of requests do not \
             exclude such a hold",
        ),
        Far::SleepyProgram => (
            Side::Theirs,
            "the far program is asleep: requests that follow at once are answered much sooner",
        ),
        Far::SleepyMachine => (
            Side::Theirs,
            "the far machine is asleep: even its kernel is much quicker when it is kept busy",
        ),
        Far::RemoteHold => (
            Side::Theirs,
            "the far NIC holds what it has received: requests sent apart are answered together, \
             and this NIC does not wait",
        ),
        Far::SomeHold => (
            Side::Unknown,
            "a NIC holds what it has received: requests sent apart are answered together; this \
             one or the far one",
        ),
        Far::Way => (Side::Between, "the way there and back is that long"),
        Far::WayOrHold => (
            Side::Unknown,
            "the way there and back, or a NIC that holds packets: the pairs of requests were not \
             close enough, or too few, to tell a hold from the way",
        ),
        Far::Unknown => (
            Side::Unknown,
            "time beyond this NIC: the wire, the far side, or a hold of this NIC, which it does \
             not tell",
        ),
    };
    (side, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::Lengths;
    use crate::summary::Collection;
    use base::quantiles::Quantiles;

    fn summary(of: &[(Stage, u64)]) -> Summary {
        let mut lengths = Lengths::default();
        of.iter().for_each(|(stage, us)| lengths.add(*stage, us * 1_000));
        Collection::of(lengths).summary().unwrap()
    }

    fn judge(summary: &Summary, far: Far, own_hold: &OwnHold) -> Verdict {
        let device = Some("eth7");
        VerdictInput { summary, far, own_hold, device, handshakes: true, packets_per_s: 2_000.0 }
            .verdict()
            .unwrap()
    }

    #[test]
    fn own_hold_comes_with_the_command_and_its_price() {
        let summary = summary(&[(Stage::Far, 40), (Stage::Hold, 200), (Stage::WakeUp, 9)]);
        let set = |single_frame, up_to_us| OwnHold::Set {
            rx_usecs: 0,
            rx_frames: 64,
            adaptive: false,
            up_to_us,
            single_frame,
        };
        let verdict = judge(&summary, Far::Way, &set(true, None));
        assert!(verdict.takes.ends_with("rx-usecs 0 rx-frames 1"), "{}", verdict.takes);
        let far = self::summary(&[(Stage::Far, 40)]);
        let is_ruled_out = |own: &OwnHold| {
            judge(&far, Far::Way, own).ruled_out.iter().any(|it| it.starts_with("NIC hold"))
        };
        assert!(is_ruled_out(&set(true, Some(0.0))) && !is_ruled_out(&set(true, None)));
        let verdict = judge(&summary, Far::Way, &set(false, Some(200.0)));
        assert_eq!((verdict.cause, verdict.side), (Cause::Own(Stage::Hold), Side::Mine));
        assert!(verdict.takes.contains("ethtool -C eth7"), "{}", verdict.takes);
        assert!(verdict.costs.contains("2000 a second"), "{}", verdict.costs);
        assert!(verdict.ruled_out.contains(&"wake-up (9.0 us)".to_owned()), "{verdict:?}");
        let hold_us = Quantiles { p50: 200.0, ..Quantiles::default() };
        let counted = OwnHold::Counted { hold_us, lab: "x".into() };
        let verdict = judge(&summary, Far::Way, &counted);
        assert!(verdict.takes.contains("earmark nic --lab x set eth7 rx-usecs 0"));
    }
}
