//! Where boxes and arrows go: rows from top to bottom, each box above all that it points to.

use std::collections::BTreeMap;

/// From which box to which, by number.
pub(super) type Arrows = Vec<(usize, usize)>;

/// A place in the picture, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub x: f64,
    pub y: f64,
}

/// The drawing.
#[derive(Debug)]
pub(super) struct Layout {
    /// The centre of each box.
    pub boxes: Vec<Point>,
    /// For each arrow the centres of its first box, of the gaps it passes, and of its last box.
    pub arrows: Vec<Vec<Point>>,
    pub width: f64,
    pub height: f64,
}

/// How much room things take.
pub(super) struct Room {
    /// From centre to centre of two boxes of a row.
    pub column: f64,
    /// From centre to centre of two rows.
    pub row: f64,
    /// What an arrow takes that passes a row.
    pub gap: f64,
}

/// Leaves out the arrows that others imply: a points to b, b to c, so a need not point to c.
pub(super) fn reduced(arrows: &Arrows) -> Arrows {
    let next =
        |from: usize| arrows.iter().filter(move |arrow| arrow.0 == from).map(|arrow| arrow.1);
    let reaches = |from: usize, to: usize| {
        let (mut seen, mut waiting) = (Vec::new(), vec![from]);
        while let Some(at) = waiting.pop() {
            if at == to {
                return true;
            }
            if !seen.contains(&at) {
                seen.push(at);
                waiting.extend(next(at));
            }
        }
        false
    };
    let implied = |from, to| next(from).any(|between| between != to && reaches(between, to));
    arrows.iter().copied().filter(|&(from, to)| !implied(from, to)).collect()
}

/// Places `count` boxes and the arrows between them, which must not go round in a circle.
pub(super) fn place(count: usize, arrows: &Arrows, room: &Room) -> Layout {
    let levels = levels(count, arrows);
    let top = levels.iter().copied().max().unwrap_or(0);
    // Boxes first, then one node for each row that an arrow passes.
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); top + 1];
    for (node, level) in levels.iter().enumerate() {
        rows[top - level].push(node);
    }
    let mut chains = Vec::new();
    let mut nodes = count;
    for &(from, to) in arrows {
        let mut chain = vec![from];
        for level in (levels[to] + 1..levels[from]).rev() {
            rows[top - level].push(nodes);
            chain.push(nodes);
            nodes += 1;
        }
        chain.push(to);
        chains.push(chain);
    }
    let rows = ordered(rows, &chains);
    let span = |node: &usize| if *node < count { room.column } else { room.gap };
    let width = rows.iter().map(|row| row.iter().map(span).sum()).fold(0.0, f64::max);
    let mut points = vec![Point { x: 0.0, y: 0.0 }; nodes];
    for (number, row) in rows.iter().enumerate() {
        let mut x = (width - row.iter().map(span).sum::<f64>()) / 2.0;
        for node in row {
            points[*node] = Point { x: x + span(node) / 2.0, y: (number as f64 + 0.5) * room.row };
            x += span(node);
        }
    }
    let arrows = chains.iter().map(|chain| chain.iter().map(|&node| points[node]).collect());
    let arrows = arrows.collect();
    points.truncate(count);
    Layout { boxes: points, arrows, width, height: rows.len() as f64 * room.row }
}

/// How many arrows the longest way down from each box has. What points to nothing stands right
/// below the lowest box that points to it, so that arrows are short.
fn levels(count: usize, arrows: &Arrows) -> Vec<usize> {
    let mut levels = vec![0; count];
    // Each round settles one level more at least.
    for _ in 0..count {
        for &(from, to) in arrows {
            levels[from] = levels[from].max(levels[to] + 1);
        }
    }
    for leaf in 0..count {
        if levels[leaf] > 0 {
            continue;
        }
        let above = arrows.iter().filter(|arrow| arrow.1 == leaf).map(|arrow| levels[arrow.0]);
        levels[leaf] = above.min().map_or(0, |lowest| lowest - 1);
    }
    levels
}

