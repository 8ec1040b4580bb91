//! A policy of any text, held against a device with any settings.
//!
//! The first byte is how many settings the device has, then 3 bytes for each; the rest is the text.
//! Each rule has one outcome, with a reason where it is not known, and what a rule allows, as it is
//! printed, means the same when it is read again.

use netdev::ethtool::{Coalesce, Driver, Parameter};
use show::Report;
use show::check::{Compliance, Policy, Ruling, check};

use super::input::Input;

const NAME: &str = "eth0";

/// Reads the bytes.
pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let device = device(&mut input);
    let text = String::from_utf8_lossy(input.rest());
    let policy = match Policy::parse(&text) {
        Ok(policy) => policy,
        Err(why) => return assert!(!why.to_string().is_empty()),
    };
    let checked = check(&policy, std::slice::from_ref(&device));
    let [of_device] = &checked.devices[..] else { panic!("there is one device") };
    assert!(of_device.rules.iter().all(|ruling| of_device.groups.contains(&ruling.group)));
    let outcomes = [Compliance::Holds, Compliance::Broken, Compliance::Unknown];
    let count: usize = outcomes.into_iter().map(|outcome| checked.count(outcome)).sum();
    assert_eq!(count, of_device.rules.len());
    for ruling in &of_device.rules {
        assert_eq!(ruling.outcome == Compliance::Unknown, ruling.why.is_some(), "{ruling:?}");
        assert!(ruling.outcome == Compliance::Unknown || ruling.found.is_some(), "{ruling:?}");
        assert!(ruling.outcome == Compliance::Broken || ruling.fix.is_none(), "{ruling:?}");
        assert!(ruling.fix.as_ref().is_none_or(|line| line.contains(NAME)), "{ruling:?}");
        again(ruling, &device);
    }
}

/// A device with as many settings as the bytes say.
fn device(input: &mut Input<'_>) -> Report {
    let parameters: Vec<Parameter> = Parameter::all().collect();
    let coalescing = (0..input.u8() % 16).fold(Coalesce::new(), |all, _| {
        let (which, value) = (usize::from(input.u8()), input.u16());
        let parameter = parameters[which % parameters.len()];
        let value = if parameter.is_switch() { value % 2 } else { value };
        all.with(parameter, value.into())
    });
    let driver = Some(Driver { name: "igb".into(), ..Driver::default() });
    let (name, coalescing) = (NAME.into(), Some(coalescing));
    Report { name, driver, coalescing, ..Report::default() }.with_delays()
}

/// The rule alone, as it is printed.
fn again(ruling: &Ruling, device: &Report) {
    let text = format!("[group]\n\"{}\" = \"{}\"\n", ruling.rule, ruling.allowed);
    let policy = Policy::parse(&text).unwrap_or_else(|why| panic!("{text}: {why}"));
    let checked = check(&policy, std::slice::from_ref(device));
    let same = &checked.devices[0].rules[0];
    assert_eq!((&same.allowed, same.outcome), (&ruling.allowed, ruling.outcome), "{text}");
}
