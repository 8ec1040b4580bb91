//! Questions and answers of discovery, without a port and without a clock.

use std::collections::{BTreeMap, VecDeque};

use base::time::{Duration, Instant};
use mx::address::{Address, NicId};
use mx::outgoing::Outgoing;

use super::DiscoveredEndpoint;
use super::frame::is_name;
use super::frame::{self, Frame, MAX_FRAME};
use crate::port::{ALL_ENDPOINTS, BROADCAST};

/// How often a question is repeated: any frame may be lost.
const REPEAT: Duration = Duration::from_millis(200);
/// Answers that may be given at once.
const BURST: u32 = 32;
/// In such a time, one more may be given.
const REFILL: Duration = Duration::from_millis(10);
const FORGET: Duration = Duration::from_millis(1000);
/// The most endpoints that a question finds: all of 64 hosts.
const MAX_FOUND: usize = 64 * 256;

/// What an endpoint knows of questions and answers.
#[derive(Debug)]
pub struct Asker {
    own: Address,
    /// What this host is called; `None` for one who only asks.
    name: Option<String>,
    answers: VecDeque<(Address, u64)>,
    /// Answers that may be given, and when that was counted.
    allowance: (u32, Instant),
    /// Answers that each NIC has had since this time: one may have as many as are left for others.
    given: (BTreeMap<NicId, u32>, Instant),
    questions: BTreeMap<u64, Question>,
}

#[derive(Debug)]
struct Question {
    name: String,
    due: Instant,
    found: BTreeMap<Address, DiscoveredEndpoint>,
}

impl Asker {
    /// An endpoint that answers to `name`, if there is one.
    pub fn new(own: Address, name: Option<String>) -> Self {
        let allowance = (BURST, Instant::ZERO);
        let given = (BTreeMap::new(), Instant::ZERO);
        let (answers, questions) = (VecDeque::new(), BTreeMap::new());
        Self { own, name, answers, allowance, given, questions }
    }

    /// Answers to another name from now on; `false` if it is none.
    pub fn rename(&mut self, name: &str) -> bool {
        let fits = is_name(name);
        if fits {
            self.name = Some(name.to_owned());
        }
        fits
    }

    /// Asks for a host, or for all, until [`Asker::end`] is called.
    pub fn begin(&mut self, now: Instant, nonce: u64, name: Option<&str>) {
        let name = name.unwrap_or_default().to_owned();
        self.questions.insert(nonce, Question { name, due: now, found: BTreeMap::new() });
    }

    /// Who has answered a question that this ends, in the order of addresses.
    pub fn end(&mut self, nonce: u64) -> Vec<DiscoveredEndpoint> {
        let question = self.questions.remove(&nonce);
        question.map_or_else(Vec::new, |question| question.found.into_values().collect())
    }

    /// Whether an endpoint with this number has answered.
    pub fn knows(&self, nonce: u64, endpoint: u8) -> bool {
        let question = self.questions.get(&nonce);
        question.is_some_and(|it| it.found.keys().any(|address| address.endpoint == endpoint))
    }

    /// Takes a frame that came from `from`; `false` if it is none of this kind.
    pub fn handle_frame(&mut self, now: Instant, from: NicId, bytes: &[u8]) -> bool {
        if !frame::is_ours(bytes) {
            return false;
        }
        // No endpoint speaks for another.
        let frame = Frame::parse(bytes).filter(|it| it.sender.nic == from && it.sender != self.own);
        match frame {
            Some(frame) if frame.is_reply => self.on_answer(&frame),
            Some(frame) => self.on_question(now, &frame, bytes.len()),
            None => {}
        }
        true
    }

    /// An answer is never longer than its question of `length` bytes, which may be forged.
    fn on_question(&mut self, now: Instant, question: &Frame<'_>, length: usize) {
        let is_meant = [ALL_ENDPOINTS, self.own.endpoint].contains(&question.to);
        let Some(name) = &self.name else { return };
        let is_long_enough = length >= frame::length(name);
        if !is_meant || ![name, ""].contains(&question.name) || !is_long_enough {
            return;
        }
        let (left, counted) = &mut self.allowance;
        let more = now.since(*counted).as_nanos() / REFILL.as_nanos();
        if more > 0 {
            *left = u64::from(*left).saturating_add(more).min(BURST.into()) as u32;
            *counted = now;
        }
        let (given, since) = &mut self.given;
        if now.since(*since) >= FORGET {
            given.clear();
            *since = now;
        }
        let had = given.get(&question.sender.nic).copied().unwrap_or(0);
        if had < *left {
            *left -= 1;
            given.insert(question.sender.nic, had + 1);
            self.answers.push_back((question.sender, question.nonce));
        }
    }

    fn on_answer(&mut self, answer: &Frame<'_>) {
        let Some(question) = self.questions.get_mut(&answer.nonce) else { return };
        let is_wanted = question.name.is_empty() || question.name == answer.name;
        if answer.to == self.own.endpoint && is_wanted && question.found.len() < MAX_FOUND {
            let (host, version) = (answer.name.to_owned(), answer.version);
            let found = DiscoveredEndpoint { host, address: answer.sender, version };
            question.found.insert(answer.sender, found);
        }
    }

