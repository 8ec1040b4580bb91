//! Which queue a frame goes to: the flow director, then receive-side scaling.

use nic::headers::{Addresses, Headers, TCP, UDP};
use nic::rss::{DEFAULT_KEY, Indirection, KEY_LENGTH, Rss, TABLE_LENGTH};

use super::flow::{Action, FlowRule, MAX_RULES, outcome};

/// Bytes of the key that the driver sets. Those behind the first 40 meet no input.
pub(super) const DRIVERS_KEY: usize = 52;
/// Entries of the table that the driver sets.
pub(super) const DRIVERS_TABLE: usize = 64;

const SCTP: u8 = 132;

/// The types of packets that can be hashed, as `HENA` has them (`enum iavf_filter_pctype`).
const UDP4: u32 = 31;
const TCP4: u32 = 33;
const SCTP4: u32 = 34;
const OTHER4: u32 = 35;
const FRAGMENT4: u32 = 36;
/// From a type of IPv4 to that of IPv6.
const TO_IPV6: u32 = 10;

/// All of them.
pub(super) const HASHED: u64 = {
    let ipv4 = 1 << UDP4 | 1 << TCP4 | 1 << SCTP4 | 1 << OTHER4 | 1 << FRAGMENT4;
    ipv4 | ipv4 << TO_IPV6
};

/// What the driver has set of both.
#[derive(Debug)]
pub(super) struct QueueChoice {
    rss: Rss,
    hashed: u64,
    rules: Vec<(u32, FlowRule)>,
    next_number: u32,
}

impl QueueChoice {
    pub(super) fn new() -> Self {
        let rss = Rss::new(DEFAULT_KEY, Indirection::equal(1));
        Self { rss, hashed: HASHED, rules: Vec::new(), next_number: 1 }
    }

    /// What becomes of a packet; queue 0, if nothing says anything else.
    pub(super) fn choose(&self, headers: &Headers) -> Action {
        let rule = self.rules.iter().find(|(_, rule)| rule.flow.fits(headers));
        match rule {
            Some((_, rule)) => rule.action,
            None if is_in(self.hashed, headers) || headers.mx_endpoint().is_some() => {
                Action::Queue(self.rss.queue_of(headers))
            }
            None => Action::Queue(0),
        }
    }

    /// The hash of a packet, if it has one.
    pub(super) fn hash(&self, headers: &Headers) -> Option<u32> {
        if is_in(self.hashed, headers) { self.rss.hash(headers) } else { None }
    }

    /// Sets the key; whether it has the length that was agreed upon.
    pub(super) fn set_key(&mut self, key: &[u8]) -> bool {
        let Some(part) = key.first_chunk::<KEY_LENGTH>() else { return false };
        self.rss = Rss::new(*part, self.rss.indirection().clone());
        key.len() == DRIVERS_KEY
    }

    /// Sets the table; whether it names queues that there are, and has the length that was agreed
    /// upon.
    pub(super) fn set_table(&mut self, table: &[u8], queues: u16) -> bool {
        let Ok(table) = <[u8; DRIVERS_TABLE]>::try_from(table) else { return false };
        let entries: [u16; TABLE_LENGTH] =
            std::array::from_fn(|index| table[index % DRIVERS_TABLE].into());
        let indirection = Indirection::new(entries, queues);
        indirection.map(|indirection| self.rss.set_indirection(indirection)).is_ok()
    }

    /// Sets what is hashed; types that never are do not count.
    pub(super) fn set_hashed(&mut self, types: u64) {
        self.hashed = types & HASHED;
    }

    /// Adds a rule for one of `queues`, or only checks that it could; its number, or the outcome.
    pub(super) fn add(
        &mut self,
        rule: FlowRule,
        only_checked: bool,
        queues: u16,
    ) -> Result<u32, u32> {
        if matches!(rule.action, Action::Queue(queue) if queue >= queues) {
            return Err(outcome::INVALID);
        }
        if self.rules.iter().any(|(_, other)| other.flow == rule.flow) {
            return Err(outcome::EXISTS);
        }
        if self.rules.len() == MAX_RULES {
            return Err(outcome::NO_RESOURCE);
        }
        let number = self.next_number;
        if !only_checked {
            self.rules.push((number, rule));
            self.next_number = self.next_number.wrapping_add(1);
        }
        Ok(number)
    }

