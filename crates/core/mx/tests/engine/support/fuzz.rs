//! What fuzzers do with endpoints. Each function takes any bytes and must return.

use std::cell::RefCell;
use std::rc::Rc;

use base::time::Duration;
use mx::config::{Config, ContextBits};
use mx::ids::{PeerId, ReceiveId};
use mx::matching::Match;
use mx::outgoing::{BulkPath, Reference};
use mx::status::Event;

use super::input::Input;
use super::{EnginePair, address, pattern, secs};

/// Frames that endpoints sent, to be sent again, changed.
const KEPT: usize = 64;
const LENGTHS: [usize; 8] = [0, 1, 128, 129, 2_000, 32_768, 32_769, 100_000];

/// From this operation on, the path for bulk frames changes, too.
const PATHS: u8 = 252;

/// An endpoint, and one who sends it whatever the bytes say, in the name of its peer or in one of
/// its own, while the two exchange messages. Each operation is a byte, and what belongs to it:
///
/// | byte modulo 8 | then | |
/// |---|---|---|
/// | 0 | sender, length, bytes | a frame as it stands |
/// | 1 | frame, place, value | a frame that was sent before, changed |
/// | 2 | these, length, exponent | the same, as one that refers to so many bytes |
/// | 3 | exponent | time goes by |
/// | 4, 5 | length | a message, and a receive for it |
/// | 6 | count | so many frames are lost |
/// | 7 | checksum of | a frame that was sent before, changed, its checksum made right |
pub(crate) fn replay_frames(bytes: &[u8]) {
    let mut bytes = Input::new(bytes);
    let crc = bytes.u8() % 2 == 1;
    let (mut pair, peers) = EnginePair::connected(Config { crc, ..Config::default() });
    let kept: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let losing = Rc::new(RefCell::new(0));
    let (keep, lose) = (Rc::clone(&kept), Rc::clone(&losing));
    pair.tap = Box::new(move |_, frame| {
        let mut kept = keep.borrow_mut();
        if kept.len() < KEPT {
            kept.push(frame.clone());
        }
        let left = lose.replace_with(|left: &mut u8| left.saturating_sub(1));
        left == 0
    });
    while !bytes.is_empty() {
        match bytes.u8() % 8 {
            0 => {
                let from = bytes.u8();
                let length = bytes.u8();
                let frame = bytes.bytes(length.into());
                let to = usize::from(from / 2 % 2);
                pair.ends[to].handle_frame(pair.now, address(from % 3).nic, frame);
            }
            op @ (1 | 2 | 7) => {
                let Some(mut frame) = chosen(&kept.borrow(), bytes.u8()) else { continue };
                let place = usize::from(bytes.u8()) % frame.len();
                frame[place] = bytes.u8();
                if op == 7 {
                    seal(&mut frame);
                }
                let to = usize::from(frame[2] == 1);
                let (end, from) = (&mut pair.ends[to], address(1 - to as u8).nic);
                if op == 2 {
                    let length = u64::from(bytes.u8()) << (bytes.u8() % 60);
                    let reference = Reference { at: 0, length, record: [frame[place].into(); 2] };
                    end.handle_reference(pair.now, from, &frame, reference);
                } else {
                    end.handle_frame(pair.now, from, &frame);
                }
            }
            3 => pair.run(Duration::from_micros(1 << (bytes.u8() % 24))),
            op @ (4 | 5) => {
                let end = usize::from(op - 4);
                let length = LENGTHS[usize::from(bytes.u8()) % LENGTHS.len()];
                // A peer that broke the protocol is lost, as it should be.
                let _ = pair.ends[end].isend(pair.now, peers[end], 1, pattern(length), 0);
                let _ = pair.ends[1 - end].irecv(pair.now, None, Match::ANY, vec![0; length], 0);
            }
            _ => *losing.borrow_mut() = bytes.u8() % 16,
        }
        pair.run(Duration::ZERO);
        pair.take(0);
        pair.take(1);
    }
    *losing.borrow_mut() = 0;
    pair.run(secs(60));
    for end in &mut pair.ends {
        // An end that still waits owes nothing, and all that was due is done.
        assert!(end.deadline().is_none_or(|deadline| deadline > pair.now), "{}", end.dump());
    }
}

fn chosen(kept: &[Vec<u8>], number: u8) -> Option<Vec<u8>> {
    kept.get(usize::from(number) % kept.len().max(1)).cloned()
}

