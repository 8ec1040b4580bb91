//! A systemd service (`systemd.service(5)`) for settings that are to be had only while the device
//! is up: it runs `earmark apply` when systemd sees the device, and again until that succeeds.
//!
//! What starts it is a drop-in of the device's unit (`systemd.device(5)`), so nothing has to be
//! enabled. Both files have the settings in their heads, and are removed together.

use super::file::{File, Subject, head};
use super::words::of_ours;
use crate::setting::State;

pub(super) fn paths(device: &str) -> [String; 2] {
    let unit = format!("sys-subsystem-net-devices-{}.device", escaped(device));
    [
        format!("/etc/systemd/system/{}", name(device)),
        format!("/etc/systemd/system/{unit}.d/earmark.conf"),
    ]
}

fn name(device: &str) -> String {
    format!("earmark-{}.service", escaped(device))
}

pub(super) fn files(subject: &Subject, settings: &State) -> [File; 2] {
    let device = &subject.name;
    let head = head(settings);
    let command = of_ours(device, settings).unwrap_or_default();
    let service = format!(
        "{head}[Unit]\n\
         Description=Settings of {device} that it takes while it is up\n\
         After=network-online.target\n\
         StartLimitIntervalSec=10min\n\
         StartLimitBurst=60\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={command}\n\
         # Until the device is up.\n\
         Restart=on-failure\n\
         RestartSec=5\n"
    );
    let drop_in = format!("{head}[Unit]\nWants={}\n", name(device));
    let [service_path, drop_in_path] = paths(device);
    [
        File { path: service_path, text: service, is_program: false },
        File { path: drop_in_path, text: drop_in, is_program: false },
    ]
}

/// A device's name in that of a unit, as `systemd-escape` has it.
fn escaped(device: &str) -> String {
    let plain = |(at, c): (usize, char)| match c {
        '.' if at == 0 => format!("\\x{:02x}", u32::from(c)),
        c if c.is_ascii_alphanumeric() || "_.:".contains(c) => c.to_string(),
        c => format!("\\x{:02x}", u32::from(c)),
    };
    device.char_indices().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_systemd_does() {
        assert_eq!(escaped("enp1s0"), "enp1s0");
        assert_eq!(escaped("br-lan.10"), "br\\x2dlan.10");
        assert_eq!(escaped("a@b"), "a\\x40b");
    }
}
