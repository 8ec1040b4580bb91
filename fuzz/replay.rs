//! How tests of every crate replay what the fuzzers know.
#![allow(clippy::print_stdout, reason = "a test shows which file it reads")]

use std::fs;
use std::path::Path;

/// Runs `replay` on every file of `fuzz/corpus/<target>`; how many there are.
pub(crate) fn replay_corpus(target: &str, replay: impl Fn(&[u8])) -> usize {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target);
    let files = fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{corpus:?}: {error}"));
    let mut count = 0;
    for file in files {
        let file = file.unwrap().path();
        // Shown only if the replay panics.
        println!("{}", file.display());
        replay(&fs::read(file).unwrap());
        count += 1;
    }
    count
}
