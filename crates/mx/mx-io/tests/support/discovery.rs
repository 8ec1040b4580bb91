//! Questions and answers of any bytes, among those of two hosts that look for each other.

use std::collections::BTreeSet;

use base::time::{Duration, Instant};
use mx::address::{Address, NicId};
use mx_io::discovery::Asker;

use super::input::Input;

const A: Address = Address { nic: NicId([2, 0, 0, 0, 0, 1]), endpoint: 3 };
const B: Address = Address { nic: NicId([2, 0, 0, 0, 0, 2]), endpoint: 9 };

/// Names that are asked for; the last is none.
const NAMES: [&str; 4] = ["alpha", "beta", "x", ""];
const NONCES: u8 = 4;
const LONGEST: usize = 104;
const LONGEST_NAME: usize = 80;

struct TestListener {
    asker: Asker,
    now: Instant,
    /// Interfaces that something has come from.
    heard: BTreeSet<NicId>,
    answers: u64,
}

/// Does what the bytes say: an operation each, and what belongs to it.
pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut listener = TestListener {
        asker: Asker::new(A, Some("alpha".to_owned())),
        now: Instant::from_nanos(1_000_000_000),
        heard: BTreeSet::new(),
        answers: 0,
    };
    let mut other = Asker::new(B, Some("beta".to_owned()));
    while !input.is_empty() {
        match input.u8() % 6 {
            0 => {
                let from = sender(&mut input);
                let length = usize::from(input.u8());
                listener.hear(from, input.bytes(length));
            }
            1 => {
                let (from, frame) = almost_right(&mut input);
                listener.hear(from, &frame);
            }
            2 => {
                let (nonce, name) = (input.u8() % NONCES, NAMES[usize::from(input.u8() % 4)]);
                let name = Some(name).filter(|name| !name.is_empty());
                listener.asker.begin(listener.now, nonce.into(), name);
            }
            3 => listener.end(input.u8() % NONCES),
            4 => listener.now += Duration::from_micros(u64::from(input.u16()) * 10),
            _ => listener.talk(&mut other),
        }
    }
    listener.talk(&mut other);
    (0..NONCES).for_each(|nonce| listener.end(nonce));
}

fn sender(input: &mut Input<'_>) -> NicId {
    match input.u8() % 4 {
        0 => A.nic,
        1 => B.nic,
        2 => NicId([2, 0, 0, 0, 0, 3]),
        _ => NicId(std::array::from_fn(|_| input.u8())),
    }
}

/// A frame in which every field may be wrong, and is not often.
fn almost_right(input: &mut Input<'_>) -> (NicId, Vec<u8>) {
    let from = sender(input);
    let kind = 3 + input.u8() % 2;
    let (to, endpoint) = ([A.endpoint, u8::MAX][usize::from(input.u8() % 2)], input.u8());
    let length = input.u8() % (LONGEST_NAME as u8 + 2);
    let mut frame = vec![kind, 0, to, endpoint, 0, 0, 0, 0, 0, 0, 0, input.u8() % NONCES];
    frame.extend(from.0);
    frame.extend([endpoint, length, 0, 1, 0, 0]);
    match input.u8() % 3 {
        0 => frame.extend(NAMES[usize::from(length % 4)].bytes()),
        1 => frame.extend(input.bytes(length.into())),
        _ => frame.resize(frame.len() + usize::from(length), b'a'),
    }
    let (change, byte) = (usize::from(input.u8()), input.u8());
    if let Some(place) = frame.get_mut(change) {
        *place = byte;
    }
    frame.resize(frame.len() + usize::from(input.u8() % 32), 0);
    (from, frame)
}

impl TestListener {
    fn hear(&mut self, from: NicId, frame: &[u8]) {
        let is_ours = self.asker.handle_frame(self.now, from, frame);
        assert_eq!(is_ours, matches!(frame, [3 | 4, ..]), "whose frames these are");
        if is_ours {
            self.heard.insert(from);
        }
    }

    /// Sends what there is to send to the other host, and hears what that has to say.
    fn talk(&mut self, other: &mut Asker) {
        let mut out = [0; 1500];
        while let Some(outgoing) = self.asker.transmit(self.now, &mut out) {
            assert!(outgoing.length <= LONGEST);
            self.answers += u64::from(out[0] == 4);
            let frame = &out[..outgoing.length];
            assert!(other.handle_frame(self.now, A.nic, frame), "a frame of ours is one");
        }
        let since_start = self.now.since(Instant::ZERO).as_micros();
        assert!(self.answers <= 32 + since_start / 10_000, "{} answers", self.answers);
        while let Some(outgoing) = other.transmit(self.now, &mut out) {
            let frame = out[..outgoing.length].to_vec();
            self.hear(B.nic, &frame);
        }
    }

    fn end(&mut self, nonce: u8) {
        let found = self.asker.end(nonce.into());
        for pair in found.windows(2) {
            assert!(pair[0].address < pair[1].address, "in the order of addresses, each once");
        }
        for one in found {
            assert!(self.heard.contains(&one.address.nic), "{one:?} has never said anything");
            assert!(one.address != A, "it has found itself");
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            assert!((1..=LONGEST_NAME).contains(&one.host.len()) && one.host.bytes().all(fits));
        }
    }
}
