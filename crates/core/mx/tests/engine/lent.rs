//! Messages whose memory is lent: they are copied only if the memory has to be free before they are
//! acknowledged.

use std::cell::RefCell;
use std::rc::Rc;

use crate::support::{EnginePair, frame_type, pattern, secs};
use mx::buffers::Source;
use mx::config::Config;
use mx::ids::PeerId;
use mx::matching::Match;
use mx::status::{Event, RequestError};
use mx::wire::FrameType;

const BYTES: usize = 10_000;

#[derive(Debug)]
struct LentMemory {
    lent: Vec<u8>,
    copy: Option<Vec<u8>>,
}

/// A message in memory that is lent, which tests look at and change.
#[derive(Clone, Debug)]
struct Lent(Rc<RefCell<LentMemory>>);

impl Lent {
    fn new() -> Self {
        Self(Rc::new(RefCell::new(LentMemory { lent: pattern(BYTES).to_vec(), copy: None })))
    }

    fn is_copied(&self) -> bool {
        self.0.borrow().copy.is_some()
    }

    fn change(&self) {
        self.0.borrow_mut().lent.fill(0);
    }
}

impl Source for Lent {
    fn length(&self) -> u64 {
        BYTES as u64
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        let LentMemory { lent, copy } = &*self.0.borrow();
        let at = offset as usize;
        into.copy_from_slice(&copy.as_ref().unwrap_or(lent)[at..at + into.len()]);
    }

    fn is_lent(&self) -> bool {
        !self.is_copied()
    }

    fn keep(&mut self) {
        let LentMemory { lent, copy } = &mut *self.0.borrow_mut();
        copy.get_or_insert_with(|| lent.clone());
    }
}

fn connected() -> (EnginePair<Lent>, PeerId) {
    let mut pair = EnginePair::of_any(Config::default());
    let [to, from] = pair.connect();
    pair.ends[1].irecv(pair.now, Some(from), Match::exact(1), vec![0; BYTES], 0).unwrap();
    (pair, to)
}

/// Sends a message that the second end does not see yet.
fn send(pair: &mut EnginePair<Lent>, to: PeerId) -> Lent {
    let lent = Lent::new();
    pair.asleep[1] = true;
    pair.ends[0].isend(pair.now, to, 1, lent.clone(), 0).unwrap();
    pair.run(secs(0));
    lent
}

/// How sends of the first end have ended.
fn ends(pair: &mut EnginePair<Lent>) -> Vec<Result<(), RequestError>> {
    let end = |event| match event {
        Event::Sent(_, status) => Some(status.result),
        _ => None,
    };
    pair.take(0).into_iter().filter_map(end).collect()
}

fn has_come(pair: &mut EnginePair<Lent>) -> bool {
    matches!(&pair.take(1)[..], [Event::Received(_, _, bytes)] if bytes[..] == pattern(BYTES)[..])
}

#[test]
fn send_ends_with_the_acknowledgement_and_nothing_is_copied() {
    let (mut pair, to) = connected();
    let lent = send(&mut pair, to);
    assert_eq!(ends(&mut pair), []);
    assert_eq!(pair.ends[0].open_requests().0.len(), 1);
    pair.asleep[1] = false;
    pair.run(secs(1));
    assert_eq!(ends(&mut pair), [Ok(())]);
    assert!(has_come(&mut pair) && !lent.is_copied());
    assert!(!pair.ends[0].end_lent());
    assert_eq!(pair.ends[0].usage().sends, 0);
}

#[test]
fn what_is_lost_is_sent_from_a_copy_if_the_memory_was_wanted_back() {
    let (mut pair, to) = connected();
    let mut drops = 4;
    pair.tap = Box::new(move |_, frame| {
        drops -= i32::from(frame_type(frame) == FrameType::Medium && drops > 0);
        frame_type(frame) != FrameType::Medium || drops == 0
    });
    let lent = send(&mut pair, to);
    assert!(pair.ends[0].end_lent() && lent.is_copied());
    lent.change();
    pair.asleep[1] = false;
    pair.run(secs(1));
    assert_eq!(ends(&mut pair), [Ok(())]);
    assert!(pair.ends[0].counters().resent > 0 && has_come(&mut pair));
    assert_eq!(pair.ends[0].usage().sends, 0);
}

#[test]
fn send_to_a_peer_that_is_lost_fails() {
    let (mut pair, to) = connected();
    pair.tap = Box::new(|_, _| false);
    let lent = send(&mut pair, to);
    pair.run(secs(10));
    assert_eq!(ends(&mut pair), [Err(RequestError::Unreachable)]);
    assert!(!lent.is_copied() && !pair.ends[0].end_lent());
    assert_eq!(pair.ends[0].usage().sends, 0);
}
