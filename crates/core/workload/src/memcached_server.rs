//! A server that answers the memcached client, where no real one can run: it keeps one value, of
//! whatever key, and knows `set` and `get` of the text protocol.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Action, ConnectionId, Counter, Now, Recorder, Workload, WorkloadEvent};

/// The longest line of a request, and the longest value (`-I` of memcached).
const LINE_BYTES_MAX: usize = 2_048;
const VALUE_BYTES_MAX: usize = 1 << 20;

/// See the module.
#[derive(Debug, Default)]
pub struct MemcachedServer {
    /// The answer to a get of the value that was set, without `END`.
    stored: Vec<u8>,
    /// By connection: bytes that make no whole request yet.
    received: BTreeMap<ConnectionId, Vec<u8>>,
    answers: VecDeque<(ConnectionId, Vec<u8>)>,
    answer: Vec<u8>,
}

impl MemcachedServer {
    /// A server that has no value yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn received(&mut self, connection: ConnectionId, bytes: &[u8]) {
        let mut rest = self.received.remove(&connection).unwrap_or_default();
        rest.extend_from_slice(bytes);
        while let Some((answer, taken)) = self.handle(&rest) {
            self.answers.push_back((connection, answer));
            rest.drain(..taken);
        }
        self.received.insert(connection, rest);
    }

    /// The answer to the first request, if it is whole, and its length.
    fn handle(&mut self, bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            let is_too_long = bytes.len() > LINE_BYTES_MAX;
            return is_too_long.then(|| (b"CLIENT_ERROR line too long\r\n".to_vec(), bytes.len()));
        };
        let line = String::from_utf8_lossy(&bytes[..end]);
        let mut words = line.split_whitespace();
        let line_bytes = end + 1;
        match (words.next(), words.next()) {
            (Some("get"), Some(_)) => Some(([&self.stored[..], b"END\r\n"].concat(), line_bytes)),
            (Some("set"), Some(key)) => match words.nth(2).map(str::parse::<usize>) {
                Some(Ok(length)) if length <= VALUE_BYTES_MAX => {
                    let value = bytes.get(line_bytes..line_bytes + length + 2)?;
                    self.stored = format!("VALUE {key} 0 {length}\r\n").into_bytes();
                    self.stored.extend_from_slice(value);
                    Some((b"STORED\r\n".to_vec(), line_bytes + value.len()))
                }
                _ => Some((b"SERVER_ERROR object too large for cache\r\n".to_vec(), line_bytes)),
            },
            _ => Some((b"ERROR\r\n".to_vec(), line_bytes)),
        }
    }
}

impl Workload for MemcachedServer {
    fn next(&mut self, now: Now, event: WorkloadEvent<'_>, recorder: &mut Recorder) -> Action<'_> {
        match event {
            WorkloadEvent::Received { connection, bytes } => {
                recorder.count(now.at, Counter::BytesReceived, bytes.len() as u64);
                self.received(connection, bytes);
            }
            WorkloadEvent::Closed { connection } => {
                self.received.remove(&connection);
                self.answers.retain(|(to, _)| *to != connection);
            }
            _ => {}
        }
        let Some((connection, answer)) = self.answers.pop_front() else {
            return Action::Wait { until: None };
        };
        self.answer = answer;
        recorder.count(now.at, Counter::Transactions, 1);
        recorder.count(now.at, Counter::BytesSent, self.answer.len() as u64);
        Action::Send { connection, bytes: &self.answer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Did, Script};

    #[test]
    fn requests_in_any_pieces_have_their_answers() {
        let stream = b"get a\r\nset a 0 0 3\r\nx\ny\r\nget a\r\nquit\r\nset a 0 0 9999999\r\n";
        let answers = b"END\r\nSTORED\r\nVALUE a 0 3\r\nx\ny\r\nEND\r\nERROR\r\n\
            SERVER_ERROR object too large for cache\r\n";
        for size in 1..stream.len() {
            let mut script = Script::new(MemcachedServer::new(), 1_000);
            let mut sent = Vec::new();
            assert_eq!(script.start(), Did::Wait(None));
            for piece in stream.chunks(size) {
                let mut did = script.received(1, 7, piece);
                while let Did::Send(7, bytes) = did {
                    sent.extend(bytes);
                    did = script.sent(1, 7);
                }
                assert_eq!(did, Did::Wait(None));
            }
            assert_eq!(String::from_utf8_lossy(&sent), String::from_utf8_lossy(answers), "{size}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let mut script = Script::new(MemcachedServer::new(), 1_000);
        script.start();
        let did = script.received(1, 0, &[b'x'; LINE_BYTES_MAX + 1]);
        assert!(matches!(did, Did::Send(0, answer) if answer.starts_with(b"CLIENT_ERROR")));
    }
}
