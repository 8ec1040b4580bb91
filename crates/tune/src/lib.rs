//! Changing devices safely, and finding the settings that suit a workload.
//!
//! - [`setting`], settings as text, by ethtool's names;
//! - [`device`], what can be tuned: an interface of this machine, or a port of a NIC of ours;
//! - [`journal`], [`transaction`], [`guard`], [`recover`], a change that is undone whatever
//!   happens;
//! - [`figures`], [`goal`], [`search`], what is measured, what is wanted, and how to find it in few
//!   trials;
//! - [`workload`], [`peer`], [`trial`], what is played meanwhile, with a far host, and one
//!   measurement of it;
//! - [`world`], the same with a NIC of ours between two hosts of ours;
//! - [`front`], [`outcome`], what is told in the end;
//! - [`persist`], files that bring settings back at each boot, and [`links`], those of others;
//! - [`failpoint`], where tests kill it.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod device;
pub mod failpoint;
pub mod figures;
pub mod front;
pub mod goal;
pub mod guard;
pub mod journal;
pub mod links;
pub mod peer;
pub mod persist;
pub mod recommendation;
pub mod recover;
pub mod search;
pub mod session;
pub mod setting;
pub mod transaction;
pub mod trial;
pub mod workload;
pub mod world;
