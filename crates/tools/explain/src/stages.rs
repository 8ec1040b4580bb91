//! A path as stages, whose lengths add up to its whole. Pure.
//!
//! A stage ends at the moment of an event. Where there is no such event, the stage is not
//! there, and its time is in the next one that is, with one exception: what ends at an arrival ends
//! at the first moment of it that is known. A moment that lies before the one ahead of it (a
//! second packet that an earlier interrupt brought in) makes a stage of length zero.

use schemars::JsonSchema;
use serde::Serialize;

use super::engine::{Arrival, Departure, Path, Role};

/// Where time goes, in the order of a request that is sent and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// From the call that sends until the packet is given to the driver.
    StackOut,
    /// Until the driver has taken it.
    NicOut,
    /// Until the interrupt for the answer: the wire, the far side, the wire again, and the hold
    /// of this NIC where that is not known.
    Far,
    /// From the arrival at this NIC until its interrupt.
    Hold,
    /// From the interrupt until the software interrupt that receives.
    Softirq,
    /// Until the data is in the socket.
    StackIn,
    /// From the wake-up of the program until it runs.
    WakeUp,
    /// The data is in the socket, and the program does something else.
    Busy,
    /// Until the call that takes it has come back.
    Take,
    /// The program works on a request until it sends the answer.
    Work,
    /// What is measured from outside and in no stage.
    Unaccounted,
}

impl Stage {
    pub(crate) const ALL: [Self; 11] = [
        Self::StackOut,
        Self::NicOut,
        Self::Far,
        Self::Hold,
        Self::Softirq,
        Self::StackIn,
        Self::WakeUp,
        Self::Busy,
        Self::Take,
        Self::Work,
        Self::Unaccounted,
    ];

    /// As a table and metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::StackOut => "application -> stack",
            Self::NicOut => "stack -> NIC",
            Self::Far => "wire and far side",
            Self::Hold => "NIC hold",
            Self::Softirq => "interrupt -> softirq",
            Self::StackIn => "stack, receiving",
            Self::WakeUp => "wake-up",
            Self::Busy => "waits for the program to read",
            Self::Take => "-> application",
            Self::Work => "application works",
            Self::Unaccounted => "unaccounted",
        }
    }
}

/// Nanoseconds of each stage, as [`Stage::ALL`] has them; those that a path does not have are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lengths([u64; Stage::ALL.len()]);

impl Lengths {
    pub(crate) fn of(&self, stage: Stage) -> u64 {
        self.0[stage as usize]
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn add(&mut self, stage: Stage, nanos: u64) {
        self.0[stage as usize] += nanos;
    }

    /// Moves up to that much from one stage to another.
    pub(crate) fn shift(&mut self, from: Stage, to: Stage, nanos: u64) {
        let nanos = nanos.min(self.of(from));
        self.0[from as usize] -= nanos;
        self.add(to, nanos);
    }
}

/// Cuts a span of time at moments that only go forward.
struct Cuts {
    last: u64,
    end: u64,
    lengths: Lengths,
}

impl Cuts {
    fn new(start: u64, end: u64) -> Self {
        Self { last: start, end, lengths: Lengths::default() }
    }

