//! What the tests of this crate share.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::fmt::Display;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lab::Lab;

pub(crate) mod wire;

/// The value, or a panic with the message a user would see, next step included.
pub(crate) fn ok<T, E: Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs `work` while frames are carried between the hosts of a lab.
pub(crate) fn wired<R>(lab: &Lab, work: impl FnOnce() -> R) -> R {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // Also when `work` panics, or the scope would wait for the wire for ever.
        let _stop_at_the_end = Stop(&stop);
        scope.spawn(|| ok(wire::carry(&lab.taps, &stop)));
        work()
    })
}

/// Waits until `condition` holds; long enough for a machine that does something else, too.
#[track_caller]
pub(crate) fn soon(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(300), "not within 300 s: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The name of a namespace of a process, such as `net:[4026531840]`.
pub(crate) fn namespace(pid: u32, kind: &str) -> String {
    ok(fs::read_link(format!("/proc/{pid}/ns/{kind}"))).display().to_string()
}

/// All processes of the machine that live in a namespace; a zombie does not.
pub(crate) fn members(namespace: &str) -> Vec<u32> {
    let kind = namespace.split(':').next().expect("a namespace name has a colon");
    ok(fs::read_dir("/proc"))
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            fs::read_link(format!("/proc/{pid}/ns/{kind}"))
                .is_ok_and(|link| link.as_os_str() == namespace)
                && fs::read_to_string(format!("/proc/{pid}/stat"))
                    .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
        })
        .collect()
}

pub(crate) fn two_hosts() -> PathBuf {
    let test = ok(std::env::current_exe());
    let directory = test.ancestors().nth(2).expect("tests are in target/PROFILE/deps");
    let path = directory.join("examples/two_hosts");
    assert!(
        path.exists(),
        "no {}; build it: cargo build -p earmark-lab --examples",
        path.display()
    );
    path
}
