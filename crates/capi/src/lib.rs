//! MX for C: what `earmark_mx.h` declares, as `libearmark.so`.
//!
//! The calls are those of the MX API of Myricom (`myriexpress.h`) and of Open-MX, with a prefix of
//! their own; each is a thin layer over a live endpoint ([`mx_io::endpoint`]).
//!
//! ```text
//! abi.rs                       types of the header, and their layouts
//! codes.rs                     what calls return, how requests end, and what both mean
//! library.rs, open.rs          the library, endpoints, their settings
//! peers.rs                     connecting, addresses, contexts of peers, hosts by name
//! transfer.rs                  sends and receives
//! completion.rs                test, wait, peek, cancel, forget, wakeup
//! probe.rs, info.rs            messages that nobody has received; figures
//! guard.rs, handles.rs         errors and panics; handles that are checked
//! memory.rs, message.rs        memory of the user, and messages in it
//! ```
//!
//! # What a C program cannot break
//!
//! A handle is a number that looks like a pointer: it is looked up, never followed, and no two
//! objects of a process ever have the same one. So a handle that is stale, made up, or of another
//! endpoint is refused. A null pointer is refused where something must be, and no panic leaves a
//! call. What cannot be checked is that memory is there and stays there: see `memory.rs`.
//!
//! # How the interface may grow
//!
//! `earmark_mx_init` is told the version of the header. The settings begin with their size, and a
//! status has room at its end; enumerations only ever gain values at their ends.
//!
//! # Locks
//!
//! The list of endpoints has a lock, which is held to look one up. Each endpoint has one around its
//! requests, which is never held while the MX endpoint, with its own lock, is called.

// Names in the library are those of the header.
#![expect(non_camel_case_types, reason = "types are called as in C")]

pub mod abi;
pub mod codes;
pub mod completion;
mod guard;
mod handles;
pub mod info;
pub mod library;
mod memory;
mod message;
pub mod open;
pub mod peers;
pub mod probe;
mod state;
pub mod transfer;
