//! The options of every command, declared once: command-line flags, scenario keys and help text are
//! the same thing.
//!
//! Each option is optional. A scenario gives some, the command line gives others and wins, an
//! experiment's usual values fill in the rest.

/// Those that take an option: all, where its line does not say.
macro_rules! takers {
    () => {
        applicability::ALL
    };
    ($takers:expr) => {
        $takers
    };
}

/// Declares a struct of optional settings: flags for `clap`, with them keys of scenarios, and who
/// takes which.
macro_rules! options {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$about:meta])* $field:ident: $type:ty $(=> $takers:expr)?,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, clap::Args)]
        #[command(mut_args = |arg| applicability::remark(arg, Self::DECLARED))]
        pub struct $name {
            $($(#[$about])* #[arg(long)] pub $field: Option<$type>,)*
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                keys::options(deserializer)
            }
        }

        impl $name {
            const DECLARED: &[Declared] = &[$((stringify!($field), takers!($($takers)?)),)*];

            /// These options, with those of `other` where none is given.
            #[must_use]
            pub fn or(self, other: Self) -> Self {
                Self { $($field: self.$field.or(other.$field),)* }
            }

            /// Whether `one` takes the option of this name, if there is one, written as a flag.
            pub fn is_taken(name: &str, one: &Use) -> bool {
                let mut all = Self::DECLARED.iter();
                all.any(|(field, takers)| field.replace('_', "-") == name && takers.take(one))
            }

            /// Refuses those that none of `uses` takes.
            pub fn check_taken(&self, uses: &[Use]) -> anyhow::Result<()> {
                let is_given = [$(self.$field.is_some(),)*];
                let given = Self::DECLARED.iter().zip(is_given).filter(|(_, given)| *given);
                let given: Vec<_> = given.map(|(declared, _)| *declared).collect();
                applicability::check(&given, uses)
            }
        }
    };
}

mod experiment;
mod nic;
mod values;

pub use experiment::{Clients, ExperimentOptions};
pub use nic::{Hosts, NicOptions, Ports};
pub use values::{Text, bytes, duration, number, seconds, whole};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_writes_numbers_without_quotes() {
        let options: ExperimentOptions = toml::from_str("clients = 3").unwrap();
        assert_eq!(options.clients.unwrap().0.each().collect::<Vec<_>>(), [3]);
        let error = toml::from_str::<ExperimentOptions>("clients = true").unwrap_err().to_string();
        assert!(error.contains("a range such as 1..8"), "{error}");
    }

    #[test]
    fn a_scenario_takes_what_flags_take() {
        let nic: NicOptions = toml::from_str("ports = 'all'\ntransmit-interrupts = true").unwrap();
        assert_eq!((nic.ports, nic.transmit_interrupts), (Some(Ports::Both), Some(true)));
        let text =
            "compare = ['disabled', 'delay:75+frames:8']\nduration = 8.0\nclient-spin = false";
        let options: ExperimentOptions = toml::from_str(text).unwrap();
        assert_eq!(options.compare.unwrap().len(), 2);
        assert_eq!((options.duration, options.client_spin), (Some(8.0), Some(false)));
        for wrong in ["queues = 0", "link-loss = 101.0", "link-rate = 0", "mtu = 1.5", "seed = -1"]
        {
            let error = toml::from_str::<NicOptions>(wrong).unwrap_err().to_string();
            let (key, _) = wrong.split_once(' ').unwrap();
            assert!(error.contains(&format!("--{key}")), "{wrong}: {error}");
            assert!(!error.contains("--help"), "{wrong}: {error}");
        }
        for wrong in ["duration = nan", "duration = -5.0", "rounds = 0", "compare = []"] {
            assert!(toml::from_str::<ExperimentOptions>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_scenario_with_an_unknown_key_is_refused() {
        let error = toml::from_str::<NicOptions>("rx_usec = 5").unwrap_err().to_string();
        assert!(error.contains("unknown key `rx_usec`; there are strategy, rx-usecs,"), "{error}");
        let error = toml::from_str::<NicOptions>("strategy = 'dealy'").unwrap_err().to_string();
        assert!(error.contains("no such strategy"), "{error}");
    }
}
