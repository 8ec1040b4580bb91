//! Generic netlink: one family of requests, one socket, one network.

use std::io;

use netlink_sys::protocols::NETLINK_GENERIC;
use sys::netlink::Exchange;
pub(super) use sys::netlink::Failure;
use sys::netlink::message::DUMP;

use super::error::DeviceError;
use super::tlv::{Tlvs, Writer};

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

pub(super) fn failed(failure: Failure, action: &'static str, device: &str) -> DeviceError {
    let device = device.to_owned();
    match failure {
        Failure::Refused(cause, said) => DeviceError::Refused { action, device, cause, said },
        Failure::Malformed(cause) => DeviceError::Malformed { action, device, cause },
    }
}

#[derive(Debug)]
pub(super) struct Family {
    exchange: Exchange,
    id: u16,
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
        let exchange = Exchange::open(NETLINK_GENERIC).map_err(fail)?;
        let mut family = Self { exchange, id: CONTROL };
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
        let payload = [&[command, 1, 0, 0], attributes.bytes()].concat();
        let flags = if about == About::All { DUMP } else { 0 };
        let answers = self.exchange.ask(self.id, flags, &payload)?;
        let attributes = |answer: Vec<u8>| answer.get(HEADER..).unwrap_or_default().to_vec();
        Ok(answers.into_iter().map(attributes).collect())
    }
}

fn family_id(answer: &[u8]) -> Option<u16> {
    let id = Tlvs::new(answer).flatten().find(|tlv| tlv.kind == FAMILY_ID)?;
    id.number().ok()?.try_into().ok()
}
