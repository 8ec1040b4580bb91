//! Texts for repositories: of nmstate, Ansible and NixOS.
//!
//! A state for nmstate is an interface with `ethtool: coalesce:`, whose names are those of
//! `ethtool`. What it knows no name of is a script that nmstate has NetworkManager run.
//!
//! A playbook for Ansible has the files that bring the settings back at each boot, by udev and
//! sysctl, and the same settings now. Nothing that is as it should be is changed, or reported as
//! changed. It finds the device by its name, so that it is good for many hosts; a `.link` file
//! would be that of one host, with what names its devices.
//!
//! In a module for NixOS, udev rules say all that is of the device: the options of
//! `systemd.network.links` know no coalescing.

use super::file::{File, Subject, head};
use super::systemd::{link_key, sysctl_file, udev_file, udev_rules};
use super::words::{commands, ethtool, sysctl, sysfs};
use crate::setting::{Mechanism, Setting, State, Value};

/// Of coalescing, nmstate knows the names that a `.link` file knows, and refuses others.
pub(super) fn nmstate(subject: &Subject, settings: &State) -> String {
    let name = &subject.name;
    let mut text = format!(
        "{}interfaces:\n  - name: {}\n    type: ethernet\n    state: up\n",
        head(settings),
        yaml(name)
    );
    let known = settings.only(|setting| link_key(setting).is_some());
    if !known.0.is_empty() {
        text += "    ethtool:\n      coalesce:\n";
    }
    for (setting, value) in &known.0 {
        let value = match value {
            Value::Switch(is_on) => is_on.to_string(),
            value => value.to_string(),
        };
        text += &format!("        {setting}: {value}\n");
    }
    let others = settings.only(|setting| link_key(setting).is_none());
    let commands = commands(name, &others);
    if !commands.is_empty() {
        text += "    dispatch:\n      post-activation: |\n";
    }
    commands.iter().for_each(|command| text += &format!("        {command}\n"));
    text
}

/// A text as YAML has it, whatever it looks like: a name may be a number.
fn yaml(text: &str) -> String {
    format!("\"{text}\"")
}

pub(super) fn ansible(subject: &Subject, settings: &State) -> String {
    let name = &subject.name;
    let busy = settings.only(|setting| setting.mechanism() == Mechanism::Sysctl);
    let of_device = settings.only(|setting| busy.get(setting).is_none());
    let mut text = format!(
        "{}- name: {}\n  hosts: all\n  become: true\n  gather_facts: false\n  tasks:\n",
        head(settings),
        yaml(&format!("Interrupt coalescing of {name}"))
    );
    if !of_device.0.is_empty() {
        text += &copy(&udev_file(subject, &of_device), "Reload udev rules");
    }
    if !busy.0.is_empty() {
        text += &copy(&sysctl_file(subject, &busy), "Reload sysctl settings");
    }
    if let Some(words) = ethtool(settings) {
        text += &coalescing(name, settings, &words);
    }
    let files = sysfs(settings).map(|(file, it)| (format!("/sys/class/net/{name}/{file}"), it));
    text += &files.map(|(path, value)| attribute(&path, &value)).collect::<String>();
    text += "  handlers:\n";
    if !of_device.0.is_empty() {
        text += &handler("Reload udev rules", "udevadm control --reload");
    }
    if !busy.0.is_empty() {
        let words = sysctl(&busy).map(|(name, value)| format!(" {name}={value}"));
        text +=
            &handler("Reload sysctl settings", &format!("sysctl -w{}", words.collect::<String>()));
    }
    text
}

fn copy(file: &File, notify: &str) -> String {
    let lines: String = file.text.lines().map(|line| format!("          {line}\n")).collect();
    format!(
        "    - name: Bring them back at each boot ({})\n      ansible.builtin.copy:\n        dest: \
         {}\n        mode: \"0644\"\n        content: |\n{lines}      notify: {notify}\n",
        file.path.rsplit('/').next().unwrap_or_default(),
        yaml(&file.path),
    )
}

/// Reads the settings, and changes those that differ; `ethtool` has no way to do both.
fn coalescing(name: &str, settings: &State, words: &str) -> String {
    let classic = settings.only(|setting| setting.mechanism() == Mechanism::Coalescing);
    let tests = classic.0.iter().map(|(setting, value)| {
        let pattern = printed(*setting, value);
        format!("earmark_coalescing.stdout is not search('(?mi)^{pattern}')")
    });
    let condition = tests.collect::<Vec<_>>().join("\n        or ");
    format!(
        "    - name: Read the settings\n      ansible.builtin.command: ethtool -c {name}\n      \
         register: earmark_coalescing\n      changed_when: false\n      check_mode: false\n    \
         - name: Put them into force now\n      ansible.builtin.command: ethtool -C {name} {words}\n\
         \x20     changed_when: true\n      when: >-\n        {condition}\n"
    )
}

/// A line of `ethtool -c` that has a value, as a pattern. Two switches share a line, and some names
/// are not those of `ethtool -C`.
fn printed(setting: Setting, value: &Value) -> String {
    match setting {
        Setting::AdaptiveRx => format!("Adaptive RX: +{value}"),
        Setting::AdaptiveTx => format!("Adaptive RX: .* TX: +{value}"),
        Setting::CqeModeRx => format!("CQE mode RX: +{value}"),
        Setting::CqeModeTx => format!("CQE mode RX: .* TX: +{value}"),
        _ => {
            let name = setting.name().replace("frames-low", "frames?-low");
            format!("{}:\\s+{value}$", name.replace("frames-high", "frames?-high"))
        }
    }
}

fn attribute(path: &str, value: &str) -> String {
    format!(
        "    - name: Write {path}\n      ansible.builtin.shell: test \"$(cat {path})\" = {value} || \
         {{ echo {value} > {path} && echo changed; }}\n      register: earmark_written\n      \
         changed_when: earmark_written.stdout == \"changed\"\n"
    )
}

fn handler(name: &str, command: &str) -> String {
    format!(
        "    - name: {name}\n      ansible.builtin.command: {command}\n      changed_when: true\n"
    )
}

pub(super) fn nixos(subject: &Subject, settings: &State) -> String {
    let of_device = settings.only(|setting| setting.mechanism() != Mechanism::Sysctl);
    let mut text = format!("{}{{ pkgs, ... }}:\n{{\n", head(settings));
    if !of_device.0.is_empty() {
        let rules = udev_rules(&subject.name, &of_device, "${pkgs.ethtool}/bin/ethtool");
        let lines: String = rules.lines().map(|line| format!("    {line}\n")).collect();
        text += &format!("  services.udev.extraRules = ''\n{lines}  '';\n");
    }
    for (name, value) in sysctl(settings) {
        text += &format!("  boot.kernel.sysctl.\"{name}\" = {value};\n");
    }
    text + "}\n"
}
