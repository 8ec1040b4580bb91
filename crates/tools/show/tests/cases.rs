//! What people have pasted of `ethtool -c`, and settings of other drivers, with the answer: the
//! delay, and whether a rule of at most 25 us holds.

use netdev::ethtool::{Coalesce, Driver, Parameter};
use show::Report;
use show::check::{Policy, check};

/// `DRIVER: NAME VALUE ...`, as `ethtool -C` takes names and values.
fn device(case: &str) -> Report {
    let (driver, settings) = case.split_once(": ").unwrap();
    let words: Vec<&str> = settings.split(' ').collect();
    let coalescing = words.chunks(2).fold(Coalesce::new(), |all, pair| {
        let value = match pair[1] {
            "on" => 1,
            "off" => 0,
            number => number.parse().unwrap(),
        };
        all.with(pair[0].parse::<Parameter>().unwrap(), value)
    });
    let driver = Some(Driver { name: driver.into(), ..Driver::default() });
    let name = "eth0".into();
    Report { name, driver, coalescing: Some(coalescing), ..Report::default() }.with_delays()
}

fn answer(device: &Report) -> String {
    let policy = Policy::parse("[nics]\nlongest-hold = \"<= 25us\"\n").unwrap();
    let delays = device.delays.iter().map(|delay| {
        let up_to = match delay.up_to_us {
            Some(us) => format!("up to {us} us"),
            None if delay.endless => "no limit".into(),
            None => "unknown".into(),
        };
        format!("  {up_to}: {}\n", delay.what)
    });
    let delays: String = delays.collect();
    let checked = check(&policy, std::slice::from_ref(device));
    let rule = &checked.devices[0].rules[0];
    let fix = rule.fix.as_ref().map_or(String::new(), |fix| format!("; {fix}"));
    format!("{delays}  {:?}{fix}\n", rule.outcome)
}

#[test]
fn what_people_paste_is_answered_by_what_their_driver_means() {
    let expected = include_str!("cases.txt");
    let cases = expected.lines().filter(|line| !line.starts_with(' '));
    let now: String = cases.map(|case| format!("{case}\n{}", answer(&device(case)))).collect();
    assert_eq!(now, expected, "\n{now}");
}
