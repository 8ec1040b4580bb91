//! Tests of the command together with programs of others.
#![allow(non_snake_case, reason = "test names are subject__case")]

#[path = "../support/mod.rs"]
mod support;

mod dissector;
mod explain;
mod mpirun;
mod pcap;
mod persist;
mod prometheus;
mod servers;
mod slurm;