/// The rows in an order in which few arrows cross.
fn ordered(rows: Vec<Vec<usize>>, chains: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let links: Vec<_> = chains.iter().flat_map(|chain| chain.windows(2)).collect();
    let mut best = rows.clone();
    let mut rows = rows;
    for round in 0..16 {
        let number = rows.len();
        for step in 1..number {
            // Down, then up: each row after the one that it hangs from.
            let (row, fixed) =
                if round % 2 == 0 { (step, step - 1) } else { (number - 1 - step, number - step) };
            let places: BTreeMap<_, _> = rows[fixed].iter().copied().zip(0_u32..).collect();
            let middle = |node: usize| {
                let others = links.iter().filter_map(|link| match link {
                    [one, other] if *one == node => places.get(other),
                    [one, other] if *other == node => places.get(one),
                    _ => None,
                });
                let others: Vec<f64> = others.map(|&place| f64::from(place)).collect();
                (!others.is_empty()).then(|| others.iter().sum::<f64>() / others.len() as f64)
            };
            let mut keyed: Vec<_> = rows[row]
                .iter()
                .zip(0_u32..)
                .map(|(&node, place)| (middle(node).unwrap_or(f64::from(place)), node))
                .collect();
            keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
            rows[row] = keyed.into_iter().map(|(_, node)| node).collect();
        }
        if crossings(&rows, &links) < crossings(&best, &links) {
            best.clone_from(&rows);
        }
    }
    best
}

fn crossings(rows: &[Vec<usize>], links: &[&[usize]]) -> usize {
    let mut sum = 0;
    for pair in rows.windows(2) {
        let place = |row: &[usize], node| row.iter().position(|&other| other == node);
        let ends = links.iter().filter_map(|link| match link {
            [from, to] => place(&pair[0], *from).zip(place(&pair[1], *to)),
            _ => None,
        });
        let ends: Vec<_> = ends.collect();
        for (number, one) in ends.iter().enumerate() {
            let crosses = |other: &&(usize, usize)| {
                (one.0 < other.0 && one.1 > other.1) || (one.0 > other.0 && one.1 < other.1)
            };
            sum += ends[number..].iter().filter(crosses).count();
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { column: 100.0, row: 50.0, gap: 10.0 };

    #[test]
    fn arrows_that_others_imply_are_left_out() {
        assert_eq!(reduced(&vec![(0, 1), (1, 2), (0, 2), (3, 2)]), [(0, 1), (1, 2), (3, 2)]);
    }

    #[test]
    fn every_arrow_points_down_and_passes_between_boxes() {
        let arrows = vec![(0, 1), (1, 2), (2, 3), (0, 4), (4, 3)];
        let layout = place(5, &arrows, &ROOM);
        for arrow in &layout.arrows {
            assert!(arrow.windows(2).all(|pair| pair[0].y < pair[1].y), "{arrow:?}");
            for bend in &arrow[1..arrow.len() - 1] {
                let hits = |at: &Point| at.y == bend.y && (at.x - bend.x).abs() < 55.0;
                assert!(!layout.boxes.iter().any(hits), "{layout:?}");
            }
        }
        assert_eq!((layout.width, layout.height), (200.0, 200.0));
    }

    #[test]
    fn what_points_to_nothing_stands_right_below_what_points_to_it() {
        let layout = place(4, &vec![(0, 1), (1, 2), (0, 3)], &ROOM);
        assert_eq!(layout.boxes[3].y, layout.boxes[1].y);
        assert_eq!(layout.boxes[2].y, 125.0);
    }

    #[test]
    fn rows_are_ordered_so_that_arrows_do_not_cross() {
        let layout = place(4, &vec![(0, 3), (1, 2)], &ROOM);
        let [first, second, third, fourth] = layout.boxes[..] else { unreachable!() };
        assert_eq!(first.x < second.x, fourth.x < third.x);
    }
}
