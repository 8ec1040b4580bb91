use super::*;
use crate::setting::{Value, ValueKind};
use crate::testing::state;
use netdev::setters::section;

fn subject() -> Subject {
    Subject {
        name: "enp1s0".into(),
        address: Some("02:00:00:00:00:01".into()),
        lines: Some(section(LINK, "[Link]")),
        ..Subject::default()
    }
}

/// Each setting of a device and of a queue, a sysctl and a rule, with a value.
fn each() -> impl Iterator<Item = State> {
    let of_device = || Setting::ALL.iter().copied();
    let of_queue = of_device().filter_map(|setting| setting.of_queue(5));
    let others = ["sysctl:net.ipv4.conf.a/1.rp_filter", "rule:7:tcp4,dst-port:1,queue:5"];
    let others = of_queue.chain(others.map(|name| name.parse().unwrap()));
    let settings = of_device().filter(|setting| *setting != Setting::Strategy).chain(others);
    settings.map(|setting| {
        let value = match setting.kind() {
            ValueKind::Switch => Value::Switch(false),
            ValueKind::Steps => Value::Text("1,256,n_8,n,n".into()),
            ValueKind::Table | ValueKind::Cpus => Value::Text("7".into()),
            _ => Value::Number(7),
        };
        State([(setting, value)].into())
    })
}

/// The text of what a format makes of settings that it can say.
fn text(format: Format, settings: &State) -> String {
    match format.write(&subject(), settings).unwrap() {
        Written::Files(files) => {
            let texts: Vec<String> = files.into_iter().map(|file| file.text).collect();
            texts.join("\n")
        }
        Written::Text(text) => text,
    }
}

const LINK: &str = "# SPDX\n[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep path\n; no=1\n\
                    RxCoalesceSec=3us\nMACAddressPolicy=persistent\n[Other]\nX=1\n";

#[test]
fn files_of_ours_are_read_back_in_every_format() {
    for format in Format::value_variants() {
        for state in each().filter(|state| state.0.keys().all(|it| format.can_say(*it))) {
            let text = text(*format, &state);
            assert!(is_ours(&text), "{text}");
            assert_eq!(settings_of(&text), state, "{text}");
        }
    }
}

#[test]
fn what_a_format_cannot_say_is_refused_with_those_that_can() {
    let refusal = |format: Format, text: &str| format.write(&subject(), &state(text)).unwrap_err();
    assert_eq!(
        refusal(Format::Link, "rx-usecs 5 cqe-mode-rx on gro-flush-timeout 0"),
        "link cannot say cqe-mode-rx, gro-flush-timeout; those that can: --as systemd, udev, \
         networkmanager, ifupdown, tuned, nmstate, ansible, nixos"
    );
    assert!(refusal(Format::Udev, "busy-poll 50").ends_with("--as systemd, tuned, ansible, nixos"));
    let able = "those that can: --as systemd, networkmanager, ifupdown, nmstate";
    for setting in ["irq-suspend-timeout 5", "queue:1:threaded on", "rx-profile 1,n,n"] {
        assert!(refusal(Format::Udev, setting).ends_with(able), "{setting}");
    }
    let both = refusal(Format::Udev, "irq-suspend-timeout 5 busy-poll 5");
    assert!(both.ends_with("those that can: --as systemd"), "{both}");
    for state in each() {
        let formats = Format::value_variants().iter();
        let able = formats.filter(|format| format.write(&subject(), &state).is_ok());
        assert!(able.count() >= 3, "{state}");
    }
}

#[test]
fn a_name_that_would_have_to_be_quoted_is_refused() {
    for name in ["a b", "a\"b", "a'b", "a$(b)", "a\nb", "a/b", ""] {
        let subject = Subject { name: name.into(), ..subject() };
        for format in Format::value_variants() {
            let refusal = format.write(&subject, &state("rx-usecs 5")).unwrap_err();
            assert!(refusal.contains("would have to quote"), "{refusal}");
        }
    }
}

#[test]
fn each_format_is_what_its_reader_expects() {
    let all =
        state("adaptive-rx off rx-usecs 50 rx-frames-high 8 cqe-mode-rx on gro-flush-timeout 0");
    let deferring = state("rx-usecs 50 gro-flush-timeout 20us");
    let of_queues = state(
        "rx-usecs 50 queue:1:rx-usecs 0 queue:1:adaptive-rx off queue:0:irq-suspend-timeout 20us \
         threaded on",
    );
    let lane = state(
        "ntuple on rss-table 0/128 queue:1:rx-usecs 0 rule:1023:tcp4,dst-port:11211,queue:1 on",
    );
    for (format, settings, lines) in [
        (Format::NetworkManager, &of_queues, "networkmanager_queues.txt"),
        (Format::NetworkManager, &lane, "networkmanager_lane.txt"),
        (Format::NetworkManager, &deferring, "networkmanager.txt"),
        (Format::Ifupdown, &deferring, "ifupdown.txt"),
        (Format::Tuned, &deferring, "tuned.txt"),
        (Format::Nmstate, &all, "nmstate.yaml"),
        (Format::Ansible, &deferring, "ansible.yaml"),
        (Format::Nixos, &deferring, "nixos.nix"),
    ] {
        is_as_before(lines, &text(format, settings));
    }
}

/// Holds a text against a file in `tests/persist/`.
#[track_caller]
fn is_as_before(file: &str, now: &str) {
    let path = format!("{}/tests/persist/{file}", env!("CARGO_MANIFEST_DIR"));
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(now, before, "\n== {path}\n{now}==");
}

#[test]
fn files_of_systemd_share_what_each_can_say() {
    let mut now = String::new();
    for (name, settings) in [
        ("enp1s0", "adaptive-rx off rx-usecs 50 rx-frames 0"),
        ("eth0", "gro-flush-timeout 20us napi-defer-hard-irqs 2 cqe-mode-rx on busy-poll 50"),
        ("br-lan", "rx-usecs 50 irq-suspend-timeout 20ms gro-flush-timeout 20us"),
        ("enp1s0", "threaded on queue:5:rx-usecs 0 sysctl:net.core.dev_weight 64"),
    ] {
        let subject = Subject { name: name.into(), ..subject() };
        let Written::Files(files) = Format::Systemd.write(&subject, &state(settings)).unwrap()
        else {
            panic!("texts of {settings}")
        };
        now += &files.iter().map(|it| format!("== {}\n{}", it.path, it.text)).collect::<String>();
    }
    is_as_before("systemd.txt", &now);
}