    /// Removes a rule; how that ended.
    pub(super) fn remove(&mut self, number: u32) -> u32 {
        let before = self.rules.len();
        self.rules.retain(|(other, _)| *other != number);
        if self.rules.len() < before { outcome::SUCCESS } else { outcome::DOES_NOT_EXIST }
    }
}

/// Whether packets of this type are hashed.
fn is_in(hashed: u64, headers: &Headers) -> bool {
    let ipv4 = match headers.protocol() {
        _ if headers.is_fragment() => FRAGMENT4,
        Some(TCP) => TCP4,
        Some(UDP) => UDP4,
        Some(SCTP) => SCTP4,
        _ => OTHER4,
    };
    match headers.addresses() {
        Addresses::None => false,
        Addresses::V4(_) => hashed >> ipv4 & 1 != 0,
        Addresses::V6(_) => hashed >> (ipv4 + TO_IPV6) & 1 != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::flow::Flow;
    use super::super::flow::tests::udp;
    use super::*;

    fn headers(port: u16) -> Headers {
        nic::headers::parse(&udp(port)).unwrap()
    }

    #[test]
    fn the_drivers_key_and_table_choose_the_queue() {
        let mut steering = QueueChoice::new();
        let key: Vec<u8> = (1..=DRIVERS_KEY as u8).collect();
        assert!(steering.set_key(&key));
        assert!(!steering.set_key(&key[..20]));
        let table: Vec<u8> = (0..DRIVERS_TABLE as u8).map(|entry| entry % 4).collect();
        assert!(steering.set_table(&table, 4));
        assert!(!steering.set_table(&table, 3), "there is no queue 3");
        assert!(!steering.set_table(&table[1..], 4));
        let expected = Rss::new(*key.first_chunk().unwrap(), Indirection::equal(4));
        for port in 0..100 {
            let headers = headers(port);
            assert_eq!(steering.choose(&headers), Action::Queue(expected.queue_of(&headers)));
            assert_eq!(steering.hash(&headers), expected.hash(&headers));
        }
        steering.set_hashed(HASHED & !(1 << UDP4));
        assert_eq!(steering.choose(&headers(1)), Action::Queue(0));
        assert_eq!(steering.hash(&headers(1)), None);
    }

    #[test]
    fn rules_come_first_and_are_bounded() {
        let mut steering = QueueChoice::new();
        let rule = |port: u16, queue: u16| FlowRule {
            flow: Flow { destination_port: Some(port), ..Flow::default() },
            action: Action::Queue(queue),
        };
        let number = steering.add(rule(53, 3), false, 4).unwrap();
        assert_eq!(steering.choose(&headers(53)), Action::Queue(3));
        assert_eq!(steering.choose(&headers(54)), Action::Queue(0));
        assert_eq!(steering.add(rule(53, 1), false, 4), Err(outcome::EXISTS));
        assert_eq!(steering.add(rule(54, 4), false, 4), Err(outcome::INVALID));
        assert!(steering.add(rule(54, 1), true, 4).is_ok());
        assert_eq!(steering.choose(&headers(54)), Action::Queue(0), "it was only checked");
        for port in 100..227 {
            assert!(steering.add(rule(port, 1), false, 4).is_ok());
        }
        assert_eq!(steering.add(rule(1, 1), false, 4), Err(outcome::NO_RESOURCE));
        assert_eq!(steering.remove(number), outcome::SUCCESS);
        assert_eq!(steering.remove(number), outcome::DOES_NOT_EXIST);
        assert_eq!(steering.choose(&headers(53)), Action::Queue(0));
    }
}
