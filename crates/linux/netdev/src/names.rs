//! Names of devices: the one that counts, for whatever name a user knows (`ip link property`).

use sys::netlink::Netlink;

use super::error::DeviceError;
use super::root::Root;

/// The name of the device that has `name` as its name or as an alternative one. If there is none,
/// `name` itself, which is refused later with a better reason.
pub fn device_name(root: &Root, name: &str) -> String {
    let is_path = name.contains('/') || name == "." || name == "..";
    if is_path || root.has(&format!("sys/class/net/{name}/ifindex")) {
        return name.to_owned();
    }
    let found = Netlink::open().and_then(|netlink| netlink.name(name));
    found.ok().filter(|found| !found.is_empty()).unwrap_or_else(|| name.to_owned())
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
