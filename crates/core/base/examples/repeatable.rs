//! A random walk through time that is the same in every run and in every version.

use base::prng::Prng;
use base::time::{Duration, Instant};

fn main() {
    let mut random = Prng::new(7);
    let mut now = Instant::ZERO;
    for step in 1..=5 {
        now += Duration::from_micros(random.next_u64() % 100);
        println!("step {step} at {} us", now.since(Instant::ZERO).as_micros());
    }
}
