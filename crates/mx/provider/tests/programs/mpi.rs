//! MPI: `conformance.c`, compiled and started by each MPI that there is.

use crate::hosts::{Hosts, run};
use crate::launch::{Mpi, Net};

/// How often the sending of a frame fails in the tests with loss.
const LOSS: (&str, &str) = ("EARMARK_FAULTS", "drop:100");

/// Runs the program with these arguments on every MPI, and sees that our endpoints were used.
fn conforms(ranks: usize, variables: &[(&str, &str)], arguments: &[&str]) {
    let hosts = Hosts::new();
    for mpi in Mpi::all() {
        let program = mpi.compile(&hosts, "conformance");
        let variables = [&[("EARMARK_VERBOSE", "1")], variables].concat();
        let mut command = mpi.launch(&hosts, (Net::Earmark, ranks), &variables);
        let text = run(command.arg(&program).args(arguments));
        assert!(text.contains("all passed"), "{command:?}: {text}");
        let endpoints = text.matches(" on packet:eth0").count();
        assert!(endpoints >= 2 * ranks, "{command:?}: {endpoints} endpoints: {text}");
    }
}

#[test]
fn conforms_between_two_hosts() {
    conforms(1, &[], &["short", "rma"]);
}

#[test]
fn conforms_with_two_ranks_on_each_host() {
    conforms(2, &[], &["short"]);
}

#[test]
fn conforms_with_loss() {
    conforms(1, &[LOSS], &["short"]);
}

#[test]
fn conforms_with_threads() {
    // Open MPI 4 as packaged has no MPI_THREAD_MULTIPLE for one-sided operations.
    conforms(1, &[], &["short", "threads"]);
}

#[test]
fn conforms_with_tcp_for_bulk_data() {
    conforms(1, &[("EARMARK_PORT", "packet:eth0+tcp"), LOSS], &["short"]);
}
