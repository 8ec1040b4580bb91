//! The NAS Parallel Benchmarks as skeletons: their messages, and computing in between.
//!
//! Sixteen ranks run on two hosts of eight cores, as in the Open-MX paper (tables IV and V): a rank
//! a core, the first half on the first host. Between hosts they talk MX, within one through shared
//! memory. What they send follows from the published sources; how long they compute is one number
//! for each program, which makes the time of the paper's default column. All else is then the
//! model's: other settings, interrupts, and what these steal from ranks that compute.
//!
//! A few iterations are simulated, and the rest is taken to be like them. `examples/npb.rs` prints
//! the paper's tables beside the model's.
//!
//! # What agrees
//!
//! Marks cost IS 19 % more interrupts (paper: 16 to 21 %). Without moderation it has 9 to 11 %
//! more of them than the paper has: 15 times the default's (22), which has 60 % too many.
//! Without moderation programs are slower by 1.6 % (CG; paper 1.6 %), 0.8 (BT; 0.6), 0.7 (SP;
//! 0.4), 3.0 and 1.1 (IS.C and IS.B; 13.1 and 4.5), 7.8 (FT.B; 2.6). Nearly all of it at IS is
//! cache lines of what is sent, after another core has cleaned up (`moved_reply`). FT.B sends
//! twice as many messages of 2 MiB as IS.C, in the same order, so no cost of an interrupt gives
//! both of the paper's figures.
//!
//! Marks gain nothing for IS (paper: 7 to 8 %): in an exchange of all ranks the softirq of each
//! host is busy all the time, and a packet waits for it, not for an interrupt. The paper's gains
//! are 224 ms an iteration for class C and 166 for B, with a quarter of the bytes. An iteration has
//! some 50 waits, one after the other, that a mark can shorten by 75 us, which are 4 ms. What the
//! paper gains is of the size of its protocol's timers, 16 to 1,000 ms: of acknowledgements, and
//! after losses, neither of which holds anything up in this model.

mod applications;
mod kernels;
mod rank;
mod script;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use base::time::{Duration, Instant};
use mx::config::Config;
use network::link::LinkSettings;
use nic::moderation::Moderation;

use crate::cpu::Busy;
use crate::device::NicSettings;
use crate::machine::Machine;
use crate::stack::mx::{EndpointSpec, MxStack, stacks};
use crate::world::{Host, Settings, Simulation};
use rank::Rank;
use script::RankScript;

/// Ranks of a run, and the hosts that they are on.
const RANKS: usize = 16;
const HOSTS: usize = 2;

/// Packets that the ring of a NIC holds: room for all that ranks ask for at once.
const RING: usize = 4_096;

/// Which program of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Benchmark {
    /// BT solves block tridiagonal systems along three axes.
    Bt,
    /// CG finds an eigenvalue by conjugate gradients.
    Cg,
    /// EP draws pairs of random numbers; ranks hardly talk.
    Ep,
    /// FT transforms a cube (Fourier).
    Ft,
    /// IS sorts integers.
    Is,
    /// LU solves by sweeps of triangular systems.
    Lu,
    /// MG solves Poisson's equation on grids of many sizes.
    Mg,
    /// SP solves scalar pentadiagonal systems along three axes.
    Sp,
}

/// How large its problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// S is a sample, for tests.
    S,
    /// W fitted a workstation of the nineties.
    W,
    /// A is the smallest that results are published of.
    A,
    /// B is about four times as large as A.
    B,
    /// C is about four times as large as B.
    C,
}

