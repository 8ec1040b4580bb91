//! The object, which all that a domain makes looks at.

use std::sync::Arc;

use crate::abi::objects::FidDomain;
use crate::regions::Regions;

#[repr(C)]
pub(crate) struct Domain {
    fid: FidDomain,
    /// The memory that peers may use.
    pub(crate) regions: Arc<Regions>,
}

impl Domain {
    pub(super) fn new(fid: FidDomain) -> Self {
        Self { fid, regions: Arc::default() }
    }
}
