//! Tests of the command with hosts of ours, or in network namespaces of their own.
#![allow(non_snake_case, reason = "test names are subject__case")]

#[path = "../support/mod.rs"]
mod support;

mod apply;
mod bench;
mod examples;
mod exporter;
mod failures;
mod guard;
mod hostile;
mod lab;
mod nic;
mod persist;
mod probe;
mod remedies;
mod show;
mod suspension;
mod tour;
mod tune;
