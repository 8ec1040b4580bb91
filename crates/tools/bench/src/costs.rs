//! What hosts cost in virtual time: options, and sets of constants with their sources.

use std::fmt;
use std::str::FromStr;

use base::quantity::Unit;
use base::time::Duration;
use nic::processor::Costs;

/// A number for all hosts, or one for each, the last one for all that follow: `191`, or `0,191`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EachHost(Vec<u32>);

/// A second: nothing that a kernel does for a packet takes longer.
const LONGEST_NS: u32 = 1_000_000_000;

impl EachHost {
    /// The one of host `number`.
    pub fn of(&self, number: usize) -> Duration {
        let nanos = self.0.get(number).or(self.0.last()).copied().unwrap_or_default();
        Duration::from_nanos(nanos.into())
    }
}

impl FromStr for EachHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is neither a number of nanoseconds, up to {LONGEST_NS}, nor one for each \
                 host, such as 0,191"
            )
        };
        let each = text.split(',').map(|number| {
            Unit::Nanos.read_whole(number, 0..=LONGEST_NS.into()).map_err(|_| wrong())
        });
        each.collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for EachHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&each.join(","))
    }
}

/// A set of constants that was measured somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CostSet {
    /// The machines of the Open-MX paper: an interrupt 191 ns, a received packet 774 ns.
    Paper,
}

impl CostSet {
    /// The constants, each with its source.
    pub fn costs(self) -> Costs {
        match self {
            // "Finding a Tradeoff between Host Interrupt Load and MPI Latency over Ethernet",
            // section IV: a million packets of 128 bytes that the host drops at once cost 965 ns
            // each with an interrupt each, and 774 ns each coalesced. So this is what a packet
            // costs up to the handler that drops it, and the difference is an interrupt. What
            // sending costs, and waking up, the paper does not say as a number.
            Self::Paper => Costs {
                interrupt: Duration::from_nanos(965 - 774),
                packet: Duration::from_nanos(774),
                ..Costs::default()
            },
        }
    }
}

/// What hosts a and b cost, in words: empty if nothing does.
pub fn describe(hosts: [Costs; 2]) -> String {
    match hosts.map(|costs| in_words(&costs)) {
        [a, b] if a == b => a,
        [a, b] => {
            let free = |text: String| if text.is_empty() { "nothing".into() } else { text };
            format!("host a: {}; host b: {}", free(a), free(b))
        }
    }
}

/// The same of one host.
fn in_words(costs: &Costs) -> String {
    let Costs { interrupt, packet, send, wakeup, idle_after } = *costs;
    let wakeup_words = format!("waking up after {} ns", idle_after.as_nanos());
    let each = [
        ("an interrupt", interrupt),
        ("a received packet", packet),
        ("a sent packet", send),
        (&wakeup_words, wakeup),
    ];
    let paid = each.into_iter().filter(|(_, cost)| *cost > Duration::ZERO);
    paid.map(|(name, cost)| format!("{name} {} ns", cost.as_nanos())).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_its_own_or_the_last() {
        let each: EachHost = "0,191".parse().unwrap();
        assert_eq!([0, 1, 2].map(|host| each.of(host).as_nanos()), [0, 191, 191]);
        assert_eq!("7".parse::<EachHost>().unwrap().of(3).as_nanos(), 7);
        assert_eq!(each.to_string(), "0,191");
        for wrong in ["", "1,", "-1", "1000000001", "a=1"] {
            let error = wrong.parse::<EachHost>().unwrap_err();
            assert!(error.contains("such as 0,191"), "{error}");
        }
    }

    #[test]
    fn words_say_what_is_paid() {
        let paper = CostSet::Paper.costs();
        let words = "an interrupt 191 ns, a received packet 774 ns";
        assert_eq!(describe([paper; 2]), words);
        assert_eq!(
            describe([Costs::default(), paper]),
            format!("host a: nothing; host b: {words}")
        );
        assert_eq!(describe([Costs::default(); 2]), "");
    }
}
