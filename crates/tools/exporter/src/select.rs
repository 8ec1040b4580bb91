//! Which devices are read.

use anyhow::Result;
use glob::{Pattern, PatternError};
use netdev::{Root, device_name, list_devices};
use observe::nics;

/// Which devices are read: those that match, or else those that `earmark show` lists.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    wanted: Vec<Pattern>,
    unwanted: Vec<Pattern>,
}

impl Selection {
    /// Devices that match one of `wanted`, if there is any, and none of `unwanted`: patterns of a
    /// shell. One that is a name may be an alternative one.
    pub fn new(wanted: &[String], unwanted: &[String]) -> Result<Self, PatternError> {
        let patterns =
            |all: &[String]| all.iter().map(|one| Pattern::new(one)).collect::<Result<_, _>>();
        Ok(Self { wanted: patterns(wanted)?, unwanted: patterns(unwanted)? })
    }

    pub(crate) fn devices(&self, root: &Root) -> Result<Vec<String>> {
        let mut devices = if self.wanted.is_empty() { nics(root)? } else { self.matching(root)? };
        devices.retain(|name| !self.unwanted.iter().any(|pattern| pattern.matches(name)));
        Ok(devices)
    }

    fn matching(&self, root: &Root) -> Result<Vec<String>> {
        let mut devices = list_devices(root)?;
        let called: Vec<String> =
            self.wanted.iter().map(|wanted| device_name(root, wanted.as_str())).collect();
        let is_wanted = |name: &String| self.wanted.iter().any(|wanted| wanted.matches(name));
        devices.retain(|name| called.contains(name) || is_wanted(name));
        Ok(devices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(wanted: &[&str], unwanted: &[&str]) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let selection = Selection::new(&words(wanted), &words(unwanted)).unwrap();
        selection.devices(&Root::here()).unwrap()
    }

    #[test]
    fn patterns_select_and_exclude() {
        assert_eq!(selected(&["l?"], &[]), ["lo"]);
        assert_eq!(selected(&["lo"], &["l*"]), [""; 0]);
        assert_eq!(selected(&["no-such-device"], &[]), [""; 0]);
        assert!(!selected(&[], &[]).contains(&"lo".to_owned()));
        assert!(selected(&["*"], &[]).contains(&"lo".to_owned()));
        assert!(Selection::new(&["eth[".to_owned()], &[]).is_err());
    }
}