impl Benchmark {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Self); 8] = [
        ("bt", Self::Bt),
        ("cg", Self::Cg),
        ("ep", Self::Ep),
        ("ft", Self::Ft),
        ("is", Self::Is),
        ("lu", Self::Lu),
        ("mg", Self::Mg),
        ("sp", Self::Sp),
    ];

    /// The name, as in `is.C.16`.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, it)| *it == self).map_or("", |(name, _)| name)
    }

    /// How large the problem is (`npbparams.h` of each): what its skeleton takes, and iterations.
    /// For IS, FT and EP the first is a power of two: keys, points, pairs; for CG rows; for others
    /// points of a side, MG's as a power of two.
    const fn problem(self, class: Class) -> (u64, u32) {
        let of_classes: [(u64, u32); 5] = match self {
            Self::Is => [(16, 10), (20, 10), (23, 10), (25, 10), (27, 10)],
            Self::Ft => [(18, 6), (19, 6), (23, 6), (25, 20), (27, 20)],
            Self::Ep => [(24, 1), (25, 1), (28, 1), (30, 1), (32, 1)],
            Self::Cg => [(1_400, 15), (7_000, 15), (14_000, 15), (75_000, 75), (150_000, 75)],
            Self::Mg => [(5, 4), (7, 4), (8, 4), (8, 20), (9, 20)],
            Self::Lu => [(12, 50), (33, 300), (64, 250), (102, 250), (162, 250)],
            Self::Bt => [(12, 60), (24, 200), (64, 200), (102, 200), (162, 200)],
            Self::Sp => [(12, 100), (36, 400), (64, 400), (102, 400), (162, 400)],
        };
        of_classes[class as usize]
    }

    /// Iterations that are timed, and those of the whole run: one goes before for warmth. FT
    /// transforms once more, to begin with.
    const fn iterations(self, class: Class) -> (u32, u32) {
        let (_, iterations) = self.problem(class);
        match self {
            Self::Ep => (1, 1),
            Self::Ft => (iterations + 1, iterations + 2),
            _ => (iterations, iterations + 1),
        }
    }

    /// What a rank does in one of them.
    fn ops(self, class: Class, rank: usize) -> Vec<rank::Op> {
        let (size, _) = self.problem(class);
        let mut script = RankScript::new(rank, RANKS);
        let it = &mut script;
        match self {
            Self::Is => kernels::is(it, size as u32),
            Self::Ft => kernels::ft(it, 1 << size),
            Self::Ep => kernels::ep(it),
            Self::Cg => kernels::cg(it, size),
            Self::Mg => kernels::mg(it, size as u32),
            Self::Lu => applications::lu(it, size),
            Self::Bt => applications::multi_partition(it, size, applications::BT),
            Self::Sp => applications::multi_partition(it, size, applications::SP),
        }
        script.ops
    }

    /// How long a rank computes in an iteration on the paper's hosts, in milliseconds: fitted to
    /// the default column of Table IV by [`calibrate`], one number for each program there.
    fn compute_ms(self, class: Class) -> Option<f64> {
        let (_, ms) = *COMPUTE_MS.iter().find(|(of, _)| *of == (self, class))?;
        Some(ms)
    }
}

/// What [`Benchmark::compute_ms`] has, in milliseconds.
const COMPUTE_MS: [((Benchmark, Class), f64); 9] = [
    ((Benchmark::Bt, Class::C), 1_283.9),
    ((Benchmark::Cg, Class::C), 1_047.7),
    ((Benchmark::Ep, Class::C), 31_296.8),
    ((Benchmark::Ft, Class::B), 556.7),
    ((Benchmark::Is, Class::B), 2_053.0),
    ((Benchmark::Is, Class::C), 2_674.6),
    ((Benchmark::Lu, Class::C), 781.4),
    ((Benchmark::Mg, Class::C), 2_114.5),
    ((Benchmark::Sp, Class::C), 1_306.5),
];

impl FromStr for Benchmark {
    type Err = NpbError;

    fn from_str(name: &str) -> Result<Self, NpbError> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, benchmark)| *benchmark).ok_or(NpbError::Unknown)
    }
}

impl FromStr for Class {
    type Err = NpbError;

    fn from_str(name: &str) -> Result<Self, NpbError> {
        match name {
            "S" => Ok(Self::S),
            "W" => Ok(Self::W),
            "A" => Ok(Self::A),
            "B" => Ok(Self::B),
            "C" => Ok(Self::C),
            _ => Err(NpbError::Unknown),
        }
    }
}

/// Why there is no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NpbError {
    /// There is no such program or class.
    Unknown,
    /// It is not known how long this program computes in this class.
    NotCalibrated(Benchmark, Class),
    /// The ranks wait for each other, after so many seconds.
    Stuck(u64),
}

impl fmt::Display for NpbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => {
                f.write_str("programs are bt, cg, ep, ft, is, lu, mg, sp, in classes S, W, A, B, C")
            }
            Self::NotCalibrated(benchmark, class) => write!(
                f,
                "{}.{class:?}: the paper has no time for it; run it with a time of computing",
                benchmark.name()
            ),
            Self::Stuck(seconds) => write!(f, "ranks wait for each other after {seconds} s"),
        }
    }
}

impl core::error::Error for NpbError {}

/// What a run comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NpbRun {
    /// The time of the iterations that the program times, in seconds.
    pub seconds: f64,
    /// Interrupts of both hosts in all iterations.
    pub interrupts: f64,
    /// How long each rank computes in the time, if nothing interrupts it, in seconds.
    pub computing: f64,
    /// Core time of interrupts and softirqs of both hosts, in seconds.
    pub stolen: f64,
    /// Iterations that were simulated, of those that are timed.
    pub simulated: (u32, u32),
    /// Packets that found no room in the ring of a NIC, in what was simulated.
    pub dropped: u64,
    /// Events of the simulation.
    pub events: u64,
}

