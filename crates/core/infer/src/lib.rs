//! From trains of probes to a verdict: is there a hold, whose, of which family, how long.
//!
//! A *hold* is the time for which a NIC moderates an interrupt. [`Plan`] says which packets to
//! send, the caller sends them and records their times, and [`judge`] explains the times. There is
//! no I/O and no clock in here.
//!
//! ```
//! use infer::{Abilities, Family, Heard, Place, Plan, Probe};
//!
//! // A far host that answers at once, behind a NIC that delays each interrupt by 75 us.
//! let mut plan = Plan::new(Abilities::default(), 5);
//! let (mut now, mut interrupt) = (0, 0);
//! while let Some(train) = plan.next_train() {
//!     let begin = now + train.quiet;
//!     let mut answer = |at: u64, wait: u64| {
//!         let arrived = begin + at + 40_000;
//!         if arrived > interrupt {
//!             interrupt = arrived + 75_000;
//!         }
//!         interrupt + 5_000 + wait + 40_000
//!     };
//!     let probe = |send: &infer::PlannedProbe| Probe {
//!         sent: begin + send.at,
//!         received: Some(answer(send.at, send.wait)),
//!         nic: None,
//!         far: None,
//!         silent: send.silent,
//!     };
//!     let probes: Vec<_> = train.sends.iter().map(probe).collect();
//!     now = probes.iter().filter_map(|probe| probe.received).max().unwrap_or(now) + 1_000_000;
//!     plan.record(Heard { train, probes });
//! }
//! let verdict = infer::judge(plan.heard());
//! let [finding] = &verdict.findings[..] else { panic!("{verdict:?}") };
//! // Round trips alone do not say on which side.
//! assert_eq!((finding.family, finding.place), (Family::Delay, Place::Unknown));
//! assert!((finding.usecs.value - 75.0).abs() < 1.0);
//! ```
//!
//! # What a prober outside sees
//!
//! A probe leaves at a moment that the prober chose, reaches a NIC at `x`, and an interrupt reports
//! it to its host at `r`. The cost of the path without a hold is the *floor*; `r - x` less the
//! floor is the *wait*. Only `x` is under control, so the evidence is how the wait depends on it:
//!
//! | family | lone packet | packets `s < D` apart |
//! |---|---|---|
//! | none | 0 | 0 |
//! | delay `D` | `D`, always | the k-th waits `D - k s`: they are reported together |
//! | throttle `D` | 0 | until `D` after the last release, exactly |
//! | periodic `D` | anything below `D` | until the next tick; ticks keep their phase |
//! | quiet `D` | `D`, always | until `D` after the last of them, a bound after the first at most |
//! | deferral `D` | 0 | until the next of some polls, `D` apart, after the last release |
//! | adaptive | little | as delay, with the level in force: longer when much comes |
//! | with `rx-frames F` | as without | the F-th releases all |
//!
//! A delay's timer starts at the first unreported packet, a throttle keeps a minimum gap between
//! interrupts, and a periodic clock runs freely. Quiet begins anew with each packet (e1000's RDTR,
//! CQE mode of mlx5). Deferral is no NIC's: after a poll, the kernel polls some times more before
//! it lets the NIC interrupt (`gro_flush_timeout`, `napi_defer_hard_irqs`); once is a throttle.
//!
//! # Starters and joiners
//!
//! Only a packet that finds nothing unreported tells one family from another: call it a *starter*.
//! Whoever arrives before the release of the packet in front of it is a *joiner*: it comes right
//! behind that packet under every family, and also where no NIC holds anything but a server is slow
//! or a queue is long. So the model predicts starters, each from the *observed* release before
//! it (an error is never carried on), and joiners only say where the floor is: the last to join
//! waits for next to nothing. Behind a delay even that one queues behind the others, so the floor
//! is where joiners end and starters begin: whoever came after the release waits for a delay of its
//! own. An interrupt's own cost cannot be told from a delay that is longer by as much.
//!
//! Packets of others are not seen, and yet start timers and count towards `rx-frames`. How many
//! come is taken to be Poisson's, and fitted with the limit.
//!
//! # What is no hold
//!
//! - **Idle states.** The core needs a constant time to come back, but only if it was idle for
//!   longer than a residency. A throttle does the opposite, and a delay does not care.
//! - **A slow server** serialises: its k-th answer waits for k services, and its starters wait for
//!   nothing.
//! - **Bulk in front**, **a busy core**, **the scheduler**: waits that do not depend on what the
//!   prober sends. No family explains them, so none is reported.
//! - **The first packet** (address resolution, a cold cache): one packet, not a family.
//!
//! # Which side
//!
//! Four timestamps (NTP, `earmark echo`) show each direction by itself: the far host's receive
//! stamp is taken after its NIC's hold, mine after mine. Clocks need not agree: a constant offset
//! goes into the floor, and a drift is fitted. A NIC of mine that stamps what it receives splits a
//! round trip, too: behind its stamp there is its own hold and nothing else. With round trips
//! alone, my own settings tell, if they may be changed for a moment, or a *silent* packet that
//! nobody answers: sent just before a probe it starts a delay, or spends a throttle's interrupt, on
//! the far side only. A constant that nothing varies cannot be seen: behind a longer delay on the
//! far side, a delay of mine adds the same to every round trip, and only timestamps show it.
//!
//! # What is excluded
//!
//! No explanation found is no proof that nothing holds. Two interrupts are never closer than the
//! hold, whatever its family, so two packets that came `s` apart and were also reported `s` apart
//! exclude every hold longer than `s`. That needs neither floor nor clock, and noise only makes it
//! rarer. The shortest distance that most packets kept is the bound of *no hold*; where it is long,
//! because of what was sent, what was lost, or noise, the verdict is that the data cannot tell. So
//! it is where most waits stay unexplained: a hold that comes and goes leaves most distances alone.
//!
//! # Which lengths
//!
//! Some NICs, and markers, hold or release by length, and all that short packets show is said of
//! short packets. So trains come in two lengths, each of which is judged by itself. Where both
//! judgements agree, the verdict covers both; else it says each with its length.
//!
//! # Estimation
//!
//! Residuals of starters are scored with a Cauchy log-likelihood, whose scale is the noise that the
//! best explanation leaves; heavy tails cost every family alike. Families are compared by what they
//! explain less what their parameters cost (Schwarz, "Estimating the dimension of a model", 1978).
//! The packet-pair idea is that of Salehin et al., IEEE Access 2018; here trains have random gaps,
//! so that no spacing can be in step with a period.
//!
//! # Modules
//!
//! `plan` and `train` choose what to send; `heard` and `series` hold what came back; `direction`,
//! `fit`, `quiet`, `deferral`, `periodic`, `adaptive`, `frames` and `waking` explain it, one family
//! each; `edge` finds the floor; `apart` and `unclear` say what the data excludes; `judge`,
//! `side`, `lengths`, `verdict` and `words` make the verdict.
#![forbid(unsafe_code)]

mod adaptive;
mod apart;
mod deferral;
mod direction;
mod edge;
mod explanation;
mod fit;
mod frames;
mod heard;
mod judge;
mod lengths;
mod periodic;
mod plan;
mod quiet;
mod series;
mod side;
mod stats;
mod train;
mod unclear;
mod verdict;
mod waking;
mod words;

pub use heard::{Far, Heard, Probe};
pub use judge::{judge, judge_varied};
pub use plan::{Abilities, Plan};
pub use train::{Length, PlannedProbe, Purpose, Train};
pub use verdict::{
    Acquittal, Family, Finding, Interval, Lengths, NoHold, Place, Said, Unclear, Verdict, Why,
};
