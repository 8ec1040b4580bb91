//! Crates as boxes, dependencies as arrows, in SVG.

use std::fmt::Write;

use super::layout::{self, Arrows, Point, Room};

const BOX: (f64, f64) = (118.0, 44.0);
const ROOM: Room = Room { column: 142.0, row: 92.0, gap: 34.0 };

const STYLE: &str = "\
svg{font:14px system-ui,sans-serif;background:#fff}\
rect{fill:#eef3fa;stroke:#3b6ea5}path{fill:none;stroke:#6b7785;stroke-width:1.3}\
text{fill:#1b2430;text-anchor:middle}.lines{font-size:12px;fill:#4a5563}marker path{fill:#6b7785}\
@media(prefers-color-scheme:dark){svg{background:#14181d}rect{fill:#1f2a37;stroke:#7fb0e6}\
path{stroke:#9aa6b2}text{fill:#e8edf2}.lines{fill:#b6c1cc}marker path{fill:#9aa6b2}}";

/// The dependencies in words, as the picture holds them for those who cannot see it.
pub(crate) fn description(dependencies: &[(String, Vec<String>)]) -> String {
    let mut text = String::new();
    for (name, on) in dependencies {
        let on = if on.is_empty() { "none".to_owned() } else { on.join(", ") };
        let _ = writeln!(text, "{name}: {on}");
    }
    format!("<desc>Crates, and what each depends on.\n{text}</desc>")
}

/// Draws crates that depend on others, or on which others depend, with their lines of code.
pub(super) fn draw(lines: &[(String, usize)], dependencies: &[(String, Vec<String>)]) -> String {
    let has_arrow = |name: &str| {
        dependencies.iter().any(|(from, on)| {
            (from == name && !on.is_empty()) || on.iter().any(|other| other == name)
        })
    };
    let boxes: Vec<_> = lines.iter().filter(|(name, _)| has_arrow(name)).collect();
    let number = |name: &str| boxes.iter().position(|(other, _)| other == name);
    let mut arrows = Arrows::new();
    for (from, on) in dependencies {
        arrows.extend(on.iter().filter_map(|to| number(from).zip(number(to))));
    }
    let layout = layout::place(boxes.len(), &layout::reduced(&arrows), &ROOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0} {1:.0}\" \
         width=\"{0:.0}\" height=\"{1:.0}\" role=\"img\">\n<title>Crates of Earmark</title>\n{2}\n\
         <style>{STYLE}</style>\n<marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" \
         markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 1L7 4L0 7z\"/></marker>\n",
        layout.width,
        layout.height,
        description(dependencies),
    );
    for arrow in &layout.arrows {
        let _ = writeln!(svg, "<path marker-end=\"url(#end)\" d=\"{}\"/>", curve(arrow));
    }
    for ((name, lines), at) in boxes.iter().zip(&layout.boxes) {
        let Point { x, y } = at;
        let (left, top) = (x - BOX.0 / 2.0, y - BOX.1 / 2.0);
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.0}\" y=\"{top:.0}\" width=\"{}\" height=\"{}\" rx=\"6\"/>\
             <text x=\"{x:.0}\" y=\"{:.0}\">{name}</text>\
             <text class=\"lines\" x=\"{x:.0}\" y=\"{:.0}\">{} lines</text>",
            BOX.0,
            BOX.1,
            y - 3.0,
            y + 14.0,
            thousands(*lines),
        );
    }
    svg + "</svg>\n"
}

/// A smooth line from the lower edge of a box, through gaps, to the upper edge of another.
fn curve(points: &[Point]) -> String {
    let half = BOX.1 / 2.0;
    let last = points.len() - 1;
    let mut data = format!("M{:.0} {:.0}", points[0].x, points[0].y + half);
    for pair in points.windows(2) {
        let from = pair[0].y + half;
        let to = pair[1].y - half;
        let middle = f64::midpoint(from, to);
        let (x1, x2) = (pair[0].x, pair[1].x);
        let _ = write!(data, "C{x1:.0} {middle:.0} {x2:.0} {middle:.0} {x2:.0} {to:.0}");
        if pair[1] != points[last] {
            let _ = write!(data, "V{:.0}", pair[1].y + half);
        }
    }
    data
}

/// 12345 as `12,345`.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependencies() -> Vec<(String, Vec<String>)> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let all: [(&str, &[&str]); 4] =
            [("earmark", &["base", "nic"]), ("base", &[]), ("nic", &["base"]), ("xtask", &[])];
        all.map(|(name, on)| (name.to_owned(), owned(on))).into()
    }

    #[test]
    fn a_picture_has_a_box_for_each_crate_and_no_arrow_that_others_imply() {
        let dependencies = dependencies();
        let lines: Vec<_> = dependencies.iter().map(|(name, _)| (name.clone(), 12_345)).collect();
        let svg = draw(&lines, &dependencies);
        assert_eq!(svg.matches("<rect").count(), 3, "xtask has no arrow");
        assert_eq!(svg.matches("marker-end").count(), 2);
        assert_eq!(svg.matches("12,345 lines").count(), 3);
        assert_eq!(svg, draw(&lines, &dependencies));
        assert!(svg.contains(&description(&dependencies)));
        assert!(svg.contains("base: none") && svg.contains("earmark: base, nic"), "{svg}");
    }

    #[test]
    fn numbers_have_commas() {
        let written = [7, 999, 1000, 123_456, 1_234_567].map(thousands);
        assert_eq!(written, ["7", "999", "1,000", "123,456", "1,234,567"]);
    }
}
