//! Clients of a network service: which addresses are allowed, which share a limit, and what was
//! refused.

use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::signals::{ENDING, register};

/// How often refusals are reported at most.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Whether `from` is among the addresses that a service is for; none means all.
pub fn is_allowed(allow: &[IpAddr], from: IpAddr) -> bool {
    allow.is_empty() || allow.iter().any(|one| one.to_canonical() == from.to_canonical())
}

/// The address that limits count `from` as: a host with IPv6 has a /64 to itself and may use any
/// address in it.
pub fn counted_as(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        ip => ip,
    }
}

/// Counts what a service refuses, by reason, and reports it: the first at once, then at most one
/// line in ten seconds, however many there are.
#[derive(Debug)]
pub struct Refusals {
    service: &'static str,
    report: fn(Arguments<'_>),
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    by_reason: BTreeMap<&'static str, u64>,
    reported: Option<Instant>,
}

impl Refusals {
    /// Nothing refused yet; `report` prints a line.
    pub fn new(service: &'static str, report: fn(Arguments<'_>)) -> Self {
        Self { service, report, counts: Mutex::default() }
    }

    /// Counts a refusal.
    pub fn count(&self, reason: &'static str, from: IpAddr) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.by_reason.entry(reason).or_default() += 1;
        let now = Instant::now();
        if counts.reported.is_none_or(|last| now.duration_since(last) >= REPORT_EVERY) {
            counts.reported = Some(now);
            let from = from.to_canonical();
            let (service, list) = (self.service, counts.list());
            (self.report)(format_args!(
                "{service}: not served so far: {list}; the last from {from}"
            ));
        }
    }

    /// Reports what was refused in all, if anything was, when a signal ends this process.
    pub fn report_at_the_end(self: &Arc<Self>) -> io::Result<()> {
        let mut signals = register(ENDING, Signals::new)?;
        let refusals = Arc::clone(self);
        let wait = move || {
            let Some(signal) = signals.forever().next() else { return };
            let counts = refusals.counts.lock().unwrap_or_else(PoisonError::into_inner);
            if !counts.by_reason.is_empty() {
                let (service, list) = (refusals.service, counts.list());
                (refusals.report)(format_args!("{service}: not served in all: {list}"));
            }
            // Ends as if the signal had never been waited for.
            let _ = emulate_default_handler(signal);
        };
        thread::Builder::new().spawn(wait).map(drop)
    }
}

impl Counts {
    fn list(&self) -> String {
        let each = self.by_reason.iter().map(|(reason, count)| format!("{count} {reason}"));
        each.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_whatever_socket_they_came_through() {
        let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
        assert!(is_allowed(&[], ip("10.0.0.1")));
        assert!(is_allowed(&[ip("10.0.0.1")], ip("::ffff:10.0.0.1")));
        assert!(!is_allowed(&[ip("10.0.0.1")], ip("10.0.0.2")));
        assert_eq!(counted_as(ip("::ffff:10.0.0.1")), ip("10.0.0.1"));
        assert_eq!(counted_as(ip("fd00:1:2:3:4:5:6:7")), ip("fd00:1:2:3::"));
        assert_ne!(counted_as(ip("fd00:1:2:4::7")), ip("fd00:1:2:3::"));
    }

    #[test]
    fn refusals_are_counted_by_reason() {
        let refusals = Refusals::new("test", |_| ());
        for reason in ["wrong code", "too slow", "wrong code"] {
            refusals.count(reason, Ipv6Addr::LOCALHOST.into());
        }
        assert_eq!(refusals.counts.lock().unwrap().list(), "1 too slow, 2 wrong code");
    }
}
