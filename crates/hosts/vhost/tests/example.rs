//! What the example of a backend prints.

#[path = "../examples/backend.rs"]
mod backend;

use backend::{Received, run};
use base::time::{Duration, Instant};

#[test]
fn marked_frames_interrupt_at_once_and_others_at_their_timer() {
    let path = std::env::temp_dir().join(format!("earmark-example-{}", std::process::id()));
    let outcome = run(&path);
    std::fs::remove_file(&path).unwrap();
    let frame = |length, marked, came_at, hold| Received {
        length,
        marked,
        came_at: Instant::from_micros(came_at),
        interrupt_at: Instant::from_micros(came_at + hold),
        hold: Duration::from_micros(hold),
    };
    let expected = vec![frame(1_000, false, 100, 50), frame(60, true, 300, 0)];
    assert_eq!(outcome.unwrap(), (expected, 1));
}
