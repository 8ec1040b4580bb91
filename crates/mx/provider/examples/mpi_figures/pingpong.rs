//! Latency within a host as `fi_pingpong` has it, without an MPI.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::hosts::{Hosts, NAMES};

pub(crate) const SIZES: [u64; 6] = [1, 64, 1024, 4096, 65_536, 1_048_576];

/// The one-way time of a message over a provider, in us: a mean.
pub(crate) fn run(hosts: &Hosts, provider: &str, bytes: u64) -> f64 {
    let count = if bytes <= 4096 { "20000" } else { "1000" };
    let size = bytes.to_string();
    let start = |core: &str| {
        let mut command = hosts.command(NAMES[0], hosts.path("pin"));
        command.args(["fi_pingpong", "-e", "rdm", "-p", provider, "-I", count, "-S", &size]);
        command.env("PMI_RANK", core);
        command
    };
    let begun = Instant::now();
    let mut server = start("1").stdout(Stdio::null()).spawn().expect("fi_pingpong starts");
    // Until the server listens.
    let output = loop {
        let client = start("0").arg("127.0.0.1").output().expect("fi_pingpong starts");
        if client.status.success() {
            break client.stdout;
        }
        let text = String::from_utf8_lossy(&client.stderr).into_owned();
        assert!(begun.elapsed() < Duration::from_secs(60), "fi_pingpong over {provider}: {text}");
        sleep(Duration::from_millis(50));
    };
    server.wait().expect("the server ends");
    let text = String::from_utf8_lossy(&output).into_owned();
    // Its last columns are us per message and millions of messages per second.
    let us = text.split_whitespace().rev().nth(1).and_then(|us| us.parse().ok());
    us.unwrap_or_else(|| panic!("fi_pingpong over {provider}: {text}"))
}
