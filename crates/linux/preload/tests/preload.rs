//! The library in a program that knows nothing of it.

use std::process::Command;

/// Makes two epoll objects, and prints how each polls (`EPIOCGPARAMS`); then one of a wrong size.
const PROGRAM: &str = r#"
import ctypes, fcntl, os, select, struct
EPIOCGPARAMS = 0x80088a02
c = ctypes.CDLL(None, use_errno=True)
one = select.epoll()
for epoll in [one.fileno(), c.epoll_create(1024)]:
    usecs, budget, prefer, _ = struct.unpack("IHBB", fcntl.ioctl(epoll, EPIOCGPARAMS, bytes(8)))
    print(usecs, budget, prefer)
print(c.epoll_create(0), ctypes.get_errno(), c.epoll_create1(12345), ctypes.get_errno())
"#;

/// What the program prints, and what the library reports, with these variables.
fn run(variables: &[(&str, &str)]) -> (String, String) {
    let test = std::env::current_exe().unwrap();
    let library = test.with_file_name("libearmark_poll.so");
    assert!(library.exists(), "no {}; run: cargo build -p earmark-preload", library.display());
    let mut program = Command::new("python3");
    program.args(["-c", PROGRAM]).env("LD_PRELOAD", library).envs(variables.iter().copied());
    let output = program.output().expect("python3 is there: apt-get install python3");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Whether this kernel has `EPIOCSPARAMS`.
fn kernel_polls() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|word| word.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 9)
}

#[test]
fn epoll_objects_of_any_program_poll() {
    if !kernel_polls() {
        let (_, report) = run(&[]);
        assert!(report.contains("it takes Linux 6.9"), "{report}");
        return;
    }
    // EINVAL is 22: wrong sizes and flags are still wrong.
    let wrong = "-1 22 -1 22\n";
    assert_eq!(run(&[]), (format!("0 64 1\n0 64 1\n{wrong}"), String::new()));
    let other = [
        ("EARMARK_BUSY_POLL_USECS", "200"),
        ("EARMARK_BUSY_POLL_BUDGET", "8"),
        ("EARMARK_PREFER_BUSY_POLL", "0"),
    ];
    assert_eq!(run(&other), (format!("200 8 0\n200 8 0\n{wrong}"), String::new()));
    let (printed, report) = run(&[("EARMARK_BUSY_POLL_USECS", "long")]);
    assert_eq!(printed, format!("0 0 0\n0 0 0\n{wrong}"), "the program runs as it would without");
    assert_eq!(report.lines().count(), 1, "{report}");
    assert!(report.contains("EARMARK_BUSY_POLL_USECS=long"), "{report}");
}
