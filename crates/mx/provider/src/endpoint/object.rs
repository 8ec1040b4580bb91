//! The endpoint object of libfabric, and what is behind it.

use std::sync::{Arc, Mutex, OnceLock};

use super::live::Live;
use super::setup::Setup;
use crate::abi::transfers::FidEp;

#[repr(C)]
pub(crate) struct Ep {
    pub(super) fid: FidEp,
    pub(super) setup: Mutex<Setup>,
    pub(super) live: OnceLock<Arc<Live>>,
}

/// The endpoint that a call is for, or a return from it if it is not enabled.
macro_rules! enabled {
    ($ep:expr) => {
        match fid_ref!($ep, Ep).live.get() {
            Some(live) => live,
            None => return -(FI_EOPBADSTATE as isize),
        }
    };
}

pub(super) use enabled;
