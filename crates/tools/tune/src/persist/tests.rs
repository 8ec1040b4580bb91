use super::file::MARK;
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

/// The files of the format that is usual.
fn files(subject: &Subject, settings: &State) -> Result<Vec<File>, String> {
    match Format::Systemd.write(subject, settings)? {
        Written::Files(files) => Ok(files),
        Written::Text(text) => panic!("{text}"),
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
fn a_link_file_keeps_what_names_the_device() {
    let files = files(&subject(), &state("adaptive-rx off rx-usecs 50 rx-frames 0")).unwrap();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].path, "/etc/systemd/network/70-earmark-enp1s0.link");
    let expected = format!(
        "{MARK}\n[Match]\nPermanentMACAddress=02:00:00:00:00:01\n\n[Link]\nNamePolicy=keep path\n\
         MACAddressPolicy=persistent\nUseAdaptiveRxCoalesce=no\nRxCoalesceSec=50us\n\
         RxMaxCoalescedFrames=0\n"
    );
    assert_eq!(files[0].text, expected);
}

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
        let path = format!("{}/tests/persist/{lines}", env!("CARGO_MANIFEST_DIR"));
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        let text = text(format, settings);
        assert_eq!(text, expected, "\n== {path}\n{text}==");
    }
}

#[test]
fn what_a_link_file_cannot_say_is_a_rule() {
    let settings =
        state("gro-flush-timeout 20us napi-defer-hard-irqs 2 cqe-mode-rx on busy-poll 50");
    let files = files(&Subject { name: "eth0".into(), ..Subject::default() }, &settings).unwrap();
    assert_eq!(files.len(), 2);
    assert_eq!(files[0].path, "/etc/udev/rules.d/90-earmark-eth0.rules");
    let does = "RUN+=\"/usr/sbin/ethtool -C eth0 cqe-mode-rx on\"";
    assert!(files[0].text.contains(
        "NAME==\"eth0\", ATTR{gro_flush_timeout}=\"20000\", \
                                     ATTR{napi_defer_hard_irqs}=\"2\", "
    ));
    assert_eq!(files[0].text.matches(does).count(), 2);
    assert!(files[1].text.ends_with("net.core.busy_poll = 50\n"));

    let settings = state("rx-usecs 50 irq-suspend-timeout 20ms gro-flush-timeout 20us");
    let of_lan = Subject { name: "br-lan".into(), ..Subject::default() };
    let files = systemd(&of_lan, &settings).unwrap();
    let places: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(
        places[1..],
        [
            "/etc/udev/rules.d/90-earmark-br-lan.rules",
            "/etc/systemd/system/earmark-br\\x2dlan.service",
            "/etc/systemd/system/sys-subsystem-net-devices-br\\x2dlan.device.d/earmark.conf",
        ]
    );
    let runs = "\nExecStart=earmark apply br-lan irq-suspend-timeout 20000000\n";
    assert!(files[2].text.contains(runs), "{}", files[2].text);
    assert!(files[3].text.ends_with("\n[Unit]\nWants=earmark-br\\x2dlan.service\n"));
    let ours = settings_of(&files[3].text);
    assert_eq!(ours, state("irq-suspend-timeout 20ms"));

    let settings = state("threaded on queue:5:rx-usecs 0 sysctl:net.core.dev_weight 64");
    let files = systemd(&subject(), &settings).unwrap();
    let does = "ATTR{threaded}=\"1\", RUN+=\"/usr/sbin/ethtool --per-queue enp1s0 queue_mask 0x20 \
                --coalesce rx-usecs 0\"";
    assert!(files[0].text.contains(does), "{}", files[0].text);
    assert!(files[1].text.ends_with("\nnet.core.dev_weight = 64\n"), "{}", files[1].text);
}
