//! Memory of the guest.

use vhost::transport::memory::{Memory, MemoryError};

/// Memory of the guest, as the card reaches it.
pub(crate) trait Dma {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryError>;

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryError>;
}

impl Dma for Memory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryError> {
        Self::read(self, address, bytes)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        Self::write(self, address, bytes)
    }
}
