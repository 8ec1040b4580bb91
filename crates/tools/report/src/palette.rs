//! One colour for each setting, the same in every picture and in the table.

use super::Report;

/// The strategies that have a colour of their own; the index is the CSS class (`s0`, `s1`, ...).
///
/// Warm colours for what waits or drowns, cool ones for the strategies that know messages.
const HOMES: [&str; 8] =
    ["disabled", "delay", "throttle", "periodic", "frames", "marked", "stream", "adaptive"];

#[derive(Debug, Clone, Default)]
pub(crate) struct Palette {
    names: Vec<(String, usize)>,
}

impl Palette {
    pub(crate) fn of(report: &Report) -> Self {
        let all = std::iter::once(report).chain(&report.parts);
        let points = all.flat_map(|report| &report.tradeoff.points);
        Self::new(points.map(|point| point.name.as_str()))
    }

    /// The palette for `names`: a strategy's own colour for the first setting that uses the
    /// strategy, a free colour for the others, and repetition when there are more than eight.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut unique: Vec<&str> = Vec::new();
        for name in names {
            if !unique.contains(&name) {
                unique.push(name);
            }
        }
        let mut slots: Vec<Option<usize>> = Vec::new();
        for name in &unique {
            slots.push(home(name).filter(|slot| !slots.contains(&Some(*slot))));
        }
        for index in 0..slots.len() {
            if slots[index].is_none() {
                let free = (0..HOMES.len()).rev().find(|slot| !slots.contains(&Some(*slot)));
                slots[index] = Some(free.unwrap_or(index % HOMES.len()));
            }
        }
        let named = unique.into_iter().map(str::to_owned);
        Self { names: named.zip(slots.into_iter().flatten()).collect() }
    }

    /// The CSS class of a setting; names outside the palette get a neutral colour.
    pub(crate) fn class(&self, name: &str) -> &'static str {
        const CLASSES: [&str; HOMES.len()] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];
        self.names.iter().find(|(known, _)| known == name).map_or("sx", |(_, slot)| CLASSES[*slot])
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|(known, _)| known == name)
    }
}

fn home(name: &str) -> Option<usize> {
    let strategy = name.split(':').next().unwrap_or(name);
    HOMES.iter().position(|known| *known == strategy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strategy_keeps_its_colour_and_others_get_free_ones() {
        let palette = Palette::new(["marked:75", "disabled", "marked:75"]);
        assert_eq!((palette.class("marked:75"), palette.class("disabled")), ("s5", "s0"));
        assert_eq!(palette.class("unknown"), "sx");
        let names = ["delay:25", "delay:75", "marked:75", "other"];
        let palette = Palette::new(names);
        let classes: std::collections::BTreeSet<_> =
            names.into_iter().map(|name| palette.class(name)).collect();
        assert!(classes.len() == names.len() && palette.class("delay:25") == "s1", "{classes:?}");
        let many: Vec<String> = (0..20).map(|index| format!("delay:{index}")).collect();
        let palette = Palette::new(many.iter().map(String::as_str));
        assert!(many.iter().all(|name| palette.class(name) != "sx"));
    }

    /// The colours of the page's style sheet: those of a bright screen, a dark one, and paper.
    fn schemes() -> Vec<std::collections::BTreeMap<&'static str, [f64; 3]>> {
        let sheet = include_str!("../templates/report.css");
        let block = |block: &'static str| {
            let colours = block.split('}').next().unwrap_or_default().split(';');
            let pairs = colours.filter_map(|pair| pair.split_once(':'));
            pairs.filter_map(|(name, value)| Some((name.trim(), luminous(value.trim())?))).collect()
        };
        sheet.split(":root {").skip(1).map(block).collect()
    }

    /// Red, green and blue as light: WCAG's relative luminance is their weighted sum.
    fn luminous(hex: &str) -> Option<[f64; 3]> {
        let digits = hex.strip_prefix('#')?;
        let wide = if digits.len() == 3 {
            digits.chars().flat_map(|digit| [digit, digit]).collect()
        } else {
            digits.to_owned()
        };
        let part = |at: usize| {
            let share = f64::from(u8::from_str_radix(&wide[at..at + 2], 16).unwrap()) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        Some([part(0), part(2), part(4)])
    }

    fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
        let light = |[r, g, b]: [f64; 3]| 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
        let (one, other) = (light(one), light(other));
        one.max(other) / one.min(other)
    }

    #[test]
    fn every_text_stands_out_from_what_is_behind_it() {
        let [white, black] = ["#fff", "#000000"].map(|hex| luminous(hex).unwrap());
        assert!((contrast(white, black) - 21.0).abs() < 1e-9, "as the standard has it");
        let schemes = schemes();
        assert_eq!(schemes.len(), 3);
        for (number, colours) in schemes.iter().enumerate() {
            let mut pairs = vec![
                ("--ink", "--bg"),
                ("--muted", "--bg"),
                ("--accent", "--bg"),
                ("--ink", "--good-bg"),
                ("--good", "--good-bg"),
                ("--bad", "--bad-bg"),
                ("--accent", "--card"),
            ];
            let on_card = ["--ink", "--muted", "--s0", "--s1", "--s2", "--s3", "--s4", "--s5"];
            let more = ["--s6", "--s7", "--sx"];
            pairs.extend(on_card.into_iter().chain(more).map(|text| (text, "--card")));
            for (text, behind) in pairs {
                let found = contrast(colours[text], colours[behind]);
                assert!(found >= 4.5, "scheme {number}: {text} on {behind} is {found:.2} to 1");
            }
        }
    }
}
