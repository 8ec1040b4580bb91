//! Sets of processors, as the kernel writes them: lists such as `0-3,8`, and masks such as
//! `ff,00000000`.

/// No machine has more; lists of wild ranges end here.
const LIMIT: u32 = 65_536;

/// The processors of a list such as `0-3,8`; `None` if it is none.
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= LIMIT {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// The processors of a mask such as `ff,00000000`, most significant word first; `None` if it is
/// none.
pub fn parse_mask(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for (place, word) in text.trim().rsplit(',').enumerate() {
        let base = u32::try_from(place).ok()?.checked_mul(32).filter(|base| *base < LIMIT)?;
        if word.is_empty() || word.len() > 8 || !word.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let word = u32::from_str_radix(word, 16).ok()?;
        cpus.extend((0..32).filter(|bit| word & (1 << bit) != 0).map(|bit| base + bit));
    }
    Some(cpus)
}

/// Processors as the kernel's lists have them: `0-3,8`.
pub fn write_list(cpus: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*cpu) => *last = *cpu,
            _ => parts.push((*cpu, *cpu)),
        }
    }
    let text = |(first, last): (u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    parts.into_iter().map(text).collect::<Vec<_>>().join(",")
}

/// Processors as the kernel's masks have them: `1,0000000f`; duplicates and order do not matter.
pub fn write_mask(cpus: &[u32]) -> String {
    let last = cpus.iter().max().map_or(0, |last| last / 32);
    let word = |place: u32| {
        let own = cpus.iter().filter(|cpu| **cpu / 32 == place);
        own.fold(0_u32, |word, cpu| word | 1 << (cpu % 32))
    };
    let rest = (0..last).rev().map(|place| format!(",{:08x}", word(place)));
    format!("{:x}", word(last)) + &rest.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_written_and_read_alike() {
        for (cpus, mask) in [(&[][..], "0"), (&[0, 3], "9"), (&[1, 32, 64], "1,00000001,00000002")]
        {
            assert_eq!(write_mask(cpus), mask);
            assert_eq!(parse_mask(mask).unwrap(), cpus);
        }
    }

    #[test]
    fn lists_and_masks_say_the_same() {
        assert_eq!(parse_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_mask("10f\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_mask("1,00000002"), Some(vec![1, 32]));
        assert_eq!((parse_list("\n"), parse_mask("0")), (Some(vec![]), Some(vec![])));
        assert_eq!(write_list(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(write_list(&[]), "");
    }

    #[test]
    fn nonsense_is_none() {
        for text in ["a", "1-", "3-1", "-1", "0-4294967295", "1.5", "\u{fffd}"] {
            assert_eq!(parse_list(text), None, "{text}");
        }
        for text in ["", "x", "-1", "+1", "123456789", "1,,2"] {
            assert_eq!(parse_mask(text), None, "{text}");
        }
        assert_eq!(parse_mask(&vec!["1"; 5_000].join(",")), None);
    }
}
