//! Who takes which option: an option that nothing would look at is refused, not dropped in silence.
//!
//! Each option's line in `options` names those that take it; `--help`, the command line and
//! scenarios all read it there.

use anyhow::{Result, bail};
use clap::Arg;

use crate::experiment::Experiment;

/// What the NIC is joined to, and in which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// Hosts made of namespaces.
    Namespaces,
    /// Guests in real time.
    Guests,
    /// Guests in virtual time.
    Virtual,
    /// Guests that others start.
    Served,
    /// Modelled hosts in simulated time.
    Model,
}

impl HostKind {
    fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "hosts made of namespaces",
            Self::Guests => "--hosts uml",
            Self::Virtual => "virtual time (bench --world virtual, lab run --time virtual)",
            Self::Served => "nic serve",
            Self::Model => "the model (bench --world model)",
        }
    }
}

/// Where guests and hosts live in real time.
pub(crate) const REAL: &[HostKind] = &[HostKind::Namespaces, HostKind::Guests, HostKind::Served];

/// Where hosts bring their own drivers, and we start them.
pub(crate) const GUESTS: &[HostKind] = &[HostKind::Guests, HostKind::Virtual];

/// Where hosts have a kernel of their own, or that of the model.
pub(crate) const POLLING: &[HostKind] = &[HostKind::Guests, HostKind::Virtual, HostKind::Model];

/// Where time is simulated, and what hosts cost is given.
pub(crate) const COSTED: &[HostKind] = &[HostKind::Virtual, HostKind::Model];

/// Where there are hosts, of whatever kind.
pub(crate) const HOSTED: &[HostKind] =
    &[HostKind::Namespaces, HostKind::Guests, HostKind::Virtual, HostKind::Served];

/// Where a driver finds a virtio device.
pub(crate) const VIRTIO: &[HostKind] = &[HostKind::Guests, HostKind::Virtual, HostKind::Served];

/// What one run looks at.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// Its experiment, if it is one.
    pub experiment: Option<Experiment>,
    /// Where it runs.
    pub place: HostKind,
}

/// Those that take an option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applicability {
    /// In these places; without any, in all.
    places: &'static [HostKind],
    /// The experiments of these lists; without any, all.
    experiments: &'static [&'static [Experiment]],
}

pub(crate) const ALL: Applicability = Applicability { places: &[], experiments: &[] };

pub(crate) const fn only_in(places: &'static [HostKind]) -> Applicability {
    Applicability { places, ..ALL }
}

pub(crate) const fn only_for(experiments: &'static [&'static [Experiment]]) -> Applicability {
    Applicability { experiments, ..ALL }
}

pub(crate) const fn only_for_in(
    experiments: &'static [&'static [Experiment]],
    places: &'static [HostKind],
) -> Applicability {
    Applicability { places, experiments }
}

fn includes<T: PartialEq>(takers: &[T], one: &T) -> bool {
    takers.is_empty() || takers.contains(one)
}

fn list<T: Copy>(takers: &[T], name: impl Fn(T) -> String) -> String {
    takers.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ")
}

impl Applicability {
    fn is_for(&self, experiment: Experiment) -> bool {
        includes(&self.experiments.concat(), &experiment)
    }

    fn experiments(&self) -> Vec<Experiment> {
        Experiment::all().filter(|one| self.is_for(*one)).collect()
    }

    pub(crate) fn take(&self, one: &Use) -> bool {
        includes(self.places, &one.place)
            && one
                .experiment
                .is_none_or(|experiment| includes(&self.experiments.concat(), &experiment))
    }

    /// Why none of `uses` takes the option, and who does.
    fn refusal(&self, uses: &[Use]) -> String {
        let by = |one: &Use| includes(self.places, &one.place);
        if !uses.iter().any(by) {
            let mut places: Vec<&str> = uses.iter().map(|one| one.place.name()).collect();
            places.dedup();
            let others = list(self.places, |place| place.name().to_owned());
            return format!("makes no difference in {}; it is for {others}", places.join(", "));
        }
        let mut names: Vec<String> =
            uses.iter().filter_map(|one| one.experiment).map(Experiment::name).collect();
        names.dedup();
        let others = list(&self.experiments(), Experiment::name);
        format!("{} makes no use of it; it is for {others}", names.join(" or "))
    }

    /// The same for `--help`; nothing if all take it.
    fn remark(&self) -> Option<String> {
        let rest: Vec<Experiment> = Experiment::all().filter(|one| !self.is_for(*one)).collect();
        let experiments = match rest.len() {
            0 => None,
            few if few <= 4 => Some(format!("not for: {}", list(&rest, Experiment::name))),
            _ => Some(format!("for: {}", list(&self.experiments(), Experiment::name))),
        };
        let places = match self.places {
            [] => None,
            REAL => Some("in real time".to_owned()),
            [HostKind::Virtual] => Some("in virtual time".to_owned()),
            places => Some(format!("for: {}", list(places, |place| place.name().to_owned()))),
        };
        let both: Vec<String> = experiments.into_iter().chain(places).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }
}

/// Options by the names of their fields, each with those that take it.
pub(crate) type Declared = (&'static str, Applicability);

/// Refuses what is `given` if none of `uses` takes it.
pub(crate) fn check(given: &[Declared], uses: &[Use]) -> Result<()> {
    for (field, takers) in given {
        if !uses.iter().any(|one| takers.take(one)) {
            bail!("--{}: {}; leave it out", field.replace('_', "-"), takers.refusal(uses));
        }
    }
    Ok(())
}

/// Adds to the whole help of an option who takes it; `-h` says it shorter.
pub(crate) fn remark(arg: Arg, declared: &[Declared]) -> Arg {
    let found = declared.iter().find(|(field, _)| arg.get_id() == field);
    match (found.and_then(|(_, takers)| takers.remark()), arg.get_help()) {
        (Some(remark), Some(help)) => {
            let help = format!("{help} [{remark}]");
            arg.long_help(help)
        }
        _ => arg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BULK: Use = Use { experiment: Some(Experiment::Bulk), place: HostKind::Virtual };
    const PING: Use = Use { experiment: Some(Experiment::Ping), place: HostKind::Namespaces };

    #[test]
    fn an_option_is_taken_if_one_of_several_runs_takes_it() {
        let rate = [("bulk_rate", only_for(&[&[Experiment::Bulk, Experiment::Mixed]]))];
        assert!(check(&rate, &[BULK, PING]).is_ok());
        let error = check(&rate, &[PING]).unwrap_err().to_string();
        assert_eq!(
            error,
            "--bulk-rate: ping makes no use of it; it is for bulk, mixed; leave it out"
        );
        let wait = [("wait", only_in(REAL))];
        assert!(check(&wait, &[BULK, PING]).is_ok());
        let error = check(&wait, &[BULK]).unwrap_err().to_string();
        assert!(error.starts_with("--wait: makes no difference in virtual time"), "{error}");
        assert!(check(&[("seed", ALL)], &[BULK]).is_ok());
    }

    #[test]
    fn help_names_the_smaller_part() {
        let few = only_for(&[&[Experiment::Bulk]]);
        assert_eq!(few.remark().unwrap(), "for: bulk");
        assert_eq!(only_in(REAL).remark().unwrap(), "in real time");
        assert_eq!(ALL.remark(), None);
    }
}