/// Runs a program of the paper's Table IV.
///
/// # Errors
/// It is not one of those, or does not end.
pub fn run(
    benchmark: Benchmark,
    class: Class,
    machine: &Machine,
    moderation: Moderation,
    seed: u64,
) -> Result<NpbRun, NpbError> {
    let ms = benchmark.compute_ms(class).ok_or(NpbError::NotCalibrated(benchmark, class))?;
    let skeleton = Skeleton { benchmark, class, compute: Duration::from_nanos((ms * 1e6) as u64) };
    skeleton.run(machine, moderation, seed)
}

/// How long a rank must compute in an iteration for a run to take so many seconds, in milliseconds.
///
/// # Errors
/// Ranks wait for each other.
pub fn calibrate(
    (benchmark, class): (Benchmark, Class),
    machine: &Machine,
    moderation: Moderation,
    seed: u64,
    seconds: f64,
) -> Result<f64, NpbError> {
    let (timed, _) = benchmark.iterations(class);
    let wanted = seconds / f64::from(timed);
    let mut compute = 0.9 * wanted;
    // Time grows with computing, about as much; waves of LU fill and empty.
    for _ in 0..4 {
        let nanos = Duration::from_nanos((compute * 1e9) as u64);
        let skeleton = Skeleton { benchmark, class, compute: nanos };
        let outcome = skeleton.run(machine, moderation, seed)?;
        compute = (compute + wanted - outcome.seconds / f64::from(timed)).max(0.0);
    }
    Ok(compute * 1e3)
}

/// A program with how long its ranks compute.
#[derive(Clone, Copy, Debug)]
pub struct Skeleton {
    /// Which of the suite it is.
    pub benchmark: Benchmark,
    /// How large its problem is.
    pub class: Class,
    /// How long a rank computes in an iteration.
    pub compute: Duration,
}

/// Events of a simulation, about: iterations are simulated until there are so many, but two at
/// least.
const EVENTS: u64 = 1_500_000;
/// Iterations that are simulated at most.
const MOST: u32 = 8;
/// How far a simulation goes before its ranks are looked at.
const SLICE: Duration = Duration::from_millis(10);
/// Ranks that have not ended by then wait for each other.
const LIMIT: Duration = Duration::from_millis(1_000_000);

impl Skeleton {
    /// Simulates some iterations.
    ///
    /// # Errors
    /// Ranks wait for each other.
    pub fn run(
        &self,
        machine: &Machine,
        moderation: Moderation,
        seed: u64,
    ) -> Result<NpbRun, NpbError> {
        let (timed, all) = self.benchmark.iterations(self.class);
        let most = timed.min(MOST);
        let mut world = self.world(machine, moderation, seed, most);
        let mut done = 0;
        while !(done >= most || done >= 2 && world.events() > EVENTS) {
            if world.now() > Instant::ZERO + LIMIT {
                return Err(NpbError::Stuck(world.now().as_nanos() / 1_000_000_000));
            }
            world.run(world.now() + SLICE);
            done = ranks(&mut world).map(|rank| rank.done).min().unwrap_or(most);
        }
        let ends = ranks(&mut world).map(|rank| rank.done_at.as_nanos()).max().unwrap_or(0);
        let interrupts = |host: &Host<_, _>| host.device.counters().interrupts_total();
        let interrupts: u64 = world.hosts.iter().map(interrupts).sum();
        let busy = world.hosts.iter().fold(Busy::default(), |sum, host| sum + host.busy());
        let scale = f64::from(timed) / f64::from(done);
        Ok(NpbRun {
            seconds: ends as f64 / 1e9 * scale,
            interrupts: interrupts as f64 * f64::from(all) / f64::from(done),
            computing: self.compute.as_nanos() as f64 / 1e9 * f64::from(timed),
            stolen: (busy.interrupts + busy.softirqs) as f64 / 1e9 * scale,
            simulated: (done, timed),
            dropped: world.hosts.iter().map(|host| host.device.counters().ring_full).sum(),
            events: world.events(),
        })
    }

