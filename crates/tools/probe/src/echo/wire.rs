//! Requests and answers of the echo; the module above describes them.

use std::time::Duration;

/// The port that `earmark probe` tries first.
pub const PORT: u16 = 7_007;

/// The first four bytes of a request.
pub(super) const REQUEST: [u8; 4] = *b"EMK1";

/// The first four bytes of an answer.
pub(super) const ANSWER: [u8; 4] = *b"EMK2";

/// Bytes of a request with room for all times, and of its answer.
pub const LENGTH: usize = 24;

/// Bytes of the shortest request.
pub const SHORTEST: usize = 8;

/// The longest that an answer waits for: beyond, its prober is no prober of ours.
pub const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// The longest answer that waits, in bytes: what fills a frame.
pub(super) const LONGEST_WAITING: usize = 1_500;

/// The most answers that wait at once.
pub const MOST_WAITING: usize = 4_096;

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Of which request.
    pub number: u32,
    /// When the far kernel received the request, and when the far program answered; nothing from
    /// an echo that is not ours.
    pub times: Option<(u64, u64)>,
}

/// A request whose answer is to wait so many nanoseconds.
pub fn request(number: u32, wait: u64) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..4].copy_from_slice(&REQUEST);
    bytes[4..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..16].copy_from_slice(&wait.to_be_bytes());
    bytes
}

/// Reads what came back; nothing if it is no answer.
pub fn answer(bytes: &[u8]) -> Option<Answer> {
    let word = |at: usize| {
        bytes.get(at..at + 8).and_then(|word| Some(u64::from_be_bytes(word.try_into().ok()?)))
    };
    let number = u32::from_be_bytes(bytes.get(4..8)?.try_into().ok()?);
    let times = (word(8)?, word(16)?);
    match bytes.get(..4)? {
        start if start == ANSWER => Some(Answer { number, times: Some(times) }),
        start if start == REQUEST => Some(Answer { number, times: None }),
        _ => None,
    }
}

/// Whether two datagrams belong to one request: both are the same, or they are requests and answers
/// of one number and length.
pub fn belong_together(one: &[u8], other: &[u8]) -> bool {
    let is_ours = |bytes: &[u8]| bytes.starts_with(&REQUEST) || bytes.starts_with(&ANSWER);
    let numbers = (one.get(4..SHORTEST), other.get(4..SHORTEST));
    let same_number = numbers.0.is_some() && numbers.0 == numbers.1;
    one == other || (one.len() == other.len() && is_ours(one) && is_ours(other) && same_number)
}
