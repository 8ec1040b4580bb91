//! Tests of the command that need nothing but it.

#[path = "../support/mod.rs"]
mod support;

mod agent;
mod commands;
mod examples;
mod input;
mod mx;
mod output;
mod predict;
mod read;
mod see;
mod serve;
mod shards;
