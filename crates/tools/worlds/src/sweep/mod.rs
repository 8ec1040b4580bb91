//! Sweeps: the cases of a command, spread over processes and machines, and one result of them.
//!
//! A command that runs many cases numbers them from 0. With `--shard I/N` it runs every N-th of
//! them and prints what came of each ([`ShardFile`]): not figures, but all that figures are made
//! of. [`merge()`] collects that of all shards, and the command makes the result of it as it does
//! without shards, so the result is the same. For that, what is random in a case must depend on the
//! seed and the case alone.
//!
//! A file has what defines its sweep, arguments and the text of their files, so that merging needs
//! nothing else, and shards of different sweeps are refused.

mod file;
mod merge;
mod played;

pub use file::{OpenedFile, ShardFile, ShardPosition, Sweep};
pub use merge::{Merged, Partial, Results, merge};
pub use played::PlayedRuns;
