//! Names of devices: the one that counts, for whatever name a user knows (`ip link property`).

use std::io;

use netlink_sys::{Socket, protocols::NETLINK_ROUTE};

use super::error::DeviceError;
use super::message::{self, Message};
use super::root::Root;
use super::tlv::{Tlvs, Writer};

/// Asks for a device (`RTM_GETLINK`; Linux, `include/uapi/linux/rtnetlink.h`).
const GET_LINK: u16 = 18;
/// Bytes before the attributes (`struct ifinfomsg`).
const HEADER: usize = 16;
/// Its name (`IFLA_IFNAME`).
const NAME: u16 = 3;
/// Any name of it (`IFLA_ALT_IFNAME`, Linux 5.5).
const ANY_NAME: u16 = 53;

/// The name of the device that has `name` as its name or as an alternative one. If there is none,
/// `name` itself, which is refused later with a better reason.
pub fn device_name(root: &Root, name: &str) -> String {
    let is_path = name.contains('/') || name == "." || name == "..";
    if is_path || root.has(&format!("sys/class/net/{name}/ifindex")) {
        return name.to_owned();
    }
    ask(name).ok().flatten().unwrap_or_else(|| name.to_owned())
}

fn ask(name: &str) -> io::Result<Option<String>> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    let mut attributes = Writer::default();
    attributes.put_text(ANY_NAME, name);
    let mut payload = vec![0; HEADER];
    payload.extend(attributes.bytes());
    socket.send(&message::write(GET_LINK, 1, false, &payload), 0)?;
    let (datagram, _) = socket.recv_from_full()?;
    let messages = message::read(&datagram, 1).map_err(io::Error::other)?;
    // The answer comes before the acknowledgement; of a refusal there is none.
    let Some(Message::Answer(link)) = messages.first() else { return Ok(None) };
    let attributes = Tlvs::new(link.get(HEADER..).unwrap_or_default());
    let name = attributes.flatten().find(|attribute| attribute.kind == NAME);
    Ok(name.map(|name| name.text()))
}

/// Devices whose names are not UTF-8, with their other bytes escaped: no command here can name
/// them.
pub fn illegible_devices(root: &Root) -> Result<Vec<String>, DeviceError> {
    let path = root.path("sys/class/net");
    let entries = std::fs::read_dir(&path);
    let entries = entries.map_err(|cause| DeviceError::Read(path, cause))?;
    let names = entries.flatten().map(|entry| entry.file_name());
    let illegible = names.filter(|name| name.to_str().is_none());
    let escaped = |name: std::ffi::OsString| name.as_encoded_bytes().escape_ascii().to_string();
    Ok(illegible.map(escaped).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_count_and_names_of_nothing_stay_what_they_are() {
        let root = Root::here();
        for name in ["lo", "no-such-device-at-all-here", "", "../lo", "a\0b"] {
            assert_eq!(device_name(&root, name), name);
        }
    }
}
