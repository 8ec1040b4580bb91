//! The three simulated applications of the suite: LU, BT and SP.
//!
//! Sources as in [`kernels`](super::kernels): `LU/ssor.f`, `exchange_1.f` and `exchange_3.f`; `BT`
//! and `SP`, `copy_faces.f`, `x_solve.f` and `make_set.f`.

use super::kernels::DOUBLE;
use super::script::RankScript;

/// The parts of a line of `points` that `parts` ranks have.
fn part(points: u64, parts: usize, number: usize) -> u64 {
    points / parts as u64 + u64::from((number as u64) < points % parts as u64)
}

/// The quantities of a point.
const QUANTITIES: u64 = 5;

/// LU solves by symmetric over-relaxation on a cube of `points` a side; each rank has a column of
/// it, and waves go through all planes, there and back.
pub(super) fn lu(it: &mut RankScript, points: u64) {
    let side = it.ranks.isqrt();
    let (row, column) = (it.rank % side, it.rank / side);
    let rows = part(points, side, row) * QUANTITIES * DOUBLE;
    let columns = part(points, side, column) * QUANTITIES * DOUBLE;
    // Neighbors, with the bytes of a line of the border (`neighbors.f`).
    let north = (row > 0).then(|| (it.rank - 1, columns));
    let south = (row + 1 < side).then(|| (it.rank + 1, columns));
    let west = (column > 0).then(|| (it.rank - side, rows));
    let east = (column + 1 < side).then(|| (it.rank + side, rows));
    let planes = points - 2;
    // `blts` and `buts` are two thirds of the work.
    let plane = 2.0 / 3.0 / (2 * planes) as f64;
    for (tag, before, after) in
        [(1, [north, west], [south, east]), (2, [south, east], [north, west])]
    {
        for _ in 0..planes {
            for (from, bytes) in before.into_iter().flatten() {
                it.receive(from, tag, bytes);
                it.wait();
            }
            it.compute(plane);
            for (to, bytes) in after.into_iter().flatten() {
                it.send(to, tag, bytes);
            }
        }
        it.wait();
    }
    // `rhs()`: two layers of the borders, in both directions of both axes (`exchange_3()`).
    it.compute(1.0 / 6.0);
    for (one, other) in [(south, north), (east, west)] {
        for (tag, to, from) in [(3, one, other), (4, other, one)] {
            if let Some((from, bytes)) = from {
                it.receive(from, tag, 2 * bytes * points);
            }
            if let Some((to, bytes)) = to {
                it.send(to, tag, 2 * bytes * points);
            }
            it.wait();
        }
    }
    it.compute(1.0 / 6.0);
}

/// Doubles of a point of a face that a sweep hands on, forward and back.
pub(super) type Handed = (u64, u64);
/// BT: a block of 5 x 5 and a right side; a solution (`x_send_solve_info`, `x_send_backsub_info`).
pub(super) const BT: Handed = (30, 5);
/// SP: three lines of factors and right sides (`x_solve.f`).
pub(super) const SP: Handed = (22, 10);

/// BT and SP solve along the three axes of a cube of `points` a side, by alternating directions.
/// Each rank has a diagonal of cells, one in every slice, so that all work in each stage.
pub(super) fn multi_partition(it: &mut RankScript, points: u64, (forward, back): Handed) {
    let side = it.ranks.isqrt();
    let cell = points / side as u64;
    let face = cell * cell * DOUBLE;
    let axes = axes(it.rank, side);
    // `copy_faces()`: two layers of all cells that do not touch the end of the cube.
    it.compute(0.25);
    let faces = 2 * QUANTITIES * face * (side as u64 - 1);
    for (number, (before, after)) in (0..).zip(axes) {
        it.receive(before, 10 + number, faces);
        it.receive(after, 20 + number, faces);
        it.send(after, 10 + number, faces);
        it.send(before, 20 + number, faces);
    }
    it.wait();
    let share = 0.25 / (2 * side) as f64;
    for (before, after) in axes {
        for (tag, from, to, doubles) in [(1, before, after, forward), (2, after, before, back)] {
            for stage in 0..side {
                if stage > 0 {
                    it.receive(from, tag, doubles * face);
                    it.wait();
                }
                it.compute(share);
                if stage + 1 < side {
                    it.send(to, tag, doubles * face);
                }
            }
            it.wait();
        }
    }
}

/// Predecessor and successor along each axis (`make_set.f`).
fn axes(rank: usize, side: usize) -> [(usize, usize); 3] {
    let (row, column) = (rank / side, rank % side);
    let at = |row: usize, column: usize| row % side * side + column % side;
    let last = side - 1;
    [
        (at(row, column + last), at(row, column + 1)),
        (at(row + last, column), at(row + 1, column)),
        (at(row + 1, column + last), at(row + last, column + 1)),
    ]
}
