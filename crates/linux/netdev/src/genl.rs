//! Generic netlink: one family of requests, one socket, one network.

use std::cell::Cell;
use std::io;

use netlink_sys::{Socket, protocols::NETLINK_GENERIC};

use super::error::DeviceError;
use super::message::{self, Message};
use super::tlv::{Malformed, Tlvs, Writer};

/// The family that knows the others (`GENL_ID_CTRL`).
const CONTROL: u16 = 0x10;
/// Asks it for one (`CTRL_CMD_GETFAMILY`).
const GET_FAMILY: u8 = 3;
/// The number of a family (`CTRL_ATTR_FAMILY_ID`).
const FAMILY_ID: u16 = 1;
/// Its name (`CTRL_ATTR_FAMILY_NAME`).
const FAMILY_NAME: u16 = 2;
/// Bytes before a message's attributes (`struct genlmsghdr`): command, version, two unused.
const HEADER: usize = 4;

#[derive(Debug)]
pub(super) enum Failure {
    Refused(io::Error, Option<String>),
    /// The answer makes no sense.
    Malformed(Malformed),
}

impl Failure {
    pub(super) fn of(self, action: &'static str, device: &str) -> DeviceError {
        let device = device.to_owned();
        match self {
            Self::Refused(cause, said) => DeviceError::Refused { action, device, cause, said },
            Self::Malformed(cause) => DeviceError::Malformed { action, device, cause },
        }
    }
}

impl From<io::Error> for Failure {
    fn from(cause: io::Error) -> Self {
        Self::Refused(cause, None)
    }
}

impl From<Malformed> for Failure {
    fn from(cause: Malformed) -> Self {
        Self::Malformed(cause)
    }
}

#[derive(Debug)]
pub(super) struct Family {
    socket: Socket,
    id: u16,
    sequence: Cell<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// One object, named by attributes.
    One,
    /// All there are.
    All,
}

impl Family {
    pub(super) fn open(name: &'static str) -> Result<Self, DeviceError> {
        let fail = |cause| DeviceError::Family(name, cause);
        let socket = Socket::new(NETLINK_GENERIC).map_err(fail)?;
        // Sentences from before Linux 4.12 are missed, and that is all.
        let _ = socket.set_ext_ack(true);
        let _ = socket.set_cap_ack(true);
        let mut family = Self { socket, id: CONTROL, sequence: Cell::new(0) };
        let mut about = Writer::default();
        about.put_text(FAMILY_NAME, name);
        let answers = match family.ask(GET_FAMILY, About::One, &about) {
            Ok(answers) => answers,
            Err(Failure::Refused(cause, _)) => return Err(fail(cause)),
            Err(Failure::Malformed(cause)) => return Err(fail(io::Error::other(cause))),
        };
        let id = answers.iter().find_map(|answer| family_id(answer));
        family.id = id.ok_or_else(|| fail(io::Error::from_raw_os_error(libc::ENOENT)))?;
        Ok(family)
    }

    /// Sends one request; the attributes of each answer.
    pub(super) fn ask(
        &self,
        command: u8,
        about: About,
        attributes: &Writer,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let sequence = self.sequence.get().wrapping_add(1);
        self.sequence.set(sequence);
        let mut payload = vec![command, 1, 0, 0];
        payload.extend(attributes.bytes());
        let request = message::write(self.id, sequence, about == About::All, &payload);
        self.socket.send(&request, 0)?;
        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            for message in message::read(&datagram, sequence)? {
                match message {
                    Message::Answer(bytes) => {
                        answers.push(bytes.get(HEADER..).unwrap_or_default().to_vec());
                    }
                    Message::End { code: 0, .. } => return Ok(answers),
                    Message::End { code, said } => {
                        return Err(Failure::Refused(io::Error::from_raw_os_error(code), said));
                    }
                }
            }
        }
    }
}

fn family_id(answer: &[u8]) -> Option<u16> {
    let id = Tlvs::new(answer).flatten().find(|tlv| tlv.kind == FAMILY_ID)?;
    id.number().ok()?.try_into().ok()
}
