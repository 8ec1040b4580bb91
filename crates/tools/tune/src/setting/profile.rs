//! The steps that adaptive moderation (DIM) chooses from, as text: `1,256,n_8,256,n_64,256,n`.
//!
//! Steps are apart by `_`, from the shortest to the longest; each has microseconds, packets and
//! completions. `n` is a number that the driver does not have, or that stays as it is. The text is
//! that of the commit which brought profiles to Linux, `ethtool: provide customized dim profile
//! management`; Linux 6.12 has them (`ETHTOOL_A_COALESCE_RX_PROFILE`).

use netdev::ethtool::ProfileStep;

/// The largest number: `struct dim_cq_moder` has 16 bits for each.
const LARGEST: u32 = 65_535;

pub(crate) fn parse(text: &str) -> Result<Vec<ProfileStep>, String> {
    text.split('_').map(step).collect()
}

fn step(text: &str) -> Result<ProfileStep, String> {
    let numbers: Vec<Option<u32>> =
        text.split(',').map(number).collect::<Option<_>>().unwrap_or_default();
    let [usec, pkts, comps] = numbers[..] else {
        return Err(format!(
            "{text}: a step is three numbers of 0 to {LARGEST} (microseconds, packets, \
             completions) or n, and _ is between steps, as in 1,256,n_8,256,n"
        ));
    };
    Ok(ProfileStep { usec, pkts, comps })
}

/// A number, or none; `None` if it is neither.
fn number(text: &str) -> Option<Option<u32>> {
    if text == "n" {
        return Some(None);
    }
    let value: u32 = text.parse().ok()?;
    (value <= LARGEST).then_some(Some(value))
}

pub(crate) fn text(steps: &[ProfileStep]) -> String {
    let number = |value: Option<u32>| value.map_or("n".into(), |value| value.to_string());
    let step = |step: &ProfileStep| [step.usec, step.pkts, step.comps].map(number).join(",");
    steps.iter().map(step).collect::<Vec<_>>().join("_")
}

/// Whether steps are what was asked for, where something was. Other texts have to be the same.
pub(crate) fn is_met(asked: &str, now: &str) -> bool {
    let (Ok(asked_steps), Ok(steps)) = (parse(asked), parse(now)) else { return asked == now };
    let is_met = |asked: Option<u32>, now: Option<u32>| asked.is_none_or(|_| asked == now);
    asked_steps.len() == steps.len()
        && asked_steps.iter().zip(&steps).all(|(asked, now)| {
            is_met(asked.usec, now.usec)
                && is_met(asked.pkts, now.pkts)
                && is_met(asked.comps, now.comps)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_open_is_met_by_anything() {
        assert!(is_met("1,n,n_8,n,n", "1,256,n_8,256,n"));
        assert!(!is_met("1,n,n_8,n,n", "1,256,n_9,256,n") && !is_met("1,n,n", "1,256,n_8,256,n"));
        assert!(is_met("delay:75", "delay:75") && !is_met("delay:75", "delay:50"));
    }
}
