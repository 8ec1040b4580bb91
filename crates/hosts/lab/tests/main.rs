//! Tests of the lab on hosts that they make.
#![allow(non_snake_case, reason = "test names are subject__case")]

mod calendar;
mod common;
mod dataplane;
mod host;
mod plane;
mod tap;
mod unprivileged;
