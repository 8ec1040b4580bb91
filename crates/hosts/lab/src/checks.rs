//! What fuzzers and tests do with any bytes: one function for each target.

use serde_json::{from_str, to_string};

use crate::calendar;
use crate::control::check;
use crate::guest;
use labctl::{Reply, Request};

/// A guest that says anything: on its console, if the first byte is even, or else to its calendar.
///
/// # Panics
/// If a promise is not kept.
pub fn guest(bytes: &[u8]) {
    match bytes.split_first() {
        Some((kind, rest)) if kind % 2 == 0 => guest::checks::replay(rest),
        Some((_, rest)) => calendar::checks::replay(rest),
        None => {}
    }
}

/// A line for the control socket of a lab, if the first byte is even, or else the reply of one:
/// what is read and written again is the same, and a refusal says what is wrong.
///
/// # Panics
/// If a promise is not kept.
pub fn control(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    if kind % 2 != 0 {
        let Ok(reply) = from_str::<Reply>(&text) else { return };
        let again = to_string(&reply).expect("it is plain data");
        let same: Reply = from_str(&again).expect("we have written it");
        assert_eq!(to_string(&same).ok(), Some(again));
        return;
    }
    let Ok(request) = from_str::<Request>(&text) else { return };
    let again = to_string(&request).expect("it is plain data");
    let same: Request = from_str(&again).expect("we have written it");
    assert_eq!(to_string(&same).ok(), Some(again));
    if let Request::Set { settings, .. } = request
        && let Err(why) = check(&settings)
    {
        assert!(!why.to_string().is_empty(), "{settings:?}");
    }
}

#[cfg(test)]
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay_corpus;

    #[test]
    fn lab_control() {
        assert!(replay_corpus("lab_control", super::control) > 10);
    }

    #[test]
    fn lab_guest() {
        assert!(replay_corpus("lab_guest", super::guest) > 10);
    }
}
