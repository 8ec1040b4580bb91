//! Which devices are read.

use anyhow::Result;
use netdev::{Root, device_name};
use show::read::{all_devices, nics};
use wildmatch::WildMatch;

/// Which devices are read: those that match, or else those that `earmark show` lists.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    wanted: Vec<String>,
    unwanted: Vec<WildMatch>,
}

impl Selection {
    /// Devices that match one of `wanted`, if there is any, and none of `unwanted`. `*` and `?`
    /// stand for other characters; a name without them may be an alternative one.
    #[must_use]
    pub fn new(wanted: &[String], unwanted: &[String]) -> Self {
        let unwanted = unwanted.iter().map(|pattern| WildMatch::new(pattern)).collect();
        Self { wanted: wanted.to_vec(), unwanted }
    }

    /// The devices that there are now.
    ///
    /// # Errors
    /// If devices cannot be listed.
    pub fn devices(&self, root: &Root) -> Result<Vec<String>> {
        let mut devices = if self.wanted.is_empty() { nics(root)? } else { self.matching(root)? };
        devices.retain(|name| !self.unwanted.iter().any(|pattern| pattern.matches(name)));
        Ok(devices)
    }

    fn matching(&self, root: &Root) -> Result<Vec<String>> {
        let mut devices = all_devices(root)?;
        let patterns: Vec<WildMatch> =
            self.wanted.iter().map(|wanted| WildMatch::new(&proper(root, wanted))).collect();
        devices.retain(|name| patterns.iter().any(|pattern| pattern.matches(name)));
        Ok(devices)
    }
}

/// The name of the device that is also called `wanted`; a pattern stays as it is.
fn proper(root: &Root, wanted: &str) -> String {
    let is_pattern = wanted.contains(['*', '?']);
    if is_pattern { wanted.to_owned() } else { device_name(root, wanted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(wanted: &[&str], unwanted: &[&str]) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let selection = Selection::new(&words(wanted), &words(unwanted));
        selection.devices(&Root::here()).unwrap()
    }

    #[test]
    fn patterns_select_and_exclude() {
        assert_eq!(selected(&["l?"], &[]), ["lo"]);
        assert_eq!(selected(&["lo"], &["l*"]), [""; 0]);
        assert_eq!(selected(&["no-such-device"], &[]), [""; 0]);
        assert!(!selected(&[], &[]).contains(&"lo".to_owned()));
        assert!(selected(&["*"], &[]).contains(&"lo".to_owned()));
    }
}
