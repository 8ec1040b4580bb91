//! What many drivers and kernels say of their devices, recorded or written after the kernel's
//! source: files in `tests/samples/`, and answers of netlink put together here.
#![allow(non_snake_case, reason = "test names are subject__case")]

mod files;
mod recorded;
mod replies;
mod settings;
mod tree;
