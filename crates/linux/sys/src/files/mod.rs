//! Files that users name, and files of others: how they are read, and written.
//!
//! **Reading** never waits and never fills the memory. What is read is a regular file of bounded
//! size: a pipe may never begin, and a device may never end. [`read_secret`] also asks whose it is.
//!
//! **Writing** puts a new file in the place of the old one, so no reader sees half of it, and what
//! is there stays if it fails. [`write`](fn@write) and [`create`] take the paths of a command line.
//! There a device, a pipe or a link to one, such as `/dev/stdout`, is written to as it is.
//!
//! **Links** lead where their owner wants. On the way to a file that is written, one of another
//! user is refused. In a [`Tree`], which may belong to any user, all links are followed, and lead
//! nowhere but into the tree.
//!
//! [`Directory`] does the same for files of one directory, which is open meanwhile: nothing on the
//! way to it can be exchanged between two steps.

mod directory;
mod output;
mod owner;
mod read;
mod tree;
mod walk;

#[cfg(test)]
mod tests;

pub use directory::{Directory, NewFile};
pub use output::{create, create_new, writable, write, write_with};
pub use read::{read, read_secret, read_text, read_text_from};
pub use tree::Tree;
