//! Tags of libfabric as match information of MX.
//!
//! Tagged and untagged messages never match each other, so one bit tells them apart, and tags have
//! 63 bits. What else comes with a message stands in a header before its first byte: whether the
//! sender gave remote CQ data, and these. The header is the head that MX announces large messages
//! with, so that it is known before the message is received.

use mx::matching::Match;

/// The bit that untagged messages have.
const UNTAGGED: u64 = 1 << 63;

/// The bit that untagged messages have which are about remote memory.
const REMOTE: u64 = 1 << 62;

pub(crate) const OF_REQUEST: u64 = UNTAGGED | REMOTE;

/// The bits that a tag may have.
pub(crate) const TAG: u64 = !UNTAGGED;

/// Bytes before the message.
pub(crate) const HEADER: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    /// `fi_tsend` and its relatives.
    Tagged,
    /// `fi_send` and its relatives.
    Untagged,
}

impl MessageKind {
    pub(crate) const fn of(match_info: u64) -> Self {
        if match_info & UNTAGGED == 0 { Self::Tagged } else { Self::Untagged }
    }
}

pub(crate) const fn of_message(kind: MessageKind, tag: u64) -> u64 {
    match kind {
        MessageKind::Tagged => tag & TAG,
        MessageKind::Untagged => UNTAGGED,
    }
}

pub(crate) const fn of_bytes(id: u32) -> u64 {
    OF_REQUEST | 1 << 61 | id as u64
}

pub(crate) const fn of_answer(id: u32) -> u64 {
    OF_REQUEST | 1 << 60 | id as u64
}

pub(crate) const fn is_remote(match_info: u64) -> bool {
    match_info & OF_REQUEST == OF_REQUEST
}

pub(crate) const fn of_receive(kind: MessageKind, tag: u64, ignore: u64) -> Match {
    match kind {
        MessageKind::Tagged => {
            let mask = !ignore | UNTAGGED;
            Match { info: tag & TAG & mask, mask }
        }
        MessageKind::Untagged => Match { info: UNTAGGED, mask: UNTAGGED | REMOTE },
    }
}

pub(crate) fn header(data: Option<u64>) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    if let Some(data) = data {
        header[0] = 1;
        header[1..].copy_from_slice(&data.to_be_bytes());
    }
    header
}

pub(crate) fn data(header: &[u8; HEADER]) -> Option<u64> {
    let [flag, rest @ ..] = header;
    (*flag == 1).then(|| u64::from_be_bytes(*rest))
}

/// The header of an answer that says why there is nothing else in it.
pub(crate) fn refusal(error: i32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[0] = 2;
    header[1..5].copy_from_slice(&error.to_be_bytes());
    header
}

pub(crate) fn refused(header: &[u8; HEADER]) -> Option<i32> {
    let [flag, a, b, c, d, ..] = *header;
    (flag == 2).then(|| i32::from_be_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(message: u64, wanted: Match) -> bool {
        assert_eq!(wanted.info & !wanted.mask, 0, "MX refuses such a mask");
        wanted.accepts(message)
    }

    #[test]
    fn tags_match_as_libfabric_says() {
        let tags = [0, 1, 0x5555, TAG, TAG - 1, 1 << 62];
        for tag in tags {
            for wanted in tags {
                for ignore in [0, 1, 0xff, TAG, u64::MAX] {
                    let receive = of_receive(MessageKind::Tagged, wanted, ignore);
                    let expected = (tag ^ wanted) & !ignore & TAG == 0;
                    assert_eq!(fits(of_message(MessageKind::Tagged, tag), receive), expected);
                    assert!(!fits(of_message(MessageKind::Untagged, tag), receive));
                }
            }
            let untagged = of_receive(MessageKind::Untagged, 0, 0);
            assert!(!fits(of_message(MessageKind::Tagged, tag), untagged));
            assert_eq!(MessageKind::of(of_message(MessageKind::Tagged, tag)), MessageKind::Tagged);
        }
        let untagged = of_message(MessageKind::Untagged, 0);
        assert!(fits(untagged, of_receive(MessageKind::Untagged, 7, 0)));
        assert_eq!(MessageKind::of(untagged), MessageKind::Untagged);
    }

    #[test]
    fn remote_memory_is_no_concern_of_messages() {
        let receives = [
            of_receive(MessageKind::Untagged, 0, 0),
            of_receive(MessageKind::Tagged, 1 << 62, u64::MAX),
        ];
        let infos = [OF_REQUEST, of_bytes(7), of_answer(7), of_answer(u32::MAX)];
        for info in infos {
            assert!(is_remote(info));
            assert!(receives.iter().all(|receive| !fits(info, *receive)));
            assert_eq!(infos.iter().filter(|other| **other == info).count(), 1);
        }
        assert!(!is_remote(of_message(MessageKind::Tagged, TAG)));
        assert!(!is_remote(of_message(MessageKind::Untagged, 0)));
    }

    #[test]
    fn headers_say_whether_there_is_data() {
        for value in [None, Some(0), Some(7), Some(u64::MAX)] {
            assert_eq!(data(&header(value)), value);
            assert_eq!(refused(&header(value)), None);
        }
        assert_eq!((refused(&refusal(266)), data(&refusal(266))), (Some(266), None));
    }
}
