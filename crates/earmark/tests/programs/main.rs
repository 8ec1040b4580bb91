//! Tests of the command together with programs of others.
#![allow(non_snake_case, reason = "test names are subject__case")]

#[path = "../support/mod.rs"]
mod support;

#[path = "../../../core/capture/tests/support/written.rs"]
#[allow(dead_code, reason = "another crate uses the rest")]
mod written;

mod dissector;
mod explain;
mod mpirun;
mod page;
mod pcap;
mod persist;
mod prometheus;
mod servers;
mod slurm;
