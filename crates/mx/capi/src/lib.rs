//! MX for C: what `earmark_mx.h` declares, as `libearmark.so`.
//!
//! The calls are those of the MX API of Myricom (`myriexpress.h`) and of Open-MX, with a prefix of
//! their own; each is a thin layer over an endpoint with threads ([`mx_io::endpoint`]).
//!
//! The smallest program (a test here would need a C compiler; `tests/programs/` has those):
//!
//! ```c
//! earmark_mx_endpoint_t end;
//! earmark_mx_request_t request;
//! earmark_mx_status_t status;
//! uint32_t done;
//! char buffer[64];
//! earmark_mx_segment_t segment = { buffer, sizeof buffer };
//!
//! earmark_mx_init(EARMARK_MX_API);
//! earmark_mx_open_endpoint("packet:eth0", 1, 0, NULL, &end);
//! earmark_mx_irecv(end, &segment, 1, 7, UINT64_MAX, NULL, &request);
//! earmark_mx_wait(end, &request, EARMARK_MX_INFINITE, &status, &done);
//! earmark_mx_close_endpoint(end);
//! earmark_mx_finalize();
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
//! `earmark_mx_init` gets the version of the header. The settings begin with their size, and a
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
pub mod open;
pub mod peers;
pub mod probe;
pub mod transfer;
