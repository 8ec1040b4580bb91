//! The engine: what it sends, keeps and reports, whatever frames and requests come.
//!
//! One program, since the compiler makes most of the engine anew for each.

mod bulk;
mod bursts;
mod corpus;
mod ends;
mod gone;
mod handshake;
mod hostile;
mod lent;
mod look;
mod marks;
mod pulls;
mod reads;
mod room;
mod support;
