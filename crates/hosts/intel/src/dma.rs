//! Memory of the guest.

use vhost::memory::{Memory, MemoryError};

/// Memory of the guest, as the card reaches it.
pub(crate) trait Dma {
    /// Reads.
    ///
    /// # Errors
    /// If there is no such memory.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryError>;

    /// Writes.
    ///
    /// # Errors
    /// As for reading.
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
