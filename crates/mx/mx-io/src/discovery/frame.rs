//! Questions and answers on the wire.

use mx::address::{Address, NicId};
use mx::wire::VERSION;

use crate::port::QUERY;

const REPLY: u8 = 4;
/// Bytes before the name.
const HEADER: usize = 24;
pub(super) const MAX_NAME: usize = 80;
pub(super) const MAX_FRAME: usize = HEADER + MAX_NAME;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) is_reply: bool,
    /// The endpoint that it is for, or [`ALL_ENDPOINTS`](crate::port::ALL_ENDPOINTS).
    pub(super) to: u8,
    pub(super) nonce: u64,
    pub(super) sender: Address,
    pub(super) version: u16,
    /// The host that answers; in a question, the host that should, empty for all hosts.
    pub(super) name: &'a str,
}

pub(super) fn is_ours(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|kind| [QUERY, REPLY].contains(kind))
}

pub(super) const fn length(name: &str) -> usize {
    HEADER + name.len()
}

impl<'a> Frame<'a> {
    pub(super) fn new(is_reply: bool, sender: Address, to: u8, nonce: u64, name: &'a str) -> Self {
        Self { is_reply, to, nonce, sender, version: VERSION, name }
    }

    /// The content of a frame; `None` if it makes no sense.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let [kind, _flags, to, from, ..] = *header;
        let nic = NicId(*header[12..].first_chunk()?);
        let [endpoint, length] = *header[18..].first_chunk()?;
        let name = str::from_utf8(rest.get(..length.into())?).ok()?;
        let is_reply = kind == REPLY;
        // Two places say which endpoint it is, since the first belongs to every frame of MX.
        let is_whole = from == endpoint && (is_name(name) || name.is_empty() && !is_reply);
        is_whole.then_some(Self {
            is_reply,
            to,
            nonce: u64::from_be_bytes(*header[4..].first_chunk()?),
            sender: Address { nic, endpoint },
            version: u16::from_be_bytes(*header[20..].first_chunk()?),
            name,
        })
    }

    /// Writes it to the start of `frame`, a question with room for any answer; how many bytes.
    pub(super) fn write(&self, frame: &mut [u8]) -> usize {
        let kind = if self.is_reply { REPLY } else { QUERY };
        let Address { nic, endpoint } = self.sender;
        let length = length(self.name);
        frame[..4].copy_from_slice(&[kind, 0, self.to, endpoint]);
        frame[4..12].copy_from_slice(&self.nonce.to_be_bytes());
        frame[12..18].copy_from_slice(&nic.0);
        frame[18..20].copy_from_slice(&[endpoint, self.name.len() as u8]);
        frame[20..22].copy_from_slice(&self.version.to_be_bytes());
        frame[22..HEADER].fill(0);
        frame[HEADER..length].copy_from_slice(self.name.as_bytes());
        if self.is_reply {
            return length;
        }
        frame[length..MAX_FRAME].fill(0);
        MAX_FRAME
    }
}

/// Whether this can be the name of a host: 1 to 80 letters, digits, dots, hyphens and underscores.
pub(super) fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENDER: Address = Address { nic: NicId([2, 0, 0, 0, 0, 9]), endpoint: 7 };

    fn bytes(name: &str, is_reply: bool) -> Vec<u8> {
        let mut bytes = vec![0xee; 1500];
        let length = Frame::new(is_reply, SENDER, 255, 0x0102_0304, name).write(&mut bytes);
        bytes.truncate(length);
        bytes
    }

    #[test]
    fn layout_is_as_documented() {
        let expected = [3, 0, 255, 7, 0, 0, 0, 0, 1, 2, 3, 4, 2, 0, 0, 0, 0, 9, 7, 5, 0, 3, 0, 0];
        assert_eq!(bytes("alpha", false), [&expected[..], b"alpha", &[0; 75]].concat());
        assert_eq!(bytes("alpha", true)[0], 4);
    }
}
