//! Settings as commands and files of the kernel have them.

use std::collections::BTreeMap;

use crate::setting::{Mechanism, Setting, State, Value};

/// The words that `ethtool -C DEV` takes; `None` if none of the settings is its.
pub(super) fn ethtool(settings: &State) -> Option<String> {
    let words = settings.only(|setting| setting.mechanism() == Mechanism::Coalescing);
    (!words.0.is_empty()).then(|| words.to_string())
}

pub(super) fn ethtool_runs(name: &str, settings: &State) -> Vec<String> {
    let mut queues: BTreeMap<u16, String> = BTreeMap::new();
    for (setting, value) in of(settings, Mechanism::QueueCoalescing) {
        if let Setting::Queue(queue, of) = setting {
            *queues.entry(*queue).or_default() += &format!(" {of} {value}");
        }
    }
    let whole = ethtool(settings).map(|words| format!("-C {name} {words}"));
    let per_queue = queues.into_iter().map(|(queue, words)| {
        let mask = mask(queue);
        format!("--per-queue {name} queue_mask {mask} --coalesce{words}")
    });
    whole.into_iter().chain(per_queue).collect()
}

/// A bit for a queue, in hexadecimal digits, of which there may be many.
fn mask(queue: u16) -> String {
    format!("0x{:x}{}", 1 << (queue % 4), "0".repeat(usize::from(queue / 4)))
}

/// The queue of a mask that has one bit.
fn queue_of(mask: &str) -> Option<u16> {
    let digits = mask.strip_prefix("0x")?;
    let first = u16::from_str_radix(digits.get(..1)?, 16).ok().filter(|it| it.is_power_of_two())?;
    let zeros = digits.get(1..)?;
    let bit = u16::try_from(first.trailing_zeros()).ok()?;
    let zeros = zeros.bytes().all(|digit| digit == b'0').then_some(zeros.len())?;
    u16::try_from(zeros).ok()?.checked_mul(4)?.checked_add(bit)
}

pub(super) fn pairs_of_ethtool(words: &str) -> Vec<(Setting, &str)> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let (queue, words) = match &words[..] {
        ["-C", _, words @ ..] => (None, words),
        ["--per-queue", _, "queue_mask", mask, "--coalesce", words @ ..] => {
            let Some(queue) = queue_of(mask) else { return Vec::new() };
            (Some(queue), words)
        }
        _ => return Vec::new(),
    };
    let setting = |name: &str| {
        let setting: Setting = name.parse().ok()?;
        queue.map_or(Some(setting), |queue| setting.of_queue(queue))
    };
    words.chunks_exact(2).filter_map(|pair| Some((setting(pair[0])?, pair[1]))).collect()
}

pub(super) fn sysfs(settings: &State) -> impl Iterator<Item = (String, String)> {
    of(settings, Mechanism::Deferral).map(|(setting, value)| {
        let number = value.number().map_or_else(|| value.to_string(), |value| value.to_string());
        (setting.name().replace('-', "_"), number)
    })
}

pub(super) fn sysctl(settings: &State) -> impl Iterator<Item = (String, String)> {
    of(settings, Mechanism::Sysctl).map(|(setting, value)| {
        let name = match setting {
            Setting::Sysctl(name) => name.to_string(),
            _ => format!("net.core.{}", setting.name().replace('-', "_")),
        };
        (name, value.to_string())
    })
}

fn of(settings: &State, mechanism: Mechanism) -> impl Iterator<Item = (&Setting, &Value)> {
    settings.0.iter().filter(move |(setting, _)| setting.mechanism() == mechanism)
}

/// The commands of a shell that bring settings of a device back while it is up, one a line.
pub(super) fn commands(name: &str, settings: &State) -> Vec<String> {
    let coalescing = ethtool_runs(name, settings).into_iter().map(|run| format!("ethtool {run}"));
    let deferral =
        sysfs(settings).map(|(file, value)| format!("echo {value} > /sys/class/net/{name}/{file}"));
    coalescing.chain(deferral).chain(of_ours(name, settings)).collect()
}

/// Whether a setting takes a command of ours, and a device that is up: NAPI instances are there
/// while it is, and so are rules and interrupts of many drivers.
pub(super) fn needs_device_up(setting: Setting) -> bool {
    use Mechanism::{Napi, Placement, Profile, Steering};
    matches!(setting.mechanism(), Napi | Profile | Steering | Placement)
}

/// That command; `None` if none of the settings takes it.
pub(super) fn of_ours(name: &str, settings: &State) -> Option<String> {
    let ours = settings.only(needs_device_up);
    (!ours.0.is_empty()).then(|| format!("earmark apply {name} {ours}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_queues_are_those_of_ethtool() {
        for (queue, words) in [(0, "0x1"), (3, "0x8"), (4, "0x10"), (65, &format!("0x2{:016}", 0))]
        {
            assert_eq!((mask(queue).as_str(), queue_of(words)), (words, Some(queue)));
        }
        for wrong in ["", "0x", "0x3", "0x12", "1", "0xg", "0x0"] {
            assert_eq!(queue_of(wrong), None, "{wrong}");
        }
    }
}
