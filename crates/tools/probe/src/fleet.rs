//! Many hosts, one after the other or a few at a time, at a rate that all of them share.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;
use sys::ctrl_c::{self, Interrupted};

use super::prober::{EchoKind, Prober};
use super::recording::Origin;
use super::report::Report;
use super::run::{self, Limits};

/// How long a wait goes on without a look at whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(50);

const UNPROBED: &str = "interrupted before it was probed";

/// The hosts of a list, one a line, each once; what follows a `#` is a comment.
pub fn parse_hosts(text: &str) -> Result<Vec<String>> {
    let (mut hosts, mut known) = (Vec::new(), BTreeSet::new());
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(host) = words.next() else { continue };
        ensure!(
            words.next().is_none(),
            "line {number} has several words; a line is one host, and after # a comment"
        );
        if known.insert(host) {
            hosts.push(host.to_owned());
        }
    }
    ensure!(!hosts.is_empty(), "it has no host; a line is one");
    Ok(hosts)
}

/// How hosts are probed.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Which echo; `None`: the first that answers.
    pub kind: Option<EchoKind>,
    /// Another port than its usual one.
    pub port: Option<u16>,
    /// Of each host.
    pub limits: Limits,
    /// How many hosts at once.
    pub parallel: usize,
    /// So many packets a second, to all of them together.
    pub total_rate: u32,
}

/// A host, and what became of it.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// As the list has it.
    pub host: String,
    /// Why it was not probed, or not to the end.
    pub error: Option<String>,
    /// What was found, as `earmark probe HOST --json` has it.
    pub probe: Option<Report>,
}

/// A rate in packets a second that several threads share: who sends much at once keeps all others
/// waiting afterwards.
pub struct Budget {
    rate: u32,
    free_at: Mutex<Instant>,
}

impl Budget {
    /// At least one packet a second.
    pub fn new(rate: u32) -> Self {
        Self { rate: rate.max(1), free_at: Mutex::new(Instant::now()) }
    }

    /// When so many packets may be sent that are not reserved.
    fn reserve(&self, packets: usize, now: Instant) -> Instant {
        let takes = Duration::from_secs_f64(packets as f64 / f64::from(self.rate));
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = now.max(*free_at);
        *free_at = begin + takes;
        begin
    }

    /// Waits until so many packets may be sent, unless a signal asks to end.
    pub fn take(&self, packets: usize) -> Result<(), Interrupted> {
        let begin = self.reserve(packets, Instant::now());
        loop {
            ctrl_c::check()?;
            let left = begin.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            sleep(left.min(GLANCE));
        }
    }
}

/// Probes hosts, and calls `done` for each. After a signal that asks to end, what
/// was heard until then is judged, and the rest is not probed.
pub fn probe(hosts: &[String], pace: &Pace, done: impl Fn(usize, &Outcome) + Sync) -> Vec<Outcome> {
    let budget = Budget::new(pace.total_rate);
    let (next, count) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let outcomes = Mutex::new(Vec::new());
    let work = || {
        while let Some((at, host)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            hosts.get(at).map(|host| (at, host))
        } {
            let outcome = probe_one(host, pace, &budget);
            done(count.fetch_add(1, Ordering::Relaxed) + 1, &outcome);
            let mut all = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            all.push((at, outcome));
        }
    };
    thread::scope(|scope| {
        for _ in 0..pace.parallel.clamp(1, hosts.len().max(1)) {
            scope.spawn(work);
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(at, _)| *at);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn probe_one(host: &str, pace: &Pace, budget: &Budget) -> Outcome {
    let outcome = |error: Option<String>, probe| Outcome { host: host.to_owned(), error, probe };
    if ctrl_c::is() {
        return outcome(Some(UNPROBED.into()), None);
    }
    let mut prober = match Prober::find(host, pace.kind, pace.port) {
        Ok(prober) => prober,
        Err(error) if error.is::<Interrupted>() => return outcome(Some(UNPROBED.into()), None),
        Err(error) => return outcome(Some(report::output::message(&error)), None),
    };
    let mut plan = run::plan(&prober, pace.limits);
    let ended =
        run::run_paced(&mut prober, &mut plan, |packets| budget.take(packets).map_err(Into::into));
    let error = match ended {
        Ok(()) => None,
        Err(error) if error.is::<Interrupted>() => Some("interrupted; judged by a part".into()),
        Err(error) => Some(report::output::message(&error)),
    };
    let heard = plan.heard();
    let origin = Origin::new(prober.address.to_string(), prober.kind());
    let report =
        (!heard.is_empty()).then(|| Report::new(&origin, heard, &infer::judge(heard), None));
    outcome(error, report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_lines_without_their_comments() {
        let hosts = parse_hosts("a # first\n\n  # none\n10.0.0.1\r\nfe80::1%eth0\na\n").unwrap();
        assert_eq!(hosts, ["a", "10.0.0.1", "fe80::1%eth0"]);
        let refusal = |text: &str| parse_hosts(text).unwrap_err().to_string();
        assert!(refusal("a\nb c\n").starts_with("line 2 has several words"));
        assert!(refusal("# none\n").contains("no host"));
    }

    #[test]
    fn a_budget_is_of_all_who_take_from_it() {
        let budget = Budget::new(1_000);
        let start = Instant::now() + Duration::from_secs(1);
        let after = |packets| (budget.reserve(packets, start) - start).as_millis();
        // The first may begin at once; others wait for what was taken before them.
        assert_eq!((after(100), after(50), after(1)), (0, 100, 150));
        // A silent time is not saved up.
        let later = start + Duration::from_secs(9);
        assert_eq!(budget.reserve(10, later), later);
        assert_eq!((budget.reserve(10, later) - later).as_millis(), 10);
    }

    #[test]
    fn who_cannot_be_found_is_an_outcome_and_keeps_its_place() {
        // Nothing answers at the port of discard.
        let hosts = ["127.0.0.1", "::1"].map(str::to_owned);
        let pace = Pace {
            kind: Some(EchoKind::Udp),
            port: Some(9),
            limits: Limits::default(),
            parallel: 2,
            total_rate: 1_000,
        };
        let seen = Mutex::new(BTreeSet::new());
        let outcomes = probe(&hosts, &pace, |number, _| {
            seen.lock().unwrap().insert(number);
        });
        assert_eq!(outcomes.iter().map(|it| it.host.clone()).collect::<Vec<_>>(), hosts);
        assert!(outcomes.iter().all(|it| it.probe.is_none() && it.error.is_some()));
        assert_eq!(seen.into_inner().unwrap(), BTreeSet::from([1, 2]));
    }
}
