//! Some thousands of seeds, each a world of its own.

use sim::drive;

/// As many as fit into half a minute without optimization.
const SEEDS: u64 = 2_500;

/// Seeds beyond them that have failed. In 913305 a peer starts again between a frame that
/// its host waited for and the one that would have borne the mark: no host waits any more. In
/// 623246 a receiver keeps no early frames, and of a window that was lost one frame came again
/// every 10 ms. In 837694 seven transmissions of a frame are lost, and there were no more before
/// the peer was given up.
const FAILED: [u64; 3] = [623_246, 837_694, 913_305];

#[test]
fn seeds_that_failed_before_do_not() {
    for seed in FAILED {
        assert_eq!(drive::run(seed, sim::model::contents()).faults, [""; 0], "seed {seed}");
    }
}

#[test]
fn all_seeds_do_what_the_model_says() {
    let contents = sim::model::contents();
    let chosen = std::env::var("EARMARK_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let seeds = chosen.map_or(0..SEEDS, |seed| seed..seed + 1);
    for seed in seeds {
        let report = drive::run(seed, contents.clone());
        if !report.faults.is_empty() {
            for fault in &report.faults {
                eprintln!("{fault}\n");
            }
            eprintln!("{:#?}", sim::seeds::Setup::new(seed));
            panic!("seed {seed}; again: EARMARK_SEED={seed} cargo test -p earmark-sim seeds");
        }
        if seed % 20 == 0 || chosen.is_some() {
            assert_eq!(drive::run(seed, contents.clone()), report, "seed {seed} is not the same");
        }
    }
}