    /// `stage` ends at `at`, if that is known.
    fn cut(&mut self, stage: Stage, at: Option<u64>) {
        let Some(at) = at else { return };
        let at = at.clamp(self.last, self.end.max(self.last));
        self.lengths.add(stage, at - self.last);
        self.last = at;
    }
}

/// The first moment at which this host knows of an arrival.
pub(crate) fn noticed(arrival: &Arrival) -> Option<u64> {
    let Arrival { interrupt, raised, softirq, received, ready, woken, .. } = *arrival;
    interrupt.or(raised).or(softirq).or(received).or(ready).or(woken)
}

fn depart(cuts: &mut Cuts, departure: &Departure, until: Option<u64>) {
    let Departure { queued, called, done, .. } = *departure;
    cuts.cut(Stage::StackOut, called.or(queued));
    // A driver may come back to its caller after the answer is here: the rest is not its.
    cuts.cut(Stage::NicOut, done.map(|done| until.map_or(done, |until| done.min(until))));
}

fn arrive(cuts: &mut Cuts, arrival: &Arrival, take: (u64, u64)) {
    if arrival.interrupt.or(arrival.raised).is_some() {
        cuts.cut(Stage::Softirq, arrival.softirq);
    }
    cuts.cut(Stage::StackIn, arrival.ready.or(arrival.woken));
    // Otherwise it was awake: one that is woken while it goes to sleep may never leave its
    // processor.
    if let (Some(woken), Some(runs)) = (arrival.woken, arrival.runs) {
        cuts.cut(Stage::StackIn, Some(woken));
        cuts.cut(Stage::WakeUp, Some(runs));
    }
    // It comes for the data when it comes; one that waited in the call itself was there before.
    if take.0 > cuts.last {
        cuts.cut(Stage::Busy, Some(take.0));
    }
    cuts.cut(Stage::Take, Some(take.1));
}

/// The stages of a path; `None` if it has no beginning or no end.
pub(crate) fn lengths(path: &Path) -> Option<Lengths> {
    let Path { arrival, take, departure, .. } = path;
    let noticed = noticed(arrival)?;
    let mut cuts = match path.role {
        Role::Asks => {
            let departure = departure.as_ref()?;
            let mut cuts = Cuts::new(departure.enter, take.1);
            // An interrupt that came before the request did not bring its answer alone.
            let noticed = noticed.max(departure.enter);
            depart(&mut cuts, departure, Some(noticed));
            cuts.cut(Stage::Far, Some(noticed));
            arrive(&mut cuts, arrival, *take);
            cuts
        }
        Role::Answers => {
            let departure = departure.as_ref()?;
            let end = departure.done.or(departure.called).or(departure.queued)?;
            let mut cuts = Cuts::new(noticed, end);
            arrive(&mut cuts, arrival, *take);
            cuts.cut(Stage::Work, Some(departure.enter));
            depart(&mut cuts, departure, None);
            cuts
        }
        Role::Receives => {
            let mut cuts = Cuts::new(noticed, take.1);
            arrive(&mut cuts, arrival, *take);
            cuts
        }
    };
    let end = cuts.end;
    cuts.cut(Stage::Unaccounted, Some(end));
    Some(cuts.lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Path {
        Path {
            socket: 1,
            fd: 3,
            task: 9,
            role: Role::Asks,
            departure: Some(Departure {
                enter: 1_000,
                queued: Some(3_000),
                called: Some(4_000),
                done: Some(5_000),
            }),
            arrival: Arrival {
                interrupt: Some(105_000),
                raised: Some(106_000),
                softirq: Some(107_000),
                received: Some(108_000),
                ready: Some(110_000),
                woken: Some(110_500),
                task: 9,
                runs: Some(140_500),
                ..Arrival::default()
            },
            take: (500, 142_000),
        }
    }

    #[test]
    fn program_that_was_awake_was_busy_until_it_came() {
        let mut path = whole();
        path.arrival.runs = None;
        path.take.0 = 135_000;
        // Woken before it had gone to sleep, or not at all.
        for woken in [path.arrival.woken, None] {
            path.arrival.woken = woken;
            let lengths = lengths(&path).unwrap();
            assert_eq!((lengths.of(Stage::WakeUp), lengths.of(Stage::Busy)), (0, 25_000));
            assert_eq!(lengths.total(), 141_000);
        }
        // One that waits without sleeping came before.
        path.take.0 = 1_500;
        let lengths = lengths(&path).unwrap();
        assert_eq!((lengths.of(Stage::Busy), lengths.of(Stage::Take)), (0, 32_000));
    }

    #[test]
    fn program_that_is_woken_and_reads_late_lets_the_data_wait() {
        let mut path = whole();
        // Woken out of `select` at 140.5 us, it comes for the data at 141.5 us.
        path.take.0 = 141_500;
        let lengths = lengths(&path).unwrap();
        assert_eq!((lengths.of(Stage::WakeUp), lengths.of(Stage::Busy)), (30_000, 1_000));
        assert_eq!((lengths.of(Stage::Take), lengths.total()), (500, 141_000));
    }

    #[test]
    fn times_that_go_back_make_empty_stages_not_wrong_sums() {
        let mut path = whole();
        // The interrupt belonged to an earlier packet; the driver came back late.
        path.arrival.interrupt = Some(500);
        path.departure.as_mut().unwrap().done = Some(130_000);
        let lengths = lengths(&path).unwrap();
        assert_eq!(lengths.total(), 141_000);
        assert_eq!(lengths.of(Stage::Far), 0);
    }

    #[test]
    fn what_is_shifted_stays_in_the_sum() {
        let mut lengths = lengths(&whole()).unwrap();
        lengths.shift(Stage::Far, Stage::Hold, 60_000);
        assert_eq!((lengths.of(Stage::Far), lengths.of(Stage::Hold)), (40_000, 60_000));
        lengths.shift(Stage::Far, Stage::Hold, 60_000);
        assert_eq!((lengths.of(Stage::Far), lengths.total()), (0, 141_000));
    }
}
