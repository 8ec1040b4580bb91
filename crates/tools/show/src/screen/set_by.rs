//! What a screen says of files that set coalescing at boot.

use device::ethtool::Parameter;
use device::setters::Setter;

use crate::check::adaptive_of;
use crate::report::Report;

pub(super) fn set_by(report: &Report) -> Vec<String> {
    report.set_by.iter().map(|setter| one(report, setter)).collect()
}

fn one(report: &Report, setter: &Setter) -> String {
    let Setter { by, path, settings, is_certain, overridden, contested } = setter;
    let pairs = settings.iter().map(|(name, value)| format!("{name} {value}"));
    let pairs = pairs.collect::<Vec<_>>().join(", ");
    let by = by.name();
    if !is_certain {
        return format!(
            "{by} may set {pairs} ({path}): whether it is for {} is not known here",
            report.name
        );
    }
    let mut text = format!("{by} sets {pairs} ({path})");
    if !overridden.is_empty() {
        text += &format!(", and a later one {} again", overridden.join(", "));
    }
    if !contested.is_empty() {
        text += &format!(", as does another one {} in no order", contested.join(", "));
    }
    let names = settings.iter().filter(|(name, _)| !overridden.contains(name));
    let other: Vec<String> =
        names.filter_map(|(name, value)| in_force(report, name, value)).collect();
    if !other.is_empty() {
        text += &format!("; in force is {}", other.join(", "));
    }
    text
}

/// What is in force of a setting, if that is something else that no driver has chosen.
fn in_force(report: &Report, name: &str, value: &str) -> Option<String> {
    let parameter: Parameter = name.parse().ok()?;
    let now = report.coalescing.as_ref()?;
    let is_chosen = adaptive_of(parameter).is_some_and(|it| now.is_on(it) == Some(true));
    let value = match value {
        "on" => 1,
        "off" => 0,
        number => number.parse().ok()?,
    };
    let now = now.get(parameter).filter(|now| *now != value && !is_chosen)?;
    Some(super::nic::pair(parameter, now))
}

#[cfg(test)]
mod tests {
    use device::ethtool::Coalesce;
    use device::setters::Program;

    use super::*;

    #[test]
    fn files_are_named_with_what_they_set_and_which_counts() {
        let setter = |by, path: &str, pairs: &[(&str, &str)], overridden: &[&str]| Setter {
            by,
            path: path.into(),
            settings: pairs.iter().map(|(name, it)| ((*name).into(), (*it).into())).collect(),
            is_certain: true,
            overridden: overridden.iter().map(|name| (*name).into()).collect(),
            contested: Vec::new(),
        };
        let coalescing = Coalesce::new().with(Parameter::RxUsecs, 3).with(Parameter::TxUsecs, 9);
        let udev =
            setter(Program::Udev, "/u", &[("rx-usecs", "10"), ("tx-usecs", "9")], &["rx-usecs"]);
        let tuned = setter(Program::Tuned, "/t", &[("rx-usecs", "0")], &[]);
        let perhaps = Setter { is_certain: false, ..tuned.clone() };
        let mut report = Report {
            name: "eth9".into(),
            coalescing: Some(coalescing.clone()),
            set_by: vec![udev, tuned, perhaps],
            ..Report::default()
        };
        let expected = [
            "udev sets rx-usecs 10, tx-usecs 9 (/u), and a later one rx-usecs again",
            "TuneD sets rx-usecs 0 (/t); in force is rx-usecs 3",
            "TuneD may set rx-usecs 0 (/t): whether it is for eth9 is not known here",
        ];
        assert_eq!(set_by(&report), expected);
        report.set_by[1].contested = vec!["rx-usecs".into()];
        let both = "TuneD sets rx-usecs 0 (/t), as does another one rx-usecs in no order; in force is rx-usecs 3";
        assert_eq!(set_by(&report)[1], both);
        // What the driver chooses is not what anyone has set.
        report.coalescing = Some(coalescing.with(Parameter::AdaptiveRx, 1));
        assert!(!set_by(&report)[1].contains("in force"), "{:?}", set_by(&report));
    }
}