    /// Writes the next frame, if there is one to send.
    pub fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<Outgoing> {
        debug_assert!(out.len() >= MAX_FRAME);
        if let Some(name) = &self.name
            && let Some((to, nonce)) = self.answers.pop_front()
        {
            let length = Frame::new(true, self.own, to.endpoint, nonce, name).write(out);
            return Some(Outgoing::new(to.nic, to.endpoint, length));
        }
        let is_due = |(_, question): &(&u64, &mut Question)| question.due <= now;
        let (nonce, question) = self.questions.iter_mut().find(is_due)?;
        question.due = now + REPEAT;
        let length = Frame::new(false, self.own, ALL_ENDPOINTS, *nonce, &question.name).write(out);
        Some(Outgoing::new(BROADCAST, ALL_ENDPOINTS, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Address = Address { nic: NicId([2, 0, 0, 0, 0, 1]), endpoint: 3 };
    const B: Address = Address { nic: NicId([2, 0, 0, 0, 0, 2]), endpoint: 9 };
    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    fn pair() -> (Asker, Asker) {
        (Asker::new(A, Some("alpha".to_owned())), Asker::new(B, Some("beta".to_owned())))
    }

    /// Carries all frames of one to the other; how many.
    fn carry(now: Instant, from: &mut Asker, to: &mut Asker) -> usize {
        let mut frame = [0; 1500];
        let mut count = 0;
        while let Some(outgoing) = from.transmit(now, &mut frame) {
            assert!([BROADCAST, to.own.nic].contains(&outgoing.to));
            assert!(to.handle_frame(now, from.own.nic, &frame[..outgoing.length]));
            count += 1;
        }
        count
    }

    fn found(name: &str, address: Address) -> DiscoveredEndpoint {
        DiscoveredEndpoint { host: name.to_owned(), address, version: mx::wire::VERSION }
    }

    #[test]
    fn who_is_asked_answers() {
        let (mut a, mut b) = pair();
        for (name, answers) in [(None, 1), (Some("beta"), 1), (Some("alpha"), 0), (Some("b"), 0)] {
            a.begin(NOW, 7, name);
            assert_eq!((carry(NOW, &mut a, &mut b), carry(NOW, &mut b, &mut a)), (1, answers));
            assert_eq!(a.knows(7, 9), answers == 1);
            assert_eq!(a.end(7), vec![found("beta", B); answers]);
        }
    }

    #[test]
    fn question_is_repeated_and_answers_are_not() {
        let (mut a, mut b) = pair();
        a.begin(NOW, 7, None);
        assert_eq!(carry(NOW, &mut a, &mut b), 1);
        carry(NOW, &mut b, &mut a);
        assert_eq!(carry(NOW + Duration::from_millis(199), &mut a, &mut b), 0);
        assert_eq!(carry(NOW + REPEAT, &mut a, &mut b), 1);
        carry(NOW, &mut b, &mut a);
        assert_eq!(a.end(7).len(), 1);
    }

    #[test]
    fn forged_answers_are_ignored() {
        let (mut a, _) = pair();
        a.begin(NOW, 7, Some("beta"));
        let mut arrive = |from: NicId, frame: Frame<'_>| {
            let mut bytes = [0; 1500];
            let length = frame.write(&mut bytes);
            assert!(a.handle_frame(NOW, from, &bytes[..length]));
            a.knows(7, 9)
        };
        let good = Frame::new(true, B, A.endpoint, 7, "beta");
        assert!(!arrive(NicId([2; 6]), good), "from another NIC");
        assert!(!arrive(B.nic, Frame { nonce: 8, ..good }), "to no question");
        assert!(!arrive(B.nic, Frame { name: "gamma", ..good }), "of another host");
        assert!(!arrive(B.nic, Frame { to: 4, ..good }), "to another endpoint");
        assert!(arrive(B.nic, good));
    }

    #[test]
    fn answers_are_no_longer_than_questions() {
        let question = Frame::new(false, B, ALL_ENDPOINTS, 7, "");
        let (mut asked, mut answered) = ([0; MAX_FRAME], [0; MAX_FRAME]);
        assert_eq!(question.write(&mut asked), MAX_FRAME);
        for (name, least) in [("a", 25), ("alpha", 29), (&*"x".repeat(80), MAX_FRAME)] {
            for length in frame::length("")..=MAX_FRAME {
                let mut a = Asker::new(A, Some(name.to_owned()));
                assert!(a.handle_frame(NOW, B.nic, &asked[..length]));
                let answer = a.transmit(NOW, &mut answered).map(|outgoing| outgoing.length);
                assert_eq!(answer, (length >= least).then_some(least), "{name}, {length} bytes");
            }
        }
    }

    #[test]
    fn answers_to_one_leave_some_for_others() {
        let (mut a, b) = pair();
        let mut frame = [0; MAX_FRAME];
        for millis in 0..5_000 {
            let now = NOW + Duration::from_millis(millis);
            let mut ask = |sender: Address| {
                let length = Frame::new(false, sender, ALL_ENDPOINTS, millis, "").write(&mut frame);
                assert!(a.handle_frame(now, sender.nic, &frame[..length]));
                let answer = a.transmit(now, &mut frame);
                answer.is_some_and(|outgoing| outgoing.to == sender.nic)
            };
            ask(b.own);
            if millis % 100 == 0 {
                let other = NicId([2, 0, 0, 0, 1, (millis / 100) as u8]);
                assert!(ask(Address { nic: other, endpoint: 1 }), "after {millis} ms");
            }
        }
    }
}
