//! The five kernels of the suite: IS, FT, CG, MG and EP.
//!
//! Each function writes what one rank does in an iteration. Messages and their sizes are those of
//! the MPI sources of NPB 2 and 3 (Bailey et al., "The NAS Parallel Benchmarks 2.0", NAS-95-020;
//! `IS/is.c`, `FT/ft.f`, `CG/cg.f`, `MG/mg.f`, `EP/ep.f`).

use super::script::RankScript;

/// Bytes of an `int`, a `double` and a pair of these.
const INT: u64 = 4;
pub(super) const DOUBLE: u64 = 8;
const COMPLEX: u64 = 16;

/// IS sorts 2^`log_keys` integers: `rank()` of `is.c`.
pub(super) fn is(it: &mut RankScript, log_keys: u32) {
    // NUM_BUCKETS + TEST_ARRAY_SIZE counts; 2^10 buckets (2^9 of class S).
    const COUNTS: u64 = (1 << 10) + 5;
    it.compute(0.5);
    it.all_reduce(COUNTS * INT);
    it.all_to_all_short(INT);
    // Keys of all ranks are alike, and so a rank has as many for each other one.
    let keys = (1_u64 << log_keys) / (it.ranks * it.ranks) as u64;
    it.all_to_all(keys * INT);
    it.compute(0.5);
}

/// FT transforms `points` complex numbers, whose planes the ranks share (layout 1D): `fft()` with
/// `transpose_x_yz`, and `checksum()`, of `ft.f`.
pub(super) fn ft(it: &mut RankScript, points: u64) {
    it.compute(0.5);
    it.all_to_all(points / (it.ranks * it.ranks) as u64 * COMPLEX);
    it.compute(0.5);
    it.reduce(COMPLEX);
}

/// CG finds an eigenvalue of a matrix of `rows`: an outer iteration, which is `conj_grad()` with
/// its 25 inner ones, of `cg.f`. Ranks are a square.
pub(super) fn cg(it: &mut RankScript, rows: u64) {
    const INNER: u64 = 25;
    let side = it.ranks.isqrt();
    let (row, column) = (it.rank / side, it.rank % side);
    let vector = rows / side as u64 * DOUBLE;
    // Sums over a row of ranks (`reduce_exch_proc`).
    let sum = |it: &mut RankScript, bytes| {
        let mut distance = side / 2;
        while distance > 0 {
            let other = row * side + (column ^ distance);
            it.exchange(other, other, 1, bytes);
            distance /= 2;
        }
    };
    sum(it, DOUBLE);
    for inner in 0..=INNER {
        it.compute(1.0 / (INNER + 1) as f64);
        sum(it, vector);
        let transposed = column * side + row;
        it.exchange(transposed, transposed, 2, vector);
        sum(it, DOUBLE);
        if inner < INNER {
            sum(it, DOUBLE);
        }
    }
    // norm_temp1 of the main program.
    sum(it, 2 * DOUBLE);
}

/// MG solves Poisson's equation on a cube of 2^`levels` a side: `mg3P()`, a V cycle, and `resid()`,
/// of `mg.f`. Levels where a rank has no points (`comm3_ex`) are taken as those where it has one.
pub(super) fn mg(it: &mut RankScript, levels: u32) {
    let log_ranks = it.ranks.ilog2();
    // `setup()`: a third of the powers of two for each axis, the last one has the rest.
    let first = log_ranks / 3;
    let second = (log_ranks - first) / 2;
    let grid = [1_usize << first, 1 << second, it.ranks >> (first + second)];
    // A visit of a level ends with the exchange of borders, `comm3`; see `mg3P`.
    let down = (1..levels).rev();
    let up = 2..=levels;
    let top = [levels];
    let visits = down.chain([1]).chain(up.clone().flat_map(|level| [level; 2])).chain(top);
    let points = |level: u32| (1_u64 << (3 * level)) as f64;
    let all: f64 = visits.clone().map(points).sum();
    for level in visits {
        it.compute(points(level) / all);
        borders(it, grid, level);
    }
}

/// `comm3()`: borders go to both neighbors along each axis, which is a ring.
fn borders(it: &mut RankScript, grid: [usize; 3], level: u32) {
    let own = [it.rank % grid[0], it.rank / grid[0] % grid[1], it.rank / (grid[0] * grid[1])];
    let points = grid.map(|ranks| ((1_u64 << level) / ranks as u64).max(1));
    // With the borders that are there already (`give3()`).
    let faces =
        [points[1] * points[2], (points[0] + 2) * points[2], (points[0] + 2) * (points[1] + 2)];
    let strides = [1, grid[0], grid[0] * grid[1]];
    for axis in 0..3 {
        let at = |place: usize| it.rank + place * strides[axis] - own[axis] * strides[axis];
        let after = at((own[axis] + 1) % grid[axis]);
        let before = at((own[axis] + grid[axis] - 1) % grid[axis]);
        let bytes = faces[axis] * DOUBLE;
        it.receive(before, 1, bytes);
        it.receive(after, 2, bytes);
        it.send(after, 1, bytes);
        it.send(before, 2, bytes);
        it.wait();
    }
}

/// EP counts random pairs: nothing but a barrier and three sums at the end, of `ep.f`.
pub(super) fn ep(it: &mut RankScript) {
    it.barrier();
    it.compute(1.0);
    it.all_reduce(DOUBLE);
    it.all_reduce(DOUBLE);
    it.all_reduce(10 * DOUBLE);
}