    /// Two hosts with the ranks, each of which does so many iterations.
    fn world(
        &self,
        machine: &Machine,
        moderation: Moderation,
        seed: u64,
        iterations: u32,
    ) -> Simulation<MxStack> {
        let compute_ns = self.compute.as_nanos() as f64;
        let endpoint = |number: usize| {
            let ops = self.benchmark.ops(self.class, number);
            let place = number % (RANKS / HOSTS);
            EndpointSpec {
                host: number / (RANKS / HOSTS),
                core: place,
                endpoint: place as u8,
                config: open_mx(),
                peers: (0..RANKS).collect(),
                receives: (0, 0),
                program: Box::new(Rank::new(ops, compute_ns, iterations)),
            }
        };
        let endpoints = (0..RANKS).map(endpoint).collect();
        let stacks = stacks(HOSTS, machine, endpoints).expect("the engine's defaults are in range");
        let rules = "mx".parse().expect("a rule of the NIC");
        let nic = NicSettings { moderation, rules, ring: RING, ..NicSettings::default() };
        let settings = Settings {
            machine: machine.clone(),
            hosts: Vec::from([(nic, machine.constants.costs)]),
            faults: LinkSettings::default(),
            switch_queue: 1_024,
            seed,
        };
        Simulation::new(&settings, stacks.into_iter().map(|stack| (stack, ())))
    }
}

/// The timers of Open-MX: a frame is sent again after half a second (`RESEND_PER_SECOND` of
/// `libopen-mx/omx_lib.h`), a block asked for again after one (`OMX_PULL_RETRANSMIT_TIMEOUT_MS` of
/// `driver/linux/omx_pull.c`), and acknowledgements wait for 1/64 s (`ACK_PER_SECOND`).
fn open_mx() -> Config {
    Config {
        ack_delay: Duration::from_micros(15_625),
        resend_min: Duration::from_millis(500),
        resend_max: Duration::from_millis(1_000),
        peer_timeout: Duration::from_millis(500_000),
        ..Config::default()
    }
}

/// The ranks of a world.
fn ranks(world: &mut Simulation<MxStack>) -> impl Iterator<Item = &mut Rank> {
    let hosts = world.hosts.iter_mut();
    hosts.flat_map(|host| host.stack.programs::<Rank>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    fn outcome(benchmark: Benchmark, setting: &str) -> NpbRun {
        let machine = Machine::named("clovertown").expect("it comes with the crate");
        let compute = Duration::from_micros(500);
        let skeleton = Skeleton { benchmark, class: Class::S, compute };
        let moderation = setting.parse().expect("a setting");
        skeleton.run(&machine, moderation, 1).unwrap_or_else(|why| panic!("{benchmark:?}: {why}"))
    }

    #[test]
    fn every_program_comes_to_its_end_in_its_smallest_class() {
        for (name, benchmark) in Benchmark::ALL {
            let NpbRun { seconds, interrupts, computing, dropped, .. } =
                outcome(benchmark, "delay:75");
            assert!(seconds > computing, "{name}: {seconds} {computing}");
            assert!(interrupts > 1.0, "{name}");
            assert_eq!(dropped, 0, "{name}");
            assert_eq!(name.parse(), Ok(benchmark));
        }
    }

    #[test]
    fn a_setting_changes_interrupts_and_a_seed_is_a_run() {
        let [default, disabled, marked] =
            ["delay:75", "disabled", "marked:75"].map(|setting| outcome(Benchmark::Is, setting));
        assert!(disabled.interrupts > 2.0 * default.interrupts, "{disabled:?} {default:?}");
        assert!(marked.seconds < default.seconds, "small messages wait for the delay");
        assert_eq!(marked, outcome(Benchmark::Is, "marked:75"));
    }

    #[test]
    fn what_a_rank_sends_another_one_receives() {
        for (name, benchmark) in Benchmark::ALL {
            let (mut sent, mut received) = (Vec::new(), Vec::new());
            for rank in 0..RANKS {
                let mut computes = 0.0;
                for op in benchmark.ops(Class::W, rank) {
                    match op {
                        rank::Op::Send { to, tag, bytes } => sent.push((rank, to, tag, bytes)),
                        rank::Op::Receive { from, tag, bytes } => {
                            received.push((from, rank, tag, bytes));
                        }
                        rank::Op::Compute(share) => computes += share,
                        rank::Op::Wait => {}
                    }
                }
                assert!((0.999..1.001).contains(&computes), "{name}: {computes}");
            }
            sent.sort_unstable();
            received.sort_unstable();
            assert_eq!(sent, received, "{name}");
        }
    }

    #[test]
    fn what_the_paper_did_not_run_is_refused() {
        let machine = Machine::named("ideal").expect("it comes with the crate");
        let refused = run(Benchmark::Ft, Class::C, &machine, Moderation::DISABLED, 1);
        let why = refused.expect_err("it had not enough memory").to_string();
        assert!(why.starts_with("ft.C: the paper has no time"), "{why}");
        assert_eq!("x".parse::<Class>(), Err(NpbError::Unknown));
    }
}