/// Makes the checksum right, if there is one.
fn seal(frame: &mut [u8]) {
    let crc = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
    let end = 24 + usize::from(u16::from_be_bytes([frame[22], frame[23]]));
    if frame[1] & 1 == 1 && frame.len() >= end + 4 {
        let sum = crc.checksum(&frame[..end]);
        frame[end..end + 4].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Two endpoints whose applications ask for anything at any time, over a wire that loses frames.
/// Each operation is two bytes: what to do; which endpoint does it, with which parameter.
pub(crate) fn replay_requests(bytes: &[u8]) {
    let mut bytes = Input::new(bytes);
    let flags = bytes.u8();
    let context = ContextBits { bits: 4 * (flags & 1), shift: 8 };
    let peer_credit = if flags & 2 == 0 { 1 << 20 } else { 3_000 };
    let unexpected_messages = if flags & 4 == 0 { 1 << 20 } else { 4 };
    let config = Config { context, peer_credit, unexpected_messages, ..Config::default() };
    let (mut pair, peers) = EnginePair::connected(config);
    let (every, mtu) = (usize::from(flags >> 3), usize::from(config.mtu));
    let (lossy, mut count) = (Rc::new(RefCell::new(true)), 0);
    let loses = Rc::clone(&lossy);
    pair.tap = Box::new(move |_, frame| {
        count += 1;
        let is_bulk = frame.len() > mtu;
        every < 2 || is_bulk || !*loses.borrow() || count % every != 0
    });
    let mut applications = peers.map(Application::new);
    while !bytes.is_empty() {
        let (what, how) = (bytes.u8(), bytes.u8());
        if what >= PATHS {
            pair.set_bulk_path(
                [BulkPath::Closed, BulkPath::Open, BulkPath::Full][how as usize % 3],
            );
        }
        let end = usize::from(how & 1);
        applications[end].act(&mut pair, end, what, how >> 1);
        for (end, application) in applications.iter_mut().enumerate() {
            application.hear(pair.take(end));
        }
    }
    *lossy.borrow_mut() = false;
    pair.set_bulk_path(BulkPath::Open);
    pair.run(secs(60));
    for (end, application) in applications.iter_mut().enumerate() {
        application.hear(pair.take(end));
        assert!(
            pair.ends[end].deadline().is_none_or(|at| at > pair.now),
            "{}",
            pair.ends[end].dump()
        );
    }
}

struct Application {
    peer: PeerId,
    receives: Vec<ReceiveId>,
    claimed: Vec<mx::ids::MessageId>,
}

impl Application {
    const fn new(peer: PeerId) -> Self {
        Self { peer, receives: Vec::new(), claimed: Vec::new() }
    }

    fn act(&mut self, pair: &mut EnginePair, end: usize, what: u8, how: u8) {
        let now = pair.now;
        let length = LENGTHS[usize::from(how) % LENGTHS.len()];
        let match_info = u64::from(how / 8) << 8;
        let mask = [0xf00, !0, 0][usize::from(how) % 3];
        let wanted = Match { info: match_info & mask, mask };
        let source = (how.is_multiple_of(2)).then_some(self.peer);
        let own = &mut pair.ends[end];
        match what % 12 {
            0 | 1 => drop(own.isend(now, self.peer, match_info, pattern(length), 0)),
            2 => drop(own.issend(now, self.peer, match_info, pattern(length), 0)),
            3..=5 => {
                let place = vec![0; length];
                let posted = own.irecv(now, source, wanted, place, 0);
                self.receives.extend(posted);
            }
            6 => drop(own.probe(source, wanted)),
            7 => {
                let found = own.claim(source, wanted).ok().flatten();
                self.claimed.extend(found.map(|found| found.message));
            }
            8 => {
                if let Some(message) = self.claimed.pop() {
                    if how.is_multiple_of(2) {
                        own.discard(now, message, Vec::new());
                    } else {
                        let _ = own.receive_message(now, message, vec![0; length], 0);
                    }
                }
            }
            9 => {
                if let Some(receive) = self.receives.pop() {
                    own.cancel(receive);
                }
            }
            10 => pair.run(Duration::from_micros(1 << (how % 22))),
            _ if how == 77 => own.close(now),
            _ => {
                let to = address(how % 3);
                if let Ok(peer) = own.connect(now, to, 0, secs(1)) {
                    self.peer = peer;
                }
            }
        }
        pair.run(Duration::ZERO);
    }

    fn hear(&mut self, events: Vec<Event<Vec<u8>>>) {
        for event in events {
            if let Event::Received(_, status, place) = event {
                let got = status.transferred as usize;
                assert!(got <= place.len(), "{status:?}");
                let whole = pattern(status.length as usize);
                assert!(status.peer.is_none() || place[..got] == whole[..got], "{status:?}");
            }
        }
    }
}
