//! What people have pasted of `ethtool -c`, settings of other drivers, and what else delays
//! packets, with the answer: the delays, and whether a rule holds, by default at most 25 us.

use netdev::aspm::Aspm;
use netdev::ethtool::Timestamps;
use netdev::ethtool::{Coalesce, Driver, Eee, Link, Parameter, ProfileStep, QueueCoalesce};
use netdev::idle::IdleState;
use netdev::netdev::{Napi, Threaded};
use show::check::{Compliance, Policy, check};
use show::{LabPort, Report};

/// `DRIVER: NAME VALUE ...`, as `ethtool -C` takes names and values, and what else is known.
fn device(case: &str) -> Report {
    let (driver, settings) = case.split_once(':').unwrap();
    let driver = (!driver.is_empty()).then(|| Driver { name: driver.into(), ..Driver::default() });
    let coalescing = Some(Coalesce::new());
    let mut device = Report { name: "eth0".into(), driver, coalescing, ..Report::default() };
    let words: Vec<&str> = settings.split_whitespace().collect();
    words.chunks(2).for_each(|pair| set(&mut device, pair[0], pair[1]));
    device.with_delays()
}

fn set(device: &mut Report, name: &str, value: &str) {
    let number = || value.parse::<u32>().unwrap();
    let files = &mut device.files;
    let parsed = |value: &str| match value {
        "on" => 1,
        "off" => 0,
        number => number.parse().unwrap(),
    };
    let coalescing = &mut device.coalescing;
    match name {
        "coalescing" => *coalescing = None,
        "rx-profile" => {
            let step = |usec: &str| ProfileStep { usec: usec.parse().ok(), ..Default::default() };
            coalescing.as_mut().unwrap().rx_profile = Some(value.split('_').map(step).collect());
        }
        "gro-flush-timeout" => files.deferral.gro_flush_timeout = Some(number().into()),
        "napi-defer-hard-irqs" => files.deferral.napi_defer_hard_irqs = Some(number().into()),
        "pci-id" => files.pci_id = Some(value.into()),
        "bus" => files.bus = Some(value.into()),
        "guest" => files.virtualisation.is_guest = Some(value == "on"),
        "speed" => files.speed_mbps = Some(number().into()),
        "idle" | "idle-off" => {
            let (state, is_disabled) = (files.idle.states.len(), name == "idle-off");
            let (name, latency_us) = (format!("C{state}"), number().into());
            let state = IdleState { name, latency_us, is_disabled, ..IdleState::default() };
            files.idle.states.push(state);
        }
        "aspm" => {
            let states = ["L0s", "L1", "L1.2"].into_iter().filter(|it| value.contains(it));
            let policy = Some("default".into());
            files.aspm = Some(Aspm { policy, states: states.collect(), l1_exit_us: None });
        }
        "aspm-exit" => files.aspm.as_mut().unwrap().l1_exit_us = Some(number()),
        "eee" => device.eee = Some(Eee { active: value == "on", ..Eee::default() }),
        "lpi" => {
            let eee = device.eee.as_mut().unwrap();
            (eee.tx_lpi_enabled, eee.tx_lpi_timer_us) = (true, number());
        }
        "link" => device.link = Some(Link { speed_mbps: Some(number()), ..Link::default() }),
        "stamps" => device.timestamps = Some(Timestamps::default()),
        "lab" => {
            device.lab = Some(LabPort {
                lab: "x".into(),
                settings: value.split(',').map(str::to_owned).collect(),
            });
        }
        "napi" if value == "none" => device.napis = Some(Vec::new()),
        "napi" => {
            let (name, value) = value.split_once('=').unwrap();
            let napi = &mut device.napis.get_or_insert(vec![Napi::default()])[0];
            match name {
                "gro-flush-timeout" => napi.gro_flush_timeout = value.parse().ok(),
                "defer-hard-irqs" => napi.defer_hard_irqs = value.parse().ok(),
                "irq-suspend-timeout" => napi.irq_suspend_timeout = value.parse().ok(),
                _ if value == "busy-poll" => napi.threaded = Some(Threaded::BusyPoll),
                _ => napi.threaded = Some(Threaded::Enabled),
            }
        }
        _ => match name.strip_prefix("queue:3:") {
            Some(own) => {
                let coalesce = Coalesce::new().with(own.parse().unwrap(), number());
                device.queue_coalescing.push(QueueCoalesce { queue: 3, coalesce });
            }
            None => {
                let parameter: Parameter = name.parse().unwrap();
                coalescing.as_mut().unwrap().set(parameter, parsed(value));
            }
        },
    }
}

fn answer(case: &str) -> String {
    let (words, rule) = case.split_once(" | ").unwrap_or((case, ""));
    let device = device(words);
    let delays = device.delays.iter().map(|delay| {
        let up_to = match delay.up_to_us {
            Some(us) => format!("up to {us} us"),
            None if delay.endless => "no limit".into(),
            None => "unknown".into(),
        };
        format!("  {} {up_to}: {}\n", delay.cause, delay.what)
    });
    let delays = if rule.is_empty() { delays.collect() } else { String::new() };
    let rule = if rule.is_empty() { "longest-hold = \"<= 25us\"" } else { rule };
    let policy = Policy::parse(&format!("[nics]\n{rule}\n")).unwrap();
    let checked = check(&policy, std::slice::from_ref(&device));
    let ruling = &checked.devices[0].rules[0];
    let (found, why) = match case.contains(" | ") {
        true => (ruling.found.as_deref(), ruling.why.as_deref()),
        false => (None, None),
    };
    let more = [found, why, ruling.fix.as_deref()].into_iter().flatten();
    let more: String = more.map(|words| format!("; {words}")).collect();
    format!("{delays}  {:?}{more}\n", ruling.outcome)
}

#[test]
fn what_people_paste_is_answered_by_what_their_driver_means() {
    let expected = include_str!("cases.txt");
    let cases = expected.lines().filter(|line| !line.starts_with(' '));
    let now: String = cases.map(|case| format!("{case}\n{}", answer(case))).collect();
    assert_eq!(now, expected, "\n{now}");
}

#[test]
fn groups_without_a_device_and_devices_without_a_group_are_named() {
    let policy =
        "[a]\nmatch = { driver = \"ice\" }\nmtu = 1\n[b]\nmatch = { name = \"x\" }\nmtu = 1";
    let checked = check(&Policy::parse(policy).unwrap(), &[device("igb:"), device("ice:")]);
    assert_eq!(checked.empty_groups, ["b"]);
    assert_eq!((checked.devices[0].groups.len(), checked.devices[0].rules.len()), (0, 0));
    assert_eq!(checked.devices[1].groups, ["a"]);
    assert_eq!(checked.count(Compliance::Unknown), 1);
}
