//! What a device says to the settings that are tried on it, where it is not just yes.

use super::search::Point;
use super::transaction::{SettingResult, Verdict};

#[derive(Debug, Default)]
pub struct Answers {
    pub refused: Vec<(Point, String)>,
    pub otherwise: Vec<(Point, String)>,
}

impl Answers {
    /// Keeps what the device made of a point, once, if that is something else.
    pub(crate) fn note(&mut self, point: &Point, took: &[SettingResult]) {
        let differs = |took: &&SettingResult| {
            matches!(took.verdict, Verdict::Rounded | Verdict::Ignored | Verdict::Overridden)
        };
        let words = |took: &SettingResult| {
            let now = took.now.as_ref().map_or("unknown".into(), ToString::to_string);
            format!("{} is {now}", took.setting)
        };
        let words: Vec<String> = took.iter().filter(differs).map(words).collect();
        let is_known = self.otherwise.iter().any(|(known, _)| known == point);
        if !words.is_empty() && !is_known {
            self.otherwise.push((point.clone(), words.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::state;
    use crate::transaction::took;

    #[test]
    fn what_a_device_makes_of_a_setting_is_kept_once() {
        let asked = "rx-usecs 51".parse().unwrap();
        // As `iavf` counts.
        let (before, after) = (state("rx-usecs 50"), state("rx-usecs 52"));
        let mut answers = Answers::default();
        let (point, other) = (Point::Special(0), Point::Special(1));
        for _ in 0..2 {
            answers.note(&point, &took(&before, &asked, &after));
        }
        answers.note(&other, &took(&before, &asked, &state("rx-usecs 51")));
        assert_eq!(answers.otherwise, [(point, "rx-usecs is 52".to_owned())]);
    }
}
