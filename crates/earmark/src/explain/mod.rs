//! One request's path, as stages with microseconds, and what to make of it.
//!
//! Events of the kernel ([`event`], from tracepoints through [`decode`]) are followed by
//! [`engine`], cut into [`stages`] that add up, and many of them become a [`summary`]. None of
//! these does I/O.

pub mod decode;
pub mod engine;
pub mod event;
pub mod stages;
pub mod summary;
