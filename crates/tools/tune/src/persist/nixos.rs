//! A module for NixOS. The options of `systemd.network.links` know no coalescing, so udev rules say
//! all that is of the device.

use super::file::{Subject, head};
use super::udev;
use super::words::sysctl;
use crate::setting::{Mechanism, State};

pub(super) fn text(subject: &Subject, settings: &State) -> String {
    let of_device = settings.only(|setting| setting.mechanism() != Mechanism::Sysctl);
    let mut text = format!("{}{{ pkgs, ... }}:\n{{\n", head(settings));
    if !of_device.0.is_empty() {
        let rules = udev::rules(&subject.name, &of_device, "${pkgs.ethtool}/bin/ethtool");
        let lines: String = rules.lines().map(|line| format!("    {line}\n")).collect();
        text += &format!("  services.udev.extraRules = ''\n{lines}  '';\n");
    }
    for (name, value) in sysctl(settings) {
        text += &format!("  boot.kernel.sysctl.\"{name}\" = {value};\n");
    }
    text + "}\n"
}
